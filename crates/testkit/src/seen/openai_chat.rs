//! Decodes OpenAI Chat Completions requests: the system prompt and the tool results are messages
//! with their own roles.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, Seen, SeenError, SeenPart, SeenRole, SeenTool, array_field, image_from_url,
    optional_string, owned_or_empty, parse_arguments, string_field,
};

pub(super) fn decode_request(body: &Value) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    let mut system = String::new();
    let mut cache_marks = Vec::new();
    for (index, message) in array_field(body, "messages", "")?.iter().enumerate() {
        let path = format!("messages[{index}]");
        let role = match string_field(message, "role", &path)? {
            "system" | "developer" if index == 0 => {
                system = join_text_content(message, &path)?;
                push_cache_marks(message, &path, &mut cache_marks);
                continue;
            }
            "system" | "developer" => SeenRole::System,
            "user" => SeenRole::User,
            "assistant" => SeenRole::Assistant,
            "tool" => {
                builder.push_result(
                    string_field(message, "tool_call_id", &path)?,
                    join_text_content(message, &path)?,
                    None,
                );
                push_cache_marks(message, &path, &mut cache_marks);
                continue;
            }
            _ => return Err(SeenError::new(format!("{path}.role"), "unknown role")),
        };
        builder.start_message(role);
        if let Some(reasoning) = optional_string(message, "reasoning_content") {
            builder.push(
                role,
                SeenPart::Thinking {
                    text: reasoning.to_owned(),
                    signed: false,
                },
            );
        }
        for part in decode_content(message, &path)? {
            builder.push(role, part);
        }
        push_cache_marks(message, &path, &mut cache_marks);
        for (at, call) in array_field(message, "tool_calls", &path)?
            .iter()
            .enumerate()
        {
            let path = format!("{path}.tool_calls[{at}]");
            let function = call
                .get("function")
                .ok_or_else(|| SeenError::new(path.clone() + ".function", "expected an object"))?;
            let arguments = parse_arguments(string_field(function, "arguments", &path)?);
            builder.push_call(
                Some(string_field(call, "id", &path)?),
                string_field(function, "name", &path)?,
                arguments,
                false,
            );
        }
    }
    let tools = array_field(body, "tools", "")?
        .iter()
        .filter_map(|tool| tool.get("function"))
        .map(|function| SeenTool {
            name: owned_or_empty(optional_string(function, "name")),
            description: owned_or_empty(optional_string(function, "description")),
            parameters: function.get("parameters").cloned().unwrap_or_default(),
        });
    Ok(Seen {
        api: Api::OpenaiChat,
        model: owned_or_empty(optional_string(body, "model")),
        system,
        tools: tools.collect(),
        messages: builder.finish(),
        max_output_tokens: ["max_completion_tokens", "max_tokens"]
            .iter()
            .find_map(|key| body.get(key)?.as_u64()),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        cache_marks,
    })
}

fn decode_content(message: &Value, path: &str) -> Result<Vec<SeenPart>, SeenError> {
    let plain = |text: &str| SeenPart::Text {
        text: text.to_owned(),
        signed: false,
    };
    match message.get("content") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(words)) => Ok(vec![plain(words)]),
        Some(Value::Array(parts)) => parts
            .iter()
            .enumerate()
            .map(|(at, part)| {
                let path = format!("{path}.content[{at}]");
                Ok(match string_field(part, "type", &path)? {
                    "text" => plain(string_field(part, "text", &path)?),
                    "refusal" => plain(string_field(part, "refusal", &path)?),
                    "image_url" => {
                        let url = part
                            .get("image_url")
                            .and_then(|image| optional_string(image, "url"));
                        image_from_url(url.ok_or_else(|| {
                            SeenError::new(path + ".image_url.url", "expected a string")
                        })?)
                    }
                    kind => SeenPart::Other {
                        kind: kind.to_owned(),
                    },
                })
            })
            .collect(),
        Some(_) => Err(SeenError::new(
            format!("{path}.content"),
            "expected a string or a list",
        )),
    }
}

/// Joins the texts of a message's text parts. Parts of other types are ignored.
fn join_text_content(message: &Value, path: &str) -> Result<String, SeenError> {
    let parts = decode_content(message, path)?;
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            SeenPart::Text { text, .. } => Some(text.as_str()),
            SeenPart::Thinking { .. }
            | SeenPart::ToolCall { .. }
            | SeenPart::ToolResult { .. }
            | SeenPart::Image { .. }
            | SeenPart::Other { .. } => None,
        })
        .collect();
    Ok(texts.join("\n\n"))
}

fn push_cache_marks(message: &Value, path: &str, marks: &mut Vec<String>) {
    let Some(parts) = message.get("content").and_then(Value::as_array) else {
        return;
    };
    for (at, part) in parts.iter().enumerate() {
        if part.get("prompt_cache_breakpoint").is_some() || part.get("cache_control").is_some() {
            marks.push(format!("{path}.content[{at}]"));
        }
    }
}
