use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn edit_file_result_shows_the_diff_and_range() {
    let bench = Bench::new();
    bench.write("a", "one\r\ntwo\r\n");
    let output = bench
        .ok(
            &define_tool(),
            json!({"path": "a", "old_text": "one\ntw", "new_text": "1\n"}),
        )
        .await;
    let diff = "@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+o";
    assert_eq!(
        output.envelope.text,
        format!("Changed `a`: 1 edit applied, 2 lines added, 2 removed.\n{diff}")
    );
    assert_eq!(
        output.envelope.data,
        json!({
            "path": "a", "change": "edited", "applied": 1, "changed_ranges": [{"start_line": 1, "end_line": 2}],
            "added": 2, "removed": 2, "diff": diff,
        })
    );
    assert_eq!(bench.read("a"), b"1\r\no\r\n");
    assert_eq!(output.envelope.context["file"]["size"], 6);
    assert_eq!(
        *bench.history.saved.lock().unwrap(),
        *bench.history.changed.lock().unwrap()
    );
}

#[tokio::test]
async fn edit_file_changes_several_places_only_with_replace_all() {
    let bench = Bench::new();
    bench.write("a", "x\ny\nx\n");
    let (code, message) = bench
        .err(
            &define_tool(),
            json!({"path": "a", "old_text": "x", "new_text": "z"}),
        )
        .await;
    assert_eq!(code, "ambiguous_match");
    assert!(
        message.contains("2 places in `a`, at lines 1, 3") && message.contains("`replace_all`"),
        "{message}"
    );
    assert_eq!(bench.read("a"), b"x\ny\nx\n");
    let all = json!({"path": "a", "old_text": "x", "new_text": "z", "replace_all": true});
    assert_eq!(
        bench.ok(&define_tool(), all).await.envelope.data["applied"],
        2
    );
    assert_eq!(bench.read("a"), b"z\ny\nz\n");
}

#[tokio::test]
async fn edit_file_changes_nothing_if_the_text_does_not_fit() {
    let bench = Bench::new();
    bench.write("a", "one two\n");
    bench.write("empty", "");
    for (old, new, expected) in [
        ("one  two", "x", "no_match"),
        ("", "x", "invalid_edit"),
        ("one", "one", "no_change"),
    ] {
        let (code, message) = bench
            .err(
                &define_tool(),
                json!({"path": "a", "old_text": old, "new_text": new}),
            )
            .await;
        assert_eq!(code, expected, "{message}");
    }
    assert_eq!(bench.read("a"), b"one two\n");
    assert_eq!(
        bench
            .err(
                &define_tool(),
                json!({"path": "b", "old_text": "a", "new_text": "b"})
            )
            .await
            .0,
        "not_found"
    );
    bench
        .ok(
            &define_tool(),
            json!({"path": "empty", "old_text": "", "new_text": "new\n"}),
        )
        .await;
    assert_eq!(bench.read("empty"), b"new\n");
}

#[tokio::test]
async fn edit_file_refuses_a_file_changed_since_it_was_read() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench
        .ok(
            &define_tool(),
            json!({"path": "a", "old_text": "one", "new_text": "two"}),
        )
        .await;
    bench.write("a", "two and more\n");
    assert_eq!(
        bench
            .err(
                &define_tool(),
                json!({"path": "a", "old_text": "two", "new_text": "2"})
            )
            .await
            .0,
        "changed_since_read"
    );
}

#[tokio::test]
async fn edit_file_finds_carriage_returns_as_displayed() {
    let bench = Bench::new();
    for (before, old, new, after) in [
        (
            "10%\r100%\ndone\n",
            "10%␍100%",
            "0%␍100%",
            "0%\r100%\ndone\n",
        ),
        ("one\rtwo\rthree", "one\rtwo", "1\r2", "1\r2\rthree"),
        ("one\rtwo\rthree", "one␍two\nthree", "1\n2\n3", "1\r2\r3"),
        // A `␍` that is part of the file stays a `␍`.
        ("a\rb\n␍\n", "␍", "CR", "a\rb\nCR\n"),
    ] {
        bench.write("a", before);
        bench
            .ok(
                &crate::files::read_file::define_tool(),
                json!({"path": "a"}),
            )
            .await;
        bench
            .ok(
                &define_tool(),
                json!({"path": "a", "old_text": old, "new_text": new}),
            )
            .await;
        assert_eq!(
            String::from_utf8(bench.read("a")).unwrap(),
            after,
            "{before:?}"
        );
    }
}
