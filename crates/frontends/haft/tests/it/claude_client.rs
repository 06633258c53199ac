//! haft invoked as `claude` by programs that were written for Claude Code. `tests/third-party`
//! tests the SDKs themselves.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Rig};
use crate::stream::DrivenRun;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

fn claude_command(rig: &Rig, arguments: &[&str]) -> Command {
    let mut command = rig.command(arguments);
    command.arg0("/usr/local/bin/claude");
    command
}

fn spawn_driven(rig: &Rig, arguments: &[&str]) -> DrivenRun {
    let mut all = vec![
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
    ];
    all.extend(arguments);
    DrivenRun::spawn(claude_command(rig, &all))
}

fn user_message(content: impl Into<Value>) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": content.into()}})
}

fn control_request(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

fn control_response(asked: &Value, response: &Value) -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": asked["request_id"], "response": response}})
}

fn write_call(path: &str) -> Reply {
    Reply::call("write_to_file", json!({"path": path, "content": "x"}))
}

fn touch_call() -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": "touch touched", "requires_approval": false}),
    )
}

/// The first message of a client, with these hooks before calls.
fn initialize_request(hooks: &Value) -> Value {
    control_request(
        "i",
        &json!({"subtype": "initialize", "hooks": {"PreToolUse": hooks}}),
    )
}

#[test]
fn result_reports_errors_and_the_exit_code_is_0() {
    let failing = || rig([Reply::error(400, "No.")]);
    let failed = claude_command(&failing(), &["-p", "x y", "--output-format", "json"])
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(
        (failed.status.code(), &result["is_error"]),
        (Some(0), &json!(true)),
        "{result}"
    );
    assert_eq!(result["errors"].as_array().unwrap().len(), 1);
    assert_ne!(
        failing()
            .run(&["run", "x y", "--output-format", "json"])
            .code(),
        0,
        "haft's own codes stay"
    );
    let version = claude_command(&rig([]), &["-v"]).output().unwrap();
    assert!(
        version.status.success() && version.stdout.starts_with(b"2."),
        "{version:?}"
    );
}

#[test]
fn permission_rules_follow_claude_code_and_deny_wins() {
    for (flags, written) in [
        (&[][..], false),
        (&["--allowedTools", "Write"], true),
        (&["--allowed-tools=Read,Write(a.txt)"], true),
        (&["--allowedTools", "Write(b.txt)"], false),
        (
            &[
                "--allowedTools",
                "Write",
                "--disallowedTools",
                "Write(./a.txt)",
            ],
            false,
        ),
        (
            &[
                "--dangerously-skip-permissions",
                "--disallowedTools",
                "Write",
            ],
            false,
        ),
        (&["--dangerously-skip-permissions"], true),
        (
            &[
                "--allowedTools",
                "Write",
                "--settings",
                r#"{"permissions": {"deny": ["Write(a.*)"]}}"#,
            ],
            false,
        ),
        (
            &[
                "--settings",
                r#"{"permissions": {"defaultMode": "acceptEdits"}, "theme": "dark"}"#,
            ],
            true,
        ),
        (&["--permission-mode", "dontAsk"], false),
        (
            &[
                "--permissionMode",
                "acceptEdits",
                "--betas",
                "x",
                "--allowedTools",
                "Skill(x),Task",
            ],
            true,
        ),
    ] {
        let rig = rig([write_call("a.txt"), Reply::text("Done.")]);
        let mut all = vec!["-p", "make a.txt"];
        all.extend(flags);
        let ran = claude_command(&rig, &all).output().unwrap();
        assert_eq!(
            rig.project().join("a.txt").exists(),
            written,
            "{flags:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    let refused = claude_command(&rig([]), &["-p", "x y", "--settings", "{broken"])
        .output()
        .unwrap();
    assert_eq!(
        refused.status.code(),
        Some(2),
        "settings that may forbid something are read or nothing runs"
    );
}

/// Everything the SDKs can send in `settings`, and flags without a counterpart in haft: none of
/// them ends a run.
#[test]
fn settings_hooks_run_and_ignored_flags_are_named() {
    let hook = |command: &str| json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]);
    for (command, runs) in [("cat > told.json", true), ("echo no >&2; exit 2", false)] {
        let rig = rig([touch_call(), Reply::text("Done.")]);
        let hooks = json!({"PreToolUse": hook(command), "Later": hook("true"), "Stop": [{"hooks": [{"type": "prompt"}]}]});
        let settings = json!({ "hooks": hooks }).to_string();
        let flags = [
            "--effort",
            "high",
            "--betas",
            "beta-1",
            "beta-2",
            "--plugin-dir",
            "/nowhere",
            "--settings",
            &settings,
        ];
        let all = [&["-p", "touch it", "--allowedTools", "Bash"][..], &flags].concat();
        let ran = claude_command(&rig, &all).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{told}");
        assert_eq!(rig.project().join("touched").exists(), runs, "{told}");
        for ignored in [
            "--effort",
            "--betas",
            "--plugin-dir",
            "Later",
            "Stop, prompt",
        ] {
            assert!(told.contains(ignored), "{ignored}: {told}");
        }
        let asked = rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string();
        assert!(
            asked.contains("touch it") && !asked.contains("beta-2"),
            "a value is no prompt: {asked}"
        );
        if runs {
            let heard = std::fs::read_to_string(rig.project().join("told.json")).unwrap();
            let heard: Value = serde_json::from_str(&heard).unwrap();
            assert_eq!(
                (&heard["tool_name"], &heard["hook_event_name"]),
                (&json!("Bash"), &json!("PreToolUse"))
            );
        }
    }
}

#[test]
fn can_use_tool_uses_claude_names_and_may_change_the_call() {
    let rig = rig([write_call("sub/../a.txt"), Reply::text("Done.")]);
    let mut driven = spawn_driven(&rig, &["--permission-prompt-tool", "stdio"]);
    driven.send_line(&user_message("make a.txt"));
    let asked = driven.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    let shown = rig.project().canonicalize().unwrap().join("a.txt");
    assert_eq!(
        (
            &asked["request"]["tool_name"],
            &asked["request"]["input"]["file_path"]
        ),
        (&json!("Write"), &json!(shown))
    );
    let call_id = asked["request"]["tool_use_id"].clone();
    let allow =
        json!({"behavior": "allow", "updatedInput": {"file_path": "b.txt", "content": "y"}});
    driven.send_line(&control_response(&asked, &allow));
    let (code, lines) = driven.finish();
    assert_eq!(
        (
            code,
            std::fs::read_to_string(rig.project().join("b.txt"))
                .unwrap()
                .as_str()
        ),
        (0, "y")
    );
    let used = lines
        .iter()
        .find(|line| line["type"] == "assistant")
        .unwrap();
    assert_eq!(used["message"]["content"][0]["name"], "Write");
    assert_eq!(used["message"]["content"][0]["id"], call_id);
    let result = lines.last().unwrap();
    assert_eq!(result["stop_reason"], "end_turn");
    let used = &result["modelUsage"][format!("mock/{MODEL}")];
    assert!(
        used["inputTokens"].as_u64() > Some(0) && used["contextWindow"] == 200_000,
        "{result}"
    );
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert!(
        init["tools"].as_array().unwrap().contains(&json!("Bash")),
        "{init}"
    );
}

#[test]
fn denial_with_interrupt_ends_the_turn() {
    let rig = rig([write_call("a.txt"), Reply::text("Unused.")]);
    let mut driven = spawn_driven(&rig, &["--permission-prompt-tool", "stdio"]);
    driven.send_line(&user_message("make a.txt"));
    let asked = driven.read_until(|line| line["request"]["subtype"] == "can_use_tool");
    let deny = json!({"behavior": "deny", "message": "stop here", "interrupt": true});
    driven.send_line(&control_response(&asked, &deny));
    let result = driven.read_until_type("result");
    assert_eq!(
        (&result["outcome"], &result["subtype"]),
        (&json!("aborted"), &json!("error_during_execution"))
    );
    assert_eq!(driven.finish().0, 0);
    assert_eq!(rig.server.generation_requests().len(), 1);
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn updated_permissions_apply_to_the_session() {
    for (update, questions) in [
        (
            json!({"type": "addRules", "behavior": "allow", "destination": "session", "rules": [{"toolName": "Write"}]}),
            1,
        ),
        (
            json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
            1,
        ),
        (
            json!({"type": "addDirectories", "directories": ["/tmp"], "destination": "session"}),
            2,
        ),
    ] {
        let rig = rig([
            write_call("a.txt"),
            write_call("b.txt"),
            Reply::text("Done."),
        ]);
        let mut driven = spawn_driven(&rig, &["--permission-prompt-tool", "stdio"]);
        driven.send_line(&user_message("make both"));
        for _ in 0..questions {
            let asked = driven.read_until(|line| line["request"]["subtype"] == "can_use_tool");
            let input = &asked["request"]["input"];
            let allow =
                json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [update]});
            driven.send_line(&control_response(&asked, &allow));
        }
        let (code, lines) = driven.finish();
        let asked = lines
            .iter()
            .filter(|line| line["request"]["subtype"] == "can_use_tool")
            .count();
        assert_eq!((code, asked), (0, questions), "{update}");
        assert!(rig.project().join("b.txt").exists(), "{update}");
        let reported = lines.iter().any(|line| {
            line["message"]
                .as_str()
                .is_some_and(|message| message.contains("`addDirectories` is not supported"))
        });
        assert_eq!(reported, questions == 2, "{update}");
    }
}

#[test]
fn initialize_lists_commands_agents_and_models() {
    let rig = rig([Reply::text("Hello.")]);
    rig.write(
        ".haft/commands/greet.md",
        "---\ndescription: Greets\n---\nSay hello to $ARGUMENTS.\n",
    );
    rig.run(&["trust"]);
    let mut driven = spawn_driven(&rig, &[]);
    let agents = json!({"reviewer": {"description": "Reviews", "prompt": "You review."}});
    driven.send_line(&control_request(
        "i",
        &json!({"subtype": "initialize", "agents": agents}),
    ));
    let about = driven.read_until_type("control_response")["response"]["response"].clone();
    assert_eq!(
        (
            &about["commands"][0]["name"],
            &about["commands"][0]["description"]
        ),
        (&json!("greet"), &json!("Greets")),
        "{about}"
    );
    assert_eq!(
        about["models"][0]["value"],
        format!("mock/{MODEL}"),
        "{about}"
    );
    let names = about["agents"].as_array().unwrap();
    assert!(
        names.contains(&json!({"name": "reviewer", "description": "Reviews"})),
        "{about}"
    );
    driven.send_line(&user_message("hi"));
    assert_eq!(driven.finish().0, 0);
}

#[test]
fn context_usage_and_servers_are_reported_once_the_session_has_begun() {
    let rig = rig([Reply::text("Hello.")]);
    rig.write("AGENTS.md", "Write short sentences.\n");
    let servers = r#"{"mcpServers": {"there": {"command": "/nonexistent"}}}"#;
    let mut driven = spawn_driven(&rig, &["--mcp-config", servers]);
    let ask = |driven: &mut DrivenRun, subtype: &str| {
        driven.send_line(&control_request("r", &json!({ "subtype": subtype })));
        driven.read_until_type("control_response")["response"].clone()
    };
    let early = ask(&mut driven, "get_context_usage");
    assert_eq!(early["subtype"], "error", "{early}");
    driven.send_line(&user_message("hi"));
    driven.read_until_type("result");
    let usage = ask(&mut driven, "get_context_usage")["response"].clone();
    assert_eq!(
        (&usage["rawMaxTokens"], &usage["model"]),
        (&json!(200_000), &json!(format!("mock/{MODEL}"))),
        "{usage}"
    );
    let total: u64 = usage["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|category| category["tokens"].as_u64().unwrap())
        .sum();
    assert!(
        total > 0 && usage["totalTokens"].as_u64() == Some(total),
        "{usage}"
    );
    let messages = usage["categories"]
        .as_array()
        .unwrap()
        .iter()
        .find(|category| category["name"] == "Messages");
    assert!(messages.is_some(), "{usage}");
    assert!(
        usage["memoryFiles"].to_string().contains("AGENTS.md"),
        "{usage}"
    );
    let status = ask(&mut driven, "mcp_status")["response"].clone();
    assert_eq!(
        status,
        json!({"mcpServers": [{"name": "there", "status": "pending"}]})
    );
    assert_eq!(driven.finish().0, 0);
}

#[test]
fn unsupported_requests_are_refused_with_a_reason() {
    let rig = rig([Reply::text("Hello.")]);
    let mut driven = spawn_driven(&rig, &[]);
    for (subtype, reason) in [
        ("rewind_files", "haft undo"),
        ("set_max_thinking_tokens", "extra_body"),
        ("mcp_reconnect", "servers"),
        ("dance", "not supported"),
    ] {
        driven.send_line(&control_request("r", &json!({ "subtype": subtype })));
        let refused = driven.read_until_type("control_response")["response"].clone();
        assert_eq!(refused["subtype"], "error", "{refused}");
        assert!(
            refused["error"].as_str().unwrap().contains(reason),
            "{refused}"
        );
    }
    driven.send_line(&user_message("hi"));
    assert_eq!(driven.finish().0, 0);
}

#[test]
fn session_end_hook_is_called_after_the_end_of_the_input() {
    let rig = rig([Reply::text("Hello.")]);
    let mut driven = spawn_driven(&rig, &[]);
    let hooks = json!({"SessionEnd": [{"hookCallbackIds": ["h0"]}]});
    driven.send_line(&control_request(
        "i",
        &json!({"subtype": "initialize", "hooks": hooks}),
    ));
    driven.send_line(&user_message("hi"));
    driven.read_until_type("result");
    let (code, lines) = driven.finish();
    assert_eq!(code, 0);
    let last = lines.last().unwrap();
    assert_eq!(
        (
            &last["request"]["subtype"],
            &last["request"]["input"]["hook_event_name"]
        ),
        (&json!("hook_callback"), &json!("SessionEnd")),
        "{last}"
    );
}

#[test]
fn hook_callback_without_a_valid_answer_denies_the_call() {
    let declared = json!([{"matcher": "Bash", "hookCallbackIds": ["h0"], "timeout": 0.2}]);
    let error = json!({"subtype": "error", "error": "a bug"});
    let deny = json!({"subtype": "success", "response": {"hookSpecificOutput": {"permissionDecision": "deny"}}});
    let allow = json!({"subtype": "success", "response": {}});
    for (answer, runs) in [
        (Some(allow), true),
        (Some(deny), false),
        (Some(error), false),
        (None, false),
    ] {
        let rig = rig([touch_call(), Reply::text("Done.")]);
        let mut driven = spawn_driven(&rig, &["--allowedTools", "Bash"]);
        // A hook that is to answer gets a long timeout.
        let mut hooks = declared.clone();
        if answer.is_some() {
            hooks[0]["timeout"] = json!(60);
        }
        driven.send_line(&initialize_request(&hooks));
        assert_eq!(
            driven.read_until_type("control_response")["response"]["subtype"],
            "success"
        );
        driven.send_line(&user_message("touch it"));
        let called = driven.read_until(|line| line["request"]["subtype"] == "hook_callback");
        assert_eq!(
            (
                &called["request"]["callback_id"],
                &called["request"]["input"]["tool_name"]
            ),
            (&json!("h0"), &json!("Bash"))
        );
        if let Some(mut answer) = answer.clone() {
            answer["request_id"] = called["request_id"].clone();
            driven.send_line(&json!({"type": "control_response", "response": answer}));
        }
        driven.read_until_type("result");
        assert_eq!(
            (driven.finish().0, rig.project().join("touched").exists()),
            (0, runs),
            "{answer:?}"
        );
    }
    // The end of the input does not allow the call.
    let rig = rig([touch_call(), Reply::text("Done.")]);
    let mut driven = spawn_driven(&rig, &["--allowedTools", "Bash"]);
    let mut hooks = declared;
    hooks[0]["timeout"] = json!(60);
    driven.send_line(&initialize_request(&hooks));
    driven.send_line(&user_message("touch it"));
    driven.read_until(|line| line["request"]["subtype"] == "hook_callback");
    assert_eq!(driven.finish().0, 0);
    assert!(!rig.project().join("touched").exists());
}

#[test]
fn images_are_sent_to_the_model_but_never_fetched() {
    let rig = rig([Reply::text("A dot.")]);
    let mut driven = spawn_driven(&rig, &[]);
    let image = |source: Value| json!([{"type": "text", "text": "see"}, {"type": "image", "source": source}]);
    driven.send_line(&user_message(image(
        json!({"type": "url", "url": "http://127.0.0.1:9/x.png"}),
    )));
    assert!(
        driven.read_until_type("system")["message"]
            .as_str()
            .unwrap()
            .contains("`image`")
    );
    driven.send_line(&user_message(image(
        json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}),
    )));
    driven.read_until_type("result");
    driven.finish();
    let body: Value = serde_json::from_slice(&rig.server.generation_requests()[0].body).unwrap();
    assert!(
        body["messages"].to_string().contains("iVBORw0KGgo="),
        "{body}"
    );
}

#[test]
fn session_id_flag_accepts_an_id_once() {
    let id = "0b3f1c9e-4a89-4b7e-9c55-3f6d3a1e7f12";
    let rig = rig([Reply::text("One."), Reply::text("Two.")]);
    let run = |flag: &str| {
        claude_command(&rig, &["-p", "x y", "--output-format", "json", flag])
            .output()
            .unwrap()
    };
    let first = run(&format!("--session-id={id}"));
    assert_eq!(
        serde_json::from_slice::<Value>(&first.stdout).unwrap()["session_id"],
        id
    );
    assert_eq!(
        run(&format!("--session-id={id}")).status.code(),
        Some(2),
        "it is another conversation's"
    );
    assert_eq!(run("--session-id=mine").status.code(), Some(2));
    let resumed = run(&format!("--resume={id}"));
    assert_eq!(
        serde_json::from_slice::<Value>(&resumed.stdout).unwrap()["result"],
        "Two."
    );
}

#[test]
fn agents_and_mcp_config_flags_apply_to_one_run() {
    let rig = rig([Reply::text("Hello.")]);
    let agents = r#"{"reviewer": {"description": "Reviews", "prompt": "You review."}}"#;
    let servers = r#"{"mcpServers": {"there": {"command": "/nonexistent"}}}"#;
    let ran = claude_command(
        &rig,
        &[
            "-p",
            "x y",
            "--output-format",
            "stream-json",
            "--agents",
            agents,
            "--mcp-config",
            servers,
        ],
    );
    let output = { ran }.output().unwrap();
    let init: Value =
        serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert_eq!(
        (&init["agents"], &init["mcp_servers"][0]["name"]),
        (&json!(["reviewer"]), &json!("there"))
    );
    let sent = String::from_utf8_lossy(&rig.server.generation_requests()[0].body).into_owned();
    assert!(
        sent.contains("reviewer") && sent.contains("## there"),
        "{sent}"
    );
    let broken = claude_command(
        &rig,
        &[
            "-p",
            "x y",
            "--agents",
            r#"{"a b": {"description": "d", "prompt": "p"}}"#,
        ],
    )
    .output()
    .unwrap();
    assert_eq!(broken.status.code(), Some(2));
}
