//! Hooks: their input, their permissions, and that no failure of a hook ends a run (docs/hooks.md).

use haft_testkit::{Reply, Script};
use haft_types::{Api, HookPoint};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

/// Adds hooks to the user's configuration: a point, a matcher, a command.
pub(crate) fn add_hooks(rig: &Rig, hooks: &[(&str, &str, &str)]) {
    let mut config = vec![std::fs::read_to_string(rig.home().join("config.toml")).unwrap()];
    for (point, matcher, command) in hooks {
        // Only commands that never end by themselves should time out.
        let timeout = if command.contains("sleep") { 3 } else { 60 };
        config.push(format!(
            "[[hooks.{point}]]\nmatcher = \"{matcher}\"\nhooks = [{{ command = '''{command}''', timeout = {timeout} }}]\n"
        ));
    }
    rig.configure(&config.concat());
}

fn run_command(command: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": command, "requires_approval": false}),
    )
}

/// True if the messages of a request contain `words`.
fn request_contains(rig: &Rig, request: usize, words: &str) -> bool {
    let seen = rig.server.generation_requests()[request].decode().unwrap();
    format!("{:?}", seen.messages).contains(words)
}

fn messages_with_code(ran: &Ran, code: &str) -> Vec<String> {
    let events = ran.events();
    let found = events.iter().filter(|event| {
        ["error", "notice"].contains(&event["type"].as_str().unwrap()) && event["code"] == code
    });
    found
        .map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn points_are_all_called_with_documented_input() {
    // Replies in order, because the documents of a project count as turns.
    let script = Script::replies([
        run_command("true"),
        Reply::text("Done."),
        Reply::text("Again."),
    ])
    .unwrap();
    let rig = Rig::new(Api::Anthropic, script);
    let log = rig.home().join("log");
    let write = format!("cat >> '{0}'; echo >> '{0}'", log.display());
    let all: Vec<_> = HookPoint::ALL
        .iter()
        .map(|point| (point.name(), "*", write.as_str()))
        .collect();
    add_hooks(&rig, &all);
    rig.write("AGENTS.md", "Be kind.\n");
    assert_eq!(rig.task(&["look"]).code(), 0);
    let read = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let names = |all: &[Value]| {
        all.iter()
            .map(|one| one["hook_event_name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let first = read();
    assert_eq!(
        names(&first),
        [
            "pre_tools_loaded",
            "post_tools_loaded",
            "pre_rules_loaded",
            "pre_libraries_loaded",
            "post_rules_loaded",
            "post_libraries_loaded",
            "conversation_start",
            "user_prompt_submit",
            "api_request_start",
            "tool_generation_start",
            "tool_generation_end",
            "api_request_end",
            "pre_tool_call",
            "post_tool_call",
            "api_request_start",
            "api_request_end",
            "stop",
            "conversation_end",
        ]
    );
    let of = |name: &str| {
        first
            .iter()
            .find(|one| one["hook_event_name"] == name)
            .unwrap()
    };
    assert_eq!(of("user_prompt_submit")["prompt"], "look");
    assert_eq!(of("post_rules_loaded")["documents"], json!(["AGENTS.md"]));
    assert_eq!(of("pre_tool_call")["tool_input"]["command"], "true");
    assert_eq!(of("post_tool_call")["tool_response"]["status"], "success");
    assert_eq!(of("stop")["last_assistant_message"], "Done.");
    assert_eq!(
        (
            &of("conversation_start")["source"],
            &of("conversation_end")["reason"]
        ),
        (&json!("startup"), &json!("completed"))
    );
    assert!(of("pre_tool_call")["session_id"].as_str().unwrap().len() > 30);

    assert_eq!(rig.task(&["-c", "again"]).code(), 0);
    let second = names(&read()[first.len()..]);
    assert!(
        second.contains(&"pre_conversation_resumed".to_owned())
            && second.contains(&"post_conversation_resumed".to_owned()),
        "{second:?}"
    );
}

#[test]
fn pre_tool_call_hook_blocks_a_call_and_gives_the_reason() {
    let rig = rig([run_command("touch a.txt"), Reply::text("Then not.")]);
    add_hooks(
        &rig,
        &[("PreToolUse", "Bash", "echo 'not on a Sunday' >&2; exit 2")],
    );
    let ran = rig.task(&["make it"]);
    assert_eq!(ran.code(), 0);
    assert!(!rig.project().join("a.txt").exists());
    assert!(request_contains(
        &rig,
        1,
        "a hook blocked it: not on a Sunday"
    ));
}

#[test]
fn pre_tool_call_hook_changes_arguments_and_tells_the_model() {
    let rig = rig([run_command("touch a.txt"), Reply::text("Done.")]);
    let other = r#"{"hookSpecificOutput": {"updatedInput": {"command": "touch b.txt", "requires_approval": false}}}"#;
    add_hooks(
        &rig,
        &[(
            "pre_tool_call",
            "execute_command",
            &format!("echo '{other}'"),
        )],
    );
    assert_eq!(rig.task(&["make it"]).code(), 0);
    assert!(rig.project().join("b.txt").exists() && !rig.project().join("a.txt").exists());
    assert!(request_contains(&rig, 1, "other arguments than yours"));
}

#[test]
fn hook_approval_replaces_a_question_but_not_a_deny_rule() {
    let allow = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"path": "secret/a.txt", "content": "x"}}}'"#;
    for (command, rule, exists) in [
        (
            r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'"#,
            "",
            true,
        ),
        (
            r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'"#,
            "[permissions]\ndeny = [\"write_to_file(a.txt)\"]\n",
            false,
        ),
        (
            allow,
            "[permissions]\ndeny = [\"write_to_file(secret/**)\"]\n",
            false,
        ),
    ] {
        let rig = rig([
            Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"})),
            Reply::text("Done."),
        ]);
        let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!("{config}{rule}"));
        add_hooks(&rig, &[("pre_tool_call", "", command)]);
        rig.run(&["run", "--output-format", "stream-json", "write"]);
        assert_eq!(
            rig.project().join("a.txt").exists(),
            exists,
            "{command} {rule}"
        );
        assert!(!rig.project().join("secret").exists());
    }
}

#[test]
fn hook_of_the_project_cannot_allow_calls() {
    let rig = rig([
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"})),
        Reply::text("I may not."),
    ]);
    let allow = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
    std::fs::create_dir(rig.project().join(".haft")).unwrap();
    rig.write(
        ".haft/config.toml",
        format!("[[hooks.pre_tool_call]]\nhooks = [{{ command = '''echo '{allow}' ''' }}]\n"),
    );
    rig.run(&["trust"]);
    assert_eq!(rig.run(&["run", "write"]).code(), 3);
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn hook_context_is_appended_without_a_prefix_break() {
    let rig = rig([
        run_command("true"),
        Reply::text("Done."),
        Reply::text("Again."),
    ]);
    add_hooks(
        &rig,
        &[
            ("conversation_start", "startup", "echo the build is red"),
            ("user_prompt_submit", "", "echo it rains"),
            (
                "post_tool_call",
                "",
                r#"echo '{"hookSpecificOutput": {"additionalContext": "took no time"}}'"#,
            ),
            ("post_tool_call", "", "echo 'run the tests too' >&2; exit 2"),
        ],
    );
    let plain = ["--set", "context.compress=never"];
    assert_eq!(rig.task(&[plain[0], plain[1], "look"]).code(), 0);
    let ran = rig.task(&[plain[0], plain[1], "-c", "go on"]);
    assert!(
        request_contains(&rig, 0, "conversation_start: the build is red")
            && request_contains(&rig, 0, "user_prompt_submit: it rains")
    );
    assert!(
        request_contains(&rig, 1, "took no time")
            && request_contains(
                &rig,
                1,
                "A hook objects to what `execute_command` did: run the tests too"
            )
    );
    let seen: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    for pair in seen.windows(2) {
        assert_eq!(
            pair[1].messages[..pair[0].messages.len()],
            pair[0].messages[..],
            "requests only append"
        );
    }
    assert!(
        !ran.events()
            .iter()
            .any(|event| event["type"] == "prefix_break"),
        "{:?}",
        ran.events()
    );
}

#[test]
fn user_prompt_submit_hook_keeps_blocked_prompts_unstored() {
    let rig = rig([Reply::text("Hello.")]);
    add_hooks(
        &rig,
        &[(
            "UserPromptSubmit",
            "",
            "grep -q password && { echo 'no secrets, please' >&2; exit 2; } || true",
        )],
    );
    let ran = rig.task(&["the password is x"]);
    let result = ran.result();
    assert_eq!(
        (ran.code(), &result["outcome"], &result["code"]),
        (3, &json!("waiting"), &json!("hook_blocked"))
    );
    assert!(
        result["message"]
            .as_str()
            .unwrap()
            .contains("no secrets, please"),
        "{result}"
    );
    assert_eq!(rig.server.generation_requests().len(), 0);
    assert_eq!(
        rig.run(&["conversations", "list", "--json"]).json(),
        json!([])
    );
    assert_eq!(rig.task(&["hello"]).code(), 0);
}

#[test]
fn stop_hook_continues_a_turn_at_most_three_times() {
    let rig = rig([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
    ]);
    add_hooks(&rig, &[("Stop", "", "echo 'the tests fail' >&2; exit 2")]);
    let ran = rig.task(&["go"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("Four."))
    );
    assert!(request_contains(&rig, 1, "Not done yet: the tests fail"));
    assert_eq!(rig.server.generation_requests().len(), 4);
}

#[test]
fn continue_false_ends_the_turn_at_any_point() {
    for point in [
        "conversation_start",
        "user_prompt_submit",
        "api_request_start",
        "pre_tool_call",
        "post_tool_call",
        "api_request_end",
    ] {
        let rig = rig([run_command("true"), Reply::text("Done.")]);
        add_hooks(
            &rig,
            &[(
                point,
                "",
                r#"echo '{"continue": false, "stopReason": "enough"}'"#,
            )],
        );
        let ran = rig.task(&["go"]);
        let result = ran.result();
        assert_eq!(
            (ran.code(), &result["code"]),
            (3, &json!("hook_stopped")),
            "{point}: {result}"
        );
        assert!(
            result["message"].as_str().unwrap().contains("enough"),
            "{point}"
        );
    }
}

#[test]
fn hook_failures_are_reported_and_the_run_continues() {
    let wrong = [
        ("exit 1", "exit code 1"),
        ("sleep 60", "longer than 3 s"),
        (
            "head -c 100000000 /dev/zero | tr '\\0' x",
            "printed 100000000 bytes",
        ),
        ("echo '{nonsense'", "cannot be read"),
    ];
    let rig = rig([run_command("touch a.txt"), Reply::text("Done.")]);
    let hooks: Vec<_> = wrong
        .iter()
        .map(|(command, _)| ("pre_tool_call", "", *command))
        .collect();
    add_hooks(&rig, &hooks);
    let ran = rig.task(&["go"]);
    assert_eq!(ran.code(), 0);
    assert!(rig.project().join("a.txt").exists());
    let told = messages_with_code(&ran, "hook");
    assert_eq!(told.len(), wrong.len(), "{told:?}");
    for (told, (_, what)) in told.iter().zip(wrong) {
        assert!(told.contains(what), "{told}");
    }
}

#[test]
fn notification_hook_runs_when_a_person_is_needed() {
    let rig = rig([Reply::call(
        "ask_followup_question",
        json!({"question": "Tabs or spaces?"}),
    )]);
    let log = rig.home().join("log");
    add_hooks(
        &rig,
        &[(
            "Notification",
            "idle_prompt",
            &format!("cat > '{}'", log.display()),
        )],
    );
    assert_eq!(rig.task(&["format it"]).code(), 3);
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&log).unwrap()).unwrap();
    assert_eq!(told["notification_type"], "idle_prompt");
}

#[test]
fn claude_code_hooks_get_claude_names_and_input() {
    let rig = rig([
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"})),
        Reply::text("Done."),
    ]);
    let log = rig.home().join("log");
    let settings = json!({"hooks": {"PostToolUse": [{"matcher": "Write|Edit", "hooks": [
        {"type": "command", "command": format!("cat > '{}'", log.display())}]}]}});
    std::fs::create_dir(rig.project().join(".claude")).unwrap();
    rig.write(".claude/settings.json", settings.to_string());
    rig.run(&["trust"]);
    assert_eq!(rig.task(&["write"]).code(), 0);
    let told: Value = serde_json::from_str(&std::fs::read_to_string(&log).unwrap()).unwrap();
    assert_eq!(
        (&told["hook_event_name"], &told["tool_name"]),
        (&json!("PostToolUse"), &json!("Write"))
    );
    assert_eq!(
        told["tool_input"]["file_path"],
        json!(rig.project().join("a.txt"))
    );
}

#[test]
fn hooks_list_shows_the_source_and_whether_they_run() {
    let rig = Rig::untrusted(
        Api::Anthropic,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    add_hooks(&rig, &[("stop", "", "true")]);
    std::fs::create_dir(rig.project().join(".haft")).unwrap();
    rig.write(
        ".haft/config.toml",
        "[[hooks.PreToolUse]]\nmatcher = \"Bash\"\nhooks = [{ command = \"check\" }]\n",
    );
    let listed = |rig: &Rig| rig.run(&["hooks", "list", "--json"]).json();
    let rows = listed(&rig);
    assert_eq!(
        (&rows[0]["point"], &rows[0]["runs"], &rows[0]["level"]),
        (&json!("stop"), &json!(true), &json!("user"))
    );
    assert_eq!(
        (&rows[1]["command"], &rows[1]["runs"], &rows[1]["timeout"]),
        (&json!("check"), &json!(false), &json!(60))
    );
    assert!(rig.run(&["hooks"]).stdout().contains("no, not trusted"));
    rig.run(&["trust"]);
    assert_eq!(listed(&rig)[1]["runs"], json!(true));
}

#[test]
fn points_are_all_documented() {
    let page = include_str!("../../../../../docs/hooks.md");
    for point in HookPoint::ALL {
        assert!(
            page.contains(&format!("\n| `{point}`")),
            "{point} is missing in docs/hooks.md"
        );
    }
}

#[test]
fn user_hook_with_a_misspelled_point_is_a_usage_error() {
    let rig = rig([]);
    add_hooks(&rig, &[("PreToolUze", "", "true")]);
    let ran = rig.run(&["run", "go"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr().contains("PreToolUze"), "{}", ran.stderr());
}
