//! Tests of conversations in memory, which are used only while they match the database.

use std::time::Duration;

use haft_store::{NewConversation, PageEnd, Revision, SqliteStore, Store, StoreConfig};
use haft_types::Part;

use crate::support::{Place, conversation, id, user};

fn cached(place: &Place, config: &StoreConfig) -> SqliteStore {
    place.try_open_with(config).unwrap()
}

/// Returns the numbers of hits and misses.
fn counts(store: &SqliteStore) -> (u64, u64) {
    (
        store.statistics().cache_hits,
        store.statistics().cache_misses,
    )
}

async fn fill(store: &dyn Store, name: &str, messages: u32) {
    let mut new = NewConversation::new(conversation(name), "p");
    new.messages = (1..=messages).map(|n| user(n, &n.to_string())).collect();
    store.create(new).await.unwrap();
}

#[tokio::test]
async fn cache_answers_repeated_reads_and_adds_new_messages() {
    let place = Place::new();
    let store = cached(&place, &StoreConfig::default());
    let other = place.open();
    let a = conversation("a");
    fill(&store, "a", 3).await;
    assert_eq!(store.messages(&a).await.unwrap().len(), 3);
    assert_eq!(store.messages(&a).await.unwrap().len(), 3);
    assert_eq!(counts(&store), (1, 1));
    // Another process appends a message.
    other.append_message(&a, &user(4, "4")).await.unwrap();
    assert_eq!(
        store.messages(&a).await.unwrap(),
        other.messages(&a).await.unwrap()
    );
    assert_eq!(
        store.message_page(&a, PageEnd::Newest, 2).await.unwrap(),
        other.message_page(&a, PageEnd::Newest, 2).await.unwrap()
    );
    assert_eq!(counts(&store), (3, 1));
    // The other process revises a message: the copy in memory is invalid.
    let content = Some(vec![Part::from_text("revised")]);
    other
        .revise_message(
            &a,
            id(1),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(
        store.messages(&a).await.unwrap()[0].joined_text(),
        "revised"
    );
    assert_eq!(counts(&store), (3, 2));
    // The other process deletes the conversation.
    other.delete(&a).await.unwrap();
    assert_eq!(store.messages(&a).await.unwrap(), []);
}

#[tokio::test]
async fn cache_evicts_the_least_recently_used_conversation() {
    let place = Place::new();
    let store = cached(
        &place,
        &StoreConfig {
            cache_conversations: 2,
            ..StoreConfig::default()
        },
    );
    for name in ["a", "b", "c"] {
        fill(&store, name, 1).await;
    }
    for name in ["a", "b", "a", "c", "a", "b"] {
        store.messages(&conversation(name)).await.unwrap();
    }
    assert_eq!(counts(&store), (2, 4), "`a` stayed, `b` had to go for `c`");
}

#[tokio::test]
async fn cache_keeps_no_conversation_beyond_its_lifetime() {
    let place = Place::new();
    let never = cached(
        &place,
        &StoreConfig {
            cache_seconds: 0,
            ..StoreConfig::default()
        },
    );
    let off = cached(
        &place,
        &StoreConfig {
            cache_conversations: 0,
            ..StoreConfig::default()
        },
    );
    fill(&never, "a", 1).await;
    for _ in 0..2 {
        never.messages(&conversation("a")).await.unwrap();
        off.messages(&conversation("a")).await.unwrap();
    }
    assert_eq!((counts(&never), counts(&off)), ((0, 2), (0, 2)));
    let default = StoreConfig::default();
    assert_eq!(
        (default.cache_conversations, default.cache_lifetime()),
        (100, Duration::from_mins(5))
    );
}

#[tokio::test]
async fn stored_messages_leaves_no_copy_in_the_cache() {
    let place = Place::new();
    let store = cached(&place, &StoreConfig::default());
    let a = conversation("a");
    fill(&store, "a", 3).await;
    assert_eq!(store.uncached_messages(&a).await.unwrap().len(), 3);
    assert_eq!(counts(&store), (0, 0));
    assert_eq!(store.messages(&a).await.unwrap().len(), 3);
    assert_eq!(counts(&store), (0, 1), "it was not in memory");
}
