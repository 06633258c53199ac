//! Changes to several files, and how the next start handles an interrupted change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use haft_testkit::{Reply, Script};
use haft_types::{Api, ContentHash};
use serde_json::{Value, json};

use crate::rig::{NOBODY, Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

#[test]
fn apply_patch_changes_several_files_with_one_event_each() {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: b.txt\n*** Add File: c.txt\n+new\n*** End Patch\n";
    let rig = rig([
        Reply::call("apply_patch", json!({"patch": patch})),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "one\n");
    rig.write("b.txt", "gone\n");
    let ran = rig.task(&["change them"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let changed: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "file_changed")
        .collect();
    let told: Vec<_> = changed
        .iter()
        .map(|event| {
            (
                event["path"].as_str().unwrap(),
                event["change"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("a.txt", "modified"),
            ("b.txt", "deleted"),
            ("c.txt", "added")
        ]
    );
    assert_eq!(
        fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "two\n"
    );
    assert!(
        fs::read_dir(rig.home().join("data/journal"))
            .unwrap()
            .next()
            .is_none(),
        "no journal is left"
    );
}

#[test]
fn multi_edit_marks_files_as_read_across_a_restart() {
    let edit = |old: &str, new: &str| json!({"edits": [{"path": "a.txt", "old_string": old, "new_string": new}, {"path": "b.txt", "old_string": old, "new_string": new}]});
    let rig = rig([
        Reply::call("multi_edit", edit("one", "two")),
        Reply::text("Done."),
        Reply::call(
            "write_to_file",
            json!({"path": "b.txt", "content": "three\n"}),
        ),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "one\n");
    rig.write("b.txt", "one\n");
    assert_eq!(rig.task(&["change them"]).code(), 0);
    let second = rig.task(&["-c", "write it"]);
    assert_eq!(second.code(), 0, "{}", second.stderr());
    assert_eq!(
        fs::read_to_string(rig.project().join("b.txt")).unwrap(),
        "three\n",
        "{}",
        second.stdout()
    );
}

#[test]
fn interrupted_change_is_rolled_back_once_by_the_next_run() {
    let rig = rig([Reply::text("Hello."), Reply::text("Again.")]);
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().canonicalize().unwrap();
    // The files that remain if a process is killed after it replaced the first of two files.
    let print = |text: &str| json!({"size": text.len(), "hash": ContentHash::from_content(text.as_bytes())});
    let entry = |name: &str| json!({"path": other.join(name), "temporary": format!(".haft-{name}.tmp"), "before": print("old"), "after": print("new")});
    for (name, content) in [
        ("a", "new"),
        (".haft-a.tmp", "old"),
        ("b", "old"),
        (".haft-b.tmp", "new"),
    ] {
        fs::write(other.join(name), content).unwrap();
    }
    let journal = rig.home().join("data/journal");
    fs::create_dir_all(&journal).unwrap();
    fs::write(
        journal.join("1.placing"),
        json!({"folders": [], "entries": [entry("a"), entry("b")]}).to_string(),
    )
    .unwrap();

    let errors = |events: Vec<Value>| -> Vec<Value> {
        events
            .into_iter()
            .filter(|event| event["type"] == "notice")
            .collect()
    };
    let first = rig.task(&["hello"]);
    let told = errors(first.events());
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["code"], "recovered");
    assert!(
        told[0]["message"].as_str().unwrap().contains("rolled back"),
        "{}",
        told[0]
    );
    assert_eq!(
        (first.code(), &first.events()[0]["type"]),
        (0, &json!("conversation"))
    );
    for name in ["a", "b"] {
        assert_eq!(
            fs::read_to_string(other.join(name)).unwrap(),
            "old",
            "{name}"
        );
    }
    assert_eq!(
        fs::read_dir(&other).unwrap().count(),
        2,
        "temporary files are gone"
    );
    assert!(errors(rig.task(&["hello"]).events()).is_empty());
}

/// Another user may write to a file that root owns, but cannot give a new file to root: the whole
/// edit is refused.
#[test]
fn multi_edit_refuses_all_if_one_file_cannot_be_replaced() {
    if !rustix::process::getuid().is_root() {
        println!("skipped: needs root, to run haft as another user");
        return;
    }
    let edit = |path: &str| json!({"path": path, "old_string": "old", "new_string": "new"});
    let rig = rig([
        Reply::call(
            "multi_edit",
            json!({"edits": [edit("own.txt"), edit("theirs.txt")]}),
        ),
        Reply::call(
            "multi_edit",
            json!({"edits": [edit("own.txt"), edit("locked/own.txt")]}),
        ),
        Reply::text("Neither."),
        Reply::text("Neither, still."),
    ]);
    let (_copy, mut command) = rig.command_as_nobody(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "change them",
    ]);
    fs::create_dir(rig.project().join("locked")).unwrap();
    for (name, owner) in [
        ("own.txt", NOBODY),
        ("theirs.txt", 0),
        ("locked/own.txt", NOBODY),
    ] {
        rig.write(name, "old\n");
        chown(rig.project().join(name), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(rig.project().join(name), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let ran = Ran(command.output().unwrap());
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    let codes: Vec<_> = results
        .iter()
        .map(|result| result["error"]["code"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(codes, ["owner", "io"], "{results:?}");
    let mut names: Vec<_> = ["", "locked"]
        .iter()
        .flat_map(|folder| fs::read_dir(rig.project().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.is_dir())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["locked/own.txt", "own.txt", "theirs.txt"].map(|name| rig.project().join(name))
    );
    for name in names {
        assert_eq!(
            fs::read_to_string(&name).unwrap(),
            "old\n",
            "{}",
            name.display()
        );
    }
}
