//! Undo and redo of the file changes of a run.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn command_call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

fn edit_call(path: &str, from: &str, to: &str) -> Reply {
    let diff = format!("<<<<<<< SEARCH\n{from}\n=======\n{to}\n>>>>>>> REPLACE");
    Reply::call("replace_in_file", json!({"path": path, "diff": diff}))
}

fn file_text(rig: &Rig, name: &str) -> String {
    std::fs::read_to_string(rig.project().join(name)).unwrap()
}

fn file_mode(rig: &Rig, name: &str) -> u32 {
    rig.project()
        .join(name)
        .metadata()
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

fn changed_files(ran: &Ran) -> Vec<(String, String)> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "file_changed");
    events
        .map(|event| (text(&event, "path"), text(&event, "change")))
        .collect()
}

fn tool_results(ran: &Ran) -> Vec<Value> {
    ran.events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect()
}

/// Returns `action path` for every file in a report.
fn reported_actions(report: &Value) -> Vec<String> {
    let line = |file: &Value| {
        format!(
            "{} {}",
            file["action"].as_str().unwrap(),
            file["path"].as_str().unwrap()
        )
    };
    report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

#[test]
fn undo_and_redo_apply_to_edits_and_commands() {
    let shell = "sed -i s/two/zwei/ b.txt && mkdir -p new/deep && mv c.txt new/deep/c.txt && chmod 755 script && echo x > ignored.log";
    let rig = rig([
        edit_call("a.txt", "one", "uno"),
        command_call(shell),
        Reply::text("Done."),
    ]);
    rig.write(".gitignore", "*.log\n");
    for (name, content) in [
        ("a.txt", "one\n"),
        ("b.txt", "two\n"),
        ("c.txt", "three\n"),
        ("script", "#!/bin/sh\n"),
    ] {
        rig.write(name, content);
        std::fs::set_permissions(
            rig.project().join(name),
            std::fs::Permissions::from_mode(0o644),
        )
        .unwrap();
    }
    let ran = rig.task(&["do it"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let pairs = [
        ("a.txt", "modified"),
        ("b.txt", "modified"),
        ("c.txt", "deleted"),
        ("new/deep/c.txt", "added"),
        ("script", "modified"),
    ];
    assert_eq!(
        changed_files(&ran),
        pairs.map(|(path, change)| (path.to_owned(), change.to_owned()))
    );

    let table = rig.run(&["changes"]).stdout();
    insta::assert_snapshot!(rig.screen(&["changes"]), @"
    CHANGE  FILE  LINES
    modified  a.txt  +1 -1
    modified  b.txt  +1 -1
    moved  c.txt → new/deep/c.txt  +0 -0
    modified  script  +0 -0
    ");
    insta::assert_snapshot!(rig.screen(&["changes", "--diff"]), @"
    == replace_in_file (toolu_1_1_1), TIME
    modified a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +uno

    == execute_command (toolu_3_2_1), TIME
    modified b.txt
    --- a/b.txt
    +++ b/b.txt
    @@ -1 +1 @@
    -two
    +zwei
    moved c.txt → new/deep/c.txt
    modified script (mode 644 → 755)
    ");
    let record = rig
        .run(&["changes", "--json", "--diff", "--content"])
        .json();
    assert_eq!(
        (&record["files"][2]["from"], &record["files"][2]["content"]),
        (&json!("c.txt"), &json!("three\n"))
    );
    assert!(
        record["steps"][0]["files"][0]["diff"]
            .as_str()
            .unwrap()
            .contains("+uno")
    );

    insta::assert_snapshot!(rig.screen(&["undo", "--dry-run"]), @"
    Would undo the changes of `execute_command` (toolu_3_2_1):
      restored  b.txt
      recreated  c.txt
      removed  new
      removed  new/deep
      removed  new/deep/c.txt
      restored  script
    ");
    let dry = rig.run(&["undo", "--dry-run", "--json"]).json();
    assert_eq!(
        reported_actions(&dry),
        [
            "restored b.txt",
            "recreated c.txt",
            "removed new",
            "removed new/deep",
            "removed new/deep/c.txt",
            "restored script"
        ]
    );
    assert_eq!(
        (&dry["dry_run"], &dry["calls"][0]["tool"]),
        (&json!(true), &json!("execute_command"))
    );
    assert_eq!(file_text(&rig, "b.txt"), "zwei\n", "nothing was done yet");

    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    Undid the changes of `execute_command` (toolu_3_2_1):
      restored  b.txt
      recreated  c.txt
      removed  new
      removed  new/deep
      removed  new/deep/c.txt
      restored  script
    ");
    assert_eq!(
        (
            file_text(&rig, "b.txt"),
            file_text(&rig, "c.txt"),
            file_mode(&rig, "script")
        ),
        ("two\n".into(), "three\n".into(), 0o644)
    );
    assert!(
        !rig.project().join("new").exists()
            && file_text(&rig, "ignored.log") == "x\n"
            && file_text(&rig, "a.txt") == "uno\n"
    );
    assert_eq!(rig.run(&["undo"]).code(), 0);
    assert_eq!(file_text(&rig, "a.txt"), "one\n");
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    -- errors
    haft: nothing to undo
    ");
    insta::assert_snapshot!(rig.screen(&["changes"]), @"Everything this conversation changed was undone.");

    assert_eq!(
        reported_actions(&rig.run(&["redo", "--json"]).json()),
        ["restored a.txt"]
    );
    assert_eq!(rig.run(&["redo"]).code(), 0);
    assert_eq!(
        (file_text(&rig, "new/deep/c.txt"), file_mode(&rig, "script")),
        ("three\n".into(), 0o755)
    );
    assert_eq!(rig.run(&["changes"]).stdout(), table);
    insta::assert_snapshot!(rig.screen(&["redo"]), @"
    -- errors
    haft: nothing to redo
    ");
    assert_eq!(rig.run(&["undo", "--session"]).code(), 0);
    assert_eq!(
        ["a.txt", "b.txt", "c.txt"].map(|name| file_text(&rig, name)),
        ["one\n", "two\n", "three\n"]
    );
    assert!(
        !rig.project().join(".git").exists(),
        "git has no part in this"
    );
}

#[test]
fn undo_without_a_conversation_is_a_usage_error() {
    let rig = rig([]);
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["redo"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["changes"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
}

#[test]
fn undo_keeps_files_changed_since_and_exits_with_3() {
    let rig = rig([
        command_call("echo by haft | tee a.txt b.txt"),
        Reply::text("Done."),
    ]);
    rig.task(&["do it"]);
    rig.write("a.txt", "by hand\n");
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    Undid the changes of `execute_command` (toolu_1_1_1):
      left  a.txt: it was changed since
      removed  b.txt
    Files that were skipped are unchanged. Change them by hand, or undo other calls first.
    -- exit 3
    ");
    assert_eq!(file_text(&rig, "a.txt"), "by hand\n");
    assert!(!rig.project().join("b.txt").exists());
}

#[test]
fn undo_selects_one_call_or_message() {
    let write =
        |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "new\n"}));
    let rig = rig([
        write("a"),
        write("b"),
        Reply::text("First."),
        write("c"),
        Reply::text("Second."),
    ]);
    rig.task(&["first"]);
    rig.task(&["-c", "second"]);
    let there = || ["a", "b", "c"].map(|name| rig.project().join(name).exists());
    let record = rig.run(&["changes", "--json"]).json();
    let id = |step: usize, key: &str| record["steps"][step][key].as_str().unwrap().to_owned();

    assert_eq!(rig.run(&["undo", "--call", &id(0, "call_id")]).code(), 0);
    assert_eq!(there(), [false, true, true]);
    assert_eq!(
        rig.run(&["undo", "--call", &id(0, "call_id")]).code(),
        2,
        "twice is once too often"
    );
    insta::assert_snapshot!(rig.screen(&["undo", "--call", "nobody"]), @"
    -- errors
    haft: no call `nobody` changed files; `haft changes` lists those that did
    -- exit 2
    ");
    assert_eq!(
        rig.run(&["undo", "--message", &id(1, "message_id")[..8]])
            .code(),
        0
    );
    assert_eq!(there(), [false, false, true]);
    assert_eq!(rig.run(&["redo"]).code(), 0);
    assert_eq!(rig.run(&["redo"]).code(), 0);

    // Selects a prompt of the user, with everything that followed from it.
    let export = rig.export();
    let first = export["messages"][0]["message_id"].as_str().unwrap();
    assert_eq!(rig.run(&["undo", "--message", first]).code(), 0);
    assert_eq!(there(), [false, false, true]);
    let result = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap();
    for wrong in [
        &["undo", "--message", "00000000"][..],
        &["undo", "--message", result["message_id"].as_str().unwrap()],
    ] {
        assert_eq!(rig.run(wrong).code(), 2, "{wrong:?}");
    }
    let conversation = export["id"].as_str().unwrap();
    insta::assert_snapshot!(rig.screen(&["undo", conversation, "--session"]), @"
    Undid the changes of `write_to_file` (toolu_7_4_1):
      removed  c
    ");
    assert_eq!(there(), [false, false, false]);
}

#[test]
fn undo_edit_reverts_the_last_edit_of_the_model() {
    let undo = || Reply::call("undo_edit", json!({}));
    let script = [
        edit_call("a.txt", "one", "wrong"),
        undo(),
        edit_call("a.txt", "one", "right"),
        undo(),
        undo(),
        edit_call("a.txt", "one", "last"),
        Reply::text("Done."),
    ];
    let rig = rig(script);
    rig.write("a.txt", "one\ntwo\n");
    let ran = rig.task(&["fix it"]);
    let results = tool_results(&ran);
    let status: Vec<_> = results
        .iter()
        .map(|result| result["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        status,
        [
            "success", "success", "success", "success", "error", "success"
        ],
        "{results:#?}"
    );
    assert_eq!(
        results[1]["text"],
        "Changes of `replace_in_file`:\n- restored `a.txt`\n\n`a.txt`, with what was taken back:\n@@ -1,2 +1,2 @@\n-wrong\n+one\n two"
    );
    assert_eq!(results[4]["error"]["code"], "nothing_to_undo");
    assert_eq!(changed_files(&ran).len(), 5);
    assert_eq!(file_text(&rig, "a.txt"), "last\ntwo\n");
    insta::assert_snapshot!(rig.screen(&["changes"]), @"
    CHANGE  FILE  LINES
    modified  a.txt  +1 -1
    ");
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    Undid the changes of `replace_in_file` (toolu_11_6_1):
      restored  a.txt
    ");
    assert_eq!(file_text(&rig, "a.txt"), "one\ntwo\n");
}

#[test]
fn undo_requires_the_model_to_read_the_file_again() {
    let rig = rig([edit_call("a.txt", "one", "two"), Reply::text("Done.")]);
    rig.write("a.txt", "one\n");
    rig.task(&["fix it"]);
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    Undid the changes of `replace_in_file` (toolu_1_1_1):
      restored  a.txt
    ");
    let script =
        Script::replies([edit_call("a.txt", "two", "three"), Reply::text("I see.")]).unwrap();
    let rig = rig.with_script(script, Api::Anthropic);
    let ran = rig.task(&["-c", "go on"]);
    assert_eq!(tool_results(&ran)[0]["error"]["code"], "changed_since_read");
}

#[test]
fn undo_reports_uncovered_files_once() {
    let rig = rig([
        command_call("true"),
        command_call("echo x >> large.bin"),
        Reply::text("Done."),
    ]);
    rig.write("large.bin", vec![b'x'; 5 * 1024 * 1024]);
    let ran = rig.task(&["do it"]);
    let texts: Vec<_> = tool_results(&ran)
        .iter()
        .map(|result| result["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        texts[0]
            .contains("[Undo of commands does not cover files that are too large or unreadable: large.bin (5.0 MB).]")
    );
    assert!(
        !texts[1].contains("does not cover")
            && texts[1].contains("undo cannot bring back: large.bin."),
        "{}",
        texts[1]
    );
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    Undid the changes of `execute_command` (toolu_3_2_1):
      left  large.bin: its earlier content was not saved: it was too large, unreadable or ignored
    Files that were skipped are unchanged. Change them by hand, or undo other calls first.
    -- exit 3
    ");
}

#[test]
fn run_without_changes_stores_no_versions() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
    ]);
    rig.task(&["look"]);
    assert!(!rig.home().join("data/versions").exists());
    insta::assert_snapshot!(rig.screen(&["changes"]), @"This conversation has changed no files.");
    insta::assert_snapshot!(rig.screen(&["undo"]), @"
    -- errors
    haft: nothing to undo
    ");
    assert!(
        !Path::new(&rig.home().join("data/versions")).exists(),
        "looking makes none either"
    );
}

#[test]
fn undo_restores_masked_keys() {
    let key = format!("ghp_{}", "a2".repeat(18));
    let rig = rig([edit_call("a.txt", "one", "two"), Reply::text("Done.")]);
    rig.write("a.txt", format!("one\n{key}\n"));
    rig.task(&["fix it"]);
    for arguments in [
        &["changes", "--diff"][..],
        &["changes", "--json", "--diff", "--content"],
    ] {
        let shown = rig.run(arguments).stdout();
        assert!(shown.contains("two") && !shown.contains(&key), "{shown}");
    }
    insta::assert_snapshot!(rig.screen(&["changes", "--diff"]), @"
    == replace_in_file (toolu_1_1_1), TIME
    modified a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
    -one
    +two
     [masked: GitHub token]
    ");
    assert_eq!(rig.run(&["undo"]).code(), 0);
    assert_eq!(file_text(&rig, "a.txt"), format!("one\n{key}\n"));
}

#[test]
fn undo_is_finished_after_a_kill_at_any_moment() {
    const FILES: usize = 60;
    for killed_after in [0, 1, 20, 50] {
        let rig = rig([
            command_call("for file in f*; do echo new > $file; done"),
            Reply::text("Done."),
        ]);
        for number in 0..FILES {
            rig.write(&format!("f{number}"), "old\n");
        }
        rig.task(&["do it"]);
        let contents = || {
            (0..FILES)
                .map(|number| file_text(&rig, &format!("f{number}")))
                .collect::<Vec<_>>()
        };
        let done = || {
            contents()
                .iter()
                .filter(|content| *content == "old\n")
                .count()
        };
        let mut undo = rig
            .command(&["undo"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while done() < killed_after && undo.try_wait().unwrap().is_none() {}
        undo.kill().unwrap();
        undo.wait().unwrap();
        assert!(
            contents()
                .iter()
                .all(|content| content == "old\n" || content == "new\n"),
            "{:?}",
            contents()
        );
        // The next command that reads the changes finishes the undo.
        assert_eq!(rig.run(&["changes"]).code(), 0);
        let finished = contents();
        assert!(
            finished.iter().all(|content| *content == finished[0]),
            "killed after {killed_after}: {finished:?}"
        );
        assert_eq!(
            std::fs::read_dir(rig.project()).unwrap().count(),
            FILES,
            "nothing is left behind"
        );
        let back = if finished[0] == "old\n" {
            "redo"
        } else {
            "undo"
        };
        assert_eq!(rig.run(&[back]).code(), 0);
        assert!(contents().iter().all(|content| *content != finished[0]));
    }
}
