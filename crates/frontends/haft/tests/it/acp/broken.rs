//! Malformed and nonsensical input: haft returns a clear error, and the connection stays open.

use haft_testkit::Reply;
use serde_json::{Value, json};

use super::{Editor, rig, stop_reason};

/// Lines that are not valid protocol messages.
fn malformed_lines() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = [
        "",
        " ",
        "null",
        "true",
        "1",
        "\"text\"",
        "[]",
        "[1]",
        "{}",
        "{",
        "}",
        "[[]]",
        "[{}]",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"initialize\"}",
        "GET / HTTP/1.1",
        "Content-Length: 10",
        "\u{feff}{}",
        "{\"id\":{},\"method\":[]}",
        "{\"method\":1,\"id\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"initialize\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\",\"id\":9}",
        "{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":12345}",
        "{\"jsonrpc\":\"2.0\",\"error\":{},\"id\":12345}",
        "{\"jsonrpc\":\"2.0\",\"result\":1,\"error\":2,\"id\":3}",
        "\u{0}",
        "\u{1b}[31m",
        "{\"a\":1}{\"b\":2}",
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"initialize\",\"params\":\"x\"}",
    ]
    .iter()
    .map(|line| line.as_bytes().to_vec())
    .collect();
    lines.extend([
        b"\xff\xfe\xfd".to_vec(),
        b"{\"jsonrpc\":\"\xc3\x28\"}".to_vec(),
        vec![b'{'; 100_000],
    ]);
    lines.push([b"[".repeat(50_000), b"]".repeat(50_000)].concat());
    lines.push(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":\"{}\"}}",
            "y".repeat(2_000_000)
        )
        .into_bytes(),
    );
    lines
}

/// Values of unexpected types and sizes.
fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1e308),
        json!(""),
        json!("x"),
        json!([]),
        json!([null]),
        json!({}),
        json!({"a": {"b": []}}),
        json!("../../etc"),
        json!("\u{0}"),
        json!(" ".repeat(10_000)),
    ]
}

/// Valid requests with one parameter replaced by an odd value, and requests of unknown methods.
fn odd_requests(session: &str, cwd: &Value) -> Vec<(String, Value)> {
    let sound = [
        (
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        ),
        ("authenticate", json!({"methodId": "setup"})),
        ("session/new", json!({"cwd": cwd, "mcpServers": []})),
        (
            "session/load",
            json!({"sessionId": session, "cwd": cwd, "mcpServers": []}),
        ),
        ("session/resume", json!({"sessionId": session, "cwd": cwd})),
        ("session/list", json!({"cwd": cwd, "cursor": "0"})),
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": "plan"}),
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "value": "plan"}),
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": ""}]}),
        ),
        ("session/close", json!({"sessionId": "nobody"})),
    ];
    let mut odd = Vec::new();
    for (method, params) in sound {
        for key in params.as_object().unwrap().keys() {
            for value in odd_values() {
                let mut params = params.clone();
                params[key] = value;
                // Some of these requests are still valid, such as one with an empty list of
                // servers.
                odd.push((method.to_owned(), params));
            }
        }
        odd.extend([json!([]), json!(null)].map(|params| (method.to_owned(), params)));
    }
    for method in [
        "session/fork",
        "session/delete",
        "fs/read_text_file",
        "_mine/x",
        "initialized",
        "SESSION/NEW",
        "shutdown",
        "",
    ] {
        odd.push((method.to_owned(), json!({})));
    }
    odd
}

#[test]
fn malformed_lines_do_not_end_the_connection() {
    let rig = rig([Reply::text("Still here.")]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    for line in malformed_lines() {
        editor.send_line(&line);
    }
    editor.permission = "reject_once";
    let answer = editor.prompt(&session, "are you there?");
    assert_eq!(stop_reason(&answer), "end_turn");
    assert_eq!(editor.agent_text(), "Still here.");
    assert_eq!(editor.finish(), 0);
}

#[test]
fn odd_requests_get_one_response_each() {
    let rig = rig((0..400).map(|_| Reply::text("x")));
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let requests = odd_requests(&session, &json!(rig.project()));
    assert!(requests.len() > 200, "{}", requests.len());
    for (method, params) in requests {
        let answer = editor.call(&method, params.clone());
        let error = &answer["error"];
        let clear = error["code"].is_i64()
            && error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty());
        assert!(
            answer.get("result").is_some() || clear,
            "{method} {params}: {answer}"
        );
        let internal = error["code"] == -32603;
        assert!(
            !internal || method.starts_with("session/"),
            "{method} {params}: {answer}"
        );
    }
    assert_eq!(editor.finish(), 0);
}

#[test]
fn requests_before_initialize_or_with_repeated_ids_are_answered() {
    let rig = rig([Reply::text("One."), Reply::text("Two.")]);
    let mut editor = Editor::start(&rig, &[]);
    let early = editor.call(
        "session/new",
        json!({"cwd": rig.project(), "mcpServers": []}),
    );
    assert!(
        early["error"]["code"].is_i64() || early["result"].is_object(),
        "{early}"
    );
    editor.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": {}}),
    );
    let session = editor.new_session(&rig.project());
    let prompt = json!({"jsonrpc": "2.0", "id": 77, "method": "session/prompt",
        "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}});
    editor.send_line(prompt.to_string().as_bytes());
    editor.send_line(prompt.to_string().as_bytes());
    let mut answers = 0;
    while answers < 2 {
        let message = editor.read_message().unwrap();
        answers += usize::from(message["id"] == 77);
    }
    assert_eq!(editor.finish(), 0);
}

#[test]
fn initialize_answers_unknown_protocol_versions() {
    let rig = rig([]);
    for version in [2, 99, 0] {
        let mut editor = Editor::start(&rig, &[]);
        let answer = editor.call(
            "initialize",
            json!({"protocolVersion": version, "clientCapabilities": {}}),
        );
        let ours = answer["result"]["protocolVersion"] == 1;
        assert!(
            ours || answer["error"]["message"].is_string(),
            "{version}: {answer}"
        );
        assert_eq!(editor.finish(), 0);
    }
}

#[test]
fn session_list_accepts_the_largest_cursor() {
    let rig = rig([Reply::text("Unused.")]);
    let mut editor = Editor::initialized(&rig, json!({}));
    for cursor in [usize::MAX, usize::MAX - 1] {
        let listed = editor.call("session/list", json!({"cursor": cursor.to_string()}));
        assert_eq!(listed["result"], json!({"sessions": []}), "{listed}");
    }
    assert_eq!(editor.finish(), 0);
}
