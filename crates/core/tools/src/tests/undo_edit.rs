//! Tests of `undo_edit`, which an extension provides.

use std::path::PathBuf;

use haft_tool::{FileState, UndoOutcome, UndoReport, UndoTarget, UndoneFile};
use haft_types::{ChangeKind, ContentHash, ToolStatus};
use serde_json::json;

use crate::files::{read_file, replace_in_file, write_to_file};
use crate::testing::Bench;
use haft_changes::undo_edit as tool;

fn undone_file(path: PathBuf, outcome: UndoOutcome) -> UndoneFile {
    UndoneFile {
        path,
        outcome,
        diff: String::new(),
        state: None,
    }
}

#[tokio::test]
async fn undo_edit_reports_the_outcome_of_each_file() {
    let bench = Bench::new();
    let mut restored = undone_file(bench.path("a"), UndoOutcome::Restored);
    restored.diff = "--- before undo\n+++ now\n@@ -1 +1 @@\n-new \u{1b}[31m\n+old\n".to_owned();
    bench.history.will_undo(UndoReport {
        tools: vec!["execute_command".to_owned()],
        files: vec![
            restored,
            undone_file(bench.path("b"), UndoOutcome::Removed),
            undone_file(
                bench.path("c"),
                UndoOutcome::Skipped("someone else changed it since".to_owned()),
            ),
            undone_file(bench.path("d"), UndoOutcome::Recreated),
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
async fn undo_edit_parameters_select_the_changes() {
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
async fn undo_edit_is_an_error_if_no_file_was_restored() {
    let bench = Bench::new();
    let left = undone_file(
        bench.path("a"),
        UndoOutcome::Skipped("someone else changed it since".to_owned()),
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
fn restored_file(bench: &Bench, name: &str, content: &str, diff: &str) -> UndoneFile {
    let path = bench.write(name, content);
    let state = FileState {
        size: content.len() as u64,
        mtime_ns: 1,
        hash: ContentHash::from_content(content.as_bytes()),
    };
    UndoneFile {
        path,
        outcome: UndoOutcome::Restored,
        diff: diff.to_owned(),
        state: Some(state),
    }
}

#[tokio::test]
async fn undo_edit_counts_files_with_a_shown_diff_as_read() {
    let bench = Bench::new();
    let edit = |name: &str| json!({"path": name, "diff": "<<<<<<< SEARCH\nold\n=======\nnewer\n>>>>>>> REPLACE"});
    for name in ["short", "long"] {
        bench.write(name, "new\n");
        bench
            .ok(&read_file::define_tool(), json!({"path": name}))
            .await;
    }
    let long = format!("--- a\n+++ b\n@@ @@\n{}", "+line\n".repeat(61));
    let files = vec![
        restored_file(&bench, "long", "old\n", &long),
        restored_file(
            &bench,
            "never-read",
            "old\n",
            "--- a\n+++ b\n@@ @@\n-new\n+old\n",
        ),
        restored_file(
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

    bench
        .ok(&replace_in_file::define_tool(), edit("short"))
        .await;
    assert_eq!(
        bench
            .err(&replace_in_file::define_tool(), edit("long"))
            .await
            .0,
        "changed_since_read"
    );
    let over = json!({"path": "never-read", "content": "x"});
    assert_eq!(
        bench.err(&write_to_file::define_tool(), over).await.0,
        "not_read"
    );
}
