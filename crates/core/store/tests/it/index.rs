//! Tests that the search index is built from the conversations, and again if it is lost.

use std::fs;

use haft_store::{ConversationScope, NewConversation, SearchQuery, Store};

use crate::support::{Place, conversation, user};

const APPLE: SearchQuery<'_> = SearchQuery {
    text: "apple",
    scope: ConversationScope::Everywhere,
    limit: 5,
};

async fn place_with_an_apple() -> Place {
    let place = Place::new();
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = (0..600)
        .map(|n| user(n, if n == 300 { "the apple" } else { "a pear" }))
        .collect();
    place.open().create(new).await.unwrap();
    place
}

#[tokio::test]
async fn index_is_rebuilt_if_damaged() {
    let place = place_with_an_apple().await;
    let index = place.path().with_file_name("search.db");
    assert_eq!(place.open().search(APPLE).await.unwrap().len(), 1);
    let sound = fs::read(&index).unwrap();
    let mut holes = sound.clone();
    holes[4_096..].fill(0xa5);
    for damaged in [
        Vec::new(),
        b"not a database".repeat(500),
        holes,
        sound[..sound.len() / 2].to_vec(),
    ] {
        fs::write(&index, damaged).unwrap();
        assert_eq!(place.open().search(APPLE).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn index_built_by_several_stores_has_no_duplicates() {
    let place = place_with_an_apple().await;
    let stores: Vec<_> = (0..4).map(|_| place.open()).collect();
    let searches = stores.iter().map(|store| store.search(APPLE));
    let mut found = Vec::new();
    for search in searches {
        found.push(search.await.unwrap().len());
    }
    assert_eq!(found, [1; 4]);
}

/// The index is filled even without a search, so that the first search has little left to do.
#[tokio::test]
async fn index_is_filled_in_the_background() {
    let place = place_with_an_apple().await;
    let index = place.path().with_file_name("search.db");
    assert!(!index.exists());
    let store = place.open();
    store
        .append_message(&conversation("a"), &user(1_000, "one more"))
        .await
        .unwrap();
    // Waits without a limit, so that no timing decides the test.
    let indexed = || {
        let index = rusqlite::Connection::open(&index).ok()?;
        index
            .query_row("SELECT message FROM progress", [], |row| {
                row.get::<_, i64>(0)
            })
            .ok()
    };
    while !index.exists() || indexed() != Some(601) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
