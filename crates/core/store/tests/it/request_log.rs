//! Tests of the request log across restarts and with several writers, and of its size.

use haft_store::conformance::{assert_logged, sent};
use haft_store::{NewConversation, Store};
use rusqlite::Connection;

use crate::support::{Place, conversation, user};

async fn kept_segment_counts(store: &dyn Store) -> Vec<usize> {
    store
        .logged_requests(&conversation("a"))
        .await
        .unwrap()
        .iter()
        .map(|line| line.kept)
        .collect()
}

#[tokio::test]
async fn requests_stay_differences_after_a_restart_or_another_writer() {
    let place = Place::new();
    let a = conversation("a");
    let messages: Vec<_> = (0..6).map(|n| user(n, &format!("message {n}"))).collect();
    let requests: Vec<_> = (2..=6)
        .map(|count| sent(&messages[..count].iter().collect::<Vec<_>>()))
        .collect();
    {
        let store = place.open();
        store
            .create(NewConversation::new(a.clone(), "p"))
            .await
            .unwrap();
        // Dropping the store waits for the write.
        drop(store.log_request(&a, requests[0].clone()));
    }
    let store = place.open();
    let other = place.open();
    assert_eq!(store.log_request(&a, requests[1].clone()).await.unwrap(), 2);
    assert_eq!(other.log_request(&a, requests[2].clone()).await.unwrap(), 3);
    assert_eq!(store.log_request(&a, requests[3].clone()).await.unwrap(), 4);
    assert_eq!(other.log_request(&a, requests[4].clone()).await.unwrap(), 5);
    assert_eq!(kept_segment_counts(&store).await, [0, 2, 3, 4, 5]);
    for (number, request) in (1..).zip(&requests) {
        assert_logged(&store, "a", number, request).await;
    }
}

#[tokio::test]
async fn log_grows_only_with_new_messages() {
    let place = Place::new();
    let a = conversation("a");
    let messages: Vec<_> = (0..200).map(|n| user(n, &"long ".repeat(100))).collect();
    let store = place.open();
    store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    for count in 1..=messages.len() {
        store
            .append_message(&a, &messages[count - 1])
            .await
            .unwrap();
        store
            .log_request(&a, sent(&messages[..count].iter().collect::<Vec<_>>()))
            .await
            .unwrap();
    }
    let connection = Connection::open(place.path()).unwrap();
    let size = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let largest = size("SELECT max(length(body)) FROM requests");
    assert!(
        largest < 1_000,
        "one request of the log takes {largest} bytes"
    );
    assert_eq!(
        size("SELECT count(*) FROM texts"),
        2,
        "only tools and encoding: the messages are referred to"
    );
}

/// The error reports damage; the log never returns a request that was not sent.
#[tokio::test]
async fn request_with_a_changed_message_row_is_damaged() {
    let place = Place::new();
    let a = conversation("a");
    let message = user(1, "what was sent");
    let store = place.open();
    store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    store.append_message(&a, &message).await.unwrap();
    store.log_request(&a, sent(&[&message])).await.unwrap();
    let connection = Connection::open(place.path()).unwrap();
    connection
        .execute(
            "UPDATE messages SET body = replace(body, 'what', 'that')",
            [],
        )
        .unwrap();
    let error = store.logged_request(&a, 1).await.unwrap_err();
    assert!(
        error.to_string().contains("is not what was sent"),
        "{error}"
    );
}
