//! Checks that every path a call opens for writing, as strace reports it, was known to permission
//! before the call ran.
//!
//! The paths that a tool declares cannot be read from outside, so their effect is tested: every
//! written path is denied by its own rule, and then an equal call must be denied. Tools of every
//! extension are covered, and programs (commands, external tools, MCP servers) write only what the
//! sandbox allows.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig, haft, has_strace};
use crate::sandbox::has_namespaces;

/// System calls that make, change, move or remove a file by its name, or open it for that.
const WATCHED: &str = "trace=execve,open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,rmdir,unlink,unlinkat,rename,\
                       renameat,renameat2,link,linkat,symlink,symlinkat,truncate,ftruncate,chmod,fchmod,fchmodat,\
                       chown,lchown,fchown,fchownat,setxattr,lsetxattr,fsetxattr,utimensat";

/// A path that was written, by haft itself or by a program it started.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WrittenPath {
    path: PathBuf,
    by_haft: bool,
}

/// Returns the paths that a log of strace reports as written. A new process counts as haft until it
/// executes a program.
fn written_paths(log: &str) -> BTreeSet<WrittenPath> {
    let mut programs = BTreeSet::new();
    let mut all = BTreeSet::new();
    for line in log.lines() {
        let Some((pid, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, rest)) = call.trim_start().split_once('(') else {
            continue;
        };
        if name == "execve" {
            if !starts_haft(rest) {
                programs.insert(pid);
            }
            continue;
        }
        let by_haft = !programs.contains(pid);
        all.extend(call_paths(name, rest).into_iter().map(|path| WrittenPath {
            path: normalize_path(&path),
            by_haft,
        }));
    }
    all
}

/// True if a call of `execve` starts haft: by its path, or by the descriptor that haft keeps of its
/// own program.
fn starts_haft(arguments: &str) -> bool {
    arguments.starts_with(&format!("{:?}", haft().to_str().unwrap()))
        || arguments.starts_with("\"/proc/self/fd/")
}

/// Returns the paths of one call; `rest` follows its opening parenthesis.
fn call_paths(name: &str, rest: &str) -> Vec<PathBuf> {
    let (given, result) = rest.rsplit_once(") = ").unwrap_or((rest, ""));
    let arguments = split_arguments(given);
    if name.starts_with("open") || name == "creat" {
        let writes = name == "creat"
            || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .any(|flag| given.contains(flag));
        return descriptor_path(result)
            .filter(|_| writes)
            .map(PathBuf::from)
            .into_iter()
            .collect();
    }
    let mut found = Vec::new();
    let mut folder = None;
    for argument in arguments {
        if let Some(text) = argument.strip_prefix('"') {
            let text = text.trim_end_matches("...").trim_end_matches('"');
            found.push(
                folder
                    .take()
                    .map_or_else(|| PathBuf::from(text), |folder: PathBuf| folder.join(text)),
            );
        } else if let Some(path) = descriptor_path(argument) {
            // A descriptor: the next argument is relative to it, or the descriptor itself is meant.
            if let Some(before) = folder.replace(PathBuf::from(path)) {
                found.push(before);
            }
        }
    }
    found.extend(folder);
    // Making a link does not write its target.
    if name.starts_with("symlink") && found.len() > 1 {
        found.remove(0);
    }
    found
}

/// Returns the path in `7</path>`.
fn descriptor_path(descriptor: &str) -> Option<&str> {
    descriptor
        .split_once('<')?
        .1
        .rsplit_once('>')
        .map(|(path, _)| path)
}

/// Splits arguments at commas outside of quotes and brackets.
fn split_arguments(given: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let mut depth = 0_i32;
    let mut escaped = false;
    for (index, c) in given.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '<' | '{' | '[' if !quoted => depth += 1,
            '>' | '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(given[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(given[start..].trim());
    parts
}

/// Removes `.` and `..`.
fn normalize_path(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

#[test]
fn written_paths_parses_a_strace_log() {
    let log = format!(
        "1 execve({:?}, [\"haft\"], 0x1 /* 3 vars */) = 0\n\
         1 openat(AT_FDCWD</p>, \"a, b\", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 5</p/a, b>\n\
         1 openat(AT_FDCWD</p>, \"read\", O_RDONLY|O_CLOEXEC) = 5</p/read>\n\
         1 renameat2(5</p/x>, \"t\", 6</p/y>, \"u\", RENAME_EXCHANGE) = 0\n\
         2 execve(\"/bin/sh\", [\"sh\"], 0x1 /* 3 vars */) = 0\n\
         2 symlinkat(\"/etc/passwd\", AT_FDCWD</p>, \"../q/link\") = 0\n\
         2 fchmod(7</p/mode>, 0600) = 0\n\
         2 unlink(\"/p/\\\"gone\") = 0\n",
        haft().to_str().unwrap()
    );
    let of = |by_haft: bool| {
        let all = written_paths(&log)
            .into_iter()
            .filter(move |written| written.by_haft == by_haft);
        all.map(|written| written.path.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(true), ["/p/a, b", "/p/x/t", "/p/y/u"]);
    assert_eq!(of(false), ["/p/\\\"gone", "/p/mode", "/q/link"]);
}

/// Runs a task under strace. Returns its output, and the paths written outside of haft's own
/// folders that are real files.
fn run_traced(rig: &Rig, mode: &str) -> (Ran, BTreeSet<WrittenPath>) {
    let log = rig.home().join("strace.log");
    let options = [
        "-y",
        "-s",
        "4096",
        "-e",
        WATCHED,
        "-e",
        "status=successful",
        "-o",
    ];
    let options = [&options[..], &[log.to_str().unwrap()]].concat();
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        mode,
        "begin",
    ];
    let ran = Ran(rig
        .command_under_strace(&options, &arguments)
        .output()
        .unwrap());
    let home = rig.home().canonicalize().unwrap();
    let own = [home.as_path(), Path::new("/dev"), Path::new("/proc")];
    let mut all = written_paths(&fs::read_to_string(&log).unwrap());
    all.retain(|written| {
        written.path.is_absolute() && !own.iter().any(|own| written.path.starts_with(own))
    });
    (ran, all)
}

fn tool_results(ran: &Ran) -> Vec<(Value, String)> {
    let results = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result" && event["agent"] == "main");
    results
        .map(|event| {
            (
                event["status"].clone(),
                event["text"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

/// A project with input for every tool: sources, documents, links, a collection, a web page, a
/// server, an agent.
fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let project = rig.project();
    for folder in [
        "src",
        "docs",
        "hidden",
        ".git",
        ".haft/agents",
        ".haft/tools",
        ".haft/skills/count",
    ] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/documents/fixtures");
    for file in [
        "paper.pdf",
        "analysis.ipynb",
        "report.docx",
        "sheet.xlsx",
        "slides.pptx",
        "report.odt",
    ] {
        fs::copy(fixtures.join(file), project.join("docs").join(file)).unwrap();
    }
    for (file, text) in [
        ("src/a.rs", "fn a() {}\n"),
        ("src/b.rs", "fn b() {}\n"),
        ("src/.ac.mod.md", "# src\n"),
        ("hidden/target.txt", "t\n"),
        (
            ".haft/agents/worker.md",
            "---\nname: worker\ndescription: Works\n---\nYou are worker.\n",
        ),
        (
            ".haft/skills/count/SKILL.md",
            "---\nname: count\ndescription: Counts\n---\nCount.\n",
        ),
        (".haft/tools/greedy", "#!/bin/sh\necho Usage: greedy\n"),
        ("server.sh", SHELL_MCP_SERVER),
        (
            ".mcp.json",
            r#"{"mcpServers": {"s": {"command": "/bin/sh", "args": ["server.sh"]}}}"#,
        ),
    ] {
        rig.write(file, text);
    }
    fs::set_permissions(
        project.join(".haft/tools/greedy"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("hidden/target.txt", project.join("link.txt")).unwrap();
    symlink("docs/analysis.ipynb", project.join("linked.ipynb")).unwrap();
    symlink("hidden", project.join("into")).unwrap();
    fs::create_dir(rig.home().join("animals")).unwrap();
    fs::write(
        rig.home().join("animals/zebra.md"),
        "# Zebras\n\nA zebra is counted by its stripes.\n",
    )
    .unwrap();
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let site = crate::web::start_site();
    rig.configure(&format!(
        "{config}[web]\ncrawl = true\nallow_private = [\"127.0.0.1\"]\nsearch = \"searxng\"\nsearch_url = \"{site}\"\n\
         [permissions]\n{ALLOW_RULES}"
    ));
    let animals = rig.home().join("animals");
    assert_eq!(
        rig.run(&[
            "rag",
            "add",
            "zoo",
            animals.to_str().unwrap(),
            "--description",
            "Animals."
        ])
        .code(),
        0
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    rig
}

/// The rule of every project here; tests append others.
const ALLOW_RULES: &str = "allow = [\"mcp__s\"]\n";

/// A program that tries to write to many paths by itself, each with its own open.
const GREEDY: &str = "#!/bin/sh\n\
    for file in made src/made /tmp/greedy /var/tmp/greedy \"$HOME/made\" \"$HOME/config.toml\" /etc/greedy /usr/greedy \
        ../greedy .git/config .haft/config.toml .haft/agents/more.md .mcp.json .vscode .envrc server.sh \
        /dev/shm/greedy; do\n\
        { echo greedy > \"$file\"; } 2>/dev/null || true\n\
    done\n";

/// Like [`rig`], with an external tool and a server that try to write everywhere. Not for `yolo`,
/// in which they are not confined.
fn greedy_rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = rig(replies);
    rig.write(".haft/tools/greedy", GREEDY);
    rig.write(
        "server.sh",
        format!(
            "{}\n{SHELL_MCP_SERVER}",
            GREEDY.lines().skip(1).collect::<Vec<_>>().join("\n")
        ),
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    rig
}

/// Calls that write no files but haft's own.
fn quiet_calls(site: &str) -> Vec<(&'static str, Value)> {
    let documents = [
        "paper.pdf",
        "analysis.ipynb",
        "report.docx",
        "sheet.xlsx",
        "slides.pptx",
        "report.odt",
    ];
    let mut calls: Vec<_> = documents
        .map(|name| ("read_file", json!({"path": format!("docs/{name}")})))
        .into_iter()
        .collect();
    calls.extend([
        ("list_files", json!({"path": ".", "recursive": true})),
        ("search_files", json!({"path": ".", "regex": "fn"})),
        ("glob", json!({"pattern": "**/*.rs"})),
        ("list_code_definition_names", json!({"path": "src"})),
        ("count_tokens", json!({"path": "docs/paper.pdf"})),
        (
            "todo_write",
            json!({"todos": [{"content": "a", "status": "pending"}]}),
        ),
        ("todo_read", json!({})),
        (
            "useful_info_add",
            json!({"path": "src/a.rs", "start_line": 1, "end_line": 1, "description": "it"}),
        ),
        ("useful_info_list", json!({})),
        ("useful_info_delete", json!({"number": 1})),
        ("note_add", json!({"path": "src/a.rs", "note": "it"})),
        ("note_query", json!({"path": "src"})),
        ("note_update", json!({"note_id": "n1", "note": "more"})),
        ("note_delete", json!({"note_id": "n1"})),
        ("conversation_message_ids_read", json!({})),
        (
            "conversation_message_ids_write",
            json!({"message_ids": "1a2b3c4d", "action": "append"}),
        ),
        ("recall", json!({"message_id": "1a2b3c4d"})),
        ("ac_mod_list", json!({"path": "."})),
        ("ac_mod_read", json!({"path": "src"})),
        ("tool_search", json!({"query": "undo a change"})),
        ("use_tool", json!({"name": "todo_read", "arguments": {}})),
        ("use_skill", json!({"name": "count"})),
        ("web_crawl", json!({"url": format!("{site}/page")})),
        ("web_search", json!({"query": "zebra stripes"})),
        (
            "use_rag_tool",
            json!({"server_name": "zoo", "query": "how are stripes counted?"}),
        ),
        (
            "run_named_subagents",
            json!({"subagents": "- {name: nobody, task: TASK}"}),
        ),
        ("session_interactive", json!({"session_id": "s9"})),
        ("session_stop", json!({"session_id": "s9"})),
        ("background_task", json!({"action": "list"})),
    ]);
    calls
}

/// Calls that write files of the project; the files they need are read before.
fn writing_calls() -> Vec<(&'static str, Value)> {
    let diff = "<<<<<<< SEARCH\nfn a() {}\n=======\nfn c() {}\n>>>>>>> REPLACE\n";
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/moved.rs\n@@\n-fn a() {}\n+fn b() {}\n\
                 *** Delete File: src/b.rs\n*** Add File: src/c.rs\n+fn c() {}\n*** End Patch\n";
    let edits = json!([
        {"path": "src/a.rs", "old_string": "a()", "new_string": "b()"},
        {"path": "src/b.rs", "old_string": "b()", "new_string": "c()"},
    ]);
    vec![
        (
            "write_to_file",
            json!({"path": "new/deep/file.txt", "content": "text"}),
        ),
        (
            "write_to_file",
            json!({"path": "link.txt", "content": "through a link"}),
        ),
        (
            "write_to_file",
            json!({"path": "into/target.txt", "content": "through a folder's link"}),
        ),
        (
            "edit_file",
            json!({"path": "src/a.rs", "old_text": "a()", "new_text": "b()"}),
        ),
        ("replace_in_file", json!({"path": "src/a.rs", "diff": diff})),
        ("multi_edit", json!({ "edits": edits })),
        ("apply_patch", json!({ "patch": patch })),
        (
            "extract_to_text",
            json!({"path": "docs/paper.pdf", "output": "notes/paper.txt"}),
        ),
        ("extract_to_text", json!({"path": "docs/report.docx"})),
        ("extract_to_text", json!({"path": "linked.ipynb"})),
        (
            "extract_to_text",
            json!({"path": "docs/analysis.ipynb", "output": "into/analysis.txt"}),
        ),
        (
            "ac_mod_write",
            json!({"path": "src/", "content": "# src\n\nMore.\n"}),
        ),
        (
            "use_tool",
            json!({"name": "write_to_file", "arguments": {"path": "src/by.rs", "content": "x"}}),
        ),
    ]
}

/// Tools that run programs, have their own test below, or only end the turn.
const UNTESTED_TOOLS: [&str; 9] = [
    "execute_command",
    "greedy",
    "session_start",
    "use_mcp_tool",
    "undo_edit",
    "ask_followup_question",
    "attempt_completion",
    "plan_mode_respond",
    "write_tool",
];

/// Reads the files that must be read, then calls the tool.
fn replies_with_reads(name: &str, arguments: &Value) -> Vec<Reply> {
    let read = [
        "src/a.rs",
        "src/b.rs",
        "hidden/target.txt",
        "src/.ac.mod.md",
    ];
    let reads = read.map(|path| Reply::call("read_file", json!({ "path": path })));
    reads
        .into_iter()
        .chain([Reply::call(name, arguments.clone()), Reply::text("Done.")])
        .collect()
}

#[test]
fn read_only_tools_open_no_file_for_writing() {
    if !has_strace() {
        return eprintln!(
            "skipped: strace cannot be used here, so nobody would see what is opened"
        );
    }
    let calls = quiet_calls(&crate::web::start_site());
    let rig = rig(calls
        .iter()
        .map(|(name, arguments)| Reply::call(*name, arguments.clone()))
        .chain([Reply::text("Done.")]));
    let known = rig.run(&["tools", "list", "--json"]).json();
    let known = known
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    let writing = writing_calls();
    let tried = |name: &str| {
        calls
            .iter()
            .chain(&writing)
            .any(|(tried, _)| *tried == name)
            || UNTESTED_TOOLS.contains(&name)
    };
    let forgotten: Vec<_> = known.filter(|name| !tried(name)).collect();
    assert_eq!(
        forgotten, [""; 0],
        "add a call that does what the tool does to `quiet_calls` or `writing_calls`"
    );

    let (ran, written) = run_traced(&rig, "yolo");
    let told = tool_results(&ran);
    assert_eq!(told.len(), calls.len(), "{}{}", ran.stdout(), ran.stderr());
    for ((status, text), (name, arguments)) in told.iter().zip(&calls) {
        let refused = text.contains("unknown_tool") || text.contains("There is no tool");
        assert!(
            !refused,
            "`{name}` with {arguments} was not even called: {status} {text}"
        );
    }
    // The server that `tool_search` starts counts its starts.
    let starts = WrittenPath {
        path: rig.project().join("starts"),
        by_haft: false,
    };
    assert_eq!(
        written
            .into_iter()
            .filter(|written| *written != starts)
            .collect::<Vec<_>>(),
        []
    );
}

#[test]
fn writing_tools_open_only_paths_known_to_permission() {
    if !has_strace() {
        return eprintln!(
            "skipped: strace cannot be used here, so nobody would see what is opened"
        );
    }
    for (name, arguments) in writing_calls() {
        let rig = rig(replies_with_reads(name, &arguments));
        let (ran, written) = run_traced(&rig, "yolo");
        let (status, text) = tool_results(&ran).pop().unwrap();
        assert_eq!(status, "success", "`{name}` with {arguments}: {text}");
        let written: Vec<_> = written.into_iter().map(|written| written.path).collect();
        assert!(
            !written.is_empty(),
            "`{name}` with {arguments} wrote nothing: {text}"
        );
        let (kept, temporary): (Vec<_>, Vec<_>) =
            written.iter().partition(|path| !is_temporary(path));
        for path in &temporary {
            assert!(
                kept.iter().any(|kept| kept.parent() == path.parent()),
                "{} is beside nothing",
                path.display()
            );
            assert!(
                path.symlink_metadata().is_err(),
                "{} was left",
                path.display()
            );
        }
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        for path in &kept {
            // Missing parent folders of a file are created.
            let leads = kept
                .iter()
                .any(|other| other != path && other.starts_with(path));
            let deny = format!("deny = [\"write_to_file({})\"]\n", path.display());
            rig.configure(&config.replace(ALLOW_RULES, &format!("{ALLOW_RULES}{deny}")));
            let decided = explained_decision(&rig, name, &arguments);
            assert!(
                leads || decided == "deny",
                "`{name}` with {arguments} wrote {}: {decided}",
                path.display()
            );
        }
        rig.configure(&config);
        assert_ne!(
            explained_decision(&rig, name, &arguments),
            "deny",
            "`{name}` with {arguments} is denied in any case"
        );
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(".haft-"))
}

fn explained_decision(rig: &Rig, name: &str, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let all = [
        "permissions",
        "explain",
        "--json",
        "--permission-mode",
        "auto",
        "--tool",
        name,
        "--args",
        &arguments,
    ];
    rig.run(&all).json()["decision"].clone()
}

/// Only the record knows which files the change touched, so such a call needs approval.
#[test]
fn undo_edit_without_a_path_needs_approval() {
    let rig = rig([Reply::text("never")]);
    for arguments in [json!({}), json!({"call_id": "call_1"})] {
        assert_eq!(
            explained_decision(&rig, "undo_edit", &arguments),
            "ask",
            "{arguments}"
        );
    }
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&config.replace(
        ALLOW_RULES,
        &format!("{ALLOW_RULES}deny = [\"write_to_file(src/a.rs)\"]\n"),
    ));
    assert_eq!(
        explained_decision(&rig, "undo_edit", &json!({"path": "src/a.rs"})),
        "deny"
    );
}

/// Commands, external tools and servers write where the sandbox allows it: in the project except
/// protected files, and in a private `/tmp`.
#[test]
fn programs_write_only_what_the_sandbox_allows() {
    if !has_strace() {
        return eprintln!(
            "skipped: strace cannot be used here, so nobody would see what is opened"
        );
    }
    let command = |line: &str| json!({"command": line, "requires_approval": false});
    for (name, arguments) in [
        ("execute_command", command(".haft/tools/greedy")),
        (
            "execute_command",
            command(&GREEDY.lines().skip(1).collect::<Vec<_>>().join("\n")),
        ),
        ("session_start", json!({"command": "sh .haft/tools/greedy"})),
        (
            "background_task",
            json!({"action": "start", "command": "sh .haft/tools/greedy"}),
        ),
        (
            "use_mcp_tool",
            json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
        ),
    ] {
        let wait = Reply::call(
            "background_task",
            json!({"action": "monitor", "task_id": "t1", "timeout": 600}),
        );
        let further = if name == "background_task" {
            vec![wait]
        } else {
            Vec::new()
        };
        let calls = [Reply::call(name, arguments.clone())]
            .into_iter()
            .chain(further)
            .chain([Reply::text("Done.")]);
        let rig = greedy_rig(calls);
        if !has_namespaces(&rig) {
            return;
        }
        let (ran, written) = run_traced(&rig, "auto");
        let told = tool_results(&ran);
        assert_eq!(told[0].0, "success", "`{name}`: {told:?}");
        let project = rig.project();
        let by_programs: BTreeSet<_> = written
            .iter()
            .filter(|written| !written.by_haft)
            .map(|written| written.path.as_path())
            .collect();
        assert!(
            by_programs.contains(project.join("made").as_path()),
            "`{name}` did not write: {by_programs:?}"
        );
        let may = |path: &Path| {
            let inside = path.strip_prefix(&project).is_ok_and(|inside| {
                ["made", "src/made", "starts"]
                    .iter()
                    .any(|may| inside == Path::new(may))
            });
            inside || path == Path::new("/tmp/greedy") || path == Path::new("/var/tmp/greedy")
        };
        let beyond: Vec<_> = by_programs.iter().filter(|path| !may(path)).collect();
        assert_eq!(beyond, Vec::<&&Path>::new(), "`{name}`");
        for outside in [
            "/tmp/greedy",
            "/var/tmp/greedy",
            "/dev/shm/greedy",
            "/etc/greedy",
            "/usr/greedy",
        ] {
            assert!(!Path::new(outside).exists(), "`{name}` left {outside}");
        }
    }
}

/// The explained decision is the one that applies in a run.
#[test]
fn use_tool_is_judged_as_the_inner_call() {
    let arguments =
        json!({"name": "write_to_file", "arguments": {"path": "src/by.rs", "content": "x"}});
    let rig = rig([
        Reply::call("use_tool", arguments.clone()),
        Reply::text("Done."),
    ]);
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&config.replace(
        ALLOW_RULES,
        &format!("{ALLOW_RULES}deny = [\"write_to_file(src/**)\"]\n"),
    ));
    assert_eq!(explained_decision(&rig, "use_tool", &arguments), "deny");
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "begin",
    ]);
    assert_eq!(tool_results(&ran)[0].0, "error", "{}", ran.stdout());
    assert!(!rig.project().join("src/by.rs").exists());
}
