//! External tools: programs that haft describes to the model after reading their help in a sandbox.
//!
//! The programs are in `fixtures/help`; some of them do what no help should do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::sandbox::has_namespaces;

/// A trusted project with these programs of `fixtures/help`.
fn rig(tools: &[&str], replies: impl IntoIterator<Item = Reply>, section: &str) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!("{config}\n[tools]\n{section}\n"));
    let port = rig
        .server
        .base_url(Api::OpenaiChat)
        .split([':', '/'])
        .nth(4)
        .unwrap()
        .to_owned();
    for name in tools {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/it/fixtures/help")
            .join(name);
        let mode = fs::metadata(&from).unwrap().permissions().mode();
        write_tool(
            &rig,
            name,
            &fs::read_to_string(from).unwrap().replace("PORT", &port),
            mode,
        );
    }
    assert_eq!(rig.run(&["trust"]).code(), 0);
    rig
}

fn write_tool(rig: &Rig, name: &str, text: &str, mode: u32) {
    let path = rig.project().join(".haft/tools").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the document about tools in a request, counted from 0.
fn tools_document(rig: &Rig, request: usize) -> Option<String> {
    let body: Value = serde_json::from_slice(&rig.server.requests()[request].body).unwrap();
    let contents = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str());
    contents
        .filter(|text| text.starts_with("Command line tools made for"))
        .map(str::to_owned)
        .next()
}

/// Returns the document's section about one tool.
fn tool_section(document: &str, name: &str) -> String {
    let start = document
        .find(&format!("\n## {name}\n"))
        .unwrap_or_else(|| panic!("no `{name}` in {document}"));
    let rest = &document[start + 1..];
    rest[..rest.find("\n\n## ").unwrap_or(rest.len())].to_owned()
}

/// True if a process with `word` in its command line runs.
fn process_runs(word: &str) -> bool {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    folders
        .filter_map(|folder| fs::read(folder.path().join("cmdline")).ok())
        .any(|line| {
            line.split(|byte| *byte == 0)
                .any(|one| one == word.as_bytes())
        })
}

/// Waits for the process to end. Returns false if it still runs after a minute.
fn process_ends(word: &str) -> bool {
    let begun = Instant::now();
    while process_runs(word) {
        if begun.elapsed() > Duration::from_mins(1) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

#[test]
fn help_of_tools_is_sent_to_the_model() {
    let tools = [
        "well-behaved",
        "dash-h",
        "plain.sh",
        "only-header.py",
        "mute",
        "colours",
    ];
    let rig = rig(&tools, [Reply::text("Hello.").times(2)], "help_wait = 60");
    if !has_namespaces(&rig) {
        return;
    }
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let told = tools_document(&rig, 0).expect("a document");
    assert!(told.contains("# External tools of "), "{told}");
    assert!(
        told.contains("Tools found: 6; of 1 it could not be learnt"),
        "{told}"
    );
    for (name, words) in [
        (
            "well-behaved",
            "executable; run it as `.haft/tools/well-behaved`.\n```text\nusage: well-behaved FILE\n```",
        ),
        ("dash-h", "```text\nusage: dash-h, on standard error\n```"),
        (
            "plain.sh",
            "not executable; run it as `sh .haft/tools/plain.sh`.\n```text\nplain.sh got help\n```",
        ),
        (
            "only-header.py",
            "```text\nUsage: only-header.py PATH\n  counts what is in PATH\n```",
        ),
        ("mute", "`mute` says nothing of its use"),
        ("colours", "```text\nusage: colours\n```"),
    ] {
        let entry = tool_section(&told, name);
        assert!(entry.contains(words), "{name}: {entry}");
    }
    let listed = rig.run(&["tools", "list", "--json"]).json();
    let external: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["group"] == "external")
        .collect();
    assert_eq!(external.len(), 6, "{listed}");
    assert_eq!(external[0]["source"], "project");
    let table = rig.run(&["tools"]).stdout();
    assert!(
        table.contains(".haft/tools/mute") && table.contains("6 external tools are described"),
        "{table}"
    );
    let shown = rig.run(&["tools", "show", "well-behaved", "--json"]).json();
    assert_eq!(
        (&shown["text"], &shown["help_by"]),
        (&json!("usage: well-behaved FILE"), &json!("the tool"))
    );
}

#[test]
fn help_is_cached_until_the_file_changes() {
    let rig = rig(
        &["well-behaved"],
        [Reply::text("Hello.").times(3)],
        "help_wait = 60",
    );
    if !has_namespaces(&rig) {
        return;
    }
    rig.task(&["hi"]);
    let remembered = || {
        let mut files = fs::read_dir(rig.home().join("cache/tool-help"))
            .unwrap()
            .flatten();
        files.next().unwrap().path()
    };
    // A changed cache entry reveals whether the tool runs again.
    let text = fs::read_to_string(remembered()).unwrap();
    fs::write(
        remembered(),
        text.replace("well-behaved FILE", "remembered"),
    )
    .unwrap();
    rig.task(&["hi"]);
    assert!(
        tool_section(&tools_document(&rig, 1).unwrap(), "well-behaved")
            .contains("usage: remembered")
    );
    write_tool(
        &rig,
        "well-behaved",
        "#!/bin/sh\necho 'usage: changed'\n",
        0o755,
    );
    rig.run(&["trust"]);
    rig.task(&["hi"]);
    assert!(
        tool_section(&tools_document(&rig, 2).unwrap(), "well-behaved").contains("usage: changed")
    );
}

#[test]
fn help_that_misbehaves_is_contained() {
    let tools = [
        "floods",
        "forks",
        "grabs-the-terminal",
        "writes",
        "calls-out.sh",
    ];
    let rig = rig(
        &tools,
        [Reply::text("Hello.")],
        "help_wait = 60\nhelp_timeout = 20",
    );
    if !has_namespaces(&rig) {
        return;
    }
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let told = tools_document(&rig, 0).expect("a document");
    let flood = tool_section(&told, "floods");
    assert!(
        flood.contains("usage: floods") && flood.len() < 7_000,
        "{} bytes",
        flood.len()
    );
    assert!(tool_section(&told, "forks").contains("usage: forks"));
    assert!(
        !process_runs("86398") && !process_runs("86399"),
        "what a help leaves behind is ended"
    );
    assert!(
        tool_section(&told, "grabs-the-terminal").contains("```text\nusage: no terminal here\n```"),
        "{told}"
    );
    assert!(
        tool_section(&told, "calls-out.sh").contains("usage: alone"),
        "{told}"
    );
    assert!(tool_section(&told, "writes").contains("usage: writes"));
    let written = [
        rig.project().join("written"),
        rig.project().join(".haft/tools/written"),
        rig.home().join("written"),
    ];
    assert!(written.iter().all(|path| !path.exists()), "{written:?}");
}

#[test]
fn request_does_not_wait_for_a_hanging_tool() {
    let rig = rig(
        &["hangs", "well-behaved"],
        [Reply::text("Hello.").times(2)],
        "help_wait = 0\nhelp_timeout = 600",
    );
    if !has_namespaces(&rig) {
        return;
    }
    // The tool hangs for longer than any test may take: a run that waits for it does not end.
    let ran = rig.task(&["hi"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        tool_section(&tools_document(&rig, 0).unwrap(), "hangs")
            .contains("usage: hangs, says its header")
    );
    assert!(process_ends("86397"), "it ends with haft");
    rig.task(&["hi again"]);
    assert!(
        tool_section(&tools_document(&rig, 1).unwrap(), "hangs")
            .contains("usage: hangs, says its header")
    );
}

#[test]
fn folder_change_breaks_the_prefix_once_and_runs_no_new_tool() {
    let line = |command: &str| {
        Reply::call(
            "execute_command",
            json!({"command": command, "requires_approval": false}),
        )
    };
    let script = "#!/bin/sh\\n# usage: by its header\\necho usage: by running\\n";
    let add = format!(
        "for n in 1 2 3; do printf '{script}' > .haft/tools/new$n; chmod +x .haft/tools/new$n; done"
    );
    let replies = [
        line(&add),
        line("rm .haft/tools/new1 .haft/tools/well-behaved"),
        Reply::text("Done."),
    ];
    let rig = rig(&["well-behaved"], replies, "help_wait = 60");
    if !has_namespaces(&rig) {
        return;
    }
    let events = rig.task(&["go"]).events();
    let breaks: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "prefix_break")
        .collect();
    let causes: Vec<_> = breaks
        .iter()
        .map(|event| (&event["cause"], &event["owner"]))
        .collect();
    let one = (&json!("documents_changed"), &json!("document:tools"));
    assert_eq!(
        causes,
        [one, one],
        "one for three new tools, one for two that went"
    );
    let second = tools_document(&rig, 1).unwrap();
    assert!(second.contains("Tools found: 4"), "{second}");
    assert!(
        tool_section(&second, "new1").contains("usage: by its header"),
        "{second}"
    );
    assert!(
        tool_section(&second, "well-behaved").contains("usage: well-behaved FILE"),
        "it was trusted, and stays known"
    );
    let third = tools_document(&rig, 2).unwrap();
    assert!(
        third.contains("Tools found: 2") && !third.contains("## well-behaved"),
        "{third}"
    );
}

#[test]
fn help_is_not_run_if_disabled_or_unconfined() {
    let rig = rig(
        &["well-behaved", "only-header.py"],
        [Reply::text("Hello.").times(3)],
        "help_timeout = 0",
    );
    rig.task(&["hi"]);
    let told = tools_document(&rig, 0).unwrap();
    assert!(
        told.contains("`well-behaved` says nothing of its use")
            && told.contains("Usage: only-header.py"),
        "{told}"
    );
    rig.task(&[
        "--set",
        "tools.help_timeout=5",
        "--set",
        "sandbox.mode=\"off\"",
        "hi",
    ]);
    assert_eq!(tools_document(&rig, 1), Some(told));
    rig.task(&["--allowed-tools", "read-only", "hi"]);
    assert_eq!(
        tools_document(&rig, 2),
        None,
        "who can run nothing is told of nothing to run"
    );
}

#[test]
fn tools_add_list_and_remove_work() {
    let rig = rig(&[], [Reply::text("Hello.")], "");
    rig.write("prog", "#!/bin/sh\necho usage: prog\n");
    rig.write("words.md", "# words\n");
    assert_eq!(
        rig.run(&["tools", "add", "prog", "prog"]).stdout(),
        "Added .haft/tools/prog\n"
    );
    assert_eq!(
        rig.run(&["trust", "--show", "--json"]).json()["standing"],
        "trusted"
    );
    let mode = fs::metadata(rig.project().join(".haft/tools/prog"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(
        rig.run(&["tools", "add", "prog", "prog", "--user"]).code(),
        0
    );
    for (name, why) in [
        ("read_file", "built-in tool"),
        ("words.md", "has no extension"),
        ("../x", "not a name"),
    ] {
        let added = rig.run(&["tools", "add", name, "prog"]);
        assert_eq!(added.code(), 2, "{name}");
        assert!(added.stderr().contains(why), "{name}: {}", added.stderr());
        assert!(
            !rig.project().join(".haft/tools").join(name).exists(),
            "{name}"
        );
    }
    write_tool(&rig, "list_files", "#!/bin/sh\necho mine\n", 0o755);
    rig.run(&["trust"]);
    let verbose = rig.run(&["tools", "list", "--verbose"]).stdout();
    assert!(
        verbose.contains("not used: .haft/tools/list_files (`list_files` is built in)"),
        "{verbose}"
    );
    assert!(
        verbose.contains("/tools/prog (`prog` is .haft/tools/prog)"),
        "{verbose}"
    );
    rig.task(&["hi"]);
    let told = tools_document(&rig, 0).unwrap();
    assert!(
        told.contains("Tools found: 1;") && !told.contains("## list_files"),
        "{told}"
    );
    assert_eq!(
        rig.run(&["tools", "remove", "prog"]).stdout(),
        "Removed .haft/tools/prog\n"
    );
    assert!(
        rig.run(&["tools", "show", "prog"])
            .stdout()
            .contains("(user, "),
        "the next one of that name"
    );
    assert_eq!(rig.run(&["tools", "remove", "prog"]).code(), 0);
    assert_eq!(rig.run(&["tools", "show", "prog"]).code(), 2);
}
