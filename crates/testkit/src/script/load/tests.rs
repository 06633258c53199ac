use haft_types::Usage;
use serde_json::json;

use super::super::{ReplyPart, ScriptCall, Stop, When};
use super::*;
use crate::seen::SeenRole;

fn complaint(yaml: &str) -> String {
    from_yaml("s.yaml", yaml).unwrap_err().to_string()
}

#[test]
fn every_field_is_read() {
    let yaml = "
models: [a, b]
replies:
  - when: { tool_offered: read_file, last_role: tool, last_contains: x, assistant_messages: 1, tool_results: 2, request: 3, api: anthropic, model: m }
    times: 4
    text: t
    thinking: h
    signature: s
    tool_calls:
      - { id: i, name: n, arguments: { a: [1, null, true] }, signature: g }
      - { name: n, arguments: '{\"broken' }
    usage: { input: 1, cached_input: 2, cache_write: 3, output: 5, reasoning: 4 }
    stop: length
    chunk_bytes: 6
    delta_chars: 7
    delay_ms: 8
    delta_delay_ms: 9
    drop_after_bytes: 10
    error_event_after: 11
    status: 529
    error: { message: m, type: k, code: c }
    retry_after: 1.5
    omit_end: true
    replace: { find: q, hex: fe }
  - parts:
      - thinking: h
        signature: s
      - text: t
      - tool_call: { name: n }
  - status: 502
    garbage: { hex: 'ff 00', content_type: text/plain }
";
    let script = from_yaml("s.yaml", yaml).unwrap();
    assert_eq!(script.models, ["a", "b"]);
    let replies = script.replies.as_slice();
    let first = Reply {
        when: Some(When {
            tool_offered: Some("read_file".into()),
            last_role: Some(SeenRole::Tool),
            last_contains: Some("x".into()),
            assistant_messages: Some(1),
            tool_results: Some(2),
            request: Some(3),
            api: Some(haft_types::Api::Anthropic),
            model: Some("m".into()),
        }),
        times: Some(4),
        text: Some("t".into()),
        thinking: Some("h".into()),
        signature: Some("s".into()),
        tool_calls: vec![
            ScriptCall {
                id: Some("i".into()),
                name: "n".into(),
                arguments: json!({ "a": [1, null, true] }),
                signature: Some("g".into()),
            },
            ScriptCall::new("n", json!("{\"broken")),
        ],
        parts: Vec::new(),
        usage: Some(Usage {
            input: 1,
            cached_input: 2,
            cache_write: 3,
            output: 5,
            reasoning: 4,
        }),
        stop: Some(Stop::Length),
        chunk_bytes: Some(6),
        delta_chars: Some(7),
        delay_ms: 8,
        delta_delay_ms: 9,
        hold: None,
        status: Some(529),
        error: Some(ScriptedError {
            message: "m".into(),
            kind: Some("k".into()),
            code: Some("c".into()),
        }),
        retry_after: Some(1.5),
        error_event_after: Some(11),
        drop_after_bytes: Some(10),
        garbage: None,
        omit_end: true,
        replace: Some(Replace {
            find: "q".into(),
            with: vec![0xfe],
        }),
    };
    assert_eq!(replies[0], first);
    let thinking = ReplyPart::Thinking {
        text: "h".into(),
        signature: Some("s".into()),
    };
    let call = ReplyPart::ToolCall(ScriptCall::new("n", serde_json::Value::Null));
    assert_eq!(replies[1].parts, [thinking, ReplyPart::text("t"), call]);
    assert_eq!(
        replies[2].garbage,
        Some(Garbage {
            body: vec![255, 0],
            content_type: "text/plain".into()
        })
    );
}

#[test]
fn an_unknown_field_is_named_with_its_place() {
    let said = complaint("replies:\n  - text: a\n  - txet: b\n");
    assert!(said.starts_with("s.yaml:3:5: "), "{said}");
    assert!(said.contains("txet"), "{said}");
    let said = complaint("replies:\n  - text: a\n    usage: { inputs: 3 }\n");
    assert!(
        said.starts_with("s.yaml:3:") && said.contains("inputs"),
        "{said}"
    );
    let said = complaint("replies:\n  - status: 500\n    error:\n      messages: x\n");
    assert!(
        said.starts_with("s.yaml:4:") && said.contains("messages"),
        "{said}"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_place() {
    let said = complaint("replies:\n  - text: a\n    chunk_bytes: many\n");
    assert!(said.starts_with("s.yaml:3:18: "), "{said}");
    let said = complaint("replies:\n  - parts:\n      - text: a\n        thinking: b\n");
    assert!(
        said.starts_with("s.yaml:3:") && said.contains("exactly one of"),
        "{said}"
    );
}

#[test]
fn text_that_is_not_yaml_is_named_with_its_place() {
    let said = complaint("replies:\n  - text: \"a\n");
    assert!(said.starts_with("s.yaml:"), "{said}");
    assert!(complaint("").contains("s.yaml:"));
    assert_eq!(
        complaint("models: [a]"),
        "s.yaml:1:1: a script needs `replies` or `turns`"
    );
    assert_eq!(
        complaint("replies: []\nturns: []"),
        "s.yaml:1:1: give `replies` or `turns`, not both"
    );
}

#[test]
fn contradictions_name_the_line_and_the_field() {
    let cases = [
        (
            "text: a\n    chunk_bytes: 0",
            "chunk_bytes",
            "must be at least 1",
        ),
        ("text: a\n    times: 0", "times", "must be at least 1"),
        (
            "text: a\n    parts: [{ text: b }]",
            "parts",
            "give `parts`, or `text`, `thinking` and `tool_calls`, not both",
        ),
        (
            "text: a\n    signature: s",
            "signature",
            "belongs to `thinking`, which is absent",
        ),
        ("status: 200", "status", "must be 400 to 599"),
        (
            "status: 500\n    text: a",
            "status",
            "an error reply has no content; remove one of them",
        ),
        (
            "text: a\n    error: e",
            "error",
            "needs `status` or `error_event_after`",
        ),
        (
            "text: a\n    replace: { find: '', hex: ff }",
            "replace",
            "`find` is empty; name the text to replace",
        ),
        (
            "text: a\n    garbage: e",
            "garbage",
            "replaces the reply; remove its content",
        ),
        (
            "delay_ms: 4",
            "text",
            "the reply is empty: give it `text`, `thinking`, `tool_calls`, `parts`, `status` or `garbage`",
        ),
    ];
    for (reply, field, what) in cases {
        let said = complaint(&format!("replies:\n  - text: fine\n  - {reply}\n"));
        assert_eq!(said, format!("s.yaml:3: reply 2, field `{field}`: {what}"));
    }
    let said = complaint("turns:\n  - text: a\n    when: {}\n");
    assert_eq!(
        said,
        "s.yaml:2: reply 1, field `when`: `turns` are chosen by position; use `replies` for conditions"
    );
}

#[test]
fn a_script_built_in_rust_is_checked_too() {
    let said = Script::replies([Reply::default()]).unwrap_err().to_string();
    assert!(
        said.starts_with("reply 1, field `text`: the reply is empty"),
        "{said}"
    );
}
