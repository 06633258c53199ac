use serde_json::json;

use super::*;
use crate::testing::{Bench, check_fixtures};

#[tokio::test]
async fn multi_edit_matches_the_fixtures() {
    check_fixtures("multi_edit", 30, &define_tool(), |case| {
        serde_json::from_slice(&std::fs::read(case.join("call.json")).unwrap()).unwrap()
    })
    .await;
}

#[tokio::test]
async fn multi_edit_result_lists_every_file() {
    let bench = Bench::new();
    bench.write("a", "one\ntwo\n");
    let edits = json!([
        {"path": "a", "old_string": "one", "new_string": "1"},
        {"path": "a", "old_string": "two", "new_string": "2"},
        {"path": "b", "old_string": "", "new_string": "new\n"},
    ]);
    let output = bench.ok(&define_tool(), json!({"edits": edits})).await;
    let diff = "@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2";
    assert_eq!(
        output.envelope.text,
        format!(
            "3 edits applied in 2 files.\nChanged `a`: 2 edits applied, 2 lines added, 2 removed.\n{diff}\nCreated `b`: 1 line."
        )
    );
    assert_eq!(
        output.envelope.data,
        json!({
            "applied": 3,
            "files": [
                {
                    "path": "a", "change": "edited", "applied": 2, "changed_ranges": [{"start_line": 1, "end_line": 2}],
                    "added": 2, "removed": 2, "diff": diff,
                },
                {"path": "b", "change": "created", "lines": 1},
            ],
        })
    );
    let paths: Vec<_> = output
        .changes
        .iter()
        .map(|change| change.path.clone())
        .collect();
    assert_eq!(paths, [bench.path("a"), bench.path("b")]);
    let seen = output.envelope.context["files"].as_array().unwrap();
    assert_eq!((seen.len(), &seen[1]["size"]), (2, &json!(4)));
    assert_eq!(bench.history.saved.lock().unwrap().len(), 2);
    assert_eq!(
        *bench.history.saved.lock().unwrap(),
        *bench.history.changed.lock().unwrap()
    );
}

#[tokio::test]
async fn multi_edit_refuses_all_edits_if_one_file_changed_since_it_was_read() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench.write("b", "two\n");
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "old_string": old, "new_string": new});
    bench
        .ok(&define_tool(), json!({"edits": [edit("b", "two", "2")]}))
        .await;
    bench.write("b", "2 and more\n");
    let both = json!({"edits": [edit("a", "one", "1"), edit("b", "2", "zwei")]});
    assert_eq!(
        bench.err(&define_tool(), both).await.0,
        "changed_since_read"
    );
    assert_eq!(bench.read("a"), b"one\n");
}
