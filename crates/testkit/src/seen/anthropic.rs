//! Decodes Anthropic Messages requests: tool results are blocks of a user message, and cache marks
//! are fields of the blocks they apply to.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, Seen, SeenError, SeenPart, SeenRole, SeenTool, image, image_at, list, maybe, owned,
    text,
};

pub(super) fn decode(body: &Value) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    let mut marks = Vec::new();
    let tools: Vec<SeenTool> = list(body, "tools", "")?
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            mark(tool, || format!("tools[{index}]"), &mut marks);
            SeenTool {
                name: owned(maybe(tool, "name")),
                description: owned(maybe(tool, "description")),
                parameters: tool.get("input_schema").cloned().unwrap_or_default(),
            }
        })
        .collect();
    let system = match body.get("system") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                mark(block, || format!("system[{index}]"), &mut marks);
            }
            blocks
                .iter()
                .filter_map(|block| maybe(block, "text"))
                .collect::<Vec<_>>()
                .join("\n\n")
        }
        Some(_) => return Err(SeenError::new("system", "expected a string or a list")),
    };
    for (index, message) in list(body, "messages", "")?.iter().enumerate() {
        let path = format!("messages[{index}]");
        let role = match text(message, "role", &path)? {
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
                    block_into(role, block, &path, &mut builder)?;
                    mark(block, || path, &mut marks);
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
    mark(body, || "(top)".to_owned(), &mut marks);
    Ok(Seen {
        api: Api::Anthropic,
        model: owned(maybe(body, "model")),
        system,
        tools,
        messages: builder.finish(),
        max_output_tokens: body.get("max_tokens").and_then(Value::as_u64),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        cache_marks: marks,
    })
}

fn block_into(
    role: SeenRole,
    block: &Value,
    path: &str,
    builder: &mut Builder,
) -> Result<(), SeenError> {
    match text(block, "type", path)? {
        "text" => {
            let text = text(block, "text", path)?.to_owned();
            builder.push(
                role,
                SeenPart::Text {
                    text,
                    signed: false,
                },
            );
        }
        "thinking" => {
            let signed = maybe(block, "signature").is_some_and(|signature| !signature.is_empty());
            builder.push(
                role,
                SeenPart::Thinking {
                    text: text(block, "thinking", path)?.to_owned(),
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
            builder.call(
                Some(text(block, "id", path)?),
                text(block, "name", path)?,
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
            builder.result(text(block, "tool_use_id", path)?, words, Some(failed));
            for picture in pictures {
                builder.result_image(picture);
            }
        }
        "image" => builder.push(role, picture(block, path)?),
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
                match text(block, "type", &path)? {
                    "text" => words.push(text(block, "text", &path)?),
                    "image" => pictures.push(picture(block, &path)?),
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

fn picture(block: &Value, path: &str) -> Result<SeenPart, SeenError> {
    let path = format!("{path}.source");
    let source = block
        .get("source")
        .ok_or_else(|| SeenError::new(path.clone(), "expected an object"))?;
    match maybe(source, "type") {
        Some("url") => Ok(image_at(text(source, "url", &path)?)),
        Some(_) | None => Ok(image(
            text(source, "media_type", &path)?,
            text(source, "data", &path)?,
        )),
    }
}

fn mark(value: &Value, path: impl FnOnce() -> String, marks: &mut Vec<String>) {
    if value
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
    {
        marks.push(path());
    }
}
