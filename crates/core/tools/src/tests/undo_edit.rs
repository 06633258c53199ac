//! Tests of `undo_edit`, which an extension provides.

use std::path::PathBuf;

use haft_tool::{FileState, UndoOutcome, UndoReport, UndoTarget, UndoneFile};
use haft_types::{ChangeKind, ContentHash, ToolStatus};
use serde_json::json;

use crate::files::{read_file, replace_in_file, write_to_file};
use crate::testing::Bench;
use haft_changes::undo_edit as tool;

fn undone(path: PathBuf, outcome: UndoOutcome) -> UndoneFile {
    UndoneFile {
        path,
        outcome,
        diff: String::new(),
        state: None,
    }
}

#[tokio::test]
async fn the_model_is_told_what_became_of_each_file() {
    let bench = Bench::new();
    let mut restored = undone(bench.path("a"), UndoOutcome::Restored);
    restored.diff = "--- before undo\n+++ now\n@@ -1 +1 @@\n-new \u{1b}[31m\n+old\n".to_owned();
    bench.history.will_undo(UndoReport {
        tools: vec!["execute_command".to_owned()],
        files: vec![
            restored,
            undone(bench.path("b"), UndoOutcome::Removed),
            undone(
                bench.path("c"),
                UndoOutcome::Left("someone else changed it since".to_owned()),
            ),
            undone(bench.path("d"), UndoOutcome::Recreated),
        ],
    });
    let output = bench.run(&tool(), json!({})).await;
    assert_eq!(output.envelope.status, ToolStatus::Partial);
    assert_eq!(
        output.envelope.text,
        "Changes of `execute_command`:\n- restored `a`\n- removed `b`\n- left as it is `c`: someone else changed it since\n\
         - recreated `d`\n\n`a`, with what was taken back:\n@@ -1 +1 @@\n-new ␛[31m\n+old"
    );
    let kinds: Vec<_> = output.changes.iter().map(|change| change.kind).collect();
    assert_eq!(
        kinds,
        [ChangeKind::Modified, ChangeKind::Deleted, ChangeKind::Added]
    );
}

#[tokio::test]
async fn parameters_choose_what_is_taken_back() {
    let bench = Bench::new();
    for (arguments, target) in [
        (json!({}), UndoTarget::Last),
        (json!({"call_id": "c7"}), UndoTarget::Call("c7".into())),
        (
            json!({"path": "src/../a"}),
            UndoTarget::File(bench.path("a")),
        ),
    ] {
        let (code, _) = bench.err(&tool(), arguments).await;
        assert_eq!(code, "nothing_to_undo");
        assert_eq!(
            bench.history.asked.lock().unwrap().pop(),
            Some(("call-1".to_owned(), target))
        );
    }
    for wrong in [json!({"path": "a", "call_id": "c"}), json!({"steps": 2})] {
        assert_eq!(bench.err(&tool(), wrong).await.0, "invalid_arguments");
    }
    assert_eq!(
        bench.err(&tool(), json!({"path": "/etc/passwd"})).await.0,
        "outside_workspace"
    );
    assert_eq!(*bench.history.asked.lock().unwrap(), []);
}

#[tokio::test]
async fn when_everything_is_left_it_is_an_error() {
    let bench = Bench::new();
    let left = undone(
        bench.path("a"),
        UndoOutcome::Left("someone else changed it since".to_owned()),
    );
    bench.history.will_undo(UndoReport {
        tools: vec!["write_to_file".to_owned()],
        files: vec![left],
    });
    let output = bench.run(&tool(), json!({})).await;
    assert_eq!(output.envelope.error.unwrap().code, "conflict");
    assert!(
        output
            .envelope
            .text
            .contains("left as it is `a`: someone else changed it since")
    );
}

/// Writes a file as an undo would, and returns the report of it.
fn put_back(bench: &Bench, name: &str, content: &str, diff: &str) -> UndoneFile {
    let path = bench.write(name, content);
    let state = FileState {
        size: content.len() as u64,
        mtime_ns: 1,
        hash: ContentHash::of(content.as_bytes()),
    };
    UndoneFile {
        path,
        outcome: UndoOutcome::Restored,
        diff: diff.to_owned(),
        state: Some(state),
    }
}

#[tokio::test]
async fn a_file_whose_difference_was_shown_need_not_be_read_again() {
    let bench = Bench::new();
    let edit = |name: &str| json!({"path": name, "diff": "<<<<<<< SEARCH\nold\n=======\nnewer\n>>>>>>> REPLACE"});
    for name in ["short", "long"] {
        bench.write(name, "new\n");
        bench.ok(&read_file::tool(), json!({"path": name})).await;
    }
    let long = format!("--- a\n+++ b\n@@ @@\n{}", "+line\n".repeat(61));
    let files = vec![
        put_back(&bench, "long", "old\n", &long),
        put_back(
            &bench,
            "never-read",
            "old\n",
            "--- a\n+++ b\n@@ @@\n-new\n+old\n",
        ),
        put_back(
            &bench,
            "short",
            "old\n",
            "--- a\n+++ b\n@@ @@\n-new\n+old\n",
        ),
    ];
    bench.history.will_undo(UndoReport {
        tools: vec!["write_to_file".to_owned()],
        files,
    });
    let output = bench.ok(&tool(), json!({})).await;
    let seen = output.envelope.context["files"].as_array().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        seen[0]["path"],
        json!(bench.path("short").display().to_string())
    );
    assert!(
        output
            .envelope
            .text
            .contains("[The difference is longer. Read `long` again before you edit it.]")
    );

    bench.ok(&replace_in_file::tool(), edit("short")).await;
    assert_eq!(
        bench.err(&replace_in_file::tool(), edit("long")).await.0,
        "changed_since_read"
    );
    let over = json!({"path": "never-read", "content": "x"});
    assert_eq!(bench.err(&write_to_file::tool(), over).await.0, "not_read");
}
