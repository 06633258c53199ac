use std::sync::Arc;

use haft_types::{Entry, Message, Request, Role, TokenCounter, ToolSet};
use proptest::prelude::*;

use super::*;

struct Letters;

impl TokenCounter for Letters {
    fn count_text(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

/// A segment: the id and the content of its message, true if it is in the current layer, true if a
/// boundary follows.
type Kind = (u32, u8, bool, bool);

fn sent_request(kinds: &[Kind]) -> SentRequest {
    let segments = kinds
        .iter()
        .map(|&(id, content, current, boundary)| {
            let id = format!("{id:08x}-0000-4000-8000-000000000000")
                .parse()
                .unwrap();
            let message = Message::from_text(
                id,
                Role::User,
                "x".repeat(content.into()),
                "2026-11-15T10:00:00Z".parse().unwrap(),
            );
            Segment {
                layer: if current {
                    Layer::Current
                } else {
                    Layer::History
                },
                owner: "history",
                entry: Entry::new(message, &Letters),
                boundary,
            }
        })
        .collect();
    let tools = ToolSet::new(Vec::new(), &Letters);
    let request = Request {
        segments,
        tools,
        max_output_tokens: None,
        cache_key: None,
    };
    SentRequest {
        model: "mock/test".into(),
        api: Api::Anthropic,
        request: Arc::new(request),
        encoding: None,
        cause: None,
    }
}

fn delta(before: &[SegmentRef], sent: &SentRequest) -> RequestDelta {
    let kept = count_kept(before, &sent.request.segments);
    let added = sent.request.segments[kept..]
        .iter()
        .map(|segment| SegmentRef::new(segment, SegmentSource::Text))
        .collect();
    RequestDelta::new(before, sent, added)
}

#[test]
fn delta_stores_only_appended_segments() {
    let mut list = Vec::new();
    delta(
        &list,
        &sent_request(&[(1, 1, false, false), (2, 2, true, true)]),
    )
    .apply(&mut list)
    .unwrap();
    let next = delta(
        &list,
        &sent_request(&[
            (1, 1, false, false),
            (2, 2, false, false),
            (3, 3, true, true),
        ]),
    );
    assert_eq!(
        (next.kept, next.added.len(), next.relabelled.len()),
        (2, 1, 1)
    );
    assert_eq!(
        next.relabelled[0].index, 1,
        "only the message that left the current layer is relabelled"
    );
    assert_eq!(next.boundaries, [2]);
}

#[test]
fn apply_rejects_a_delta_that_does_not_fit() {
    let whole = delta(
        &[],
        &sent_request(&[(1, 1, false, false), (2, 2, true, true)]),
    );
    let list: Vec<_> = whole.added.clone();
    let mut broken = delta(
        &list,
        &sent_request(&[(1, 1, false, false), (2, 2, true, true), (3, 3, true, true)]),
    );
    assert!(broken.apply(&mut Vec::new()).is_err());
    broken.boundaries.push(3);
    assert!(broken.apply(&mut list.clone()).is_err());
}

proptest! {
    #[test]
    fn apply_in_order_restores_every_request(
        requests in prop::collection::vec(prop::collection::vec((0..6_u32, 0..3_u8, any::<bool>(), any::<bool>()), 0..12), 1..8),
    ) {
        let mut list = Vec::new();
        for kinds in &requests {
            let sent = sent_request(kinds);
            let delta = delta(&list, &sent);
            let stored: RequestDelta = serde_json::from_str(&serde_json::to_string(&delta).unwrap()).unwrap();
            prop_assert_eq!(&stored, &delta);
            stored.apply(&mut list).unwrap();
            prop_assert_eq!(list.len(), kinds.len());
            for (index, (got, segment)) in list.iter().zip(&sent.request.segments).enumerate() {
                prop_assert!(got.matches(segment) && got.label.matches(segment), "segment {}", index);
                prop_assert_eq!(stored.boundaries.contains(&index), segment.boundary);
            }
        }
    }
}
