//! The text tool protocols: calls written as part of the model's text, and read out of it again.
//!
//! The prompt describes the format ([`call_format`]), its text is read while it arrives
//! ([`TextParser`], behind [`reply`]), and what it said before is written back to it in the same
//! form ([`lower`]). Everything in between, and everybody else, knows only messages, calls and
//! results.
//!
//! Invariant: a call that was not closed never looks like one that was. Its arguments are the text
//! as received, from its opening on, which is no JSON object whatever it holds.

mod fence;
mod lower;
mod prompt;
mod react;
mod reply;
mod unasked;
mod values;
mod xml;

#[cfg(test)]
mod tests;

use haft_types::{ToolCall, ToolProtocol, ToolSpec};

pub(crate) use lower::{Joined, ThoughtMaker, as_paragraph, lower};
pub use prompt::{call_format, written_call};
pub(crate) use reply::read_calls;
pub(crate) use unasked::read_unasked;
pub use unasked::was_read_from_text;

/// What `Action: Finish[…]` stands for, where it is offered.
const COMPLETION: &str = "attempt_completion";
/// The name by which `react` ends a round.
const FINISH: &str = "Finish";
/// What opens a call in `react`.
const ACTION: &str = "Action:";
/// What opens a thought in `react`.
const THOUGHT: &str = "Thought:";
/// How a result begins: as `react` shows it, and as models know it from elsewhere.
pub(crate) const RESULTS: [&str; 2] = ["[tool]", "Observation:"];

/// Something a model says in a text protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextEvent {
    /// Text of the answer.
    Text(String),
    /// Text of the reasoning.
    Thinking(String),
    /// A call begins.
    CallOpened {
        /// The tool.
        name: String,
    },
    /// The call is whole.
    CallClosed {
        /// Its arguments as JSON; what the model wrote, where that is to be JSON itself.
        arguments: String,
    },
    /// The reply ended inside the call.
    CallLeftOpen {
        /// The call as far as it came, with its opening.
        source: String,
    },
}

/// Takes what was found.
type TextEventSink<'a> = &'a mut dyn FnMut(TextEvent);

/// Reads text and calls out of a reply while it arrives.
///
/// Text goes out with the piece it came in; only what may yet become a tag is held back. However a
/// reply is cut into pieces, the events are the same, apart from where texts are cut. Each
/// character is looked at a bounded number of times.
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
    /// With the API's own tool calling text is text.
    Plain,
    Xml(xml::XmlParser),
    React(react::ReactParser),
}

impl TextParser {
    /// A parser for one reply of a model that was offered these tools.
    pub fn new(protocol: ToolProtocol, tools: &[ToolSpec]) -> Self {
        Self(match protocol {
            ToolProtocol::Native => ProtocolParser::Plain,
            ToolProtocol::Xml => ProtocolParser::Xml(xml::XmlParser::new(tools)),
            ToolProtocol::React => ProtocolParser::React(react::ReactParser::new(tools)),
        })
    }

    /// Takes the next piece of text.
    pub fn feed(&mut self, piece: &str, found: &mut dyn FnMut(TextEvent)) {
        match &mut self.0 {
            ProtocolParser::Plain if piece.is_empty() => {}
            ProtocolParser::Plain => found(TextEvent::Text(piece.to_owned())),
            ProtocolParser::Xml(parser) => parser.feed(piece, found),
            ProtocolParser::React(parser) => parser.feed(piece, found),
        }
    }

    /// Ends the reply: gives out what was held back, and the call that was left open.
    pub fn finish(self, found: &mut dyn FnMut(TextEvent)) {
        match self.0 {
            ProtocolParser::Plain => {}
            ProtocolParser::Xml(parser) => parser.finish(found),
            ProtocolParser::React(parser) => parser.finish(found),
        }
    }

    /// How often a character was looked at.
    #[cfg(test)]
    fn examined(&self) -> usize {
        match &self.0 {
            ProtocolParser::Plain => 0,
            ProtocolParser::Xml(parser) => parser.examined,
            ProtocolParser::React(parser) => parser.examined,
        }
    }
}

/// Whether a reply in a text protocol ended inside this call, so that it must not run.
pub fn was_left_open(call: &ToolCall) -> bool {
    let tagged = call
        .arguments
        .strip_prefix('<')
        .and_then(|rest| rest.strip_prefix(call.name.as_str()));
    tagged.is_some_and(|rest| rest.starts_with('>')) || call.arguments.starts_with(ACTION)
}

/// Collects characters that go out together: one event for a run of text within a piece.
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
