//! Reads the `.traj` files of SWE-agent: one JSON object with the messages of the run under
//! `history`.
//!
//! With function calling, the messages are in OpenAI's format, except that results name their calls
//! in a list. Without it, every observation is a user message. The first user message that is not
//! part of a demonstration is the task, whatever its type; all others were written by the program.
//!
//! mini-swe-agent has the messages under `messages`, with the time, model, and tokens of each in
//! its `extra`.

use haft_types::{Metadata, Origin, Role};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, build_reply_metadata, get_text,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, chat, time};

pub(crate) fn read_trajectory(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let file: Value = serde_json::from_str(source.text)?;
    let mut builder = ConversationBuilder::new(source.now);
    let history = file
        .get("history")
        .or(file.get("messages"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut has_task = false;
    // The exit status of the run is not part of the conversation.
    let history = history.filter(|said| said.get("role").is_none_or(|role| role != "exit"));
    for (index, said) in history.enumerate() {
        let failed = |problem: String| ImportError::Message {
            number: index + 1,
            problem,
        };
        let raw = RawValue::from_string(to_chat_message(said).to_string())?;
        let at = said
            .pointer("/extra/timestamp")
            .and_then(time::parse_timestamp);
        let mut message = chat::read_message(&builder, &raw, at).map_err(failed)?;
        if let Some(response) = said
            .pointer("/extra/response")
            .filter(|_| message.role == Role::Assistant)
        {
            message.llm_metadata = build_reply_metadata(
                get_text(response, "model"),
                response.get("usage").map(chat::read_usage),
            );
        }
        let is_user = message.role == Role::User;
        let is_task = is_user && !has_task && !is_demonstration(said);
        has_task |= is_task;
        builder.push(if is_user && !is_task {
            message.with_origin(Origin::Engine)
        } else {
            message
        });
    }
    let text = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut metadata = Metadata::new();
    metadata.extend(text("environment").map(|name| ("environment".to_owned(), name.into())));
    let about = ConversationHeader {
        id: text("instance_id"),
        name: None,
        metadata,
    };
    builder.finish(ImportFormat::SweAgent.name(), about)
}

fn is_demonstration(said: &Value) -> bool {
    said.get("is_demo").and_then(Value::as_bool) == Some(true)
        || said.get("message_type").and_then(Value::as_str) == Some("demonstration")
}

/// Renames the keys of a message to those of OpenAI's format.
fn to_chat_message(said: &Value) -> Value {
    let mut chat = json!({ "role": said["role"], "content": said["content"] });
    let blocks = said
        .get("thinking_blocks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let thoughts: Vec<_> = blocks
        .filter_map(|block| get_text(block, "thinking"))
        .collect();
    chat["reasoning_content"] = match said
        .get("reasoning_content")
        .filter(|text| text.is_string())
    {
        Some(text) => text.clone(),
        None => thoughts.join("\n").into(),
    };
    // The key `tool_calls` may be null in demonstrations.
    if let Some(calls) = said.get("tool_calls").filter(|calls| calls.is_array()) {
        chat["tool_calls"] = calls.clone();
    }
    if let Some(id) = said
        .get("tool_call_ids")
        .and_then(|ids| ids.get(0))
        .or_else(|| said.get("tool_call_id"))
    {
        chat["tool_call_id"] = id.clone();
    }
    chat
}
