//! Tests the form in which models of each protocol read earlier messages.

use std::fmt::Write as _;

use haft_types::{
    Entry, Envelope, Image, Layer, LlmMetadata, Message, MessageId, ModelProfile, Part, Role,
    Segment, Thinking, Timestamp, TokenCounter, ToolCall, ToolResult, ToolStatus,
};

use super::*;
use crate::protocol::{JoinedResults, ThoughtMaker, lower_message};

struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

fn segment(role: Role, content: Vec<Part>) -> Segment {
    let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
    let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    let mut message = Message::new(id, role, content, at);
    if role == Role::Assistant {
        message.llm_metadata = Some(
            LlmMetadata {
                model_name: "mock/test".into(),
                ..LlmMetadata::default()
            }
            .into(),
        );
    }
    Segment {
        layer: Layer::History,
        owner: "history",
        entry: Entry::new(message, &NoCount),
        boundary: false,
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
    })
}

fn result(id: &str, name: &str, envelope: Envelope) -> Part {
    Part::ToolResult(Box::new(ToolResult {
        tool_call_id: id.into(),
        name: name.into(),
        envelope,
    }))
}

fn thought(raw: &str) -> Part {
    Part::Thinking(Thinking {
        text: "t".into(),
        signature: None,
        raw: Some(raw.into()),
    })
}

fn conversation() -> Vec<Segment> {
    let picture = Part::Image(Image {
        media_type: "image/png".into(),
        data: "aGFmdA==".into(),
    });
    let partial = Envelope {
        status: ToolStatus::Partial,
        text: "some <b>&\nlines".into(),
        ..Envelope::default()
    };
    let failure = Envelope::failure("not_found", "`b.rs` does not exist.\nDid you mean `a.rs`?");
    vec![
        segment(Role::System, vec![Part::from_text("You are haft.")]),
        segment(Role::Summary, vec![Part::from_text("Earlier: nothing.")]),
        segment(
            Role::User,
            vec![Part::from_text("fix it\n"), picture.clone()],
        ),
        segment(
            Role::Assistant,
            vec![
                thought("<thinking>x</thinking>"),
                thought("Thought: x\n"),
                Part::Thinking(Thinking {
                    text: "signed".into(),
                    signature: Some("sig".into()),
                    raw: None,
                }),
                Part::from_text("Both."),
                call("1", "read_file", r#"{"path":"a.rs","start_line":2}"#),
                call(
                    "2",
                    "write_to_file",
                    "{\"path\":\"b\",\"content\":\"<x>\\ny\\n\"}",
                ),
            ],
        ),
        segment(Role::Tool, vec![result("1", "read_file", partial), picture]),
        segment(Role::Tool, vec![result("2", "write_to_file", failure)]),
        segment(
            Role::Assistant,
            vec![
                call("3", "read_file", "<read_file>\n<path>c"),
                call("4", "read_file", "Action: read_file[{"),
            ],
        ),
        segment(
            Role::Tool,
            vec![result(
                "3",
                "read_file",
                Envelope::success("{\"status\":\"success\"}"),
            )],
        ),
        segment(
            Role::Tool,
            vec![result("4", "read_file", Envelope::success(""))],
        ),
        segment(
            Role::Assistant,
            vec![call("5", "attempt_completion", r#"{"result":"Done."}"#)],
        ),
        segment(
            Role::Tool,
            vec![result(
                "5",
                "attempt_completion",
                Envelope::success("Shown."),
            )],
        ),
        segment(Role::User, vec![Part::from_text("thanks")]),
    ]
}

fn shown(protocol: ToolProtocol, segments: &[Segment]) -> String {
    let mut out = String::new();
    for segment in segments {
        let lowered = lower_message(
            &segment.entry.message,
            protocol,
            ModelProfile::Full,
            ThoughtMaker::ThisModel,
        );
        let _ = writeln!(out, "=== {}", lowered.role);
        for part in &lowered.content {
            let _ = match part {
                Part::Text { text, .. } => writeln!(out, "{text}|"),
                part => writeln!(out, "{part:?}"),
            };
        }
    }
    out
}

#[test]
fn xml_conversation() {
    let joined = JoinedResults::default().join_results(&conversation());
    insta::assert_snapshot!(shown(ToolProtocol::Xml, &joined));
}

#[test]
fn react_conversation() {
    insta::assert_snapshot!(shown(ToolProtocol::React, &conversation()));
}

#[test]
fn lower_keeps_native_messages_unchanged() {
    for segment in conversation() {
        assert_eq!(
            *lower_message(
                &segment.entry.message,
                ToolProtocol::Native,
                ModelProfile::Full,
                ThoughtMaker::ThisModel
            ),
            segment.entry.message
        );
    }
}

#[test]
fn lower_returns_thoughts_to_their_maker_only() {
    for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
        let own = &conversation()[3].entry.message;
        let shown = |maker| lower_message(own, protocol, ModelProfile::Full, maker).joined_text();
        let thought = |text: &str| text.contains("<thinking>") || text.contains("Thought:");
        assert!(
            thought(&shown(ThoughtMaker::ThisModel)) && !thought(&shown(ThoughtMaker::Another))
        );
    }
}

#[test]
fn joined_results_are_reused() {
    let mut joined = JoinedResults::default();
    let segments = conversation();
    let first = joined.join_results(&segments);
    let again = joined.join_results(&segments);
    assert_eq!(first.len(), segments.len() - 2);
    assert!(
        std::sync::Arc::ptr_eq(&first[4].entry, &again[4].entry),
        "nothing is joined twice"
    );
    assert!(
        std::sync::Arc::ptr_eq(&first[3].entry, &segments[3].entry),
        "what stands alone is shared"
    );
    let other = joined.join_results(&segments[5..]);
    assert_ne!(other[0].entry.hash, first[4].entry.hash);
}
