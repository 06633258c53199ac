use haft_types::{ConversationId, Cost};
use uuid::Uuid;

use super::*;

struct SameId;

impl IdSource for SameId {
    fn new_uuid(&self) -> Uuid {
        Uuid::nil()
    }
}

fn convert_events(bodies: Vec<EventBody>, pieces: PartialMessages) -> Vec<Value> {
    let introduction = Introduction {
        tools: vec!["read_file".into()],
        mode: PermissionMode::Yolo,
        ..Introduction::default()
    };
    let mut messages = ClaudeMessages::new(Box::new(SameId), introduction, pieces);
    let event = |(index, body)| Event {
        body,
        conversation_id: ConversationId::new("c1"),
        seq: index as u64 + 1,
        agent: "main".into(),
    };
    bodies
        .into_iter()
        .enumerate()
        .map(event)
        .flat_map(|event| messages.convert_event(&event))
        .collect()
}

fn text(text: &str) -> EventBody {
    EventBody::Text { text: text.into() }
}

fn usage() -> EventBody {
    EventBody::Usage {
        model: "m/x".into(),
        usage: Usage {
            input: 3,
            output: 2,
            ..Usage::default()
        },
        cost: None,
        saved_tokens: 0,
        tools: Vec::new(),
    }
}

fn call(phase: CallPhase) -> EventBody {
    let (arguments, raw) = match phase {
        CallPhase::Started | CallPhase::Running => (None, None),
        CallPhase::Arguments => (None, Some("{\"a\":1}".to_owned())),
        CallPhase::Finished => (Some(json!({"a": 1})), Some("{\"a\":1}".to_owned())),
    };
    EventBody::ToolCall {
        id: "t1".into(),
        name: "read_file".into(),
        phase,
        arguments,
        raw,
    }
}

fn result(outcome: Outcome, code: &str) -> EventBody {
    EventBody::Result(TurnResult {
        outcome,
        code: code.into(),
        message: "why".into(),
        text: "the text".into(),
        turns: 2,
        duration_ms: 5,
        usage: Usage::default(),
        cost: Some(Cost {
            total: 0.5,
            ..Cost::default()
        }),
        structured_output: None,
        nothing_changed: false,
    })
}

#[test]
fn reply_is_one_message_when_complete() {
    let thought = EventBody::Thinking { text: "hm".into() };
    let lines = convert_events(
        vec![
            thought,
            text("Let "),
            text("me."),
            call(CallPhase::Started),
            call(CallPhase::Finished),
            usage(),
        ],
        PartialMessages::Omit,
    );
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(
        lines[0]["message"]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "text", "text": "Let me."},
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"a": 1}},
        ])
    );
    assert_eq!(
        (&lines[0]["type"], &lines[0]["session_id"]),
        (&json!("assistant"), &json!("c1"))
    );
    assert_eq!(lines[0]["message"]["stop_reason"], "tool_use");
}

#[test]
fn text_of_a_failed_reply_is_in_no_message() {
    let retry = EventBody::Retry {
        attempt: 1,
        limit: Some(5),
        delay_ms: 1,
        reason: "dropped".into(),
    };
    let lines = convert_events(
        vec![text("half a"), retry, text("Whole."), usage()],
        PartialMessages::Omit,
    );
    assert_eq!(
        lines[1]["message"]["content"],
        json!([{"type": "text", "text": "Whole."}])
    );
}

#[test]
fn denied_call_is_listed_only_in_the_result_of_its_turn() {
    let denied = EventBody::ToolResult {
        id: "t1".into(),
        name: "read_file".into(),
        status: ToolStatus::Error,
        text: "no".into(),
        error: Some(ToolError {
            code: "permission_denied".into(),
            message: "no".into(),
        }),
    };
    let lines = convert_events(
        vec![
            call(CallPhase::Finished),
            usage(),
            denied,
            result(Outcome::Waiting, "denied"),
            result(Outcome::Completed, "answered"),
        ],
        PartialMessages::Omit,
    );
    assert_eq!(lines[1]["message"]["content"][0]["is_error"], json!(true));
    let denial = json!([{"tool_name": "read_file", "tool_use_id": "t1", "tool_input": {"a": 1}}]);
    assert_eq!(
        (
            &lines[2]["permission_denials"],
            &lines[3]["permission_denials"]
        ),
        (&denial, &json!([]))
    );
}

#[test]
fn result_has_a_subtype_for_every_outcome() {
    let words = [
        (Outcome::Completed, "answered", "success", false),
        (Outcome::Waiting, "question", "success", false),
        (Outcome::Exhausted, "max_turns", "error_max_turns", true),
        (
            Outcome::Exhausted,
            "max_budget",
            "error_max_budget_usd",
            true,
        ),
        (
            Outcome::Exhausted,
            "max_wall_time",
            "error_during_execution",
            true,
        ),
        (
            Outcome::Aborted,
            "cancelled",
            "error_during_execution",
            true,
        ),
        (Outcome::Failed, "http", "error_during_execution", true),
        (
            Outcome::Failed,
            "schema",
            "error_max_structured_output_retries",
            true,
        ),
    ];
    for (outcome, code, subtype, failed) in words {
        let lines = convert_events(vec![result(outcome, code)], PartialMessages::Omit);
        assert_eq!(
            (&lines[0]["subtype"], &lines[0]["is_error"]),
            (&json!(subtype), &json!(failed)),
            "{code}"
        );
    }
}

#[test]
fn result_has_stop_reason_and_usage_by_model() {
    let bodies = vec![
        text("a"),
        call(CallPhase::Finished),
        usage(),
        usage(),
        result(Outcome::Exhausted, "max_turns"),
        text("b"),
        result(Outcome::Completed, "completed"),
    ];
    let lines = convert_events(bodies, PartialMessages::Omit);
    let results: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "result")
        .collect();
    assert_eq!(
        (&results[0]["stop_reason"], &results[1]["stop_reason"]),
        (&json!("tool_use"), &json!("end_turn"))
    );
    assert_eq!(
        results[0]["modelUsage"],
        json!({"m/x": {
            "inputTokens": 6,
            "outputTokens": 4,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": 0.0,
            "contextWindow": 0,
        }})
    );
    assert_eq!(results[1]["modelUsage"], json!({}));
}

#[test]
fn partial_messages_open_and_close_blocks() {
    let arriving = vec![
        text("a"),
        text("b"),
        call(CallPhase::Started),
        call(CallPhase::Arguments),
        call(CallPhase::Finished),
        usage(),
    ];
    let lines = convert_events(arriving, PartialMessages::Send);
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["event"]["type"].as_str().unwrap_or("assistant"))
        .collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "assistant",
        ]
    );
    assert_eq!(
        lines[6]["event"]["delta"],
        json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})
    );
    assert_eq!(
        (&lines[1]["event"]["index"], &lines[5]["event"]["index"]),
        (&json!(0), &json!(1))
    );
}
