//! Builds requests to log, and checks that they read back.

use std::sync::Arc;

use haft_types::{
    Api, Entry, Layer, Message, Request, Segment, SentSegment, TokenCounter, ToolSet, ToolSpec,
};
use serde_json::json;

use super::values::conversation;
use crate::{LoggedRequest, LoggedSegment, SentRequest, Store};

/// Counts bytes; any stable count is sufficient.
struct ByteCounter;

impl TokenCounter for ByteCounter {
    fn count_text(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

/// Returns a request of `messages`: the first is the system layer, the last the current layer and a
/// boundary.
///
/// # Panics
/// If there are no messages.
pub fn sent(messages: &[&Message]) -> SentRequest {
    let last = messages.len() - 1;
    let segments = messages
        .iter()
        .enumerate()
        .map(|(index, &message)| Segment {
            layer: match index {
                0 => Layer::System,
                index if index == last => Layer::Current,
                _ => Layer::History,
            },
            owner: if index == 0 { "system" } else { "history" },
            entry: Entry::new(message.clone(), &ByteCounter),
            boundary: index == last,
        });
    let spec = ToolSpec {
        name: "t".into(),
        description: "d".into(),
        parameters: json!({"z": 1, "a": 2}),
    };
    let request = Request {
        segments: segments.collect(),
        tools: ToolSet::new(vec![spec], &ByteCounter),
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

/// Asserts that request `number` of a conversation reads back as sent, whole and as an outline.
///
/// # Panics
/// If it does not.
pub async fn assert_logged(store: &dyn Store, name: &str, number: u64, sent: &SentRequest) {
    let logged = store
        .logged_request(&conversation(name), number)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(logged.segments.len(), sent.request.segments.len());
    for (got, want) in logged.segments.iter().zip(&sent.request.segments) {
        assert_eq!(
            (got.layer, got.owner.as_str(), got.boundary),
            (want.layer, want.owner, want.boundary)
        );
        assert_eq!(
            (&got.message, got.hash, got.tokens),
            (&want.entry.message, want.entry.hash, want.entry.tokens)
        );
    }
    assert_eq!(logged.tools, sent.request.tools.specs);
    assert_eq!(logged.max_output_tokens, sent.request.max_output_tokens);
    assert_eq!(logged.cache_key, sent.request.cache_key);
    assert_eq!(
        (logged.summary.number, logged.summary.tokens),
        (number, sent.request.estimated_tokens())
    );
    assert_eq!(
        (&logged.encoding, &logged.summary.cause),
        (&sent.encoding, &sent.cause)
    );
    assert_outlined(store, name, &logged).await;
}

/// Asserts that the outline of a request agrees with the request itself.
async fn assert_outlined(store: &dyn Store, name: &str, logged: &LoggedRequest) {
    let outlines = store.request_outlines(&conversation(name)).await.unwrap();
    assert_eq!(
        store.count_requests(&conversation(name)).await.unwrap(),
        outlines.len() as u64
    );
    let outline = outlines
        .iter()
        .find(|outline| outline.summary.number == logged.summary.number)
        .unwrap();
    assert_eq!(
        (&outline.summary, &outline.encoding),
        (&logged.summary, &logged.encoding)
    );
    assert_eq!(
        outline.tools,
        ToolSet::new(logged.tools.clone(), &ByteCounter).hash
    );
    let of_logged = |segment: &LoggedSegment| SentSegment {
        layer: segment.layer,
        owner: segment.owner.clone().into(),
        message: segment.message.message_id,
        hash: segment.hash,
        tokens: segment.tokens,
        boundary: segment.boundary,
    };
    assert_eq!(
        outline.segments,
        logged.segments.iter().map(of_logged).collect()
    );
}
