use serde_json::{Value, json};

use super::*;
use crate::knowledge::{note_delete, note_query, note_update};
use crate::testing::Bench;

async fn add_note(bench: &Bench, path: &str, note: &str) -> String {
    bench
        .ok(&define_tool(), json!({"path": path, "note": note}))
        .await
        .envelope
        .text
}

async fn query_notes(bench: &Bench, arguments: Value) -> String {
    bench
        .ok(&note_query::define_tool(), arguments)
        .await
        .envelope
        .text
}

#[tokio::test]
async fn note_query_finds_notes_above_and_below_a_path() {
    let bench = Bench::with_store().await;
    bench.write("src/deep/a.rs", "");
    bench.write("doc/b.md", "");
    assert_eq!(
        query_notes(&bench, json!({})).await,
        "There are no notes in this project."
    );
    assert_eq!(
        add_note(&bench, ".", "the whole").await,
        "Added note n1 on `.`."
    );
    assert_eq!(
        add_note(&bench, "src/", "run\n  make test").await,
        "Added note n2 on `src`."
    );
    add_note(&bench, "src/deep/a.rs", "generated").await;
    add_note(
        &bench,
        &bench.path("doc").display().to_string(),
        "published",
    )
    .await;
    assert_eq!(
        query_notes(&bench, json!({"path": "src"})).await,
        "n1 `.`: the whole\nn2 `src`: run make test\nn3 `src/deep/a.rs`: generated"
    );
    assert_eq!(
        query_notes(&bench, json!({"path": "doc/b.md"})).await,
        "n1 `.`: the whole\nn4 `doc`: published"
    );
    assert_eq!(query_notes(&bench, json!({})).await.lines().count(), 4);
}

#[tokio::test]
async fn notes_are_updated_and_deleted_by_id() {
    let bench = Bench::with_store().await;
    add_note(&bench, ".", "old").await;
    let updated = bench
        .ok(
            &note_update::define_tool(),
            json!({"note_id": "n1", "note": "new"}),
        )
        .await
        .envelope;
    assert_eq!(
        (updated.text.as_str(), &updated.data["note"]["note"]),
        ("Changed note n1 on `.`.", &json!("new"))
    );
    let deleted = bench
        .ok(&note_delete::define_tool(), json!({"note_id": "n1"}))
        .await
        .envelope;
    assert_eq!(deleted.text, "Deleted note n1 on `.`: new");
    for arguments in [json!({"note_id": "n1"}), json!({"note_id": ""})] {
        let (code, message) = bench.err(&note_delete::define_tool(), arguments).await;
        assert_eq!(code, "not_found");
        assert!(message.ends_with("`note_query` shows the ids"), "{message}");
    }
    assert_eq!(
        bench
            .err(
                &note_update::define_tool(),
                json!({"note_id": "n1", "note": "x"})
            )
            .await
            .0,
        "not_found"
    );
}

#[tokio::test]
async fn note_add_rejects_wrong_paths_and_texts() {
    let bench = Bench::with_store().await;
    for (path, note, code) in [
        ("missing", "text", "not_found"),
        ("", "text", "invalid_path"),
        ("/etc", "text", "outside_workspace"),
        (
            &bench.workspace().spill.display().to_string(),
            "text",
            "outside_workspace",
        ),
        (".", " ", "invalid_arguments"),
        (".", &"long ".repeat(500), "invalid_arguments"),
    ] {
        let (found, message) = bench
            .err(&define_tool(), json!({"path": path, "note": note}))
            .await;
        assert_eq!(found, code, "{path}: {message}");
    }
    assert_eq!(
        bench
            .err(&note_query::define_tool(), json!({"path": "missing"}))
            .await
            .0,
        "not_found"
    );
}
