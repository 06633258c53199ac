//! Finds the files of a project that a command line would run.
//!
//! The line is never given to a shell. Every piece that could be the path of an existing project
//! file counts: a file too many costs the user a question, but a file too few would run unreviewed
//! code.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs that run the file given as an argument, regardless of its extension.
const INTERPRETERS: &[&str] = &[
    "bash",
    "bun",
    "dash",
    "deno",
    "exec",
    "fish",
    "for",
    "ksh",
    "lua",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "python",
    "ruby",
    "run-parts",
    "sh",
    "source",
    "ts-node",
    "tsx",
    "uv",
    "zsh",
];

/// Suffixes that interpreters append to the name of a module or folder to find its file.
const MODULE_SUFFIXES: &[&str] = &[
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".py",
    ".sh",
    "/__main__.py",
    "/index.js",
    "/index.mjs",
    "/index.cjs",
    "/index.ts",
    "/package.json",
];

/// Variables and commands in hooks that stand for the project or for the working directory.
const PROJECT_VARIABLES: &[&str] = &[
    "${HAFT_PROJECT_DIR}",
    "$HAFT_PROJECT_DIR",
    "${CLAUDE_PROJECT_DIR}",
    "$CLAUDE_PROJECT_DIR",
    "${PWD}",
    "$PWD",
    "$(pwd)",
    "`pwd`",
];

/// The maximum number of words in all command lines together. If there are more, the search is
/// given up; no command line that a person reviewed has nearly as many.
const MAX_WORDS: usize = 1_000;
/// The maximum number of folders in which named files are searched for.
const MAX_FOLDERS: usize = 16;

/// The extensions of files that are treated as programs whenever a command line names them.
const SCRIPT_EXTENSIONS: &[&str] = &[
    "awk", "bash", "cjs", "cts", "fish", "js", "jsx", "lua", "mjs", "mk", "mts", "php", "pl",
    "ps1", "py", "rb", "sed", "sh", "ts", "tsx", "zsh",
];

/// Returns the files of the project that the command lines `lines` would run in `cwd`, relative to
/// `root`. Executable files and arguments of interpreters count; files that are only read or
/// written do not. Returns `None` if there is too much to search.
pub(crate) fn find_named_files(
    root: &Path,
    cwd: &Path,
    lines: &[&str],
) -> Option<BTreeSet<String>> {
    let words: Vec<String> = lines
        .iter()
        .flat_map(|line| split_path_candidates(&strip_output_targets(line)))
        .collect();
    let mut folders = BTreeSet::from([root.to_owned(), cwd.to_owned()]);
    folders.extend(
        words
            .iter()
            .map(|word| root.join(strip_root(root, word)))
            .filter(|folder| folder.is_dir()),
    );
    if words.len() > MAX_WORDS || folders.len() > MAX_FOLDERS {
        return None;
    }
    let feeds_any_interpreter = lines.iter().any(|line| feeds_interpreter(line));
    let mut found = BTreeSet::new();
    let mut scripts = 0;
    for word in &words {
        let is_script = feeds_any_interpreter || scripts > 0 && !word.starts_with('-');
        let is_command = lines
            .iter()
            .any(|line| line.trim_start().starts_with(word.as_str()));
        let mut paths = Vec::new();
        for folder in &folders {
            collect_path_candidates(
                folder,
                strip_root(root, word),
                (is_script, is_command),
                &mut paths,
            );
        }
        let named = paths
            .iter()
            .filter(|path| is_script || is_runnable(path))
            .filter_map(|path| path_in_project(root, path));
        let before = found.len();
        found.extend(named);
        if is_interpreter(word) {
            // An option before the file may have a value, so several words may be the file.
            scripts = 3;
        } else if is_script {
            scripts = if found.len() > before {
                0
            } else {
                scripts - i32::from(scripts > 0)
            };
        }
    }
    Some(found)
}

/// Collects the paths below `folder` to which `word` may refer.
fn collect_path_candidates(
    folder: &Path,
    word: &str,
    (is_script, is_command): (bool, bool),
    paths: &mut Vec<PathBuf>,
) {
    paths.push(folder.join(word));
    if is_pattern(word) && word.contains('/') && (is_script || is_command) {
        expand_pattern(
            folder.to_owned(),
            &word.split('/').collect::<Vec<_>>(),
            paths,
        );
    }
    if is_script {
        let names = [
            word.to_owned(),
            word.replace('.', "/").trim_start_matches('/').to_owned(),
        ];
        let endings = |name: String| {
            MODULE_SUFFIXES
                .iter()
                .map(move |ending| format!("{name}{ending}"))
        };
        paths.extend(
            names
                .into_iter()
                .flat_map(endings)
                .map(|name| folder.join(name)),
        );
    }
}

/// True if a file can be run directly, because it is executable, has a script extension or begins
/// with `#!`.
fn is_runnable(path: &Path) -> bool {
    let is_executable = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let is_script = path
        .extension()
        .is_some_and(|ending| SCRIPT_EXTENSIONS.iter().any(|one| ending == *one));
    is_executable
        || is_script
        || path.is_file() && read_first_bytes(path).is_ok_and(|bytes| bytes == *b"#!")
}

fn read_first_bytes(path: &Path) -> std::io::Result<[u8; 2]> {
    let mut bytes = [0; 2];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// True if a line may pass a program to an interpreter by a pipe or a redirection, or if it
/// contains the output of another command.
fn feeds_interpreter(line: &str) -> bool {
    let piped = line
        .split('|')
        .skip(1)
        .filter_map(|command| command.split_whitespace().next());
    line.contains(['<', '`'])
        || line.contains("$(")
        || line.contains("eval")
        || piped.into_iter().any(is_interpreter)
}

/// Removes the targets of output redirections from a command line.
fn strip_output_targets(line: &str) -> String {
    let mut parts = line.split('>');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let target = part.trim_start_matches(['|', '&', ' ']);
        kept.push(' ');
        kept.push_str(
            target
                .find([' ', '\t', '\n', ';', '|', '&', ')', '"', '\''])
                .map_or("", |end| &target[end..]),
        );
    }
    kept
}

/// Returns every piece of a line that could be a path, in order: the words into which a shell
/// splits the line, and pieces of these words.
fn split_path_candidates(line: &str) -> Vec<String> {
    let line = PROJECT_VARIABLES
        .iter()
        .fold(line.to_owned(), |line, variable| {
            line.replace(variable, ".")
        });
    let mut tokens = Vec::new();
    let mut token = String::new();
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', None) => token.extend(characters.next()),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() || ";|&()<".contains(c) => {
                tokens.push(std::mem::take(&mut token));
            }
            (c, _) => token.push(c),
        }
    }
    tokens.push(token);
    let is_end = |c: char| c.is_whitespace() || ";|&()<\"'`=:,{}$\\".contains(c);
    let mut words: Vec<String> = Vec::new();
    for token in tokens {
        let pieces = token.split(is_end).filter(|piece| *piece != token);
        for word in std::iter::once(token.as_str()).chain(pieces) {
            // The value of an option may follow in the same word, as in `-Ipath`.
            let value = word.get(2..).filter(|_| word.starts_with('-'));
            words.extend(std::iter::once(word).chain(value).map(str::to_owned));
        }
    }
    words.retain(|word| !word.is_empty() && !word.contains('\0'));
    words
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    INTERPRETERS.contains(&name)
        || INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Removes the path of `root` and leading slashes from the beginning of a word.
fn strip_root<'a>(root: &Path, word: &'a str) -> &'a str {
    let below = root
        .to_str()
        .and_then(|root| word.strip_prefix(root))
        .unwrap_or(word);
    below.trim_start_matches('/')
}

fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '[', '{', '$', '`'])
}

/// Collects the paths to which a path with patterns may refer. The value of a variable is unknown,
/// so a variable matches everything.
fn expand_pattern(at: PathBuf, parts: &[&str], paths: &mut Vec<PathBuf>) {
    let [part, rest @ ..] = parts else {
        paths.push(at);
        return;
    };
    if !is_pattern(part) {
        return expand_pattern(at.join(part), rest, paths);
    }
    let pattern = if part.contains(['$', '`']) { "*" } else { part };
    let Ok(glob) = globset::Glob::new(pattern) else {
        return;
    };
    let glob = glob.compile_matcher();
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        if glob.is_match(entry.file_name()) {
            expand_pattern(entry.path(), rest, paths);
        }
    }
}

/// Returns the path of a file relative to `root`, or `None` if the file does not exist or is
/// outside `root`. A link in the project is returned by its own path, not by its target's.
fn path_in_project(root: &Path, path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let linked = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let real = path.canonicalize().ok()?;
    let name = linked
        .strip_prefix(root)
        .or_else(|_| real.strip_prefix(root))
        .ok()?;
    name.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines, and the project files that each one names.
    const LINES: &[(&str, &[&str])] = &[
        ("./scripts/fmt.sh", &["scripts/fmt.sh"]),
        ("scripts/../scripts//fmt.sh --all", &["scripts/fmt.sh"]),
        (
            "\"$CLAUDE_PROJECT_DIR\"/scripts/fmt.sh",
            &["scripts/fmt.sh"],
        ),
        (
            "${HAFT_PROJECT_DIR}/scripts/fmt.sh | tee /dev/null",
            &["scripts/fmt.sh"],
        ),
        (
            "$(git rev-parse --show-toplevel)/scripts/fmt.sh",
            &["scripts/fmt.sh"],
        ),
        (
            "bash -c 'exec ./scripts/fmt.sh \"$@\"'",
            &["scripts/fmt.sh"],
        ),
        ("sh -c \"cd scripts && sh fmt.sh\"", &["scripts/fmt.sh"]),
        ("./scripts/f\\mt.sh", &["scripts/fmt.sh"]),
        ("./scripts/f''mt.sh", &["scripts/fmt.sh"]),
        ("./scr?pts/fmt.*", &["scripts/fmt.sh"]),
        ("X=${Y:-./scripts/fmt.sh}; $X", &["scripts/fmt.sh"]),
        ("'my tools/a b.sh'", &["my tools/a b.sh"]),
        ("python3 tools/server.py --port 1", &["tools/server.py"]),
        ("python3.12 -m tools.server", &["tools/server.py"]),
        ("python tools", &["tools/__main__.py"]),
        ("node tools/x", &["tools/x.js"]),
        ("node --require=./tools/x.js -e 1", &["tools/x.js"]),
        ("node -r./tools/x.js -e 1", &["tools/x.js"]),
        (
            "for f in ./tools/*.py; do python $f; done",
            &["tools/__main__.py", "tools/server.py"],
        ),
        ("sh setup", &["setup"]),
        ("cat setup | sh -s", &["setup"]),
        ("python3 -W ignore tools/server", &["tools/server.py"]),
        ("sh -c '. ./setup'", &["setup"]),
        // These lines run no file of the project by name.
        ("cargo test > README.md 2>>setup", &[]),
        ("touch README.md; wc -l setup", &[]),
        ("uvx mcp-server-sqlite --db-path ./setup", &[]),
        ("sh -c 'cargo test >setup && touch README.md'", &[]),
        ("cargo fmt --check", &[]),
        ("prettier --check src 'src/*.ts' lib/", &[]),
        (
            "jq -r .tool_input.file_path | xargs -r cat >/dev/null; echo $HOME",
            &[],
        ),
        ("cat /etc/passwd", &[]),
    ];

    #[test]
    fn named_files_recognizes_every_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "scripts/fmt.sh",
            "my tools/a b.sh",
            "tools/server.py",
            "tools/__main__.py",
            "tools/x.js",
            "src/index.ts",
            "lib/a.ts",
            "README.md",
            "setup",
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        for (line, wanted) in LINES {
            let found: Vec<_> = find_named_files(&root, &root, &[line])
                .unwrap()
                .into_iter()
                .collect();
            assert_eq!(found, *wanted, "{line}");
        }
        let absolute = format!("{}/scripts/fmt.sh", root.display());
        assert_eq!(
            find_named_files(&root, &root, &[&absolute]).unwrap().len(),
            1
        );
        let data = find_named_files(
            &root,
            &root,
            &["python", "tools/server.py", "--db", "README.md"],
        )
        .unwrap();
        assert_eq!(
            data.into_iter().collect::<Vec<_>>(),
            ["tools/server.py"],
            "what it reads is not run"
        );
        let parts = find_named_files(&root, &root, &["python", "server.py", "tools"]).unwrap();
        assert!(parts.contains("tools/server.py"), "{parts:?}");
        assert_eq!(
            find_named_files(&root, &root.join("tools"), &["./server.py"])
                .unwrap()
                .len(),
            1,
            "in the folder worked in"
        );
        let many: Vec<String> = (0..2 * MAX_WORDS)
            .map(|number| format!("w{number}"))
            .collect();
        assert_eq!(find_named_files(&root, &root, &[&many.join(" ")]), None);
    }

    #[test]
    fn named_files_returns_links_and_skips_files_outside() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("real.sh"), "x").unwrap();
        std::fs::write(other.path().join("out.sh"), "x").unwrap();
        std::os::unix::fs::symlink("real.sh", root.join("link.sh")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.join("away")).unwrap();
        assert_eq!(
            find_named_files(&root, &root, &["./link.sh"]).unwrap(),
            BTreeSet::from(["link.sh".to_owned()])
        );
        assert!(
            find_named_files(&root, &root, &["away/out.sh"])
                .unwrap()
                .is_empty()
        );
    }
}
