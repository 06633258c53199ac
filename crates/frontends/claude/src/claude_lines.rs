//! Parses and builds the control lines of Claude Code's SDKs: `control_request` and
//! `control_response`.
//!
//! Two generations of the SDKs answer a permission request with different fields (`allow`,
//! `behavior`). Both are accepted.

use haft_agent::{Approval, ApprovalReply, MAIN_AGENT};
use haft_types::Image;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ClaudeCall;
use crate::dialect::{ReportKind, StreamInput, UserPrompt};

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
    #[serde(default)]
    subtype: Option<String>,
    request_id: String,
    #[serde(default, rename = "response")]
    said: Value,
    #[serde(default)]
    error: Option<String>,
}

pub(crate) fn parse_line(line: &str) -> Result<StreamInput, String> {
    Ok(
        match serde_json::from_str(line).map_err(|error| error.to_string())? {
            ClaudeLine::User {
                message:
                    ClaudeMessage {
                        content: ClaudeContent::Text(text),
                    },
            } => StreamInput::Prompt(text.into()),
            ClaudeLine::User {
                message:
                    ClaudeMessage {
                        content: ClaudeContent::Blocks(blocks),
                    },
            } => StreamInput::Prompt(parse_prompt(&blocks)?),
            ClaudeLine::ControlRequest {
                request_id,
                request,
            } => parse_request(&request_id, &request),
            ClaudeLine::ControlResponse { response } => parse_approval_answer(response),
            ClaudeLine::ControlCancelRequest {} | ClaudeLine::KeepAlive {} => StreamInput::Ignored,
        },
    )
}

/// The media types of the images that a message may contain.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Returns the text and the images of a user message. Fails if the message contains another kind of
/// block.
fn parse_prompt(blocks: &[Value]) -> Result<UserPrompt, String> {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => texts.push(block["text"].as_str().unwrap_or_default()),
            Some("image") => images.push(parse_image(&block["source"])?),
            kind => {
                let kind = kind.unwrap_or("?");
                return Err(format!(
                    "a user message holds a `{kind}` block; only `text` and `image` are taken"
                ));
            }
        }
    }
    Ok(UserPrompt {
        text: texts.join("\n\n"),
        images,
        number: 0,
    })
}

/// Parses an image whose data is in the message. An image that is given by its address is rejected,
/// because images are never fetched.
fn parse_image(source: &Value) -> Result<Image, String> {
    match (
        source["type"].as_str(),
        source["media_type"].as_str(),
        source["data"].as_str(),
    ) {
        (Some("base64"), Some(media_type), Some(data))
            if IMAGE_TYPES.contains(&media_type)
                && data
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) =>
        {
            Ok(Image {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            })
        }
        _ => Err(
            "a user message holds an `image` block that is not base64 of a PNG, JPEG, GIF or WebP"
                .to_owned(),
        ),
    }
}

fn parse_request(id: &str, request: &Value) -> StreamInput {
    let id = id.to_owned();
    match request["subtype"].as_str().unwrap_or_default() {
        "interrupt" => StreamInput::Interrupt {
            acknowledgment: Some(success_line(&id, &json!({}))),
        },
        "initialize" => StreamInput::Initialize {
            id,
            request: request.clone(),
        },
        "get_context_usage" => StreamInput::Report {
            id,
            kind: ReportKind::ContextUsage,
        },
        "mcp_status" => StreamInput::Report {
            id,
            kind: ReportKind::McpStatus,
        },
        // Without a name, the run returns to its first model.
        "set_model" => StreamInput::UseModel {
            id,
            model: request["model"]
                .as_str()
                .filter(|name| *name != "default")
                .map(str::to_owned),
        },
        "set_permission_mode" => StreamInput::UseMode {
            id,
            mode: request["mode"].as_str().unwrap_or_default().to_owned(),
        },
        other => {
            let advice = refusal_advice(other);
            StreamInput::Reply(failure_line(
                &id,
                &format!("`{other}` is not supported by haft{advice}"),
            ))
        }
    }
}

/// Returns the end of the message that refuses a request: how to reach its purpose in haft. Empty
/// if there is no way.
fn refusal_advice(subtype: &str) -> &'static str {
    match subtype {
        "rewind_files" => ": `haft undo` reverts changes of files",
        "set_max_thinking_tokens" => {
            ": the key `extra_body` of the model sets the thinking budget in the configuration"
        }
        "mcp_reconnect" | "mcp_toggle" | "mcp_set_servers" => {
            ": the servers of a run are those with which it started"
        }
        "stop_task" => ": `interrupt` ends the turn with its tasks",
        "apply_flag_settings" => ": pass `settings` when the run starts",
        _ => "",
    }
}

/// Returns the id and the content of a line that responds to one of haft's requests, or `None` for
/// any other line.
pub(crate) fn parse_response(line: &str) -> Option<(String, Result<Value, String>)> {
    let Ok(ClaudeLine::ControlResponse { response }) = serde_json::from_str(line) else {
        return None;
    };
    let ClaudeResponse {
        subtype,
        request_id,
        said,
        error,
    } = response;
    let succeeded = error.is_none()
        && subtype
            .as_deref()
            .is_none_or(|subtype| subtype == "success");
    Some((
        request_id,
        if succeeded {
            Ok(said)
        } else {
            Err(error.unwrap_or_default())
        },
    ))
}

/// Returns the line with which haft sends a request to the client.
pub(crate) fn build_request_line(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// Parses the answer to a permission request. Only a clear yes can change permissions, and only a
/// denial can end the turn.
fn parse_approval_answer(response: ClaudeResponse) -> StreamInput {
    let answer = parse_approval_reply(&response);
    let ClaudeResponse {
        request_id,
        mut said,
        ..
    } = response;
    let is_denied = matches!(answer, ApprovalReply::No { .. });
    StreamInput::Answer {
        id: request_id,
        answer,
        ends_turn: is_denied && said["interrupt"] == true,
        updates: if is_denied {
            Value::Null
        } else {
            said.get_mut("updatedPermissions")
                .map(Value::take)
                .unwrap_or_default()
        },
    }
}

fn parse_approval_reply(
    ClaudeResponse {
        subtype,
        said: response,
        error,
        ..
    }: &ClaudeResponse,
) -> ApprovalReply {
    let no = |words: &str| ApprovalReply::No {
        reason: words.to_owned(),
    };
    if let Some(error) = error {
        return no(error);
    }
    let succeeded = subtype
        .as_deref()
        .is_none_or(|subtype| subtype == "success");
    // Contradictory fields of the two generations count as a denial.
    let votes = [
        response.get("allow").map(|allow| *allow == true),
        response.get("behavior").map(|said| *said == "allow"),
    ];
    let allowed = succeeded && votes.contains(&Some(true)) && !votes.contains(&Some(false));
    if !allowed {
        let reason = response["message"]
            .as_str()
            .or_else(|| response["reason"].as_str());
        return no(reason.unwrap_or_default());
    }
    match response
        .get("updatedInput")
        .or_else(|| response.get("input"))
    {
        Some(input @ Value::Object(_)) => ApprovalReply::Changed {
            arguments: input.clone(),
        },
        _ => ApprovalReply::Once,
    }
}

pub(crate) fn approval_line(id: &str, approval: &Approval, call: &ClaudeCall) -> Value {
    let sub_agent = Some(&approval.agent).filter(|agent| *agent != MAIN_AGENT);
    let approval_request = json!({
        "subtype": "can_use_tool",
        "tool_use_id": approval.call_id,
        "agent_id": sub_agent,
        "tool_name": call.name,
        "input": call.input,
        "permission_suggestions": null,
        "blocked_path": null,
        "decision_reason": approval.shown_reason(),
        "description": approval.shown_subject(),
    });
    build_request_line(id, &approval_request)
}

pub(crate) fn withdrawal_line(id: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": id})
}

pub(crate) fn input_error_line(message: &str) -> Value {
    json!({"type": "system", "subtype": "error", "code": "input", "message": message})
}

pub(crate) fn success_line(id: &str, response: &Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})
}

pub(crate) fn failure_line(id: &str, error: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_line_accepts_text_and_images() {
        let one = r#"{"type":"user","message":{"role":"user","content":"hi"},"parent_tool_use_id":null,"session_id":"x"}"#;
        assert_eq!(parse_line(one), Ok(StreamInput::Prompt("hi".into())));
        let two = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#;
        assert_eq!(parse_line(two), Ok(StreamInput::Prompt("a\n\nb".into())));
        let picture = r#"{"type":"user","message":{"content":[{"type":"image","source":{}}]}}"#;
        assert!(parse_line(picture).unwrap_err().contains("`image`"));
        for (source, taken) in [
            (
                json!({"type": "base64", "media_type": "image/png", "data": "aGFmdA=="}),
                true,
            ),
            (
                json!({"type": "base64", "media_type": "image/svg+xml", "data": "aGFmdA=="}),
                false,
            ),
            (
                json!({"type": "base64", "media_type": "image/png", "data": "../../etc/passwd\u{0}"}),
                false,
            ),
            (
                json!({"type": "url", "url": "https://a.example/x.png"}),
                false,
            ),
            (json!({"type": "file", "file_id": "f"}), false),
        ] {
            let line = json!({"type": "user", "message": {"content": [{"type": "text", "text": "a"}, {"type": "image", "source": source}]}});
            let image = Image {
                media_type: "image/png".into(),
                data: "aGFmdA==".into(),
            };
            let expected = UserPrompt {
                text: "a".into(),
                images: vec![image],
                number: 0,
            };
            assert_eq!(
                parse_line(&line.to_string()).ok(),
                taken.then_some(StreamInput::Prompt(expected)),
                "{source}"
            );
        }
    }

    #[test]
    fn parse_line_accepts_both_generations_of_answers() {
        let answered = |response: Value| {
            let line = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "7", "response": response}});
            match parse_line(&line.to_string()) {
                Ok(StreamInput::Answer { id, answer, .. }) if id == "7" => answer,
                other => panic!("{other:?}"),
            }
        };
        let no = |words: &str| ApprovalReply::No {
            reason: words.into(),
        };
        assert_eq!(answered(json!({"allow": true})), ApprovalReply::Once);
        assert_eq!(answered(json!({"behavior": "allow"})), ApprovalReply::Once);
        let changed = ApprovalReply::Changed {
            arguments: json!({"path": "b"}),
        };
        assert_eq!(
            answered(json!({"allow": true, "input": {"path": "b"}})),
            changed
        );
        assert_eq!(
            answered(json!({"behavior": "allow", "updatedInput": {"path": "b"}})),
            changed
        );
        assert_eq!(
            answered(json!({"allow": false, "reason": "no tabs"})),
            no("no tabs")
        );
        assert_eq!(
            answered(json!({"behavior": "deny", "message": "no tabs"})),
            no("no tabs")
        );
        assert_eq!(
            answered(json!({})),
            no(""),
            "anything but a clear yes is a denial"
        );
        for doubtful in [
            json!({"allow": "true"}),
            json!({"allow": 1}),
            json!({"allow": "false", "behavior": "allow"}),
            json!({"allow": true, "behavior": "deny"}),
            json!({"allow": null, "behavior": "allow"}),
            json!({"behavior": ["allow"]}),
            json!({"behavior": "ALLOW"}),
            json!(["allow"]),
            json!("allow"),
            json!(true),
        ] {
            assert_eq!(answered(doubtful.clone()), no(""), "{doubtful}");
        }
        let failed = json!({"type": "control_response", "response": {"subtype": "error", "request_id": "7", "response": {"behavior": "allow"}}});
        let Ok(StreamInput::Answer { answer, .. }) = parse_line(&failed.to_string()) else {
            panic!("no answer")
        };
        assert_eq!(answer, no(""), "an error is a denial");
    }

    #[test]
    fn parse_line_reads_interrupts_and_updates_of_an_answer() {
        let parsed = |response: Value| {
            let line = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "7", "response": response}});
            match parse_line(&line.to_string()) {
                Ok(StreamInput::Answer {
                    updates, ends_turn, ..
                }) => (updates, ends_turn),
                other => panic!("{other:?}"),
            }
        };
        let updates = json!([{"type": "setMode", "mode": "acceptEdits"}]);
        assert_eq!(
            parsed(json!({"behavior": "allow", "updatedPermissions": updates})),
            (updates.clone(), false)
        );
        assert_eq!(
            parsed(json!({"behavior": "deny", "interrupt": true, "updatedPermissions": updates})),
            (Value::Null, true)
        );
        assert_eq!(
            parsed(json!({"behavior": "allow", "interrupt": true})),
            (Value::Null, false)
        );
        assert_eq!(parsed(json!("deny")), (Value::Null, false));
    }

    #[test]
    fn parse_line_answers_an_unsupported_request() {
        let line = json!({"type": "control_request", "request_id": "9", "request": {"subtype": "rewind_files"}});
        let Ok(StreamInput::Reply(reply)) = parse_line(&line.to_string()) else {
            panic!("no reply")
        };
        assert_eq!(
            (
                &reply["response"]["subtype"],
                &reply["response"]["request_id"]
            ),
            (&json!("error"), &json!("9"))
        );
    }
}
