//! Decodes Anthropic Messages requests: tool results are blocks of a user message, and cache marks
//! are fields of the blocks they apply to.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, Seen, SeenError, SeenPart, SeenRole, SeenTool, array_field, image_from_base64,
    image_from_url, optional_string, owned_or_empty, string_field,
};

pub(super) fn decode_request(body: &Value) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    let mut marks = Vec::new();
    let tools: Vec<SeenTool> = array_field(body, "tools", "")?
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            push_cache_mark(tool, || format!("tools[{index}]"), &mut marks);
            SeenTool {
                name: owned_or_empty(optional_string(tool, "name")),
                description: owned_or_empty(optional_string(tool, "description")),
                parameters: tool.get("input_schema").cloned().unwrap_or_default(),
            }
        })
        .collect();
    let system = match body.get("system") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                push_cache_mark(block, || format!("system[{index}]"), &mut marks);
            }
            blocks
                .iter()
                .filter_map(|block| optional_string(block, "text"))
                .collect::<Vec<_>>()
                .join("\n\n")
        }
        Some(_) => return Err(SeenError::new("system", "expected a string or a list")),
    };
    for (index, message) in array_field(body, "messages", "")?.iter().enumerate() {
        let path = format!("messages[{index}]");
        let role = match string_field(message, "role", &path)? {
            "user" => SeenRole::User,
            "assistant" => SeenRole::Assistant,
            "system" => SeenRole::System,
            _ => return Err(SeenError::new(path + ".role", "unknown role")),
        };
        match message.get("content") {
            Some(Value::String(words)) => {
                builder.push(
                    role,
                    SeenPart::Text {
                        text: words.clone(),
                        signed: false,
                    },
                );
            }
            Some(Value::Array(blocks)) => {
                for (at, block) in blocks.iter().enumerate() {
                    let path = format!("{path}.content[{at}]");
                    push_block(role, block, &path, &mut builder)?;
                    push_cache_mark(block, || path, &mut marks);
                }
            }
            None | Some(_) => {
                return Err(SeenError::new(
                    path + ".content",
                    "expected a string or a list",
                ));
            }
        }
    }
    push_cache_mark(body, || "(top)".to_owned(), &mut marks);
    Ok(Seen {
        api: Api::Anthropic,
        model: owned_or_empty(optional_string(body, "model")),
        system,
        tools,
        messages: builder.finish(),
        max_output_tokens: body.get("max_tokens").and_then(Value::as_u64),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        cache_marks: marks,
    })
}

fn push_block(
    role: SeenRole,
    block: &Value,
    path: &str,
    builder: &mut Builder,
) -> Result<(), SeenError> {
    match string_field(block, "type", path)? {
        "text" => {
            let text = string_field(block, "text", path)?.to_owned();
            builder.push(
                role,
                SeenPart::Text {
                    text,
                    signed: false,
                },
            );
        }
        "thinking" => {
            let signed =
                optional_string(block, "signature").is_some_and(|signature| !signature.is_empty());
            builder.push(
                role,
                SeenPart::Thinking {
                    text: string_field(block, "thinking", path)?.to_owned(),
                    signed,
                },
            );
        }
        "redacted_thinking" => builder.push(
            role,
            SeenPart::Thinking {
                text: String::new(),
                signed: true,
            },
        ),
        "tool_use" => {
            let arguments = block.get("input").cloned().unwrap_or_default();
            builder.push_call(
                Some(string_field(block, "id", path)?),
                string_field(block, "name", path)?,
                arguments,
                false,
            );
        }
        "tool_result" => {
            let (words, pictures) = result_content(block.get("content"), path)?;
            let failed = block
                .get("is_error")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            builder.push_result(
                string_field(block, "tool_use_id", path)?,
                words,
                Some(failed),
            );
            for picture in pictures {
                builder.push_result_image(picture);
            }
        }
        "image" => builder.push(role, decode_image(block, path)?),
        kind => builder.push(
            role,
            SeenPart::Other {
                kind: kind.to_owned(),
            },
        ),
    }
    Ok(())
}

fn result_content(
    content: Option<&Value>,
    path: &str,
) -> Result<(String, Vec<SeenPart>), SeenError> {
    match content {
        None | Some(Value::Null) => Ok((String::new(), Vec::new())),
        Some(Value::String(words)) => Ok((words.clone(), Vec::new())),
        Some(Value::Array(blocks)) => {
            let mut words = Vec::new();
            let mut pictures = Vec::new();
            for (at, block) in blocks.iter().enumerate() {
                let path = format!("{path}.content[{at}]");
                match string_field(block, "type", &path)? {
                    "text" => words.push(string_field(block, "text", &path)?),
                    "image" => pictures.push(decode_image(block, &path)?),
                    kind => pictures.push(SeenPart::Other {
                        kind: kind.to_owned(),
                    }),
                }
            }
            Ok((words.join("\n\n"), pictures))
        }
        Some(_) => Err(SeenError::new(
            format!("{path}.content"),
            "expected a string or a list",
        )),
    }
}

fn decode_image(block: &Value, path: &str) -> Result<SeenPart, SeenError> {
    let path = format!("{path}.source");
    let source = block
        .get("source")
        .ok_or_else(|| SeenError::new(path.clone(), "expected an object"))?;
    match optional_string(source, "type") {
        Some("url") => Ok(image_from_url(string_field(source, "url", &path)?)),
        Some(_) | None => Ok(image_from_base64(
            string_field(source, "media_type", &path)?,
            string_field(source, "data", &path)?,
        )),
    }
}

fn push_cache_mark(value: &Value, path: impl FnOnce() -> String, marks: &mut Vec<String>) {
    if value
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
    {
        marks.push(path());
    }
}
