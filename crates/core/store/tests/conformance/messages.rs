//! Appending, revising and paging messages.

use haft_types::{LlmMetadata, Outcome, Part};
use serde_json::json;

use super::create;
use super::values::{conversation, id, tick, user};
use crate::{Fact, NewConversation, PageEnd, Revision, Store, StoreError};

pub(crate) async fn append_keeps_the_order_and_updates_the_time(store: &dyn Store) {
    create(store, "a", "p").await;
    create(store, "b", "p").await;
    let a = conversation("a");
    let b = conversation("b");
    // Neither ids nor times determine the order.
    let messages: Vec<_> = [9, 3, 7, 1].map(|n| user(n, &n.to_string())).into();
    for message in &messages {
        store.append_message(&a, message).await.unwrap();
        store
            .append_message(&b, &user(message.message_id.short_id().0 + 100, "other"))
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

pub(crate) async fn append_refuses_a_taken_message_id_and_changes_nothing(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append_message(&a, &user(1, "one")).await.unwrap();
    let before = store.get(&a).await.unwrap();

    let same = store
        .append_message(&a, &user(1, "again"))
        .await
        .unwrap_err();
    assert!(
        matches!(same, StoreError::MessageIdTaken { message, taken_by, .. } if message == taken_by),
        "{same:?}"
    );
    let mut twin = user(1, "twin");
    twin.message_id = "00000001-1111-4000-8000-000000000000".parse().unwrap();
    let short = store.append_message(&a, &twin).await.unwrap_err();
    assert!(
        matches!(short, StoreError::MessageIdTaken { message, taken_by, .. } if message == twin.message_id && taken_by == id(1)),
        "{short:?}"
    );

    assert_eq!(store.get(&a).await.unwrap(), before);
    store.append_message(&a, &user(2, "two")).await.unwrap();
    assert_eq!(
        store.messages(&a).await.unwrap(),
        [user(1, "one"), user(2, "two")]
    );
}

pub(crate) async fn append_accepts_one_message_id_in_two_conversations(store: &dyn Store) {
    for name in ["a", "fork"] {
        create(store, name, "p").await;
        store
            .append_message(&conversation(name), &user(1, "one"))
            .await
            .unwrap();
        assert_eq!(
            store.messages(&conversation(name)).await.unwrap(),
            [user(1, "one")]
        );
    }
}

pub(crate) async fn note_accepts_facts_about_existing_messages_only(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    store.append_message(&a, &user(1, "one")).await.unwrap();
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
        store.add_fact(&a, fact.clone()).await.unwrap();
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
        let error = store.add_fact(&a, fact).await.unwrap_err();
        assert!(
            matches!(error, StoreError::UnknownMessage { message, .. } if message == unknown),
            "{error:?}"
        );
    }
    assert_eq!(store.facts(&a).await.unwrap(), facts);
}

pub(crate) async fn append_finishes_even_if_its_future_is_dropped(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    let message = user(1, "one");
    {
        let mut append = store.append_message(&a, &message);
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

pub(crate) async fn update_replaces_given_fields_and_merges_metadata(store: &dyn Store) {
    create(store, "a", "p").await;
    let a = conversation("a");
    let mut first = user(1, "one");
    first.metadata = [
        ("kept".to_owned(), json!(1)),
        ("replaced".to_owned(), json!({"old": true})),
    ]
    .into_iter()
    .collect();
    store.append_message(&a, &first).await.unwrap();
    store.append_message(&a, &user(2, "two")).await.unwrap();
    let before = store.get(&a).await.unwrap().unwrap();

    let metadata = [
        ("replaced".to_owned(), json!({"new": true})),
        ("added".to_owned(), json!(2)),
    ]
    .into_iter()
    .collect();
    let revised = store
        .revise_message(
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
    let content = Some(vec![Part::from_text("once more")]);
    let again = Revision {
        content,
        llm_metadata: Some(made.clone()),
        ..Revision::default()
    };
    let revised = store.revise_message(&a, id(1), again).await.unwrap();
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
            .revise_message(&a, unknown, Revision::default())
            .await
            .unwrap_err();
        assert!(
            matches!(error, StoreError::UnknownMessage { message, .. } if message == unknown),
            "{error:?}"
        );
    }
}

pub(crate) async fn page_reads_messages_from_the_end(store: &dyn Store) {
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = (1..=25).map(|n| user(n, &n.to_string())).collect();
    store.create(new).await.unwrap();
    let page = async |end, most| {
        let page = store
            .message_page(&conversation("a"), end, most)
            .await
            .unwrap();
        (
            page.earlier_count(),
            page.messages
                .iter()
                .map(|message| message.message_id.short_id().0)
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
    let content = Some(vec![Part::from_text("revised")]);
    store
        .revise_message(
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
        .message_page(&conversation("a"), PageEnd::Newest, 2)
        .await
        .unwrap();
    assert_eq!(newest.messages[0].joined_text(), "revised");
}
