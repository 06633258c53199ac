//! Tests of the preview of a change that is shown for approval.

use haft_tool::{Foreseen, Tool};
use serde_json::{Value, json};

use crate::files::edit_file;
use crate::files::multi_edit;
use crate::files::read_file;
use crate::files::replace_in_file;
use crate::files::write_to_file;
use crate::testing::Bench;

/// Returns a project with one file that was read.
async fn project() -> Bench {
    let bench = Bench::new();
    bench.write("a.txt", "one\ntwo\nthree\n");
    bench.ok(&read_file::tool(), json!({"path": "a.txt"})).await;
    bench
}

async fn preview(bench: &Bench, tool: &dyn Tool, arguments: Value) -> Option<String> {
    foreseen(bench, tool, arguments).await.unwrap()
}

async fn foreseen(bench: &Bench, tool: &dyn Tool, arguments: Value) -> Foreseen {
    let shown = tool.preview(&bench.context, &arguments).await;
    assert_eq!(
        bench.read("a.txt"),
        b"one\ntwo\nthree\n",
        "nothing is changed by looking"
    );
    assert_eq!(bench.files(), ["a.txt"]);
    shown
}

const CHANGED: &str = "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";

#[tokio::test]
async fn every_tool_that_edits_shows_the_difference_it_would_make() {
    let bench = project().await;
    let whole = json!({"path": "a.txt", "content": "one\nzwei\nthree\n"});
    assert_eq!(
        preview(&bench, &write_to_file::tool(), whole)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "zwei"});
    assert_eq!(
        preview(&bench, &edit_file::tool(), edit).await.as_deref(),
        Some(CHANGED)
    );
    let edits = json!({"edits": [
        {"path": "a.txt", "old_string": "two", "new_string": "2"},
        {"path": "a.txt", "old_string": "2", "new_string": "zwei"},
    ]});
    assert_eq!(
        preview(&bench, &multi_edit::tool(), edits).await.as_deref(),
        Some(CHANGED)
    );
    let diff = "<<<<<<< SEARCH\ntwo\n=======\nzwei\n>>>>>>> REPLACE\n";
    let blocks = json!({"path": "a.txt", "diff": diff});
    assert_eq!(
        preview(&bench, &replace_in_file::tool(), blocks)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+zwei\n*** End Patch\n";
    assert_eq!(
        preview(
            &bench,
            &haft_changes::apply_patch(),
            json!({"patch": patch})
        )
        .await
        .as_deref(),
        Some(CHANGED)
    );
}

#[tokio::test]
async fn files_that_come_go_or_move() {
    let bench = project().await;
    let new = json!({"path": "b.txt", "content": "x\ny"});
    let shown = preview(&bench, &write_to_file::tool(), new).await.unwrap();
    assert_eq!(
        shown,
        "--- /dev/null\n+++ b.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
    );
    let empty = json!({"path": "b.txt", "content": ""});
    let shown = preview(&bench, &write_to_file::tool(), empty)
        .await
        .unwrap();
    assert_eq!(shown, "--- /dev/null\n+++ b.txt\n");
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n";
    let shown = preview(
        &bench,
        &haft_changes::apply_patch(),
        json!({"patch": patch}),
    )
    .await
    .unwrap();
    assert_eq!(
        shown,
        "--- a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
    );
    let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n*** End Patch\n";
    let shown = preview(
        &bench,
        &haft_changes::apply_patch(),
        json!({"patch": patch}),
    )
    .await
    .unwrap();
    assert_eq!(shown, "--- a.txt\n+++ c.txt\n");
}

/// A call that would fail needs no approval.
#[tokio::test]
async fn what_would_fail_has_no_preview() {
    let bench = project().await;
    bench.write("unread.txt", "x");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-four\n+x\n*** End Patch\n";
    let diff = "<<<<<<< SEARCH\nfour\n=======\nx\n>>>>>>> REPLACE\n";
    let tools: [(&dyn Tool, Value); 6] = [
        (
            &multi_edit::tool(),
            json!({"edits": [{"path": "a.txt", "old_string": "four", "new_string": "x"}]}),
        ),
        (
            &edit_file::tool(),
            json!({"path": "a.txt", "old_text": "four", "new_text": "x"}),
        ),
        (
            &replace_in_file::tool(),
            json!({"path": "a.txt", "diff": diff}),
        ),
        (&haft_changes::apply_patch(), json!({"patch": patch})),
        (
            &write_to_file::tool(),
            json!({"path": "a.txt", "content": "x", "mode": "0777"}),
        ),
        (
            &write_to_file::tool(),
            json!({"path": "unread.txt", "content": "y"}),
        ),
    ];
    for (tool, arguments) in tools {
        let failure = tool.preview(&bench.context, &arguments).await.unwrap_err();
        assert_eq!(
            tool.call(&bench.context, arguments).await.envelope.error,
            failure.error
        );
    }
    let same = json!({"path": "a.txt", "content": "one\ntwo\nthree\n"});
    assert_eq!(
        write_to_file::tool().preview(&bench.context, &same).await,
        Ok(None),
        "nothing would change"
    );
}
