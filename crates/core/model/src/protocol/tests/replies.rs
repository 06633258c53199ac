//! Tests whole replies: an API's codec together with a parser.

use haft_types::{
    Api, Entry, Layer, Message, MessageId, Part, Request, Role, Segment, StopReason, Timestamp,
    TokenCounter, ToolSet,
};

use super::*;
use crate::protocol::decode_text_calls;
use crate::reply::Delta;
use crate::wire::{self, CallIds, DecodedReply, ReplyProgress};

struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

fn ids() -> CallIds {
    let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
    let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    let entry = Entry::new(Message::from_text(id, Role::User, "go", at), &NoCount);
    let segment = Segment {
        layer: Layer::Current,
        owner: "current",
        entry,
        boundary: false,
    };
    let tools = ToolSet::new(Vec::new(), &NoCount);
    CallIds::for_reply_to(&Request {
        segments: vec![segment],
        tools,
        max_output_tokens: None,
        cache_key: None,
    })
}

/// Decodes a reply that arrives as `chunks` of a chat API.
fn read(
    protocol: ToolProtocol,
    tools: Vec<ToolSpec>,
    chunks: &[Value],
) -> (Vec<Delta>, DecodedReply) {
    let tools = ToolSet::new(tools, &NoCount);
    let mut decoder = decode_text_calls(
        wire::create_decoder(Api::OpenaiChat, ids()),
        protocol,
        &tools,
        ids(),
    );
    let mut deltas = Vec::new();
    let mut progress = ReplyProgress::Going;
    for chunk in chunks {
        progress = decoder
            .read_event(&chunk.to_string(), &mut |delta| deltas.push(delta))
            .unwrap();
    }
    assert_eq!(progress, ReplyProgress::Ended);
    (deltas, decoder.finish())
}

fn text_chunks(text: &str, size: usize) -> Vec<Value> {
    let delta = |delta: Value| json!({ "choices": [{ "delta": delta }] });
    let mut chunks = vec![delta(json!({ "reasoning_content": "hidden" }))];
    chunks.extend(pieces(text, size).map(|piece| delta(json!({ "content": piece }))));
    chunks.push(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
    chunks
}

const XML: &str = "<thinking>which?</thinking>\n\nThis one.\n<read_file><path>a</path></read_file>\n<todo_read>\n";

#[test]
fn decoder_gives_equal_parts_and_deltas() {
    for size in 1..8 {
        let (deltas, DecodedReply { parts, stop, .. }) =
            read(ToolProtocol::Xml, tools(), &text_chunks(XML, size));
        assert_eq!(stop, StopReason::ToolUse);
        let [
            Part::Thinking(hidden),
            Part::Thinking(shown),
            Part::Text { text, .. },
            Part::ToolCall(one),
            Part::ToolCall(two),
        ] = parts.as_slice()
        else {
            panic!("{parts:?}")
        };
        assert_eq!(
            (hidden.text.as_str(), &hidden.raw),
            ("hidden", &None),
            "the API's own reasoning stays its own"
        );
        assert_eq!(shown.raw.as_deref(), Some("<thinking>which?</thinking>"));
        assert_eq!(text, "This one.\n");
        assert_eq!(
            (one.name.as_str(), one.arguments.as_str()),
            ("read_file", r#"{"path":"a"}"#)
        );
        assert_eq!(
            (two.name.as_str(), two.arguments.as_str()),
            ("todo_read", "<todo_read>\n")
        );
        assert!(CallIds::is_generated(&one.id) && one.id != two.id);

        let said: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(said, *text);
        let calls: Vec<_> = deltas
            .iter()
            .filter(|delta| !matches!(delta, Delta::Text(_) | Delta::Thinking(_)))
            .collect();
        assert_eq!(
            calls,
            [
                &Delta::CallStarted {
                    id: one.id.clone(),
                    name: one.name.clone()
                },
                &Delta::CallArguments {
                    id: one.id.clone(),
                    piece: one.arguments.clone()
                },
                &Delta::CallFinished { id: one.id.clone() },
                &Delta::CallStarted {
                    id: two.id.clone(),
                    name: two.name.clone()
                },
                &Delta::CallArguments {
                    id: two.id.clone(),
                    piece: two.arguments.clone()
                },
            ],
            "a call that was left open is never told as finished"
        );
    }
}

#[test]
fn decoder_without_tools_reads_no_calls() {
    let (_, DecodedReply { parts, stop, .. }) =
        read(ToolProtocol::Xml, Vec::new(), &text_chunks(XML, 5));
    assert_eq!(stop, StopReason::EndTurn);
    assert!(
        matches!(&parts[1..], [Part::Text { text, .. }] if text == XML),
        "{parts:?}"
    );
}

#[test]
fn react_answer_becomes_a_completion_if_that_tool_exists() {
    let text = "Thought: easy\nAction: Finish[It is 4.]";
    let (_, DecodedReply { parts, stop, .. }) =
        read(ToolProtocol::React, tools(), &text_chunks(text, 3));
    assert_eq!(stop, StopReason::ToolUse);
    assert!(
        matches!(&parts[2], Part::ToolCall(call) if call.arguments == r#"{"result":"It is 4."}"#),
        "{parts:?}"
    );
    let only_reading = tools().into_iter().take(1).collect();
    let (_, DecodedReply { parts, stop, .. }) =
        read(ToolProtocol::React, only_reading, &text_chunks(text, 3));
    assert_eq!(stop, StopReason::EndTurn);
    assert!(
        matches!(&parts[2], Part::Text { text, .. } if text == "It is 4."),
        "{parts:?}"
    );
}
