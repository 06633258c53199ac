//! Lines in the shape Claude Code's SDK writes and reads in addition to messages: `control_request` and `control_response`.
//!
//! Two generations of that SDK answer a permission request differently (`allow`, `behavior`); both are understood.

use haft_engine::{Approval, ApprovalReply};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dialect::StreamInput;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ClaudeLine {
    User { message: ClaudeMessage },
    ControlRequest { request_id: String, request: Value },
    ControlResponse { response: ClaudeResponse },
    ControlCancelRequest {},
    KeepAlive {},
}

#[derive(Deserialize)]
struct ClaudeMessage {
    content: ClaudeContent,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ClaudeContent {
    Text(String),
    Blocks(Vec<Value>),
}

#[derive(Deserialize)]
struct ClaudeResponse {
    request_id: String,
    #[serde(default, rename = "response")]
    said: Value,
    #[serde(default)]
    error: Option<String>,
}

pub(super) fn read(line: &str) -> Result<StreamInput, String> {
    Ok(match serde_json::from_str(line).map_err(|error| error.to_string())? {
        ClaudeLine::User { message: ClaudeMessage { content: ClaudeContent::Text(text) } } => StreamInput::Prompt(text),
        ClaudeLine::User { message: ClaudeMessage { content: ClaudeContent::Blocks(blocks) } } => {
            StreamInput::Prompt(text_of(&blocks)?)
        }
        ClaudeLine::ControlRequest { request_id, request } => requested(&request_id, &request),
        ClaudeLine::ControlResponse { response } => {
            StreamInput::Answer { answer: answer(&response), id: response.request_id }
        }
        ClaudeLine::ControlCancelRequest {} | ClaudeLine::KeepAlive {} => StreamInput::Nothing,
    })
}

/// The text of a message; anything else in it cannot be taken.
fn text_of(blocks: &[Value]) -> Result<String, String> {
    let texts = blocks.iter().map(|block| match block["type"].as_str() {
        Some("text") => Ok(block["text"].as_str().unwrap_or_default()),
        kind => Err(format!("a user message holds a `{}` block; only `text` is taken", kind.unwrap_or("?"))),
    });
    texts.collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n\n"))
}

fn requested(id: &str, request: &Value) -> StreamInput {
    match request["subtype"].as_str().unwrap_or_default() {
        "interrupt" => StreamInput::Interrupt { heard: Some(success(id, &json!({}))) },
        "initialize" if request["hooks"].is_object() => StreamInput::Reply(failure(
            id,
            "hooks of the SDK are not called; `[hooks]` in the configuration runs commands",
        )),
        "initialize" => StreamInput::Reply(success(id, &json!({"commands": [], "output_style": "default"}))),
        other => StreamInput::Reply(failure(id, &format!("`{other}` is not supported"))),
    }
}

fn answer(ClaudeResponse { said: response, error, .. }: &ClaudeResponse) -> ApprovalReply {
    let no = |words: &str| ApprovalReply::No { reason: words.to_owned() };
    if let Some(error) = error {
        return no(error);
    }
    let allowed = response["allow"].as_bool().unwrap_or(response["behavior"] == "allow");
    if !allowed {
        let reason = response["message"].as_str().or_else(|| response["reason"].as_str());
        return no(reason.unwrap_or_default());
    }
    match response.get("updatedInput").or_else(|| response.get("input")) {
        Some(input @ Value::Object(_)) => ApprovalReply::Changed { arguments: input.clone() },
        _ => ApprovalReply::Once,
    }
}

pub(super) fn ask(id: &str, approval: &Approval) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {
        "subtype": "can_use_tool",
        "tool_name": approval.tool,
        "input": approval.arguments,
        "permission_suggestions": null,
        "blocked_path": null,
        "decision_reason": approval.reason,
    }})
}

pub(super) fn take_back(id: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": id})
}

pub(super) fn unreadable(message: &str) -> Value {
    json!({"type": "system", "subtype": "error", "code": "input", "message": message})
}

fn success(id: &str, response: &Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})
}

fn failure(id: &str, error: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_text_alone() {
        let one =
            r#"{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"session_id":"x"}"#;
        assert_eq!(read(one), Ok(StreamInput::Prompt("hi".into())));
        let two = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#;
        assert_eq!(read(two), Ok(StreamInput::Prompt("a\n\nb".into())));
        let picture = r#"{"type":"user","message":{"content":[{"type":"image","source":{}}]}}"#;
        assert!(read(picture).unwrap_err().contains("`image`"));
    }

    #[test]
    fn both_generations_of_answers() {
        let answered = |response: Value| {
            let line = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "7", "response": response}});
            match read(&line.to_string()) {
                Ok(StreamInput::Answer { id, answer }) if id == "7" => answer,
                other => panic!("{other:?}"),
            }
        };
        let no = |words: &str| ApprovalReply::No { reason: words.into() };
        assert_eq!(answered(json!({"allow": true})), ApprovalReply::Once);
        assert_eq!(answered(json!({"behavior": "allow"})), ApprovalReply::Once);
        let changed = ApprovalReply::Changed { arguments: json!({"path": "b"}) };
        assert_eq!(answered(json!({"allow": true, "input": {"path": "b"}})), changed);
        assert_eq!(answered(json!({"behavior": "allow", "updatedInput": {"path": "b"}})), changed);
        assert_eq!(answered(json!({"allow": false, "reason": "no tabs"})), no("no tabs"));
        assert_eq!(answered(json!({"behavior": "deny", "message": "no tabs"})), no("no tabs"));
        assert_eq!(answered(json!({})), no(""), "what is not a yes is a no");
    }

    #[test]
    fn a_request_that_is_not_supported_is_answered() {
        let line = json!({"type": "control_request", "request_id": "9", "request": {"subtype": "set_model"}});
        let Ok(StreamInput::Reply(reply)) = read(&line.to_string()) else { panic!("no reply") };
        assert_eq!((&reply["response"]["subtype"], &reply["response"]["request_id"]), (&json!("error"), &json!("9")));
    }
}
