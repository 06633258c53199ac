//! The text tool protocols: tool calls written as part of the model's text, and parsed from it.
//!
//! The prompt describes the format ([`describe_call_format`]), the model's text is parsed while it
//! arrives ([`TextParser`], used by [`decode_text_calls`]), and earlier messages are written back
//! to the model in the format of the protocol ([`lower_message`]). All other code sees only
//! messages, calls and results.
//!
//! Invariant: a call that was not closed is never mistaken for one that was. Its arguments are the
//! text as received, including its opening, which is never a JSON object.

mod fence;
mod lower;
mod prompt;
mod react;
mod stray_calls;
mod text_decoder;
mod values;
mod xml;

#[cfg(test)]
mod tests;

use haft_types::{ToolCall, ToolProtocol, ToolSpec};

pub(crate) use lower::{JoinedResults, ThoughtMaker, lower_message, to_user_paragraph};
pub use prompt::{describe_call_format, write_call};
pub(crate) use stray_calls::decode_stray_calls;
pub use stray_calls::{NEXT_CALL_KEY, was_converted_to_json, was_read_from_text};
pub(crate) use text_decoder::decode_text_calls;

/// The name of the tool that `Action: Finish[…]` calls, if the tool is offered.
const COMPLETION_TOOL: &str = "attempt_completion";
/// The action name with which the model ends a round in the `react` protocol.
const FINISH_ACTION: &str = "Finish";
/// The label before a tool call in the `react` protocol.
const ACTION_LABEL: &str = "Action:";
/// The label before a thought in the `react` protocol.
const THOUGHT_LABEL: &str = "Thought:";
/// The labels before a tool result: the label of the `react` protocol, and a label that models use
/// because of other agents.
pub(crate) const RESULT_LABELS: [&str; 2] = ["[tool]", "Observation:"];

/// A piece of a reply in a text protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextEvent {
    /// A piece of the answer.
    Text(String),
    /// A piece of the reasoning.
    Thinking(String),
    /// A tool call has started.
    CallOpened {
        /// The name of the tool.
        name: String,
    },
    /// A tool call is complete.
    CallClosed {
        /// The arguments of the call as JSON, or as the model's unchanged text if the protocol
        /// requires the model to write JSON itself.
        arguments: String,
    },
    /// The reply ended inside a tool call.
    CallLeftOpen {
        /// The text of the call up to the end of the reply, including its opening.
        source: String,
    },
}

/// Receives the events that a parser finds.
type TextEventSink<'a> = &'a mut dyn FnMut(TextEvent);

/// Parses text and tool calls from a reply while it arrives.
///
/// Text is passed on with the piece it came in; only text that may become a tag is held back. The
/// events do not depend on how a reply is split into pieces, except that texts may be split
/// differently. Each character is visited a bounded number of times.
///
/// ```
/// use haft_model::{TextEvent, TextParser};
/// use haft_types::{ToolProtocol, ToolSpec};
///
/// let parameters = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
/// let read = ToolSpec { name: "read".into(), description: String::new(), parameters };
/// let mut events = Vec::new();
/// let mut parser = TextParser::new(ToolProtocol::Xml, &[read]);
/// for piece in ["Let me look.<re", "ad><path>a<b.rs</path></read>"] {
///     parser.feed(piece, &mut |event| events.push(event));
/// }
/// parser.finish(&mut |event| events.push(event));
/// assert_eq!(events, [
///     TextEvent::Text("Let me look.".into()),
///     TextEvent::CallOpened { name: "read".into() },
///     TextEvent::CallClosed { arguments: r#"{"path":"a<b.rs"}"#.into() },
/// ]);
/// ```
pub struct TextParser(ProtocolParser);

enum ProtocolParser {
    /// Native tool calls, which do not arrive in the text: all text is reported as text.
    Plain,
    Xml(xml::XmlParser),
    React(react::ReactParser),
}

impl TextParser {
    /// Creates a parser for one reply of a model that was offered `tools`.
    pub fn new(protocol: ToolProtocol, tools: &[ToolSpec]) -> Self {
        Self(match protocol {
            ToolProtocol::Native => ProtocolParser::Plain,
            ToolProtocol::Xml => ProtocolParser::Xml(xml::XmlParser::new(tools)),
            ToolProtocol::React => ProtocolParser::React(react::ReactParser::new(tools)),
        })
    }

    /// Parses the next piece of text.
    pub fn feed(&mut self, piece: &str, found: &mut dyn FnMut(TextEvent)) {
        match &mut self.0 {
            ProtocolParser::Plain if piece.is_empty() => {}
            ProtocolParser::Plain => found(TextEvent::Text(piece.to_owned())),
            ProtocolParser::Xml(parser) => parser.feed(piece, found),
            ProtocolParser::React(parser) => parser.feed(piece, found),
        }
    }

    /// Ends the reply. Passes on text that was held back, and reports a call that is still open.
    pub fn finish(self, found: &mut dyn FnMut(TextEvent)) {
        match self.0 {
            ProtocolParser::Plain => {}
            ProtocolParser::Xml(parser) => parser.finish(found),
            ProtocolParser::React(parser) => parser.finish(found),
        }
    }

    /// Returns the number of character visits, for tests.
    #[cfg(test)]
    fn examined(&self) -> usize {
        match &self.0 {
            ProtocolParser::Plain => 0,
            ProtocolParser::Xml(parser) => parser.examined,
            ProtocolParser::React(parser) => parser.examined,
        }
    }
}

/// True if a reply in a text protocol ended inside this call. Such a call must not be run.
pub fn is_unclosed_call(call: &ToolCall) -> bool {
    let tagged = call
        .arguments
        .strip_prefix('<')
        .and_then(|rest| rest.strip_prefix(call.name.as_str()));
    tagged.is_some_and(|rest| rest.starts_with('>')) || call.arguments.starts_with(ACTION_LABEL)
}

/// Collects consecutive characters of one kind, answer or reasoning, to report them as one event
/// per piece.
#[derive(Default)]
struct CharRun {
    text: String,
    thinking: bool,
}

impl CharRun {
    fn push(&mut self, text: &str, thinking: bool, found: TextEventSink<'_>) {
        if self.thinking != thinking {
            self.flush(found);
            self.thinking = thinking;
        }
        self.text.push_str(text);
    }

    fn flush(&mut self, found: TextEventSink<'_>) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        found(if self.thinking {
            TextEvent::Thinking(text)
        } else {
            TextEvent::Text(text)
        });
    }
}
