//! Decodes OpenAI Responses requests: a list of items, of which messages are one kind.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, Seen, SeenError, SeenPart, SeenRole, SeenTool, image_at, list, maybe, owned,
    parse_arguments, text,
};

pub(super) fn decode(body: &Value) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    let mut system = owned(maybe(body, "instructions"));
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
                    item_into(item, &path, leads, &mut builder, &mut cache_marks)?
                {
                    system = instructions;
                }
            }
        }
        Some(_) => return Err(SeenError::new("input", "expected a string or a list")),
    }
    let functions = list(body, "tools", "")?
        .iter()
        .filter(|tool| maybe(tool, "type") == Some("function"));
    let tools = functions.map(|tool| SeenTool {
        name: owned(maybe(tool, "name")),
        description: owned(maybe(tool, "description")),
        parameters: tool.get("parameters").cloned().unwrap_or_default(),
    });
    Ok(Seen {
        api: Api::OpenaiResponses,
        model: owned(maybe(body, "model")),
        system,
        tools: tools.collect(),
        messages: builder.finish(),
        max_output_tokens: body.get("max_output_tokens").and_then(Value::as_u64),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        cache_marks,
    })
}

/// Adds one item. If it is the leading system message, returns its text instead.
fn item_into(
    item: &Value,
    path: &str,
    leads: bool,
    builder: &mut Builder,
    marks: &mut Vec<String>,
) -> Result<Option<String>, SeenError> {
    match maybe(item, "type").unwrap_or("message") {
        "message" => {
            let role = match text(item, "role", path)? {
                "system" | "developer" => SeenRole::System,
                "user" => SeenRole::User,
                "assistant" => SeenRole::Assistant,
                _ => return Err(SeenError::new(format!("{path}.role"), "unknown role")),
            };
            let parts = content(item.get("content"), &format!("{path}.content"), marks)?;
            if role == SeenRole::System && leads {
                return Ok(Some(words(&parts)));
            }
            builder.open(role);
            for part in parts {
                builder.push(role, part);
            }
        }
        "function_call" => {
            let arguments = parse_arguments(text(item, "arguments", path)?);
            builder.call(
                Some(text(item, "call_id", path)?),
                text(item, "name", path)?,
                arguments,
                false,
            );
        }
        "function_call_output" => {
            let id = text(item, "call_id", path)?;
            let parts = content(item.get("output"), &format!("{path}.output"), marks)?;
            builder.result(id, words(&parts), None);
            for part in parts {
                if matches!(part, SeenPart::Image { .. }) {
                    builder.result_image(part);
                }
            }
        }
        "reasoning" => {
            let summary: Vec<&str> = list(item, "summary", path)?
                .iter()
                .filter_map(|part| maybe(part, "text"))
                .collect();
            let signed = maybe(item, "encrypted_content").is_some();
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

fn content(
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
                found.push(match text(part, "type", &path)? {
                    "input_text" | "output_text" => plain(text(part, "text", &path)?),
                    "refusal" => plain(text(part, "refusal", &path)?),
                    "input_image" => image_at(text(part, "image_url", &path)?),
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

fn words(parts: &[SeenPart]) -> String {
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
