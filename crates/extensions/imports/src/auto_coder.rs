//! Reads conversations of auto-coder: an object with text messages. The calls and results are in
//! the metadata of the messages, or as XML in their text.
//!
//! The file does not contain the system prompt, the tools, or the notes that auto-coder sends
//! before the first message.

mod xml_calls;

use haft_types::{Envelope, Message, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use self::xml_calls::{ReplyPiece, ResultMessage};
use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    get_text,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, chat, time};

/// The placeholder text in a reply that contains only tool calls. The import removes it.
const NO_TEXT_PLACEHOLDER: &str = "(tool call)";

pub(crate) fn read_conversation(
    source: SourceText<'_>,
) -> Result<ImportedConversation, ImportError> {
    let conversation: Value = serde_json::from_str(source.text)?;
    let mut builder = ConversationBuilder::new(source.now);
    builder.set_start(
        conversation
            .get("created_at")
            .and_then(time::parse_timestamp),
    );
    let model = conversation
        .pointer("/metadata/last_execution_profile/resolved/model")
        .and_then(Value::as_str);
    let messages = conversation
        .get("messages")
        .and_then(Value::as_array)
        .ok_or(ImportError::Unknown)?;
    let mut waiting = Vec::new();
    for (index, said) in messages.iter().enumerate() {
        let at = said.get("timestamp").and_then(time::parse_timestamp);
        let message = match read_xml_message(&builder, messages, index, at, &mut waiting) {
            Some(message) => Ok(message),
            None => chat::read_message(&builder, &to_raw_value(&to_chat_message(said))?, at),
        };
        let mut message = message.map_err(|problem| ImportError::Message {
            number: index + 1,
            problem,
        })?;
        if message.role == Role::Assistant {
            let usage = said.pointer("/llm_metadata/usage_stats").map(read_usage);
            let named = said
                .pointer("/llm_metadata/model_name")
                .and_then(Value::as_str);
            message.llm_metadata = build_reply_metadata(named.or(model), usage);
        }
        builder.push(message);
    }
    let text = |key: &str| get_text(&conversation, key).map(str::to_owned);
    let about = ConversationHeader {
        id: text("conversation_id"),
        name: text("name"),
        metadata: Metadata::default(),
    };
    builder.finish(ImportFormat::AutoCoder.name(), about)
}

/// Converts a message to OpenAI's format. Tool calls and results are taken from the message's
/// metadata.
fn to_chat_message(said: &Value) -> Value {
    let mut chat = json!({ "role": said.get("role"), "content": said.get("content") });
    let wire = said
        .pointer("/metadata/_agentic_wire")
        .and_then(Value::as_object);
    for (key, value) in wire.into_iter().flatten() {
        chat[key] = value.clone();
    }
    if chat.get("tool_calls").is_some() && chat["content"] == NO_TEXT_PLACEHOLDER {
        chat["content"] = Value::Null;
    }
    chat
}

/// The metadata key of the lines about the results of a message.
const RESULT_LINES_KEY: &str = "tool_messages";
/// The metadata key of the text that auto-coder added after the results of a message.
const ADDED_TEXT_KEY: &str = "added_text";

/// Reads the message at `index` if its text contains calls or results as XML. `waiting` contains
/// the calls without a result so far, each with its id and its tool.
fn read_xml_message(
    builder: &ConversationBuilder,
    messages: &[Value],
    index: usize,
    at: Option<Timestamp>,
    waiting: &mut Vec<(String, String)>,
) -> Option<Message> {
    let said = messages.get(index)?;
    let text = said.get("content").and_then(Value::as_str)?;
    if said.pointer("/metadata/_agentic_wire").is_some() {
        return None;
    }
    match said.get("role").and_then(Value::as_str)? {
        "assistant" => {
            let next = messages.get(index + 1);
            let next = next.and_then(|next| next.get("content")?.as_str());
            let answered = next.and_then(xml_calls::read_results);
            let answered: Vec<_> = answered
                .into_iter()
                .flat_map(|message| message.results)
                .map(|result| result.tool)
                .collect();
            let pieces = xml_calls::split_reply(text, &answered);
            waiting.clear();
            // Plain text is read like that of other formats, which keeps the ids of earlier imports.
            if pieces
                .iter()
                .all(|piece| matches!(piece, ReplyPiece::Text(_)))
            {
                return None;
            }
            let parts = pieces.into_iter().enumerate();
            let parts = parts.map(|(number, piece)| match piece {
                ReplyPiece::Text(text) => Part::from_text(text),
                ReplyPiece::Thinking(text) => Part::Thinking(Thinking {
                    text,
                    ..Thinking::default()
                }),
                ReplyPiece::Call { name, arguments } => {
                    let id = format!("call_{}_{}", index + 1, number + 1);
                    waiting.push((id.clone(), name.clone()));
                    Part::ToolCall(ToolCall {
                        id,
                        name,
                        arguments,
                        signature: None,
                    })
                }
            });
            Some(builder.new_message(Role::Assistant, parts.collect(), at))
        }
        "user" => {
            let found = xml_calls::read_results(text)?;
            Some(build_result_message(builder, text, found, at, waiting))
        }
        _ => None,
    }
}

/// Creates the message of tool results. If a result has no call, the whole text becomes a message
/// that neither the user nor the model wrote, because a result is never sent without its call.
fn build_result_message(
    builder: &ConversationBuilder,
    text: &str,
    found: ResultMessage,
    at: Option<Timestamp>,
    waiting: &mut Vec<(String, String)>,
) -> Message {
    let mut parts = Vec::new();
    let mut lines = Vec::new();
    for result in found.results {
        let Some(call) = waiting.iter().position(|(_, tool)| *tool == result.tool) else {
            return builder
                .new_message(Role::User, vec![Part::from_text(text)], at)
                .with_origin(Origin::Engine);
        };
        let (id, tool) = waiting.remove(call);
        let told = if result.content.trim().is_empty() {
            result.message.clone()
        } else {
            result.content
        };
        let envelope = if result.success {
            Envelope::success(told)
        } else {
            Envelope::failure("failed", told)
        };
        lines.push(result.message);
        parts.push(builder.build_result_part(&id, Some(&tool), envelope));
    }
    let mut message = builder.new_message(Role::Tool, parts, at);
    message
        .metadata
        .insert(RESULT_LINES_KEY.into(), json!(lines));
    if !found.rest.is_empty() {
        message
            .metadata
            .insert(ADDED_TEXT_KEY.into(), found.rest.into());
    }
    message
}

fn read_usage(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: get_count(usage, "regular_input_tokens"),
        cached: get_count(usage, "cache_read_input_tokens"),
        written: get_count(usage, "cache_creation_input_tokens"),
        output: get_count(usage, "total_output_tokens"),
        reasoning: get_count(usage, "reasoning_tokens"),
    }
}

/// True if the messages contain auto-coder's own metadata about tool calls or token counts, or
/// results as XML.
pub(crate) fn has_auto_coder_marks(messages: &[Value]) -> bool {
    let marks = [
        "/metadata/_agentic_wire",
        "/llm_metadata/usage_stats",
        "/metadata/token_accounting",
    ];
    messages.iter().any(|message| {
        let is_user = message.get("role").and_then(Value::as_str) == Some("user");
        let text = message.get("content").and_then(Value::as_str);
        let has_results = is_user && text.and_then(xml_calls::read_results).is_some();
        has_results || marks.iter().any(|mark| message.pointer(mark).is_some())
    })
}
