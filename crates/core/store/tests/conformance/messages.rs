//! Appending, revising and paging messages.

use haft_types::{LlmMetadata, Outcome, Part};
use serde_json::json;

use super::create;
use super::values::{conversation, id, tick, user};
use crate::{Fact, NewConversation, PageEnd, Revision, Store, StoreError};

pub(crate) async fn messages_keep_their_order_and_move_the_updated_time(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    let b = conversation("b");
    // Neither ids nor times determine the order.
    let messages: Vec<_> = [9, 3, 7, 1].map(|n| user(n, &n.to_string())).into();
    for message in &messages {
        store.append(&a, message).await.unwrap();
        store
            .append(&b, &user(message.message_id.short().0 + 100, "other"))
            .await
            .unwrap();
    }
    assert_eq!(store.messages(&a).await.unwrap(), messages);
    let read = store.get(&a).await.unwrap().unwrap();
    assert_eq!(
        (read.messages, read.created_at, read.updated_at),
        (4, tick(0), tick(8))
    );
}

pub(crate) async fn a_taken_message_id_is_refused_and_changes_nothing(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append(&a, &user(1, "one")).await.unwrap();
    let before = store.get(&a).await.unwrap();

    let same = store.append(&a, &user(1, "again")).await.unwrap_err();
    assert!(
        matches!(same, StoreError::MessageIdTaken { message, taken_by, .. } if message == taken_by),
        "{same:?}"
    );
    let mut twin = user(1, "twin");
    twin.message_id = "00000001-1111-4000-8000-000000000000".parse().unwrap();
    let short = store.append(&a, &twin).await.unwrap_err();
    assert!(
        matches!(short, StoreError::MessageIdTaken { message, taken_by, .. } if message == twin.message_id && taken_by == id(1)),
        "{short:?}"
    );

    assert_eq!(store.get(&a).await.unwrap(), before);
    store.append(&a, &user(2, "two")).await.unwrap();
    assert_eq!(
        store.messages(&a).await.unwrap(),
        [user(1, "one"), user(2, "two")]
    );
}

pub(crate) async fn the_same_message_id_may_be_in_two_conversations(store: &dyn Store) {
    for name in ["a", "fork"] {
        create(store, name, "p").await;
        store
            .append(&conversation(name), &user(1, "one"))
            .await
            .unwrap();
        assert_eq!(
            store.messages(&conversation(name)).await.unwrap(),
            [user(1, "one")]
        );
    }
}

pub(crate) async fn facts_are_about_messages_that_exist(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append(&a, &user(1, "one")).await.unwrap();
    let before = store.get(&a).await.unwrap();
    let facts = [
        Fact::ToolStarted {
            message_id: id(1),
            call_id: "call_1".into(),
        },
        Fact::ToolStarted {
            message_id: id(1),
            call_id: "call_2".into(),
        },
        Fact::TurnEnded {
            message_id: id(1),
            outcome: Outcome::Waiting,
        },
    ];
    for fact in &facts {
        store.note(&a, fact.clone()).await.unwrap();
    }
    assert_eq!(store.facts(&a).await.unwrap(), facts);
    assert_eq!(store.get(&a).await.unwrap(), before);

    for unknown in [
        id(2),
        "00000001-1111-4000-8000-000000000000".parse().unwrap(),
    ] {
        let fact = Fact::ToolStarted {
            message_id: unknown,
            call_id: "call_1".into(),
        };
        let error = store.note(&a, fact).await.unwrap_err();
        assert!(
            matches!(error, StoreError::UnknownMessage { message, .. } if message == unknown),
            "{error:?}"
        );
    }
    assert_eq!(store.facts(&a).await.unwrap(), facts);
}

pub(crate) async fn a_dropped_append_still_happens(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    let message = user(1, "one");
    {
        let mut append = store.append(&a, &message);
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(append.as_mut().poll(context)))
                .await;
        // Usually the append is still pending; if it was faster than the poll, it is already
        // durable.
        assert!(polled.is_pending() || matches!(polled, std::task::Poll::Ready(Ok(()))));
    }
    store.flush().await.unwrap();
    assert_eq!(store.messages(&a).await.unwrap(), [message]);
}

pub(crate) async fn a_revision_changes_what_is_given_and_merges_the_rest(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    let mut first = user(1, "one");
    first.metadata = [
        ("kept".to_owned(), json!(1)),
        ("replaced".to_owned(), json!({"old": true})),
    ]
    .into_iter()
    .collect();
    store.append(&a, &first).await.unwrap();
    store.append(&a, &user(2, "two")).await.unwrap();
    let before = store.get(&a).await.unwrap().unwrap();

    let metadata = [
        ("replaced".to_owned(), json!({"new": true})),
        ("added".to_owned(), json!(2)),
    ]
    .into_iter()
    .collect();
    let revised = store
        .update(
            &a,
            id(1),
            Revision {
                metadata,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(revised.content, first.content);
    let metadata = json!({"kept": 1, "replaced": {"new": true}, "added": 2});
    assert_eq!(
        serde_json::Value::Object(revised.metadata.clone()),
        metadata
    );

    let made = LlmMetadata {
        model_name: "m/n".into(),
        ..LlmMetadata::default()
    };
    let content = Some(vec![Part::text("once more")]);
    let again = Revision {
        content,
        llm_metadata: Some(made.clone()),
        ..Revision::default()
    };
    let revised = store.update(&a, id(1), again).await.unwrap();
    assert_eq!(
        (
            revised.joined_text().as_str(),
            revised.llm_metadata.as_deref()
        ),
        ("once more", Some(&made))
    );
    assert_eq!(
        (revised.message_id, revised.created_at),
        (first.message_id, first.created_at)
    );
    assert_eq!(
        serde_json::Value::Object(revised.metadata.clone()),
        metadata,
        "as it was revised before"
    );

    assert_eq!(
        store.messages(&a).await.unwrap(),
        [revised.clone(), user(2, "two")]
    );
    assert_eq!(
        store.export(&a).await.unwrap().unwrap().messages[0],
        revised
    );
    let after = store.get(&a).await.unwrap().unwrap();
    assert_eq!(
        (after.messages, after.revisions),
        (before.messages, before.revisions + 2)
    );
    assert!(after.updated_at > before.updated_at);

    for unknown in [
        id(3),
        "00000001-1111-4000-8000-000000000000".parse().unwrap(),
    ] {
        let error = store
            .update(&a, unknown, Revision::default())
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::UnknownMessage { message, .. } if message == unknown),
            "{error:?}"
        );
    }
}

pub(crate) async fn pages_are_read_from_the_tail(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = (1..=25).map(|n| user(n, &n.to_string())).collect();
    store.create(new).await.unwrap();
    let page = async |end, most| {
        let page = store.page(&conversation("a"), end, most).await.unwrap();
        (
            page.earlier(),
            page.messages
                .iter()
                .map(|message| message.message_id.short().0)
                .collect::<Vec<_>>(),
        )
    };
    // Once from the database, and once from memory after all messages were read.
    for _ in 0..2 {
        assert_eq!(page(PageEnd::Newest, 3).await, (22, vec![23, 24, 25]));
        assert_eq!(
            page(PageEnd::Before(23), 10).await,
            (12, (13..=22).collect())
        );
        assert_eq!(page(PageEnd::Before(4), 10).await, (0, vec![1, 2, 3]));
        assert_eq!(page(PageEnd::Before(1), 10).await, (0, vec![]));
        assert_eq!(page(PageEnd::Before(1_000), 1).await, (24, vec![25]));
        assert_eq!(page(PageEnd::Newest, 1_000).await, (0, (1..=25).collect()));
        assert_eq!(page(PageEnd::Newest, 0).await, (25, vec![]));
        store.messages(&conversation("a")).await.unwrap();
    }
    let content = Some(vec![Part::text("revised")]);
    store
        .update(
            &conversation("a"),
            id(24),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    let newest = store
        .page(&conversation("a"), PageEnd::Newest, 2)
        .await
        .unwrap();
    assert_eq!(newest.messages[0].joined_text(), "revised");
}
