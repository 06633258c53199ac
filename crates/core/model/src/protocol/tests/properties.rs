//! Properties of the parsers that must hold for every text.

use haft_types::{
    Envelope, Message, MessageId, ModelProfile, Part, Role, Timestamp, ToolCall, ToolResult,
};
use proptest::prelude::*;

use super::*;
use crate::protocol::{ThoughtMaker, lower_message};

/// Generates texts made of whole and partial parser keywords.
fn protocol_text() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        Just("<read_file>"),
        Just("</read_file>"),
        Just("<path>"),
        Just("</path>"),
        Just("<write_to_file>"),
        Just("</write_to_file>"),
        Just("<content>"),
        Just("</content>"),
        Just("<thinking>"),
        Just("</thinking>"),
        Just("<todo_read></todo_read>"),
        Just("<"),
        Just("</"),
        Just(">"),
        Just("```"),
        Just("`"),
        Just("~~~"),
        Just("\n"),
        Just("\r\n"),
        Just(" "),
        Just("words"),
        Just("ü世🌍"),
        Just("&lt;"),
        Just("Thought:"),
        Just("Action:"),
        Just(" Finish["),
        Just(" read_file["),
        Just("{\"path\": \"a\"}"),
        Just("]"),
        Just("["),
        Just("{"),
        Just("}"),
        Just("\""),
        Just("\\"),
        Just("Act"),
    ];
    prop::collection::vec(words, 0..40).prop_map(|words| words.concat())
}

fn call(arguments: &Value) -> Message {
    let call = ToolCall {
        id: "c".into(),
        name: "write_to_file".into(),
        arguments: arguments.to_string(),
        signature: None,
    };
    message(
        Role::Assistant,
        vec![Part::from_text("Now:"), Part::ToolCall(call)],
    )
}

fn message(role: Role, content: Vec<Part>) -> Message {
    let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
    let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    Message::new(id, role, content, at)
}

proptest! {
    #[test]
    fn parser_events_do_not_depend_on_chunking(text in protocol_text(), cuts in prop::collection::vec(1..9_usize, 1..20)) {
        for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
            let whole = events(protocol, [text.as_str()]);
            prop_assert_eq!(&whole, &events(protocol, pieces(&text, 1)));
            let mut uneven = Vec::new();
            let mut rest = text.as_str();
            let mut sizes = cuts.iter().cycle();
            while let Some(piece) = pieces(rest, *sizes.next().unwrap()).next() {
                uneven.push(piece);
                rest = &rest[piece.len()..];
            }
            prop_assert_eq!(&whole, &events(protocol, uneven));
        }
    }

    #[test]
    fn parser_opens_and_closes_each_call_once(text in protocol_text()) {
        for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
            let mut open = None;
            for event in events(protocol, [text.as_str()]) {
                match event {
                    TextEvent::Text(_) | TextEvent::Thinking(_) => prop_assert!(open.is_none()),
                    TextEvent::CallOpened { name } => prop_assert!(open.replace(name).is_none()),
                    TextEvent::CallClosed { arguments } => {
                        let name = open.take().unwrap();
                        let call = ToolCall { id: String::new(), name, arguments, signature: None };
                        prop_assert!(!crate::is_unclosed_call(&call) || protocol == ToolProtocol::React);
                    }
                    TextEvent::CallLeftOpen { source } => {
                        prop_assert!(serde_json::from_str::<Value>(&source).is_err());
                        let name = open.take().unwrap();
                        let call = ToolCall { id: String::new(), name, arguments: source, signature: None };
                        prop_assert!(crate::is_unclosed_call(&call));
                    }
                }
            }
            prop_assert!(open.is_none());
        }
    }

    /// Calls that are sent back to a model parse to what the model wrote.
    #[test]
    fn parser_reads_back_a_lowered_call(path in "[ -~äß世🌍]{0,20}", content in "[ -~äß世🌍\n\r\t<>&\"\\\\]{0,60}") {
        let arguments = json!({ "path": path, "content": content });
        for protocol in [ToolProtocol::Xml, ToolProtocol::React] {
            let message = call(&arguments);
            let text = lower_message(&message, protocol, ModelProfile::Full, ThoughtMaker::ThisModel).joined_text();
            let closed = events(protocol, [text.as_str()]).into_iter().find_map(|event| match event {
                TextEvent::CallClosed { arguments } => Some(arguments),
                _ => None,
            });
            prop_assert_eq!(serde_json::from_str::<Value>(&closed.unwrap()).unwrap(), arguments.clone(), "{}", text);
        }
    }

    /// A result becomes user text unchanged, whatever it contains.
    #[test]
    fn lower_does_not_escape_results(output in "[ -~äß世🌍\n<>&\"]{0,60}") {
        let envelope = Envelope::success(output.clone());
        let result = ToolResult { tool_call_id: "c".into(), name: "read_file".into(), envelope };
        let message = message(Role::Tool, vec![Part::ToolResult(Box::new(result))]);
        let lowered = lower_message(&message, ToolProtocol::Xml, ModelProfile::Full, ThoughtMaker::Another);
        prop_assert_eq!(lowered.role, Role::User);
        prop_assert_eq!(lowered.joined_text(), format!(
            "<tool_result tool_name=\"read_file\" success=\"true\">\n<message>read_file succeeded.</message>\n\
             <content>\n{output}\n</content>\n</tool_result>"
        ));
    }
}
