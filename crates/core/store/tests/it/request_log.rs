//! The log of requests over restarts and with several writers, and its size.

use std::sync::Arc;

use haft_store::{LoggedRequest, LoggedSegment, NewConversation, OutlineSegment, SentRequest, Store};
use haft_types::{Api, Entry, Layer, Message, Request, Segment, TokenCounter, ToolSet, ToolSpec};
use rusqlite::Connection;
use serde_json::json;

use crate::support::{Place, conversation, user};

struct Letters;

impl TokenCounter for Letters {
    fn text(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

/// A request of these messages: the first is the system layer, the last the current one and a boundary.
pub(crate) fn sent(messages: &[&Message]) -> SentRequest {
    let last = messages.len() - 1;
    let segments = messages.iter().enumerate().map(|(index, &message)| Segment {
        layer: match index {
            0 => Layer::System,
            index if index == last => Layer::Current,
            _ => Layer::History,
        },
        owner: if index == 0 { "system" } else { "history" },
        entry: Entry::new(message.clone(), &Letters),
        boundary: index == last,
    });
    let spec = ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({"z": 1, "a": 2}) };
    let request = Request {
        segments: segments.collect(),
        tools: ToolSet::new(vec![spec], &Letters),
        max_output_tokens: Some(7),
        cache_key: Some("key".into()),
    };
    SentRequest {
        model: "mock/test".into(),
        api: Api::OpenaiChat,
        request: Arc::new(request),
        encoding: Some("{\"stream\":true}".into()),
        cause: Some("rewound".into()),
    }
}

/// Checks that request `number` reads back as it was sent.
pub(crate) async fn assert_logged(store: &dyn Store, name: &str, number: u64, sent: &SentRequest) {
    let logged = store.request(&conversation(name), number).await.unwrap().unwrap();
    assert_eq!(logged.segments.len(), sent.request.segments.len());
    for (got, want) in logged.segments.iter().zip(&sent.request.segments) {
        assert_eq!((got.layer, got.owner.as_str(), got.boundary), (want.layer, want.owner, want.boundary));
        assert_eq!((&got.message, got.hash, got.tokens), (&want.entry.message, want.entry.hash, want.entry.tokens));
    }
    assert_eq!(logged.tools, sent.request.tools.specs);
    assert_eq!(logged.max_output_tokens, sent.request.max_output_tokens);
    assert_eq!(logged.cache_key, sent.request.cache_key);
    assert_eq!((logged.summary.number, logged.summary.tokens), (number, sent.request.tokens()));
    assert_eq!((&logged.encoding, &logged.summary.cause), (&sent.encoding, &sent.cause));
    assert_outlined(store, name, &logged).await;
}

/// The outline of a request says the same as the request itself.
async fn assert_outlined(store: &dyn Store, name: &str, logged: &LoggedRequest) {
    let outlines = store.request_outlines(&conversation(name)).await.unwrap();
    let outline = outlines.iter().find(|outline| outline.summary.number == logged.summary.number).unwrap();
    assert_eq!((&outline.summary, &outline.encoding), (&logged.summary, &logged.encoding));
    assert_eq!(outline.tools, ToolSet::new(logged.tools.clone(), &Letters).hash);
    let of_logged = |segment: &LoggedSegment| OutlineSegment {
        layer: segment.layer,
        owner: segment.owner.clone(),
        message: segment.message.message_id,
        hash: segment.hash,
        tokens: segment.tokens,
        boundary: segment.boundary,
    };
    assert_eq!(outline.segments, logged.segments.iter().map(of_logged).collect::<Vec<_>>());
}

async fn kept(store: &dyn Store) -> Vec<usize> {
    store.requests(&conversation("a")).await.unwrap().iter().map(|line| line.kept).collect()
}

#[tokio::test]
async fn after_a_restart_and_beside_another_writer_requests_are_still_differences() {
    let place = Place::new();
    let a = conversation("a");
    let messages: Vec<_> = (0..6).map(|n| user(n, &format!("message {n}"))).collect();
    let requests: Vec<_> = (2..=6).map(|count| sent(&messages[..count].iter().collect::<Vec<_>>())).collect();
    {
        let store = place.open();
        store.create(NewConversation::new(a.clone(), "p")).await.unwrap();
        // Nobody waits: dropping the store does.
        drop(store.log_request(&a, requests[0].clone()));
    }
    let (store, other) = (place.open(), place.open());
    assert_eq!(store.log_request(&a, requests[1].clone()).await.unwrap(), 2);
    assert_eq!(other.log_request(&a, requests[2].clone()).await.unwrap(), 3);
    assert_eq!(store.log_request(&a, requests[3].clone()).await.unwrap(), 4);
    assert_eq!(other.log_request(&a, requests[4].clone()).await.unwrap(), 5);
    assert_eq!(kept(&store).await, [0, 2, 3, 4, 5]);
    for (number, request) in (1..).zip(&requests) {
        assert_logged(&store, "a", number, request).await;
    }
}

#[tokio::test]
async fn the_log_grows_with_what_is_new_only() {
    let place = Place::new();
    let a = conversation("a");
    let messages: Vec<_> = (0..200).map(|n| user(n, &"long ".repeat(100))).collect();
    let store = place.open();
    store.create(NewConversation::new(a.clone(), "p")).await.unwrap();
    for count in 1..=messages.len() {
        store.append(&a, &messages[count - 1]).await.unwrap();
        store.log_request(&a, sent(&messages[..count].iter().collect::<Vec<_>>())).await.unwrap();
    }
    let connection = Connection::open(place.path()).unwrap();
    let size = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let largest = size("SELECT max(length(body)) FROM requests");
    assert!(largest < 1_000, "one request of the log takes {largest} bytes");
    assert_eq!(size("SELECT count(*) FROM texts"), 2, "only tools and encoding: the messages are referred to");
}

/// A clear message of damage instead of a request that was never sent.
#[tokio::test]
async fn a_changed_message_row_is_noticed() {
    let place = Place::new();
    let (a, message) = (conversation("a"), user(1, "what was sent"));
    let store = place.open();
    store.create(NewConversation::new(a.clone(), "p")).await.unwrap();
    store.append(&a, &message).await.unwrap();
    store.log_request(&a, sent(&[&message])).await.unwrap();
    let connection = Connection::open(place.path()).unwrap();
    connection.execute("UPDATE messages SET body = replace(body, 'what', 'that')", []).unwrap();
    let error = store.request(&a, 1).await.unwrap_err();
    assert!(error.to_string().contains("is not what was sent"), "{error}");
}
