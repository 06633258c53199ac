//! What makes known programs run others or write, as data. What is not listed is the rule writer's business.

/// One way to look at a program's words. A program may have several.
pub(super) struct Program {
    pub(super) names: &'static [&'static str],
    /// Only where this is its first operand.
    pub(super) after: &'static str,
    /// Letters of short options, wherever they stand in a cluster.
    pub(super) short: &'static str,
    /// Long options, without their dashes.
    pub(super) long: &'static [&'static str],
    /// Whole words, alone or before a `=`.
    pub(super) words: &'static [&'static str],
    /// What words begin with.
    pub(super) prefixes: &'static [&'static str],
    /// First operands, alone or with the second.
    pub(super) verbs: &'static [&'static str],
    pub(super) operands: Operands,
    pub(super) inputs: Inputs,
    /// Whether `NAME=VALUE` changes what it does.
    pub(super) assignments: bool,
    /// Whether its first word is a cluster without a dash.
    pub(super) bundles_first: bool,
    /// Whether what follows the first operand is not its own.
    pub(super) stops_at_operand: bool,
}

/// What operands are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Read,
    /// Files it writes, from this one on.
    WrittenFrom(usize),
}

/// What it takes from its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    Data,
    /// Commands, where there are fewer operands than this: the last one says what they are otherwise.
    CommandsBelow(usize),
    /// Commands.
    Commands,
}

const PROGRAM: Program = Program {
    names: &[],
    after: "",
    short: "",
    long: &[],
    words: &[],
    prefixes: &[],
    verbs: &[],
    operands: Operands::Read,
    inputs: Inputs::Data,
    assignments: false,
    bundles_first: false,
    stops_at_operand: false,
};

/// Builtins that change what the shell does with the rest of the line, or run code hidden in a name. Only a rule without `:*`
/// covers them.
pub(super) const SHELL_STATE: &[&str] = &[
    ".", "alias", "bind", "compgen", "complete", "compopt", "coproc", "declare", "disown", "enable", "export", "fc",
    "fg", "getopts", "hash", "history", "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly",
    "set", "shopt", "source", "suspend", "trap", "typeset", "umask", "unalias", "unset",
];

/// Programs that read the files their words name and write none of them.
pub(super) const READERS: &[&str] = &[
    "[", "ack", "ag", "basename", "bat", "cat", "cksum", "cmp", "column", "comm", "cut", "diff", "dirname", "du",
    "echo", "egrep", "fgrep", "file", "find", "grep", "head", "hexdump", "jq", "less", "ls", "md5sum", "more", "nl",
    "od", "printf", "readlink", "realpath", "rg", "sed", "sha1sum", "sha256sum", "sha512sum", "sort", "stat",
    "strings", "tac", "tail", "test", "tr", "tree", "uniq", "wc", "xxd", "yq",
];

pub(super) const PROGRAMS: &[Program] = &[
    // Finding and reading
    Program {
        names: &["find", "gfind", "bfs"],
        words: &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-rm"],
        ..PROGRAM
    },
    Program { names: &["fd", "fdfind"], short: "xX", long: &["exec", "exec-batch"], ..PROGRAM },
    Program { names: &["rg"], short: "z", long: &["pre", "hostname-bin", "search-zip"], ..PROGRAM },
    Program { names: &["ag", "ack", "bat", "delta"], long: &["pager", "output"], ..PROGRAM },
    Program { names: &["fzf", "sk"], long: &["preview", "bind", "execute", "with-shell", "become"], ..PROGRAM },
    Program {
        names: &["less"],
        short: "okO",
        long: &["log-file", "lesskey-file", "lesskey-src", "tag"],
        prefixes: &["+"],
        ..PROGRAM
    },
    Program { names: &["more"], prefixes: &["+"], ..PROGRAM },
    Program { names: &["man"], short: "PHC", long: &["pager", "html", "config-file", "preprocessor"], ..PROGRAM },
    Program { names: &["tree"], short: "oR", long: &["output"], ..PROGRAM },
    Program { names: &["file"], short: "Cm", long: &["compile", "magic-file"], ..PROGRAM },
    Program { names: &["diff"], short: "l", long: &["paginate"], ..PROGRAM },
    Program { names: &["sdiff", "diff3"], short: "o", long: &["output", "diff-program"], ..PROGRAM },
    Program { names: &["yq"], short: "is", long: &["inplace", "in-place", "split-exp"], ..PROGRAM },
    Program { names: &["locate", "plocate"], long: &["database"], ..PROGRAM },
    // Text
    Program {
        names: &["sort", "gsort"],
        short: "oT",
        long: &["output", "compress-program", "temporary-directory"],
        ..PROGRAM
    },
    Program { names: &["uniq", "xxd"], operands: Operands::WrittenFrom(1), ..PROGRAM },
    Program { names: &["tee", "sponge"], operands: Operands::WrittenFrom(0), ..PROGRAM },
    Program { names: &["shuf", "base64", "base32", "iconv"], short: "o", long: &["output"], ..PROGRAM },
    Program { names: &["split", "gsplit"], long: &["filter"], ..PROGRAM },
    Program { names: &["dd"], words: &["of"], ..PROGRAM },
    Program { names: &["patch"], short: "eori", long: &["ed", "output", "reject-file", "input"], ..PROGRAM },
    Program { names: &["ed", "red", "ex", "dc"], inputs: Inputs::Commands, ..PROGRAM },
    Program {
        names: &["vi", "vim", "nvim", "view", "gvim", "vimdiff"],
        short: "cSsuwWir",
        long: &["cmd", "listen", "remote", "startuptime", "headless"],
        prefixes: &["+"],
        inputs: Inputs::Commands,
        ..PROGRAM
    },
    Program {
        names: &["emacs", "emacsclient"],
        short: "lfe",
        long: &["eval", "execute", "load", "funcall", "batch", "script", "insert", "init-directory", "kill"],
        ..PROGRAM
    },
    // Archives and copies
    Program {
        names: &["tar", "gtar", "bsdtar"],
        short: "IF",
        long: &[
            "to-command", "checkpoint-action", "use-compress-program", "rsh-command", "rmt-command", "info-script",
            "new-volume-script", "index-file", "remove-files", "delete", "volno-file",
        ],
        bundles_first: true,
        ..PROGRAM
    },
    Program { names: &["zip"], short: "Tm", long: &["unzip-command", "test", "move"], ..PROGRAM },
    Program { names: &["cpio"], short: "oOF", long: &["rsh-command", "file", "create"], ..PROGRAM },
    Program {
        names: &["rsync"],
        short: "eM",
        long: &[
            "rsh", "rsync-path", "daemon", "config", "log-file", "write-batch", "only-write-batch", "read-batch",
            "remote-option", "delete", "remove-source-files", "partial-dir", "backup-dir", "temp-dir",
        ],
        prefixes: &["--delete"],
        ..PROGRAM
    },
    Program { names: &["scp", "sftp"], short: "oFSDJbB", ..PROGRAM },
    Program { names: &["ssh"], short: "oFSEILRDJwW", ..PROGRAM },
    Program { names: &["install", "ginstall"], long: &["strip-program"], ..PROGRAM },
    // Network
    Program {
        names: &["curl"],
        short: "oOJTKDcx",
        long: &[
            "output", "remote-name", "remote-header-name", "output-dir", "upload-file", "config", "dump-header",
            "cookie-jar", "trace", "libcurl", "etag-save", "hsts", "alt-svc", "stderr", "create-dirs", "engine",
            "proxy",
        ],
        ..PROGRAM
    },
    Program {
        names: &["wget"],
        short: "OoPaiex",
        long: &[
            "output-document", "output-file", "append-output", "directory-prefix", "input-file", "execute",
            "use-askpass", "config", "post-file", "body-file", "save-cookies", "warc-file", "rejected-log",
            "hsts-file", "secure-protocol",
        ],
        ..PROGRAM
    },
    Program {
        names: &["ftp", "lftp", "telnet", "nc", "ncat", "netcat", "socat"],
        short: "ec",
        long: &["exec", "sh-exec", "lua-exec"],
        prefixes: &["EXEC:", "SYSTEM:", "exec:", "system:"],
        ..PROGRAM
    },
    Program { names: &["tcpdump"], short: "zwFCG", ..PROGRAM },
    Program {
        names: &["openssl"],
        words: &[
            "-out", "-engine", "-provider", "-provider-path", "-keyout", "-writerand", "-config", "-CAcreateserial",
        ],
        ..PROGRAM
    },
    Program {
        names: &["gpg", "gpg2"],
        short: "o",
        long: &["output", "exec-path", "photo-viewer", "load-extension", "logger-file", "options"],
        ..PROGRAM
    },
    // Version control
    Program {
        names: &["git"],
        short: "cC",
        long: &[
            "exec-path", "config-env", "config", "git-dir", "work-tree", "upload-pack", "receive-pack", "exec",
            "ext-diff", "textconv", "open-files-in-pager", "output", "output-directory", "template", "extcmd", "tool",
            "separate-git-dir", "to-cmd", "cc-cmd", "sendmail-cmd", "smtp-server", "edit-description",
            "upload-archive",
        ],
        prefixes: &["ext::", "fd::"],
        verbs: &[
            "bisect run", "config", "credential", "daemon", "difftool", "fast-import", "filter-branch", "help",
            "hook run", "imap-send", "instaweb", "maintenance", "mergetool", "p4", "receive-pack", "remote-ext",
            "remote-fd", "send-email", "shell", "submodule foreach", "svn", "upload-archive", "upload-pack",
            "web--browse",
        ],
        ..PROGRAM
    },
    Program { names: &["git"], after: "grep", short: "O", ..PROGRAM },
    Program { names: &["git"], after: "rebase", short: "x", ..PROGRAM },
    Program { names: &["git"], after: "clone", short: "u", ..PROGRAM },
    Program { names: &["git"], after: "archive", short: "o", ..PROGRAM },
    Program { names: &["git"], after: "format-patch", short: "o", ..PROGRAM },
    Program { names: &["git"], after: "bundle", verbs: &["bundle create"], ..PROGRAM },
    Program {
        names: &["hg"],
        long: &["config", "cwd", "repository", "ssh", "remotecmd", "tool", "output", "debugger"],
        ..PROGRAM
    },
    Program {
        names: &["svn"],
        long: &["editor-cmd", "diff-cmd", "diff3-cmd", "merge-cmd", "config-option", "config-dir"],
        ..PROGRAM
    },
    // Interpreters
    Program {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        short: "cm",
        inputs: Inputs::CommandsBelow(1),
        stops_at_operand: true,
        ..PROGRAM
    },
    Program { names: &["perl"], short: "eEMmixI", inputs: Inputs::CommandsBelow(1), stops_at_operand: true, ..PROGRAM },
    Program { names: &["ruby"], short: "erpniIC", inputs: Inputs::CommandsBelow(1), stops_at_operand: true, ..PROGRAM },
    Program {
        names: &["node", "nodejs", "bun", "tsx", "ts-node"],
        short: "epr",
        long: &[
            "eval", "print", "require", "import", "loader", "experimental-loader", "env-file", "inspect",
            "test-reporter",
        ],
        verbs: &["x", "exec", "repl", "eval"],
        inputs: Inputs::CommandsBelow(1),
        stops_at_operand: true,
        ..PROGRAM
    },
    Program { names: &["deno"], verbs: &["eval", "repl", "run", "x"], inputs: Inputs::CommandsBelow(1), ..PROGRAM },
    Program { names: &["php"], short: "rBREFcd", inputs: Inputs::CommandsBelow(1), stops_at_operand: true, ..PROGRAM },
    Program {
        names: &["lua", "luajit", "tclsh", "wish", "guile", "sbcl", "ghci", "R", "irb"],
        short: "elcf",
        long: &["eval", "load"],
        inputs: Inputs::CommandsBelow(1),
        stops_at_operand: true,
        ..PROGRAM
    },
    Program {
        names: &["Rscript", "julia", "swift", "scala", "groovy"],
        short: "eE",
        long: &["eval", "print"],
        inputs: Inputs::CommandsBelow(1),
        stops_at_operand: true,
        ..PROGRAM
    },
    Program { names: &["java"], prefixes: &["-agent", "-javaagent", "-XX:On", "@"], ..PROGRAM },
    Program {
        names: &["sqlite3", "duckdb"],
        words: &["-cmd", "-init"],
        prefixes: &["."],
        operands: Operands::WrittenFrom(1),
        inputs: Inputs::CommandsBelow(2),
        ..PROGRAM
    },
    Program {
        names: &["psql", "mysql", "mariadb"],
        short: "cfoLev",
        long: &["command", "file", "output", "log-file", "execute", "init-command", "tee", "pager", "variable", "set"],
        inputs: Inputs::Commands,
        ..PROGRAM
    },
    // Building
    Program {
        names: &["make", "gmake", "bmake", "just"],
        short: "fECI",
        long: &["file", "makefile", "eval", "directory", "include-dir", "shell", "justfile", "command"],
        assignments: true,
        ..PROGRAM
    },
    Program { names: &["cmake"], words: &["-P", "-E", "-C", "--build"], verbs: &[], ..PROGRAM },
    Program { names: &["ninja"], short: "fCt", ..PROGRAM },
    Program { names: &["cargo"], short: "ZC", long: &["config", "manifest-path"], prefixes: &["+"], ..PROGRAM },
    Program { names: &["rustc"], short: "Co", long: &["codegen", "out-dir", "emit"], prefixes: &["@"], ..PROGRAM },
    Program {
        names: &["go"],
        words: &[
            "-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-o", "-C", "--exec", "--toolexec", "--vettool",
        ],
        verbs: &["run", "generate", "tool", "env"],
        ..PROGRAM
    },
    Program {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld"],
        prefixes: &[
            "-wrapper", "-fplugin", "-specs", "-B", "-o", "@", "--specs", "--plugin", "-plugin", "-Xclang", "-fuse-ld",
            "-dump",
        ],
        ..PROGRAM
    },
    Program {
        names: &["mvn", "gradle", "gradlew", "ant", "sbt"],
        short: "DIbf",
        long: &["init-script", "build-file", "project-dir", "file"],
        prefixes: &["exec:", "-D"],
        ..PROGRAM
    },
    Program {
        names: &["npm"],
        long: &["script-shell", "node-options", "prefix", "editor", "browser", "git", "shell", "call"],
        verbs: &["exec", "x", "explore", "init", "create", "edit", "config", "set"],
        ..PROGRAM
    },
    Program {
        names: &["yarn", "pnpm"],
        long: &["script-shell", "node-options", "cwd", "dir"],
        verbs: &["exec", "dlx", "create", "init", "node", "config"],
        ..PROGRAM
    },
    Program {
        names: &["uv", "poetry", "pipenv", "conda", "mamba", "mise", "pixi", "rye", "hatch", "pdm", "rustup", "asdf"],
        verbs: &["run", "exec", "x", "shell", "tool", "script"],
        ..PROGRAM
    },
    Program {
        names: &["bundle", "gem", "rake", "rails"],
        short: "erfR",
        verbs: &["exec", "console", "runner", "r", "c"],
        ..PROGRAM
    },
    Program {
        names: &["pip", "pip3"],
        long: &["log", "python", "config-settings", "global-option", "build-option"],
        ..PROGRAM
    },
    // Containers and machines
    Program {
        names: &["docker", "podman", "nerdctl"],
        verbs: &[
            "run", "exec", "build", "cp", "create", "compose run", "compose exec", "compose up", "container run",
            "container exec", "plugin",
        ],
        ..PROGRAM
    },
    Program {
        names: &["kubectl", "oc"],
        long: &["kubeconfig"],
        verbs: &["exec", "run", "cp", "debug", "edit", "plugin", "config", "attach"],
        ..PROGRAM
    },
    Program { names: &["helm"], long: &["post-renderer"], verbs: &["plugin"], ..PROGRAM },
    Program { names: &["apt", "apt-get"], short: "oc", long: &["option", "config-file"], ..PROGRAM },
    Program { names: &["rpm"], short: "E", long: &["eval", "pipe", "define", "load", "rcfile"], ..PROGRAM },
    Program { names: &["crontab"], operands: Operands::WrittenFrom(0), inputs: Inputs::CommandsBelow(1), ..PROGRAM },
    Program { names: &["hostname"], short: "Fb", long: &["file"], operands: Operands::WrittenFrom(0), ..PROGRAM },
    Program { names: &["date"], short: "sf", long: &["set", "file"], ..PROGRAM },
    Program { names: &["sysctl"], short: "wpf", long: &["write", "load", "system"], assignments: true, ..PROGRAM },
    Program { names: &["ip"], short: "b", long: &["batch"], verbs: &["netns exec", "vrf exec"], ..PROGRAM },
    // Builtins whose operands can hold code
    Program { names: &["printf"], short: "v", stops_at_operand: true, ..PROGRAM },
    Program { names: &["test", "["], words: &["-v", "-R"], ..PROGRAM },
    Program { names: &["jobs"], short: "x", ..PROGRAM },
    Program { names: &["wait"], short: "p", ..PROGRAM },
];
