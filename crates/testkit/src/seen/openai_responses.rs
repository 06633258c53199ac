//! Decodes OpenAI Responses requests: a list of items, of which messages are one kind.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, Seen, SeenError, SeenPart, SeenRole, SeenTool, array_field, image_from_url,
    optional_string, owned_or_empty, parse_arguments, string_field,
};

pub(super) fn decode_request(body: &Value) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    let mut system = owned_or_empty(optional_string(body, "instructions"));
    let mut cache_marks = Vec::new();
    match body.get("input") {
        None | Some(Value::Null) => {}
        Some(Value::String(words)) => {
            builder.push(
                SeenRole::User,
                SeenPart::Text {
                    text: words.clone(),
                    signed: false,
                },
            );
        }
        Some(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("input[{index}]");
                let leads = index == 0 && system.is_empty();
                if let Some(instructions) =
                    push_item(item, &path, leads, &mut builder, &mut cache_marks)?
                {
                    system = instructions;
                }
            }
        }
        Some(_) => return Err(SeenError::new("input", "expected a string or a list")),
    }
    let functions = array_field(body, "tools", "")?
        .iter()
        .filter(|tool| optional_string(tool, "type") == Some("function"));
    let tools = functions.map(|tool| SeenTool {
        name: owned_or_empty(optional_string(tool, "name")),
        description: owned_or_empty(optional_string(tool, "description")),
        parameters: tool.get("parameters").cloned().unwrap_or_default(),
    });
    Ok(Seen {
        api: Api::OpenaiResponses,
        model: owned_or_empty(optional_string(body, "model")),
        system,
        tools: tools.collect(),
        messages: builder.finish(),
        max_output_tokens: body.get("max_output_tokens").and_then(Value::as_u64),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        cache_marks,
    })
}

/// Adds one item to the request. A leading system message is not added; its text is returned.
fn push_item(
    item: &Value,
    path: &str,
    leads: bool,
    builder: &mut Builder,
    marks: &mut Vec<String>,
) -> Result<Option<String>, SeenError> {
    match optional_string(item, "type").unwrap_or("message") {
        "message" => {
            let role = match string_field(item, "role", path)? {
                "system" | "developer" => SeenRole::System,
                "user" => SeenRole::User,
                "assistant" => SeenRole::Assistant,
                _ => return Err(SeenError::new(format!("{path}.role"), "unknown role")),
            };
            let parts = decode_content(item.get("content"), &format!("{path}.content"), marks)?;
            if role == SeenRole::System && leads {
                return Ok(Some(join_text_parts(&parts)));
            }
            builder.start_message(role);
            for part in parts {
                builder.push(role, part);
            }
        }
        "function_call" => {
            let arguments = parse_arguments(string_field(item, "arguments", path)?);
            builder.push_call(
                Some(string_field(item, "call_id", path)?),
                string_field(item, "name", path)?,
                arguments,
                false,
            );
        }
        "function_call_output" => {
            let id = string_field(item, "call_id", path)?;
            let parts = decode_content(item.get("output"), &format!("{path}.output"), marks)?;
            builder.push_result(id, join_text_parts(&parts), None);
            for part in parts {
                if matches!(part, SeenPart::Image { .. }) {
                    builder.push_result_image(part);
                }
            }
        }
        "reasoning" => {
            let summary: Vec<&str> = array_field(item, "summary", path)?
                .iter()
                .filter_map(|part| optional_string(part, "text"))
                .collect();
            let signed = optional_string(item, "encrypted_content").is_some();
            builder.push(
                SeenRole::Assistant,
                SeenPart::Thinking {
                    text: summary.join("\n\n"),
                    signed,
                },
            );
        }
        kind => builder.push(
            SeenRole::Assistant,
            SeenPart::Other {
                kind: kind.to_owned(),
            },
        ),
    }
    Ok(None)
}

fn decode_content(
    value: Option<&Value>,
    path: &str,
    marks: &mut Vec<String>,
) -> Result<Vec<SeenPart>, SeenError> {
    let plain = |text: &str| SeenPart::Text {
        text: text.to_owned(),
        signed: false,
    };
    match value {
        Some(Value::String(words)) => Ok(vec![plain(words)]),
        Some(Value::Array(parts)) => {
            let mut found = Vec::with_capacity(parts.len());
            for (at, part) in parts.iter().enumerate() {
                let path = format!("{path}[{at}]");
                found.push(match string_field(part, "type", &path)? {
                    "input_text" | "output_text" => plain(string_field(part, "text", &path)?),
                    "refusal" => plain(string_field(part, "refusal", &path)?),
                    "input_image" => image_from_url(string_field(part, "image_url", &path)?),
                    kind => SeenPart::Other {
                        kind: kind.to_owned(),
                    },
                });
                if part.get("prompt_cache_breakpoint").is_some() {
                    marks.push(path);
                }
            }
            Ok(found)
        }
        None | Some(_) => Err(SeenError::new(path, "expected a string or a list")),
    }
}

fn join_text_parts(parts: &[SeenPart]) -> String {
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
    texts.join("\n\n")
}
