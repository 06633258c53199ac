//! Reads messages in the format of OpenAI's Chat Completions API.
//!
//! ```text
//! {"messages": [{"role": "user", "content": "fix it"}, …]}        a request
//! [{"role": "user", "content": "fix it"}, …]                      messages alone
//! ```

use haft_types::{Envelope, Image, Message, Metadata, Part, Role, Thinking, Timestamp, ToolCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText};

#[derive(Deserialize)]
struct ChatRequest<'a> {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    model: Value,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

pub(crate) fn read_chat(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let text = source.text;
    let request = if text.starts_with('[') {
        ChatRequest {
            id: Value::Null,
            model: Value::Null,
            messages: serde_json::from_str(text)?,
        }
    } else {
        serde_json::from_str(text)?
    };
    let mut builder = ConversationBuilder::new(source.now);
    for (index, raw) in request.messages.iter().enumerate() {
        let message = read_message(&builder, raw, None);
        let mut message = message.map_err(|problem| ImportError::Message {
            number: index + 1,
            problem,
        })?;
        if message.role == Role::Assistant {
            message.llm_metadata = build_reply_metadata(request.model.as_str(), None);
        }
        builder.push(message);
    }
    let id = request.id.as_str().map(str::to_owned);
    builder.finish(
        ImportFormat::OpenaiChat.name(),
        ConversationHeader {
            id,
            ..ConversationHeader::default()
        },
    )
}

#[derive(Deserialize)]
struct ChatLogMessage<'a> {
    role: String,
    content: Option<ChatLogContent>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatLogCall<'a>>>,
    // The predecessor of `tool_calls`. Such calls have no id.
    #[serde(borrow)]
    function_call: Option<ChatLogFunction<'a>>,
    tool_call_id: Option<String>,
    name: Option<String>,
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
    synthetic: Option<Value>,
    meta: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChatLogContent {
    Text(String),
    Parts(Vec<Value>),
}

#[derive(Deserialize)]
struct ChatLogCall<'a> {
    id: String,
    #[serde(borrow)]
    function: ChatLogFunction<'a>,
}

#[derive(Deserialize)]
struct ChatLogFunction<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Converts one message of the API's format to haft's format, with the time `at`. The message is
/// not added to `builder`.
pub(crate) fn read_message(
    builder: &ConversationBuilder,
    raw: &RawValue,
    at: Option<Timestamp>,
) -> Result<Message, String> {
    let chat: ChatLogMessage<'_> =
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    let parts = read_parts(chat.content)?;
    let mut message = match chat.role.as_str() {
        "system" | "developer" => builder.new_instructions(parts, at),
        "user" => builder.new_message(Role::User, parts, at),
        "assistant" => {
            let thinking = chat.reasoning_content.filter(|text| !text.is_empty());
            let thinking = thinking.map(|text| {
                Part::Thinking(Thinking {
                    text,
                    ..Thinking::default()
                })
            });
            let calls = chat
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(|call| (call.id, call.function));
            let unnamed = chat
                .function_call
                .map(|function| (format!("call_{}", function.name), function));
            let calls = calls
                .chain(unnamed)
                .map(|(id, function)| read_call(id, &function));
            let content = thinking
                .into_iter()
                .map(Ok)
                .chain(parts.into_iter().map(Ok))
                .chain(calls);
            builder.new_message(Role::Assistant, content.collect::<Result<_, String>>()?, at)
        }
        "tool" | "function" => {
            let unnamed = || chat.name.as_ref().map(|name| format!("call_{name}"));
            let id = chat
                .tool_call_id
                .clone()
                .or_else(unnamed)
                .ok_or("a tool message needs a `tool_call_id`")?;
            let content = build_result_parts(builder, &id, chat.name.as_deref(), parts);
            builder.new_message(Role::Tool, content, at)
        }
        other => return Err(format!("unknown role `{other}`")),
    };
    message
        .metadata
        .extend(collect_extra_metadata(chat.synthetic, chat.meta));
    Ok(message)
}

fn collect_extra_metadata(synthetic: Option<Value>, meta: Option<Value>) -> Metadata {
    let named = [("synthetic", synthetic), ("meta", meta)];
    named
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

fn read_call(id: String, function: &ChatLogFunction<'_>) -> Result<Part, String> {
    let raw = function.arguments.map_or("{}", RawValue::get);
    let arguments = if raw.starts_with('"') {
        serde_json::from_str(raw).map_err(|error| error.to_string())?
    } else {
        raw.to_owned()
    };
    Ok(Part::ToolCall(ToolCall {
        id,
        name: function.name.clone(),
        arguments,
        signature: None,
    }))
}

fn build_result_parts(
    builder: &ConversationBuilder,
    call: &str,
    name: Option<&str>,
    parts: Vec<Part>,
) -> Vec<Part> {
    let mut text = String::new();
    let mut images = Vec::new();
    for part in parts {
        match part {
            Part::Text { text: piece, .. } => text.push_str(&piece),
            Part::Image(_) => images.push(part),
            // `read_parts` does not return these parts.
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
        }
    }
    let mut content = vec![builder.build_result_part(call, name, Envelope::success(text))];
    content.append(&mut images);
    content
}

fn read_parts(content: Option<ChatLogContent>) -> Result<Vec<Part>, String> {
    match content {
        None => Ok(Vec::new()),
        Some(ChatLogContent::Text(text)) if text.is_empty() => Ok(Vec::new()),
        Some(ChatLogContent::Text(text)) => Ok(vec![Part::from_text(text)]),
        Some(ChatLogContent::Parts(parts)) => parts.iter().map(read_part).collect(),
    }
}

fn read_part(part: &Value) -> Result<Part, String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text" | "input_text" | "output_text" | "refusal") => Ok(Part::from_text(
            text("text").or(text("refusal")).unwrap_or_default(),
        )),
        Some("image_url") => {
            let image = part.get("image_url");
            let url = image
                .and_then(|image| image.as_str().or_else(|| image.get("url")?.as_str()))
                .unwrap_or_default();
            Ok(image_from_url(url))
        }
        Some(other) => Err(format!("unknown kind of content `{other}`")),
        None => Err("a piece of content needs a `type`".to_owned()),
    }
}

/// Returns the image of a data URL. For any other URL, returns a text that contains the URL.
pub(crate) fn image_from_url(url: &str) -> Part {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Part::Image(Image {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        }),
        None => Part::from_text(format!("[picture at {url}]")),
    }
}

/// Reads token counts under the API's keys, or under the shorter keys that some programs use.
/// Tokens that were read from or written to the cache are included in the prompt tokens.
pub(crate) fn read_usage(usage: &Value) -> ReportedUsage {
    let first = |places: &[&str]| {
        places
            .iter()
            .find_map(|place| usage.pointer(place)?.as_u64())
            .unwrap_or(0)
    };
    let cached = first(&[
        "/prompt_tokens_details/cached_tokens",
        "/cache_read_input_tokens",
        "/cache_read_tokens",
    ]);
    let written = first(&["/cache_creation_input_tokens", "/cache_write_tokens"]);
    ReportedUsage {
        input: get_count(usage, "prompt_tokens").saturating_sub(cached + written),
        cached,
        written,
        output: get_count(usage, "completion_tokens"),
        reasoning: first(&[
            "/completion_tokens_details/reasoning_tokens",
            "/reasoning_tokens",
        ]),
    }
}
