//! Documents stored with a conversation or a project.

use serde_json::json;

use super::create;
use super::values::conversation;
use crate::{Store, Swap};

pub(crate) async fn set_state_replaces_the_earlier_document(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    store
        .set_state(&a, "todo", json!([{"z": 1, "a": 2}]))
        .await
        .unwrap();
    store.set_state(&a, "marks", json!("other")).await.unwrap();
    store
        .set_state(&conversation("b"), "todo", json!(null))
        .await
        .unwrap();
    assert_eq!(
        store.state(&a, "todo").await.unwrap().unwrap().to_string(),
        r#"[{"z":1,"a":2}]"#
    );
    store.set_state(&a, "todo", json!([])).await.unwrap();
    assert_eq!(store.state(&a, "todo").await.unwrap(), Some(json!([])));
    assert_eq!(
        store.state(&a, "marks").await.unwrap(),
        Some(json!("other"))
    );
    assert_eq!(
        store.state(&conversation("b"), "todo").await.unwrap(),
        Some(json!(null))
    );
    assert_eq!(store.state(&a, "unknown").await.unwrap(), None);
    // Several keys at once: the requested documents, without those of other conversations.
    store
        .set_state(&a, "cleared", json!({"z": 1, "a": 2}))
        .await
        .unwrap();
    let several = store
        .states(&a, &["todo", "cleared", "unknown"])
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_string(&several).unwrap(),
        r#"{"cleared":{"z":1,"a":2},"todo":[]}"#
    );
    assert_eq!(
        store.states(&conversation("b"), &["todo"]).await.unwrap()["todo"],
        json!(null)
    );
    assert_eq!(
        store
            .states(&conversation("nobody"), &["todo"])
            .await
            .unwrap()
            .len(),
        0
    );
}

pub(crate) async fn project_state_is_separate_from_conversations(store: &dyn Store) {
    assert_eq!(store.project_state("p", "notes").await.unwrap(), None);
    // No conversation is needed, and a conversation with the project's name shares no state.
    store
        .set_project_state("p", "notes", json!([{"z": 1, "a": 2}]))
        .await
        .unwrap();
    store
        .set_project_state("q", "notes", json!("other"))
        .await
        .unwrap();
    create(store, "p", "p").await;
    assert_eq!(
        store.state(&conversation("p"), "notes").await.unwrap(),
        None
    );
    assert_eq!(
        store
            .project_state("p", "notes")
            .await
            .unwrap()
            .unwrap()
            .to_string(),
        r#"[{"z":1,"a":2}]"#
    );
    store
        .set_project_state("p", "notes", json!([]))
        .await
        .unwrap();
    assert_eq!(
        store.project_state("p", "notes").await.unwrap(),
        Some(json!([]))
    );
    assert_eq!(
        store.project_state("q", "notes").await.unwrap(),
        Some(json!("other"))
    );
    assert_eq!(store.project_state("p", "other").await.unwrap(), None);
    store
        .set_project_state("", "notes", json!(1))
        .await
        .unwrap();
    assert_eq!(
        store.project_state("default", "notes").await.unwrap(),
        Some(json!(1))
    );
}

pub(crate) async fn swap_project_state_never_overwrites_another_writers_change(store: &dyn Store) {
    let swap = async |before: Option<&serde_json::Value>, value| {
        store
            .swap_project_state("p", "notes", before, value)
            .await
            .unwrap()
    };
    assert_eq!(swap(Some(&json!([])), json!([1])).await, Swap::Overtaken);
    assert_eq!(store.project_state("p", "notes").await.unwrap(), None);
    assert_eq!(swap(None, json!([1])).await, Swap::Done);
    assert_eq!(swap(None, json!([2])).await, Swap::Overtaken);
    assert_eq!(swap(Some(&json!([1])), json!([1, 2])).await, Swap::Done);
    assert_eq!(
        store.project_state("p", "notes").await.unwrap(),
        Some(json!([1, 2]))
    );
}
