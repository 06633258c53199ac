//! Converts elements of requests and replies to messages. The API is not needed, because the shapes
//! of the elements differ.
//!
//! Elements of unknown shape become text with their JSON, so nothing is left out or invented.

use haft_types::{Api, Envelope, Image, Part, Role, Thinking, ToolCall, ToolResult};
use serde_json::Value;

use crate::layout::SegmentKind;

/// Converts one element of a request or reply to messages. Each tool result becomes a message of
/// its own.
pub(crate) fn parse_messages(kind: SegmentKind, json: &str) -> Vec<(Role, Vec<Part>)> {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return vec![(Role::User, vec![Part::from_text(json)])];
    };
    match kind {
        SegmentKind::Tool => {
            return vec![(
                Role::System,
                vec![Part::from_text(format_tool(&value, json))],
            )];
        }
        SegmentKind::System => return vec![(Role::System, parse_parts(&value, json))],
        SegmentKind::Message => {}
    }
    let role = parse_role(&value);
    let mut split: Vec<(Role, Vec<Part>)> = Vec::new();
    for part in parse_parts(&value, json) {
        let is_result = matches!(part, Part::ToolResult(_));
        match split.last_mut() {
            // An image that follows a tool result belongs to that result.
            Some((before, parts))
                if !is_result && (*before != Role::Tool || matches!(part, Part::Image(_))) =>
            {
                parts.push(part);
            }
            _ => split.push((if is_result { Role::Tool } else { role }, vec![part])),
        }
    }
    split
}

/// Returns the role of a message, which may be in the format of any supported API.
pub(crate) fn parse_role(value: &Value) -> Role {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match (text("role"), text("type")) {
        (Some("system" | "developer"), _) => Role::System,
        (Some("assistant" | "model"), _) | (None, Some("reasoning")) => Role::Assistant,
        (Some("tool" | "function"), _) => Role::Tool,
        (None, Some(kind)) if kind.ends_with("_output") => Role::Tool,
        (None, Some(kind)) if kind.ends_with("_call") => Role::Assistant,
        (Some(_) | None, _) => Role::User,
    }
}

/// Formats the definition of a tool as the tool's name, followed by its JSON.
fn format_tool(value: &Value, json: &str) -> String {
    let declaration = value.get("function").unwrap_or(value);
    match declaration.get("name").and_then(Value::as_str) {
        Some(name) => format!("{name}: {json}"),
        None => json.to_owned(),
    }
}

fn parse_parts(value: &Value, json: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(thinking) = value
        .get("reasoning_content")
        .or(value.get("reasoning"))
        .and_then(Value::as_str)
    {
        parts.push(build_thinking_part(thinking));
    }
    if let Some(id) = value.get("tool_call_id").and_then(Value::as_str) {
        let name = value.get("name").and_then(Value::as_str);
        parts.push(build_tool_result_part(
            id,
            name,
            extract_text(value.get("content").unwrap_or(&Value::Null)),
            false,
        ));
        return parts;
    }
    match value {
        Value::String(text) => parts.push(Part::from_text(text)),
        Value::Array(list) => parts.extend(list.iter().filter_map(parse_part)),
        Value::Object(_) => match value.get("content").or(value.get("parts")) {
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => parts.push(Part::from_text(text)),
            Some(Value::Array(list)) => parts.extend(list.iter().filter_map(parse_part)),
            Some(Value::Object(_)) => parts.extend(value.get("content").and_then(parse_part)),
            _ => parts.extend(parse_part(value)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    let calls = value
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    parts.extend(calls.filter_map(parse_chat_call));
    if parts.is_empty() {
        parts.push(Part::from_text(json));
    }
    parts
}

fn parse_chat_call(value: &Value) -> Option<Part> {
    let function = value.get("function")?;
    let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
    Some(build_tool_call_part(
        id,
        function.get("name")?.as_str()?,
        function.get("arguments").unwrap_or(&Value::Null),
    ))
}

/// Parses one part of a message, or one item of a Responses API list. Returns `None` for an empty
/// text.
pub(crate) fn parse_part(value: &Value) -> Option<Part> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let null = Value::Null;
    let get = |key: &str| value.get(key).unwrap_or(&null);
    let kind = text("type").unwrap_or_default();
    let id = || text("call_id").or(text("id")).unwrap_or_default();
    match kind {
        "tool_use" | "server_tool_use" => {
            return Some(build_tool_call_part(
                text("id")?,
                text("name")?,
                get("input"),
            ));
        }
        "function_call" | "custom_tool_call" => {
            let arguments = if kind == "function_call" {
                get("arguments")
            } else {
                get("input")
            };
            return Some(build_tool_call_part(id(), text("name")?, arguments));
        }
        "local_shell_call" => {
            return Some(build_tool_call_part(id(), "local_shell", get("action")));
        }
        "tool_result" => {
            let failed = get("is_error").as_bool().unwrap_or_default();
            return Some(build_tool_result_part(
                text("tool_use_id")?,
                None,
                extract_text(get("content")),
                failed,
            ));
        }
        _ if kind.ends_with("_output") => {
            return Some(build_tool_result_part(
                id(),
                None,
                extract_text(get("output")),
                false,
            ));
        }
        "thinking" => return Some(build_thinking_part(text("thinking").unwrap_or_default())),
        "reasoning" => return Some(build_thinking_part(&extract_text(get("summary")))),
        "image" | "image_url" | "input_image" => return Some(parse_image(value)),
        _ => {}
    }
    if let Some(asked) = value.get("functionCall") {
        let name = asked.get("name")?.as_str()?;
        let id = asked.get("id").and_then(Value::as_str).unwrap_or(name);
        return Some(build_tool_call_part(
            id,
            name,
            asked.get("args").unwrap_or(&null),
        ));
    }
    if let Some(answer) = value.get("functionResponse") {
        let name = answer.get("name").and_then(Value::as_str);
        let id = answer.get("id").and_then(Value::as_str).or(name)?;
        return Some(build_tool_result_part(
            id,
            name,
            extract_text(answer.get("response").unwrap_or(&null)),
            false,
        ));
    }
    if value.get("inlineData").is_some() {
        return Some(parse_image(value));
    }
    match text("text").or(text("refusal")) {
        Some("") => None,
        Some(words) if get("thought").as_bool() == Some(true) => Some(build_thinking_part(words)),
        Some(words) => Some(Part::from_text(words)),
        None => Some(Part::from_text(value.to_string())),
    }
}

fn build_tool_call_part(id: &str, name: &str, arguments: &Value) -> Part {
    let arguments = arguments
        .as_str()
        .map_or_else(|| arguments.to_string(), str::to_owned);
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
        signature: None,
    })
}

fn build_tool_result_part(id: &str, name: Option<&str>, text: String, failed: bool) -> Part {
    let envelope = if failed {
        Envelope::failure("failed", text)
    } else {
        Envelope::success(text)
    };
    let name = name.unwrap_or("unknown").to_owned();
    Part::ToolResult(Box::new(ToolResult {
        tool_call_id: id.to_owned(),
        name,
        envelope,
    }))
}

pub(crate) fn build_thinking_part(text: &str) -> Part {
    Part::Thinking(Thinking {
        text: text.to_owned(),
        ..Thinking::default()
    })
}

fn parse_image(value: &Value) -> Part {
    let at = |path: &str| value.pointer(path).and_then(Value::as_str);
    let url = at("/image_url/url").or(at("/image_url"));
    let inline = url.and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    let source = at("/source/media_type").zip(at("/source/data"));
    let gemini = at("/inlineData/mimeType").zip(at("/inlineData/data"));
    match inline.or(source).or(gemini) {
        Some((media_type, data)) => Part::Image(Image {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        }),
        None => Part::from_text(format!(
            "[picture at {}]",
            url.or(at("/source/url")).unwrap_or("?")
        )),
    }
}

/// Returns the text of a JSON value: a string, the joined texts of a list, or the JSON of anything
/// else.
fn extract_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(list) => {
            let texts = list
                .iter()
                .map(|one| match one.get("text").and_then(Value::as_str) {
                    Some(text) => text.to_owned(),
                    None => extract_text(one),
                });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

/// Returns the API that a request with this method and path calls, or `None` if the request is not
/// addressed to a model.
pub(crate) fn detect_api(method: &str, path: &str) -> Option<Api> {
    let path = path
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    if method != "POST" {
        return None;
    }
    if path.ends_with("/chat/completions") {
        Some(Api::OpenaiChat)
    } else if path.ends_with("/responses") {
        Some(Api::OpenaiResponses)
    } else if path.ends_with("/messages") {
        Some(Api::Anthropic)
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        Some(Api::Gemini)
    } else {
        None
    }
}

/// Returns the model name in a path of the Gemini API.
pub(crate) fn model_from_path(path: &str) -> Option<&str> {
    path.split("/models/").nth(1)?.split(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reads_every_api() {
        let shown = |json: &str| {
            let all = parse_messages(SegmentKind::Message, json);
            let one = |part: &Part| match part {
                Part::Text { text, .. } => format!("text {text}"),
                Part::Thinking(thinking) => format!("thinking {}", thinking.text),
                Part::ToolCall(call) => {
                    format!("call {} {} {}", call.id, call.name, call.arguments)
                }
                Part::ToolResult(result) => {
                    format!("result {} {}", result.tool_call_id, result.envelope.text)
                }
                Part::Image(image) => format!("image {}", image.media_type),
            };
            let line = |(role, parts): &(Role, Vec<Part>)| {
                format!(
                    "{role}: {}",
                    parts.iter().map(one).collect::<Vec<_>>().join(", ")
                )
            };
            all.iter().map(line).collect::<Vec<_>>().join(" | ")
        };
        let table = [
            (r#"{"role":"user","content":"hi"}"#, "user: text hi"),
            (
                r#"{"role":"developer","content":"be kind"}"#,
                "system: text be kind",
            ),
            (
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}"#,
                "assistant: call a f {}",
            ),
            (
                r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"done"}]}"#,
                "tool: result a done",
            ),
            (
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"y"}]},{"type":"text","text":"go"}]}"#,
                "tool: result a x | tool: result b y | user: text go",
            ),
            (
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]}"#,
                r#"assistant: thinking hm, call a f {"x":1}"#,
            ),
            (
                r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#,
                "assistant: call a f {}",
            ),
            (
                r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
                "tool: result a x",
            ),
            (
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}"#,
                "assistant: thinking hm",
            ),
            (
                r#"{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{}}}]}"#,
                "assistant: text a, call f f {}",
            ),
            (
                r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}"#,
                r#"tool: result f {"output":"x"}"#,
            ),
            (
                r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}"#,
                "user: image image/png",
            ),
            (
                r#"{"type":"item_of_tomorrow","x":1}"#,
                r#"user: text {"type":"item_of_tomorrow","x":1}"#,
            ),
            (r#""one text""#, "user: text one text"),
        ];
        for (json, expected) in table {
            assert_eq!(shown(json), expected, "{json}");
        }
    }

    #[test]
    fn api_of_recognizes_paths() {
        assert_eq!(
            detect_api("POST", "/v1/chat/completions?x=1"),
            Some(Api::OpenaiChat)
        );
        assert_eq!(
            detect_api("POST", "/backend-api/codex/responses"),
            Some(Api::OpenaiResponses)
        );
        assert_eq!(
            detect_api("POST", "/v1/messages?beta=true"),
            Some(Api::Anthropic)
        );
        assert_eq!(
            detect_api("POST", "/v1beta/models/g:streamGenerateContent?alt=sse"),
            Some(Api::Gemini)
        );
        assert_eq!(
            model_from_path("/v1beta/models/g:streamGenerateContent?alt=sse"),
            Some("g")
        );
        for (method, path) in [
            ("GET", "/v1/responses"),
            ("POST", "/v1/messages/count_tokens"),
            ("POST", "/v1/files"),
        ] {
            assert_eq!(detect_api(method, path), None, "{path}");
        }
    }
}
