//! Forms that an MCP server sends in the middle of a call.

use haft_testkit::Reply;
use haft_testkit::support::{McpServer, Revision};
use serde_json::{Value, json};

use super::{Editor, rig, stop_reason};

/// Runs a turn in which the server asks for a name. Returns the response that the server received,
/// and the editor.
fn run_call_with_form(capabilities: Value, form: Option<Value>) -> (Value, Editor) {
    let server = McpServer::start(Revision::Previous).unwrap();
    let call = json!({"server_name": "asks", "tool_name": "ask", "arguments": {}});
    let rig = rig([Reply::call("use_mcp_tool", call), Reply::text("Done.")]);
    let mut editor = Editor::initialized(&rig, capabilities);
    editor.permission = "allow_once";
    editor.form = form;
    let declared = json!({"type": "http", "name": "asks", "url": server.url(), "headers": []});
    let made = editor.call(
        "session/new",
        json!({"cwd": rig.project(), "mcpServers": [declared]}),
    );
    let session = made["result"]["sessionId"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"))
        .to_owned();
    assert_eq!(stop_reason(&editor.prompt(&session, "ask")), "end_turn");
    let told = server.wait_for_message(|heard| heard["id"] == "q1" && heard["method"].is_null());
    (told["result"].clone(), editor)
}

#[test]
fn form_is_shown_and_its_answer_reaches_the_server() {
    let answer = json!({"action": "accept", "content": {"name": "Ada", "more": 1}});
    let (told, editor) = run_call_with_form(json!({"elicitation": {"form": {}}}), Some(answer));
    assert_eq!(
        told,
        json!({"action": "accept", "content": {"name": "Ada"}}),
        "only what was asked for is passed on"
    );
    let form = &editor.forms[0];
    assert_eq!(
        (
            &form["mode"],
            &form["requestedSchema"]["properties"]["name"]["type"]
        ),
        (&json!("form"), &json!("string"))
    );
    let message = form["message"].as_str().unwrap();
    assert!(
        message.contains("asks") && message.contains("Your name?"),
        "who asks is named: {message}"
    );
    for action in ["decline", "cancel"] {
        let (told, _) =
            run_call_with_form(json!({"elicitation": {}}), Some(json!({"action": action})));
        assert_eq!(told["action"], action);
    }
}

#[test]
fn form_is_declined_if_the_editor_cannot_show_it() {
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let (told, editor) = run_call_with_form(capabilities, None);
        assert_eq!(told["action"], "decline");
        assert!(editor.forms.is_empty());
        let thoughts = format!("{:?}", editor.updates_of_kind("agent_thought_chunk"));
        assert!(
            thoughts.contains("Your name?") && thoughts.contains("declined"),
            "{thoughts}"
        );
    }
}
