//! Reads sessions of gemini-cli: an object with a list of messages, or since version 0.40 a line
//! for each change of the session.
//!
//! A message of the model contains both the call and its result; newer versions repeat the result
//! as a message. The system prompt and the tools are not in the file.

use haft_types::{Envelope, Image, Message, Origin, Part, Role, Thinking, Timestamp, ToolCall};
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    get_text, parse_json_lines, select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read_session(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    let (session, messages) = match serde_json::from_str::<Value>(source.text) {
        Ok(mut session) => {
            let messages = session
                .get_mut("messages")
                .and_then(Value::as_array_mut)
                .map(std::mem::take);
            (session, messages.unwrap_or_default())
        }
        Err(_) => replay_changes(source.text, &mut builder.skipped),
    };
    builder.set_start(session.get("startTime").and_then(time::parse_timestamp));
    for message in &messages {
        push_message(&mut builder, message);
    }
    let about = ConversationHeader {
        id: get_text(&session, "sessionId").map(str::to_owned),
        name: get_text(&session, "summary").map(str::to_owned),
        metadata: select_metadata(
            &session,
            &[("projectHash", "project_hash"), ("kind", "kind")],
        ),
    };
    builder.finish(ImportFormat::Gemini.name(), about)
}

/// Applies the changes in the file, one per line, and returns the resulting session and its
/// messages. A change adds a message, replaces a message by id, sets the whole list, or rewinds the
/// session.
fn replay_changes(text: &str, skipped: &mut usize) -> (Value, Vec<Value>) {
    let mut session = json!({});
    let mut messages = Vec::<Value>::new();
    let place =
        |messages: &[Value], id: &Value| messages.iter().position(|one| one.get("id") == Some(id));
    for change in parse_json_lines(text, skipped) {
        if let Some(set) = change.get("$set").and_then(Value::as_object) {
            for (key, value) in set {
                match value {
                    Value::Array(all) if key == "messages" => messages.clone_from(all),
                    value => session[key] = value.clone(),
                }
            }
        } else if let Some(id) = change.get("$rewindTo") {
            messages.truncate(place(&messages, id).unwrap_or(messages.len()));
        } else if change.get("sessionId").is_some() {
            session = change;
        } else {
            let at = change.get("id").and_then(|id| place(&messages, id));
            match at {
                Some(at) => messages[at] = change,
                None => messages.push(change),
            }
        }
    }
    (session, messages)
}

fn push_message(builder: &mut ConversationBuilder, said: &Value) {
    let at = said.get("timestamp").and_then(time::parse_timestamp);
    let content = said.get("content").unwrap_or(&Value::Null);
    match get_text(said, "type") {
        Some("user") => {
            let parts = read_parts(builder, content);
            let results = parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
            let added = matches!(parts.first(), Some(Part::Text { text, .. }) if text.starts_with("<session_context>"));
            let message =
                builder.new_message(if results { Role::Tool } else { Role::User }, parts, at);
            builder.push(if added {
                message.with_origin(Origin::Engine)
            } else {
                message
            });
        }
        Some("gemini") => {
            let reply = read_reply(builder, said, content, at);
            builder.push(reply);
            for call in said
                .get("toolCalls")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let at = call.get("timestamp").and_then(time::parse_timestamp);
                let parts = read_parts(builder, call.get("result").unwrap_or(&Value::Null));
                let result = builder.new_message(Role::Tool, parts, at);
                builder.push(result);
            }
        }
        // These entries are notices to the user, not part of the conversation.
        Some("info" | "warning" | "error") => {}
        _ => builder.skipped += 1,
    }
}

fn read_reply(
    builder: &ConversationBuilder,
    said: &Value,
    content: &Value,
    at: Option<Timestamp>,
) -> Message {
    let list = |key: &str| {
        said.get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let thought = |thought: &Value| {
        let text: Vec<_> = ["subject", "description"]
            .iter()
            .filter_map(|key| get_text(thought, key))
            .collect();
        Part::Thinking(Thinking {
            text: text.join("\n"),
            ..Thinking::default()
        })
    };
    let call = |call: &Value| {
        let arguments = call
            .get("args")
            .map_or_else(|| "{}".to_owned(), Value::to_string);
        let id = get_text(call, "id")?.to_owned();
        let name = get_text(call, "name")?.to_owned();
        Some(Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            signature: None,
        }))
    };
    let mut all: Vec<_> = list("thoughts").map(thought).collect();
    all.extend(read_parts(builder, content));
    all.extend(list("toolCalls").filter_map(call));
    let mut reply = builder.new_message(Role::Assistant, all, at);
    let model = get_text(said, "model").map(|model| format!("gemini/{model}"));
    reply.llm_metadata = build_reply_metadata(
        model.as_deref(),
        said.get("tokens")
            .filter(|tokens| tokens.is_object())
            .map(read_usage),
    );
    reply
}

/// Reads content that is text or a list of parts in the format of Google's API. Tool results that
/// the conversation already contains are omitted.
fn read_parts(builder: &ConversationBuilder, content: &Value) -> Vec<Part> {
    let part = |piece: &Value| {
        if let Some(result) = piece.get("functionResponse") {
            let id = get_text(result, "id").filter(|id| !builder.has_result(id))?;
            let response = result.get("response").unwrap_or(&Value::Null);
            let text = |key: &str| get_text(response, key).map(str::to_owned);
            let envelope = match text("error") {
                Some(error) => Envelope::failure("failed", error),
                None => Envelope::success(text("output").unwrap_or_else(|| response.to_string())),
            };
            return Some(builder.build_result_part(id, get_text(result, "name"), envelope));
        }
        if let Some(data) = piece.get("inlineData") {
            let media_type = get_text(data, "mimeType")?.to_owned();
            let data = get_text(data, "data")?.to_owned();
            return Some(Part::Image(Image { media_type, data }));
        }
        get_text(piece, "text")
            .or(piece.as_str())
            .filter(|text| !text.is_empty())
            .map(Part::from_text)
    };
    match content {
        Value::Array(pieces) => pieces.iter().filter_map(part).collect(),
        Value::String(_) | Value::Object(_) => part(content).into_iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Reads token counts. In this format, cached tokens are included in the input, and thinking tokens
/// are not included in the output.
fn read_usage(tokens: &Value) -> ReportedUsage {
    let cached = get_count(tokens, "cached");
    let reasoning = get_count(tokens, "thoughts");
    let input = (get_count(tokens, "input") + get_count(tokens, "tool")).saturating_sub(cached);
    ReportedUsage {
        input,
        cached,
        written: 0,
        output: get_count(tokens, "output") + reasoning,
        reasoning,
    }
}
