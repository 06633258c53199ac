//! Forks share the messages before their point and diverge after it.

use haft_types::{Message, Outcome, Part};
use serde_json::json;

use super::create;
use super::values::{conversation, id, user};
use crate::{Fact, NewFork, PageEnd, Revision, Store, StoreError};

async fn create_with_five_messages(store: &dyn Store) -> Vec<Message> {
    create(store, "a", "p").await;
    let messages: Vec<_> = (1..=5).map(|n| user(n, &n.to_string())).collect();
    for message in &messages {
        store
            .append_message(&conversation("a"), message)
            .await
            .unwrap();
    }
    messages
}

fn fork_at(name: &str, n: u32) -> NewFork {
    NewFork {
        at: Some(id(n)),
        ..NewFork::new(conversation(name))
    }
}

fn revision_with_text(text: &str) -> Revision {
    Revision {
        content: Some(vec![Part::from_text(text)]),
        ..Revision::default()
    }
}

async fn message_texts(store: &dyn Store, name: &str) -> Vec<String> {
    store
        .messages(&conversation(name))
        .await
        .unwrap()
        .iter()
        .map(Message::joined_text)
        .collect()
}

pub(crate) async fn fork_has_the_messages_up_to_its_point(store: &dyn Store) {
    let messages = create_with_five_messages(store).await;
    let fork = store
        .fork(&conversation("a"), fork_at("b", 3))
        .await
        .unwrap();
    assert_eq!(
        (fork.name.as_str(), fork.namespace.as_str(), fork.messages),
        ("Conversation a (fork)", "p", 3)
    );
    assert_eq!(
        fork.metadata["forked_from"],
        json!({"conversation": "a", "messages": 3})
    );
    assert_eq!(store.get(&fork.id).await.unwrap(), Some(fork));
    assert_eq!(
        store.messages(&conversation("b")).await.unwrap(),
        messages[..3],
        "with their ids"
    );

    store
        .append_message(&conversation("b"), &user(10, "its own"))
        .await
        .unwrap();
    store
        .append_message(&conversation("a"), &user(6, "6"))
        .await
        .unwrap();
    assert_eq!(message_texts(store, "b").await, ["1", "2", "3", "its own"]);
    assert_eq!(
        message_texts(store, "a").await,
        ["1", "2", "3", "4", "5", "6"]
    );
    let page = store
        .message_page(&conversation("b"), PageEnd::Newest, 2)
        .await
        .unwrap();
    assert_eq!((page.earlier_count(), page.messages.len()), (2, 2));
    assert_eq!(
        (
            page.messages[0].joined_text().as_str(),
            page.messages[1].joined_text().as_str()
        ),
        ("3", "its own")
    );
    assert_eq!(
        store
            .export(&conversation("b"))
            .await
            .unwrap()
            .unwrap()
            .messages
            .len(),
        4
    );
}

pub(crate) async fn fork_of_a_fork_reads_all_shared_messages(store: &dyn Store) {
    create_with_five_messages(store).await;
    store
        .fork(&conversation("a"), fork_at("b", 3))
        .await
        .unwrap();
    store
        .append_message(&conversation("b"), &user(10, "b1"))
        .await
        .unwrap();
    store
        .append_message(&conversation("b"), &user(11, "b2"))
        .await
        .unwrap();
    store
        .fork(&conversation("b"), fork_at("c", 10))
        .await
        .unwrap();
    store
        .append_message(&conversation("c"), &user(20, "c1"))
        .await
        .unwrap();
    assert_eq!(message_texts(store, "c").await, ["1", "2", "3", "b1", "c1"]);
    // Before the point of the other fork.
    store
        .fork(&conversation("c"), fork_at("d", 2))
        .await
        .unwrap();
    store
        .append_message(&conversation("d"), &user(3, "another third"))
        .await
        .unwrap();
    assert_eq!(message_texts(store, "d").await, ["1", "2", "another third"]);
    // At the end, and again.
    store
        .fork(&conversation("c"), NewFork::new(conversation("e")))
        .await
        .unwrap();
    store
        .fork(&conversation("e"), NewFork::new(conversation("f")))
        .await
        .unwrap();
    assert_eq!(message_texts(store, "f").await, ["1", "2", "3", "b1", "c1"]);
}

pub(crate) async fn fork_refuses_ids_of_shared_messages(store: &dyn Store) {
    create_with_five_messages(store).await;
    store
        .fork(&conversation("a"), fork_at("b", 3))
        .await
        .unwrap();
    let taken = store
        .append_message(&conversation("b"), &user(2, "again"))
        .await
        .unwrap_err();
    assert!(
        matches!(taken, StoreError::MessageIdTaken { taken_by, .. } if taken_by == id(2)),
        "{taken:?}"
    );
    store
        .append_message(&conversation("b"), &user(4, "not shared"))
        .await
        .unwrap();
    assert_eq!(
        message_texts(store, "b").await,
        ["1", "2", "3", "not shared"]
    );
}

pub(crate) async fn fork_and_origin_do_not_see_each_others_revisions(store: &dyn Store) {
    create_with_five_messages(store).await;
    let a = conversation("a");
    let b = conversation("b");
    store
        .revise_message(&a, id(1), revision_with_text("1 before the fork"))
        .await
        .unwrap();
    store.fork(&a, fork_at("b", 3)).await.unwrap();
    store
        .revise_message(&a, id(1), revision_with_text("1 of a"))
        .await
        .unwrap();
    store
        .revise_message(&a, id(2), revision_with_text("2 of a"))
        .await
        .unwrap();
    store
        .revise_message(&b, id(2), revision_with_text("2 of b"))
        .await
        .unwrap();
    store
        .revise_message(&b, id(3), revision_with_text("3 of b"))
        .await
        .unwrap();
    assert_eq!(
        message_texts(store, "a").await,
        ["1 of a", "2 of a", "3", "4", "5"]
    );
    assert_eq!(
        message_texts(store, "b").await,
        ["1 before the fork", "2 of b", "3 of b"]
    );
    store.fork(&b, fork_at("c", 2)).await.unwrap();
    store
        .revise_message(&b, id(2), revision_with_text("2 of b, later"))
        .await
        .unwrap();
    assert_eq!(
        message_texts(store, "c").await,
        ["1 before the fork", "2 of b"]
    );
    let unknown = store
        .revise_message(&b, id(4), revision_with_text("not its own"))
        .await
        .unwrap_err();
    assert!(
        matches!(unknown, StoreError::UnknownMessage { .. }),
        "{unknown:?}"
    );
}

pub(crate) async fn fork_copies_facts_and_states_of_its_point(store: &dyn Store) {
    create_with_five_messages(store).await;
    let a = conversation("a");
    let b = conversation("b");
    let begun = |n| Fact::ToolStarted {
        message_id: id(n),
        call_id: format!("call {n}"),
    };
    store.add_fact(&a, begun(2)).await.unwrap();
    store.add_fact(&a, begun(5)).await.unwrap();
    store
        .set_state(&a, "todo", json!(["before"]))
        .await
        .unwrap();
    store.fork(&a, fork_at("b", 3)).await.unwrap();
    store.add_fact(&a, begun(3)).await.unwrap();
    store.set_state(&a, "todo", json!(["after"])).await.unwrap();
    assert_eq!(store.facts(&b).await.unwrap(), [begun(2)]);
    assert_eq!(
        store.state(&b, "todo").await.unwrap(),
        Some(json!(["before"]))
    );
    let ended = Fact::TurnEnded {
        message_id: id(3),
        outcome: Outcome::Completed,
    };
    store.add_fact(&b, ended.clone()).await.unwrap();
    store.set_state(&b, "todo", json!([])).await.unwrap();
    assert_eq!(store.facts(&b).await.unwrap(), [begun(2), ended]);
    assert_eq!(
        store.facts(&a).await.unwrap(),
        [begun(2), begun(5), begun(3)]
    );
    assert_eq!(
        store.state(&a, "todo").await.unwrap(),
        Some(json!(["after"]))
    );
}

pub(crate) async fn fork_survives_the_deletion_of_its_origin(store: &dyn Store) {
    create_with_five_messages(store).await;
    let fork = NewFork {
        name: Some("own name".into()),
        make_current: true,
        ..fork_at("b", 2)
    };
    store.fork(&conversation("a"), fork).await.unwrap();
    assert_eq!(
        store.current_conversation("p").await.unwrap(),
        Some(conversation("b"))
    );
    store.delete(&conversation("a")).await.unwrap();
    assert_eq!(message_texts(store, "b").await, ["1", "2"]);
    assert_eq!(
        store.get(&conversation("b")).await.unwrap().unwrap().name,
        "own name"
    );
}

pub(crate) async fn fork_that_fails_leaves_no_conversation(store: &dyn Store) {
    create_with_five_messages(store).await;
    let taken = store
        .fork(&conversation("a"), NewFork::new(conversation("a")))
        .await
        .unwrap_err();
    assert!(matches!(taken, StoreError::IdTaken { .. }), "{taken:?}");
    let unknown = store
        .fork(&conversation("a"), fork_at("b", 99))
        .await
        .unwrap_err();
    assert!(
        matches!(unknown, StoreError::UnknownMessage { .. }),
        "{unknown:?}"
    );
    let invalid = store
        .fork(&conversation("a"), NewFork::new(conversation("")))
        .await
        .unwrap_err();
    assert!(
        matches!(invalid, StoreError::InvalidId { .. }),
        "{invalid:?}"
    );
    assert_eq!(store.get(&conversation("b")).await.unwrap(), None);
}
