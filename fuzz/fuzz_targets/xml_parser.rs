//! Any text in any pieces: both parsers give the same events as for the text in one piece, a call that was opened ends, and
//! one that was left open is never taken for a whole one.
#![no_main]

use std::sync::LazyLock;

use haft_model::{TextEvent, TextParser, is_unclosed_call};
use haft_types::{ToolCall, ToolProtocol, ToolSpec};
use libfuzzer_sys::fuzz_target;

static TOOLS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../crates/core/model/fixtures/protocol/tools.json")).unwrap()
});

fuzz_target!(|data: &[u8]| {
    // The first byte says how long the pieces are.
    let Some((size, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
        let whole = events(protocol, &text, usize::MAX);
        assert_eq!(whole, events(protocol, &text, usize::from(*size % 16) + 1));
        check(whole);
    }
});

fn events(protocol: ToolProtocol, text: &str, size: usize) -> Vec<TextEvent> {
    let mut parser = TextParser::new(protocol, &TOOLS);
    let mut found: Vec<TextEvent> = Vec::new();
    let mut take = |event: TextEvent| match (found.last_mut(), event) {
        (Some(TextEvent::Text(text)), TextEvent::Text(more))
        | (Some(TextEvent::Thinking(text)), TextEvent::Thinking(more)) => text.push_str(&more),
        (_, event) => found.push(event),
    };
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        parser.feed(piece, &mut take);
        rest = after;
    }
    parser.finish(&mut take);
    found
}

fn check(events: Vec<TextEvent>) {
    let mut open: Option<String> = None;
    for event in events {
        match event {
            TextEvent::Text(_) | TextEvent::Thinking(_) => assert!(open.is_none()),
            TextEvent::CallOpened { name } => assert!(open.replace(name).is_none()),
            TextEvent::CallClosed { .. } => assert!(open.take().is_some()),
            TextEvent::CallLeftOpen { source } => {
                assert!(serde_json::from_str::<serde_json::Value>(&source).is_err());
                let name = open.take().unwrap();
                assert!(is_unclosed_call(&ToolCall { id: String::new(), name, arguments: source, signature: None }));
            }
        }
    }
    assert!(open.is_none());
}
