//! Writes earlier messages in the format of a text protocol.
//!
//! `xml`: calls become tags in the assistant's text; results become text of the user, all results
//! of a block in one message. `react`: messages of the user and tool results become labeled
//! paragraphs in the user's place, each followed by an empty line; the assistant's text goes back
//! as it was written.
//!
//! Invariant: the form of a message depends on the message alone, and that of joined results on
//! these results alone, so that equal segments give equal bytes. Results of one block are joined
//! only with each other.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{
    ContentHash, Entry, Hasher, Message, ModelProfile, Part, Role, Segment, Thinking, ToolCall,
    ToolProtocol, ToolResult, ToolStatus,
};
use serde_json::{Map, Value};

use super::{ACTION_LABEL, COMPLETION_TOOL, FINISH_ACTION, THOUGHT_LABEL, values};
use crate::wire::names::sanitize_tool_name;

/// The messages into which the tool results of the last request were joined, kept so that they need
/// not be joined again.
#[derive(Default)]
pub(crate) struct JoinedResults(HashMap<ContentHash, Arc<Entry>>);

impl JoinedResults {
    /// Returns the segments with consecutive tool results joined into one message.
    pub(crate) fn join_results(&mut self, segments: &[Segment]) -> Vec<Segment> {
        let is_result = |segment: &Segment| segment.entry.message.role == Role::Tool;
        let mut next = HashMap::new();
        let mut out = Vec::with_capacity(segments.len());
        for group in segments.chunk_by(|one, other| is_result(one) && is_result(other)) {
            let [first, .., last] = group else {
                out.extend_from_slice(group);
                continue;
            };
            let mut hasher = Hasher::default();
            for segment in group {
                hasher.update(&segment.entry.hash.0);
            }
            let hash = hasher.finish();
            let entry = self
                .0
                .remove(&hash)
                .unwrap_or_else(|| join_group(group, hash));
            next.insert(hash, Arc::clone(&entry));
            let boundary = group.iter().any(|segment| segment.boundary);
            out.push(Segment {
                entry,
                boundary,
                layer: last.layer,
                owner: first.owner,
            });
        }
        self.0 = next;
        out
    }
}

fn join_group(group: &[Segment], hash: ContentHash) -> Arc<Entry> {
    let parts = group
        .iter()
        .flat_map(|segment| segment.entry.message.content.iter().cloned())
        .collect();
    let first = &group[0].entry.message;
    let message = Message::new(first.message_id, Role::Tool, parts, first.created_at);
    let tokens = group.iter().map(|segment| segment.entry.tokens).sum();
    Arc::new(Entry {
        message,
        hash,
        tokens,
    })
}

/// The model that wrote the thoughts in a message. A model gets back only its own thoughts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThoughtMaker {
    ThisModel,
    Another,
}

/// Converts `message` to the format of the text protocol.
pub(crate) fn lower_message(
    message: &Message,
    protocol: ToolProtocol,
    profile: ModelProfile,
    maker: ThoughtMaker,
) -> Cow<'_, Message> {
    match (protocol, message.role) {
        (ToolProtocol::Native, _)
        | (ToolProtocol::Xml, Role::System | Role::User | Role::Summary)
        | (ToolProtocol::React, Role::System) => Cow::Borrowed(message),
        (ToolProtocol::Xml | ToolProtocol::React, Role::Assistant) => {
            lower_assistant(message, protocol, maker)
        }
        (ToolProtocol::Xml, Role::Tool) => Cow::Owned(replace_content(
            message,
            Role::User,
            format_xml_results(message, profile),
        )),
        (ToolProtocol::React, Role::User | Role::Tool | Role::Summary) => {
            to_user_paragraph(message, maker)
        }
    }
}

/// Converts a message to a paragraph of the user's text. Early releases showed a model its own
/// turns as such paragraphs.
pub(crate) fn to_user_paragraph(message: &Message, maker: ThoughtMaker) -> Cow<'_, Message> {
    Cow::Owned(replace_content(
        message,
        Role::User,
        format_paragraph(message, maker),
    ))
}

fn replace_content(message: &Message, role: Role, content: Vec<Part>) -> Message {
    let mut lowered = Message::new(message.message_id, role, content, message.created_at);
    lowered.llm_metadata.clone_from(&message.llm_metadata);
    lowered
}

/// Collects the text and the other parts of a message in order.
#[derive(Default)]
struct PartWriter {
    parts: Vec<Part>,
    text: String,
}

impl PartWriter {
    /// Appends `text` on a new line.
    fn push_line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn push_part(&mut self, part: Part) {
        self.flush();
        self.parts.push(part);
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.parts
                .push(Part::from_text(std::mem::take(&mut self.text)));
        }
    }

    fn finish(mut self) -> Vec<Part> {
        self.flush();
        self.parts
    }
}

/// Returns the text of a thought as the model wrote it, if that text begins with `opening` and the
/// model that receives the thought is the one that wrote it.
fn original_thought<'a>(
    thinking: &'a Thinking,
    opening: &str,
    maker: ThoughtMaker,
) -> Option<&'a str> {
    let raw = thinking
        .raw
        .as_deref()
        .filter(|raw| raw.starts_with(opening));
    raw.filter(|_| maker == ThoughtMaker::ThisModel)
}

/// Converts an assistant message so that its calls are written in the format of the text protocol.
fn lower_assistant(
    message: &Message,
    protocol: ToolProtocol,
    maker: ThoughtMaker,
) -> Cow<'_, Message> {
    let opening = if protocol == ToolProtocol::React {
        THOUGHT_LABEL
    } else {
        "<thinking>"
    };
    if message
        .content
        .iter()
        .all(|part| matches!(part, Part::Text { .. } | Part::Image(_)))
    {
        return Cow::Borrowed(message);
    }
    let mut out = PartWriter::default();
    for part in &message.content {
        match part {
            Part::Text { text, .. } => out.push_line(text),
            Part::ToolCall(call) if protocol == ToolProtocol::React => {
                out.push_line(&format_react_call(call));
            }
            Part::ToolCall(call) => out.push_line(&format_xml_call(call)),
            Part::Thinking(thinking) => match original_thought(thinking, opening, maker) {
                Some(raw) => out.push_line(raw),
                // Native reasoning is sent back in the API's own way.
                None => out.push_part(part.clone()),
            },
            Part::ToolResult(_) | Part::Image(_) => {}
        }
    }
    Cow::Owned(replace_content(message, Role::Assistant, out.finish()))
}

pub(super) fn format_xml_call(call: &ToolCall) -> String {
    let name = sanitize_tool_name(&call.name);
    let Some(arguments) = parse_arguments(&call.arguments) else {
        // A call that was left open already begins with its tag.
        let opened = call.arguments.starts_with('<');
        return if opened {
            call.arguments.clone()
        } else {
            format!("<{name}>\n{}\n</{name}>", call.arguments)
        };
    };
    let mut out = format!("<{name}>\n");
    for (parameter, value) in &arguments {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<{parameter}>{}</{parameter}>",
            values::value_to_text(value)
        );
    }
    let _ = write!(out, "</{name}>");
    out
}

fn parse_arguments(arguments: &str) -> Option<Map<String, Value>> {
    if arguments.trim().is_empty() {
        return Some(Map::new());
    }
    serde_json::from_str(arguments).ok()
}

fn format_xml_results(message: &Message, profile: ModelProfile) -> Vec<Part> {
    let mut out = PartWriter::default();
    for part in &message.content {
        match part {
            Part::ToolResult(result) => out.push_line(&format_xml_result(result, profile)),
            Part::Image(_) => out.push_part(part.clone()),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    out.finish()
}

fn format_xml_result(result: &ToolResult, profile: ModelProfile) -> String {
    let name = sanitize_tool_name(&result.name);
    let envelope = &result.envelope;
    let (success, said) = match envelope.status {
        ToolStatus::Success => (true, format!("{name} succeeded.")),
        ToolStatus::Partial => (true, format!("{name} succeeded in part.")),
        // A small model reads the error once, in the content.
        ToolStatus::Error if profile == ModelProfile::Small => (false, format!("{name} failed.")),
        ToolStatus::Error => {
            let why = envelope
                .error
                .as_ref()
                .and_then(|error| error.message.lines().next());
            (
                false,
                why.map_or_else(|| format!("{name} failed."), str::to_owned),
            )
        }
    };
    format!(
        "<tool_result tool_name=\"{name}\" success=\"{success}\">\n<message>{said}</message>\n<content>{}</content>\n</tool_result>",
        format_args!("\n{}\n", envelope.text)
    )
}

/// Formats a message as a labeled paragraph, followed by an empty line.
fn format_paragraph(message: &Message, maker: ThoughtMaker) -> Vec<Part> {
    let mut out = PartWriter::default();
    match message.role {
        // Summaries have no label.
        Role::Summary | Role::System => {}
        Role::User => out.push_line("[user]"),
        Role::Assistant => out.push_line("[assistant]"),
        Role::Tool => out.push_line("[tool]"),
    }
    let mut pictures = Vec::new();
    for part in &message.content {
        match part {
            Part::Text { text, .. } => out.push_line(text),
            Part::ToolResult(result) => out.push_line(&result.envelope.text),
            Part::ToolCall(call) => out.push_line(&format_react_call(call)),
            Part::Thinking(thinking) => {
                if let Some(raw) = original_thought(thinking, THOUGHT_LABEL, maker) {
                    out.push_line(raw);
                }
            }
            Part::Image(_) => pictures.push(part.clone()),
        }
    }
    if !out.text.ends_with('\n') {
        out.text.push('\n');
    }
    out.text.push('\n');
    for picture in pictures {
        out.push_part(picture);
    }
    out.finish()
}

pub(super) fn format_react_call(call: &ToolCall) -> String {
    if call.arguments.starts_with(ACTION_LABEL) {
        return call.arguments.clone();
    }
    if call.name == COMPLETION_TOOL
        && let Some(arguments) = parse_arguments(&call.arguments)
        && arguments.len() == 1
        && let Some(Value::String(answer)) = arguments.get("result")
    {
        return format!("{ACTION_LABEL} {FINISH_ACTION}[{answer}]");
    }
    format!("{ACTION_LABEL} {}[{}]", call.name, call.arguments)
}
