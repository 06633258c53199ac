//! Reads conversations of auto-coder: an object with text messages, whose metadata contains calls
//! and results.
//!
//! The file does not contain the system prompt, the tools, or the notes that auto-coder sends
//! before the first message.

use haft_types::{Metadata, Role};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

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
    for (index, said) in messages.iter().enumerate() {
        let chat = to_chat_message(said);
        let raw = to_raw_value(&chat)?;
        let message = chat::read_message(
            &builder,
            &raw,
            said.get("timestamp").and_then(time::parse_timestamp),
        );
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

fn read_usage(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: get_count(usage, "regular_input_tokens"),
        cached: get_count(usage, "cache_read_input_tokens"),
        written: get_count(usage, "cache_creation_input_tokens"),
        output: get_count(usage, "total_output_tokens"),
        reasoning: get_count(usage, "reasoning_tokens"),
    }
}

/// True if the messages contain auto-coder's own metadata about tool calls or token counts.
pub(crate) fn has_auto_coder_metadata(messages: &[Value]) -> bool {
    let marks = [
        "/metadata/_agentic_wire",
        "/llm_metadata/usage_stats",
        "/metadata/token_accounting",
    ];
    messages
        .iter()
        .any(|message| marks.iter().any(|mark| message.pointer(mark).is_some()))
}
