//! Tests the rules on replies that contain calls and on replies that only quote them.

use haft_types::{Thinking, Usage};

use super::*;

const REPLIES: &str = include_str!("replies.txt");

fn tools() -> Vec<String> {
    [
        "read_file",
        "write_to_file",
        "list_files",
        "edit_file",
        "execute_command",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn reader(said: &[&str]) -> StrayCallParser {
    let tools_offered = haft_types::ToolSet::new(Vec::new(), &crate::O200k);
    let request = Request {
        segments: Vec::new(),
        tools: tools_offered,
        max_output_tokens: None,
        cache_key: None,
    };
    let said = said.iter().map(|text| normalize(text)).collect();
    StrayCallParser {
        ids: CallIds::for_reply_to(&request),
        tools: tools(),
        said,
        results: Vec::new(),
        printed: Vec::new(),
    }
}

fn reply(parts: Vec<Part>, stop: StopReason) -> DecodedReply {
    DecodedReply {
        parts,
        stop,
        usage: Usage::default(),
    }
}

fn calls(reply: &DecodedReply) -> Vec<&ToolCall> {
    let mut calls = Vec::new();
    for part in &reply.parts {
        if let Part::ToolCall(call) = part {
            calls.push(call);
        }
    }
    calls
}

#[test]
fn unasked_calls_follow_the_recorded_replies() {
    let mut run = 0;
    let mut stay = 0;
    let mut refused = 0;
    for case in REPLIES.split("\n### ").skip(1) {
        let (title, rest) = case.split_once('\n').unwrap();
        let (wanted, text) = rest.split_once("---\n").unwrap();
        let text = text.strip_suffix('\n').unwrap_or(text).replace('␍', "\r");
        let read = reader(&["Look at the notes."]).convert_text(reply(
            vec![Part::from_text(text.clone())],
            StopReason::EndTurn,
        ));
        let found: Vec<String> = calls(&read)
            .iter()
            .map(|call| format!("{} {}", call.name, call.arguments.replace('\n', "⏎")))
            .collect();
        if title.starts_with("refused") {
            // Passed on so that the model gets a result; the check of calls lets none of these run.
            refused += 1;
            assert_eq!(found.len(), wanted.lines().count(), "{title}");
            let cannot_run = |call: &&ToolCall| {
                !tools().contains(&call.name)
                    || serde_json::from_str::<Map<String, Value>>(&call.arguments).is_err()
            };
            assert!(calls(&read).iter().any(cannot_run), "{title}");
            let names: Vec<_> = calls(&read).iter().map(|call| call.name.as_str()).collect();
            assert_eq!(names, wanted.lines().collect::<Vec<_>>(), "{title}");
        } else if title.starts_with("runs") {
            run += 1;
            assert_eq!(found, wanted.lines().collect::<Vec<_>>(), "{title}");
            assert!(
                calls(&read).iter().all(|call| was_read_from_text(call)),
                "{title}"
            );
            assert_eq!(
                (read.stop, read.parts.len()),
                (StopReason::ToolUse, found.len()),
                "{title}"
            );
        } else {
            stay += 1;
            assert_eq!(
                read,
                reply(vec![Part::from_text(text)], StopReason::EndTurn),
                "{title}"
            );
        }
    }
    assert!(
        run >= 25 && stay >= 25 && refused >= 8,
        "{run} that run, {stay} that stay, {refused} that are refused"
    );
}

const CALL: &str = r#"{"name": "execute_command", "arguments": {"command": "make"}}"#;

#[test]
fn unasked_calls_ignore_quotations_of_earlier_messages() {
    for said in [
        format!("What does this do? {CALL}"),
        CALL.replace(": ", " :\n  "),
        format!("1\t{}", CALL.replace(", ", ",\n2\t")),
    ] {
        let read = reader(&[&said]).convert_text(reply(
            vec![Part::from_text(format!("```json\n{CALL}\n```"))],
            StopReason::EndTurn,
        ));
        assert!(calls(&read).is_empty(), "{said}");
    }
    let read = reader(&["Run make."])
        .convert_text(reply(vec![Part::from_text(CALL)], StopReason::EndTurn));
    assert_eq!(calls(&read).len(), 1);
}

/// An error ends in the call to send. A model that repeats that call makes it.
#[test]
fn unasked_calls_accept_calls_that_haft_printed() {
    let error = format!("`old_text` fits 2 places. Send this call:\n{CALL}");
    let printed = serde_json::json!({"name": "execute_command", "arguments": {"command": "make"}});
    let convert = |printed: Option<Value>, text: &str| {
        let mut reader = reader(&[&error]);
        reader.printed.extend(printed);
        calls(&reader.convert_text(reply(vec![Part::from_text(text)], StopReason::EndTurn))).len()
    };
    assert_eq!(convert(None, CALL), 0);
    assert_eq!(convert(Some(printed.clone()), CALL), 1);
    assert_eq!(
        convert(Some(printed.clone()), &format!("```json\n{CALL}\n```")),
        1
    );
    let quoted = "Dear reader, {\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}";
    let mut reader = reader(&[quoted]);
    reader.printed.push(printed);
    let text = r#"{"name": "read_file", "arguments": {"path": "a"}}"#;
    let read = reader.convert_text(reply(vec![Part::from_text(text)], StopReason::EndTurn));
    assert!(calls(&read).is_empty(), "another call is a quotation");
}

/// Two of 84 runs copied the result and then made the call that it asks for.
#[test]
fn unasked_calls_are_found_after_a_copy_of_the_result() {
    let result = "There is no tool `rename`.\nChange `a.py` with `edit_file`:\n{\"name\":\"x\"}";
    let convert = |text: &str| {
        let mut reader = reader(&[result]);
        reader.results.push(normalize(result));
        calls(&reader.convert_text(reply(vec![Part::from_text(text)], StopReason::EndTurn))).len()
    };
    let copied = "There is no tool `rename`.\nChange `a.py` with `edit_file`:";
    assert_eq!(convert(&format!("{copied}\n{CALL}")), 1);
    assert_eq!(convert(&format!("```\n{copied}\n{CALL}\n```")), 1);
    for text in [
        format!("{copied}\nI would send this:\n{CALL}"),
        format!("```python\n{CALL}\n```"),
        format!("{copied}\n{CALL}\nThat is it."),
        copied.to_owned(),
    ] {
        assert_eq!(convert(&text), 0, "{text}");
    }
}

#[test]
fn unasked_calls_mark_text_that_was_converted_to_json() {
    let converted = |text: &str| {
        let read =
            reader(&[]).convert_text(reply(vec![Part::from_text(text)], StopReason::EndTurn));
        was_converted_to_json(calls(&read)[0])
    };
    assert!(!converted(CALL));
    assert!(converted(&format!("{{{CALL}}}")));
    assert!(!was_converted_to_json(&ToolCall {
        id: "text_converted_".into(),
        name: "read_file".into(),
        arguments: "{}".into(),
        signature: None,
    }));
}

#[test]
fn unasked_calls_ignore_cut_and_refused_replies_and_native_calls() {
    for stop in [
        StopReason::Length,
        StopReason::Refusal,
        StopReason::ToolUse,
        StopReason::Other("x".into()),
    ] {
        let before = || reply(vec![Part::from_text(CALL)], stop.clone());
        assert_eq!(reader(&[]).convert_text(before()), before());
    }
    let own = ToolCall {
        id: "c1".into(),
        name: "read_file".into(),
        arguments: "{}".into(),
        signature: None,
    };
    assert!(!was_read_from_text(&own));
    let before = || {
        reply(
            vec![Part::from_text(CALL), Part::ToolCall(own.clone())],
            StopReason::EndTurn,
        )
    };
    assert_eq!(reader(&[]).convert_text(before()), before());
}

#[test]
fn unasked_calls_keep_thoughts_and_join_pieces() {
    let thought = Part::Thinking(Thinking {
        text: "hm".into(),
        ..Thinking::default()
    });
    let (one, other) = CALL.split_at(20);
    let read = reader(&[]).convert_text(reply(
        vec![
            thought.clone(),
            Part::from_text(one),
            Part::from_text(other),
        ],
        StopReason::EndTurn,
    ));
    assert_eq!((&read.parts[0], calls(&read).len()), (&thought, 1));
}
