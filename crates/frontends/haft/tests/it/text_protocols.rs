//! Models that write their calls as text: one small task over both protocols and all four APIs.

use haft_testkit::{Reply, Script, Seen, SeenPart, SeenRole};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Rig};

const PROTOCOLS: [&str; 2] = ["xml", "react"];

/// A reply that arrives in pieces of `size` characters and chunks of 97 bytes.
fn reply_in_pieces(text: &str, size: usize) -> Reply {
    Reply {
        delta_chars: Some(size),
        chunk_bytes: Some(97),
        ..Reply::text(text)
    }
}

fn rig(api: Api, protocol: &str, replies: Vec<Reply>) -> Rig {
    let rig = Rig::new(api, Script::replies(replies).unwrap());
    rig.configure(&format!(
        "model = \"mock/{MODEL}\"\n\
         [providers.mock]\napi = \"{api}\"\nbase_url = \"{}\"\n\
         [models.\"mock/{MODEL}\"]\ncontext_window = 200000\nmax_output_tokens = 8192\ntool_protocol = \"{protocol}\"\n\
         [retry]\nbase_delay_ms = 20\n",
        rig.server.base_url(api)
    ));
    rig.write("notes.txt", "alpha <b> & beta\n");
    rig
}

/// Replies that read two files at once, write one, and report.
fn task_replies(protocol: &str) -> Vec<&'static str> {
    match protocol {
        "xml" => vec![
            "<thinking>Look first.</thinking>\n\nI'll look.\n<read_file>\n<path>notes.txt</path>\n</read_file>\n\
             <read_file><path>missing.txt</path><start_line>1</start_line></read_file>\n",
            "<write_to_file>\n<path>out.txt</path>\n<content>\n<content>x</content>\n& ü\n\n</content>\n</write_to_file>",
            "<attempt_completion>\n<result>\nWritten.\n</result>\n</attempt_completion>",
        ],
        _ => vec![
            "Thought: Look first.\nAction: read_file[{\"path\": \"notes.txt\"}]\n\
             Action: read_file[{\"path\": \"missing.txt\", \"start_line\": 1}]\n",
            "Action: write_to_file[{\"path\": \"out.txt\", \"content\": \"<content>x</content>\\n& ü\\n\"}]",
            "Thought: Done.\nAction: Finish[Written.]",
        ],
    }
}

fn run_task(api: Api, protocol: &str, replies: Vec<Reply>) -> (Rig, crate::rig::Ran) {
    let rig = rig(api, protocol, replies);
    let ran = rig.task(&["copy the notes"]);
    assert!(
        rig.server.refusals().is_empty(),
        "{api} {protocol}: {:?}",
        rig.server.refusals()
    );
    (rig, ran)
}

fn seen_texts(seen: &Seen) -> Vec<(SeenRole, String)> {
    let text = |(role, part): (SeenRole, &SeenPart)| match part {
        SeenPart::Text { text, .. } => Some((role, text.clone())),
        SeenPart::Thinking { .. } => None,
        other => panic!("only text is sent: {other:?}"),
    };
    seen.parts().filter_map(text).collect()
}

/// Returns the expected second request without its system text; it is equal for all APIs.
fn expected_second_request(protocol: &str) -> Vec<(SeenRole, String)> {
    let user = |text: &str| (SeenRole::User, text.to_owned());
    match protocol {
        "xml" => vec![
            user("copy the notes"),
            (
                SeenRole::Assistant,
                "<thinking>Look first.</thinking>\nI'll look.\n<read_file>\n<path>notes.txt</path>\n</read_file>\n\
                 <read_file>\n<path>missing.txt</path>\n<start_line>1</start_line>\n</read_file>"
                    .to_owned(),
            ),
            user(
                "<tool_result tool_name=\"read_file\" success=\"true\">\n<message>read_file succeeded.</message>\n\
                 <content>\n1\talpha <b> & beta\n</content>\n</tool_result>\n\
                 <tool_result tool_name=\"read_file\" success=\"false\">\n<message>MISSING</message>\n\
                 <content>\nMISSING\n</content>\n</tool_result>",
            ),
        ],
        _ => vec![
            user("[user]\ncopy the notes\n\n"),
            (
                SeenRole::Assistant,
                "Thought: Look first.\nAction: read_file[{\"path\": \"notes.txt\"}]\n\
                 Action: read_file[{\"path\": \"missing.txt\", \"start_line\": 1}]"
                    .to_owned(),
            ),
            user("[tool]\nJSON\n\n"),
            user("[tool]\nJSON\n\n"),
        ],
    }
}

#[test]
fn xml_and_react_complete_a_task_on_every_api() {
    for protocol in PROTOCOLS {
        let mut reference: Option<Vec<Seen>> = None;
        for (index, api) in Api::ALL.into_iter().enumerate() {
            let sized =
                |(number, text): (usize, &str)| reply_in_pieces(text, 1 + (number + 2 * index) % 7);
            let replies = task_replies(protocol)
                .into_iter()
                .enumerate()
                .map(sized)
                .collect();
            let (rig, ran) = run_task(api, protocol, replies);
            assert_eq!(ran.code(), 0, "{api} {protocol}: {}", ran.stderr());
            let written = std::fs::read_to_string(rig.project().join("out.txt")).unwrap();
            assert_eq!(written, "<content>x</content>\n& ü\n", "{api} {protocol}");
            assert_eq!(
                (&ran.result()["text"], &ran.result()["code"]),
                (&json!("Written."), &json!("completed"))
            );

            let project = rig.project().display().to_string();
            let mut requests: Vec<_> = rig
                .server
                .generation_requests()
                .iter()
                .map(|request| request.decode().unwrap())
                .collect();
            for seen in &mut requests {
                assert!(
                    seen.tools.is_empty(),
                    "{api} {protocol}: the tools are told in words"
                );
                let heading = "\n## write_to_file\n";
                assert!(
                    seen.system.contains(heading),
                    "{api} {protocol}: {}",
                    seen.system
                );
                seen.system = seen.system.replace(&project, "PROJECT");
                seen.system = seen
                    .system
                    .lines()
                    .filter(|line| !line.contains("/tmp"))
                    .collect::<Vec<_>>()
                    .join("\n");
            }
            assert_second_request(protocol, &requests[1], &ran.events());
            assert_stored_messages(&rig.export());
            match &reference {
                None => reference = Some(requests),
                Some(first) => {
                    for (number, (one, other)) in first.iter().zip(&requests).enumerate() {
                        assert_eq!(
                            one.system,
                            other.system,
                            "{api} {protocol}, request {}",
                            number + 1
                        );
                        let one = seen_texts(one);
                        let other = seen_texts(other);
                        assert_eq!(
                            without_folder_and_times(&one),
                            without_folder_and_times(&other),
                            "{api} {protocol}, request {}",
                            number + 1
                        );
                    }
                }
            }
        }
    }
}

/// Removes the folder and the times in whole envelopes.
fn without_folder_and_times(texts: &[(SeenRole, String)]) -> Vec<(SeenRole, String)> {
    let line = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(mut envelope)) => {
            envelope.remove("context");
            if let Some(data) = envelope.get_mut("data").and_then(Value::as_object_mut) {
                data.remove("mtime");
            }
            Value::Object(envelope).to_string()
        }
        _ => line.to_owned(),
    };
    let text = |text: &String| text.lines().map(line).collect::<Vec<_>>().join("\n");
    texts
        .iter()
        .map(|(role, words)| (*role, text(words)))
        .collect()
}

fn assert_second_request(protocol: &str, seen: &Seen, events: &[Value]) {
    let failed = events
        .iter()
        .find(|event| event["type"] == "tool_result" && event["status"] == "error")
        .unwrap();
    let missing = failed["text"].as_str().unwrap();
    assert!(!missing.contains('\n'), "{missing}");
    let mut found = seen_texts(seen);
    if protocol == "react" {
        for (text, status) in found.iter_mut().skip(2).zip(["success", "error"]) {
            let line = text.1.lines().nth(1).unwrap().to_owned();
            let envelope: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(envelope["status"], status, "{envelope}");
            assert!(
                envelope["text"].is_string(),
                "the running round shows the whole envelope: {envelope}"
            );
            text.1 = text.1.replace(&line, "JSON");
        }
    }
    let expected = expected_second_request(protocol);
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(role, text)| (role, text.replace("MISSING", missing)))
        .collect();
    assert_eq!(found, expected, "{protocol}");
}

/// Stored messages don't depend on the protocol: calls are calls and results are results.
fn assert_stored_messages(export: &Value) {
    let messages = export["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "tool"
        ]
    );
    let parts = messages
        .iter()
        .flat_map(|message| message["content"].as_array().into_iter().flatten());
    let calls: Vec<_> = parts.filter(|part| part["type"] == "tool_call").collect();
    assert_eq!(
        calls[1]["arguments"],
        json!({"path": "missing.txt", "start_line": 1})
    );
    assert_eq!(
        calls[2]["arguments"]["content"],
        "<content>x</content>\n& ü\n"
    );
    assert_eq!(calls[3]["name"], "attempt_completion");
}

/// The execute view has its own layout, which must work for models that write their calls as text.
#[test]
fn execute_view_works_with_xml_and_react() {
    for protocol in PROTOCOLS {
        let rig = rig(
            Api::Anthropic,
            protocol,
            task_replies(protocol)
                .into_iter()
                .map(Reply::text)
                .collect(),
        );
        let ran = rig.task(&["copy the notes", "--set", "context.view=\"execute\""]);
        assert_eq!(ran.code(), 0, "{protocol}: {}", ran.stderr());
        assert!(
            rig.server.refusals().is_empty(),
            "{protocol}: {:?}",
            rig.server.refusals()
        );
        for (number, request) in rig.server.generation_requests().iter().enumerate() {
            let seen = request.decode().unwrap();
            let said = seen_texts(&seen)
                .into_iter()
                .filter(|(role, _)| *role != SeenRole::System)
                .collect::<Vec<_>>();
            assert_eq!(
                said.len(),
                3,
                "{protocol}, request {}: {said:?}",
                number + 1
            );
            for ((_, text), tag) in said.iter().zip(["<dialogue>", "<window>", "<state>"]) {
                assert!(
                    text.contains(tag),
                    "{protocol}, request {}: {text}",
                    number + 1
                );
            }
            assert!(
                said[0].1.contains("copy the notes"),
                "{protocol}: {}",
                said[0].1
            );
            assert_eq!(
                said[1].1.contains("alpha <b> & beta"),
                number > 0,
                "{protocol}: {}",
                said[1].1
            );
        }
    }
}

#[test]
fn unclosed_call_never_runs() {
    let unclosed = [
        (
            "xml",
            "<write_to_file><path>a.txt</path><content>all of it</content>",
        ),
        (
            "react",
            "Action: write_to_file[{\"path\": \"a.txt\", \"content\": \"all of it\"}",
        ),
    ];
    for (protocol, text) in unclosed {
        let end = task_replies(protocol).pop().unwrap();
        let (rig, ran) = run_task(
            Api::OpenaiChat,
            protocol,
            vec![
                reply_in_pieces(text, 3),
                reply_in_pieces(end, 5),
                reply_in_pieces(end, 5),
            ],
        );
        assert_eq!(ran.code(), 0, "{protocol}: {}", ran.stderr());
        assert!(!rig.project().join("a.txt").exists(), "{protocol}");
        let events = ran.events();
        let result = events
            .iter()
            .find(|event| event["type"] == "tool_result")
            .unwrap();
        assert_eq!(
            (&result["status"], &result["name"]),
            (&json!("error"), &json!("write_to_file")),
            "{protocol}"
        );
        assert_eq!(
            result["error"]["code"], "not_closed",
            "{protocol}: {result}"
        );
        assert!(
            result["text"].as_str().unwrap().contains("`write_to_file`"),
            "{result}"
        );
        assert!(
            rig.server.generation_requests()[1]
                .decode()
                .unwrap()
                .last_message_contains("before the call was closed")
        );
    }
}

#[test]
fn quoted_call_does_not_run_and_the_model_is_nudged() {
    let quoted = [
        (
            "xml",
            "So:\n```xml\n<write_to_file><path>a.txt</path><content>x</content></write_to_file>\n```\n",
        ),
        (
            "react",
            "So:\n```\nAction: write_to_file[{\"path\": \"a.txt\", \"content\": \"x\"}]\n```\n",
        ),
    ];
    for (protocol, text) in quoted {
        let end = task_replies(protocol).pop().unwrap();
        let (rig, ran) = run_task(
            Api::Anthropic,
            protocol,
            vec![reply_in_pieces(text, 2), reply_in_pieces(end, 7)],
        );
        assert_eq!(ran.code(), 0, "{protocol}: {}", ran.stderr());
        assert!(!rig.project().join("a.txt").exists(), "{protocol}");
        let second = rig.server.generation_requests()[1].decode().unwrap();
        assert!(
            second.last_message_contains("no call that could be read"),
            "{protocol}: {second:?}"
        );
    }
}

#[test]
fn answer_without_completion_is_taken_after_three_nudges() {
    for protocol in PROTOCOLS {
        let (rig, ran) = run_task(
            Api::Gemini,
            protocol,
            (0..4).map(|_| reply_in_pieces("It is 4.", 3)).collect(),
        );
        assert_eq!(
            (ran.code(), rig.server.generation_requests().len()),
            (0, 4),
            "{protocol}: {}",
            ran.stderr()
        );
        assert_eq!(
            (&ran.result()["text"], &ran.result()["code"]),
            (&json!("It is 4."), &json!("answered"))
        );
    }
}

/// Returns the estimates of the last request: from the report, from the event before it, and by
/// counting the received text.
fn token_counts(protocol: &str) -> (u64, u64, u64) {
    use haft_types::TokenCounter as _;

    let replies = task_replies(protocol)
        .into_iter()
        .map(Reply::text)
        .collect();
    let (rig, ran) = run_task(Api::OpenaiChat, protocol, replies);
    let report = rig
        .run(&["context", "report", "--request", "1", "--json"])
        .json();
    let events = ran.events();
    let window = events
        .iter()
        .find(|event| event["type"] == "window")
        .unwrap();
    let seen = rig.server.generation_requests()[0].decode().unwrap();
    let counter = haft_model::O200k;
    let texts = seen_texts(&seen)
        .iter()
        .map(|(_, text)| u64::from(counter.count_text(text)))
        .sum::<u64>();
    let counted = u64::from(counter.count_text(&seen.system)) + texts;
    (
        report["tokens"].as_u64().unwrap(),
        window["tokens"].as_u64().unwrap(),
        counted,
    )
}

#[test]
fn token_estimate_counts_tools_in_the_prompt_once() {
    for protocol in PROTOCOLS {
        let (report, event, sent) = token_counts(protocol);
        assert_eq!(report, event, "{protocol}");
        // The estimate for an unknown tokenizer has a margin.
        let room = sent * 3 / 2 + 50;
        assert!(
            (sent..=room).contains(&report),
            "{protocol}: {report} told, {sent} sent"
        );
    }
}

#[test]
fn react_request_holds_a_read_file_once() {
    let content = "the quick brown fox jumps over the lazy dog";
    let replies = [
        "Action: read_file[{\"path\": \"fox.txt\"}]",
        "Action: Finish[Read.]",
        "Action: Finish[Again.]",
    ];
    for api in Api::ALL {
        let rig = rig(
            api,
            "react",
            replies.iter().map(|reply| Reply::text(*reply)).collect(),
        );
        rig.write("fox.txt", format!("{content}\n"));
        assert_eq!(rig.task(&["read it"]).code(), 0);
        assert_eq!(rig.task(&["-c", "and now?"]).code(), 0);
        let requests: Vec<Seen> = rig
            .server
            .generation_requests()
            .iter()
            .map(|one| one.decode().unwrap())
            .collect();
        // The running round, and the first request of the next one.
        for seen in &requests[1..] {
            let all: String = seen_texts(seen).into_iter().map(|(_, text)| text).collect();
            assert_eq!(all.matches(content).count(), 1, "{api}: {all}");
        }
        assert_eq!(requests.len(), 3, "{api}");
    }
}
