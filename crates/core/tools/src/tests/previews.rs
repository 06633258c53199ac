//! Tests of the preview of a change that is shown for approval.

use haft_tool::{PreviewResult, Tool};
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
    bench
        .ok(&read_file::define_tool(), json!({"path": "a.txt"}))
        .await;
    bench
}

async fn preview_text(bench: &Bench, tool: &dyn Tool, arguments: Value) -> Option<String> {
    preview_call(bench, tool, arguments).await.unwrap()
}

async fn preview_call(bench: &Bench, tool: &dyn Tool, arguments: Value) -> PreviewResult {
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
async fn preview_shows_the_diff_of_every_editing_tool() {
    let bench = project().await;
    let whole = json!({"path": "a.txt", "content": "one\nzwei\nthree\n"});
    assert_eq!(
        preview_text(&bench, &write_to_file::define_tool(), whole)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "zwei"});
    assert_eq!(
        preview_text(&bench, &edit_file::define_tool(), edit)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let edits = json!({"edits": [
        {"path": "a.txt", "old_string": "two", "new_string": "2"},
        {"path": "a.txt", "old_string": "2", "new_string": "zwei"},
    ]});
    assert_eq!(
        preview_text(&bench, &multi_edit::define_tool(), edits)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let diff = "<<<<<<< SEARCH\ntwo\n=======\nzwei\n>>>>>>> REPLACE\n";
    let blocks = json!({"path": "a.txt", "diff": diff});
    assert_eq!(
        preview_text(&bench, &replace_in_file::define_tool(), blocks)
            .await
            .as_deref(),
        Some(CHANGED)
    );
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+zwei\n*** End Patch\n";
    assert_eq!(
        preview_text(
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
async fn preview_shows_created_deleted_and_moved_files() {
    let bench = project().await;
    let new = json!({"path": "b.txt", "content": "x\ny"});
    let shown = preview_text(&bench, &write_to_file::define_tool(), new)
        .await
        .unwrap();
    assert_eq!(
        shown,
        "--- /dev/null\n+++ b.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
    );
    let empty = json!({"path": "b.txt", "content": ""});
    let shown = preview_text(&bench, &write_to_file::define_tool(), empty)
        .await
        .unwrap();
    assert_eq!(shown, "--- /dev/null\n+++ b.txt\n");
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n";
    let shown = preview_text(
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
    let shown = preview_text(
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
async fn preview_is_absent_for_calls_that_would_fail() {
    let bench = project().await;
    bench.write("unread.txt", "x");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-four\n+x\n*** End Patch\n";
    let diff = "<<<<<<< SEARCH\nfour\n=======\nx\n>>>>>>> REPLACE\n";
    let tools: [(&dyn Tool, Value); 6] = [
        (
            &multi_edit::define_tool(),
            json!({"edits": [{"path": "a.txt", "old_string": "four", "new_string": "x"}]}),
        ),
        (
            &edit_file::define_tool(),
            json!({"path": "a.txt", "old_text": "four", "new_text": "x"}),
        ),
        (
            &replace_in_file::define_tool(),
            json!({"path": "a.txt", "diff": diff}),
        ),
        (&haft_changes::apply_patch(), json!({"patch": patch})),
        (
            &write_to_file::define_tool(),
            json!({"path": "a.txt", "content": "x", "mode": "0777"}),
        ),
        (
            &write_to_file::define_tool(),
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
        write_to_file::define_tool()
            .preview(&bench.context, &same)
            .await,
        Ok(None),
        "nothing would change"
    );
}
