use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use haft_project::hooks::{self, HooksConfig};
use haft_project::{Footprint, KnowledgePaths, Level};
use haft_sandbox::{Sandbox, Supervisor};
use haft_types::SandboxLayer;
use serde_json::json;

use super::event::{ToolName, ToolResponse};
use super::*;
use crate::calls::approval::{Approval, ApprovalReply, Approver};
use crate::calls::permit::DecisionState;

fn call(input: Value) -> HookEvent {
    HookEvent::PreToolCall {
        tool: ToolName {
            name: "execute_command".into(),
            also: vec!["Bash".into()],
        },
        tool_use_id: "t1".into(),
        tool_input: input,
    }
}

/// Calls the callbacks with `event`, in an existing folder.
async fn call_callbacks(
    callbacks: Vec<Arc<dyn Callback>>,
    event: &HookEvent,
) -> (HookOutcome, Vec<String>) {
    let cancel = CancellationToken::new();
    let place = PathBuf::from("/");
    // Programs are not looked up in the project.
    let project = PathBuf::from("/nowhere");
    let context = HookContext {
        event,
        conversation_id: "c1",
        cwd: &place,
        root: &project,
        mode: PermissionMode::Ask,
        cancel: &cancel,
    };
    Callbacks::new(callbacks).call(&context).await
}

/// Returns the hooks of a user's configuration.
fn hooks_from_config(config: &str) -> Vec<Arc<dyn Callback>> {
    let config: HooksConfig = toml::from_str(config).unwrap();
    let paths = KnowledgePaths {
        root: "/".into(),
        cwd: "/".into(),
        trusted: false,
        user: "/nowhere".into(),
        home: None,
    };
    let found = hooks::load_hooks(&paths, &config, "/u/config.toml".as_ref(), &mut Vec::new());
    let supervisor = Arc::new(Supervisor::for_tests().unwrap());
    let environment = Arc::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let guard = Arc::new(StartGuard::new(None, Arc::default(), BTreeMap::new()));
    let host = Arc::new(HookHost {
        supervisor,
        environment,
        sandbox: Sandbox::disabled("a test"),
        guard,
    });
    found
        .into_iter()
        .map(|hook| Arc::new(CommandHook::new(hook, Arc::clone(&host))) as Arc<dyn Callback>)
        .collect()
}

/// Returns one user hook for `point`.
fn command_hook(point: HookPoint, line: &str) -> Vec<Arc<dyn Callback>> {
    // Only commands that never finish by themselves should time out.
    let timeout = if line.contains("sleep") { 2 } else { 60 };
    hooks_from_config(&format!(
        "[[{point}]]\nhooks = [{{ command = '''{line}''', timeout = {timeout}, sandbox = false }}]\n"
    ))
}

#[tokio::test]
async fn call_runs_all_callbacks_in_order_despite_a_panic() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str, outcome: HookOutcome| {
        let order = Arc::clone(&order);
        callback_at(HookPoint::PreToolCall, name, move |context| {
            let HookEvent::PreToolCall { tool_input, .. } = context.event else {
                panic!("another point")
            };
            order.lock().unwrap().push((name, tool_input.clone()));
            outcome.clone()
        })
    };
    let broken = callback_at(HookPoint::PreToolCall, "broken", |_| {
        panic!("a bug in a callback")
    });
    let elsewhere = callback_at(HookPoint::Stop, "elsewhere", |_| {
        panic!("must not be called")
    });
    let changing = HookOutcome {
        input: Some(json!({"command": "b"})),
        ..HookOutcome::default()
    };
    let blocking = HookOutcome {
        block: Some("no".into()),
        ..HookOutcome::default()
    };
    let all = vec![
        elsewhere,
        noting("first", changing),
        broken,
        noting("second", blocking),
        noting("third", HookOutcome::default()),
    ];
    let (outcome, problems) = call_callbacks(all, &call(json!({"command": "a"}))).await;
    assert_eq!(
        *order.lock().unwrap(),
        [
            ("first", json!({"command": "a"})),
            ("second", json!({"command": "b"})),
            ("third", json!({"command": "b"}))
        ]
    );
    assert_eq!(
        (outcome.block.as_deref(), outcome.input),
        (Some("no"), Some(json!({"command": "b"})))
    );
    assert_eq!(
        problems,
        ["the pre_tool_call hook `broken` failed: it crashed"]
    );
}

#[tokio::test]
async fn call_returns_the_strictest_decision() {
    let deciding = |decision| {
        callback_at(HookPoint::PreToolCall, "x", move |_| HookOutcome {
            permission: decision,
            ..HookOutcome::default()
        })
    };
    let all = vec![
        deciding(Some(Decision::Allow)),
        deciding(Some(Decision::Ask)),
        deciding(None),
    ];
    assert_eq!(
        call_callbacks(all, &call(json!({}))).await.0.permission,
        Some(Decision::Ask)
    );
}

#[tokio::test]
async fn command_hook_reads_json_and_blocks_with_exit_code_two() {
    let line = r#"grep -q '"tool_name":"execute_command"' && { echo "not today" >&2; exit 2; }"#;
    let (outcome, problems) = call_callbacks(
        command_hook(HookPoint::PreToolCall, line),
        &call(json!({"command": "ls"})),
    )
    .await;
    assert_eq!(
        (outcome.block.as_deref(), problems),
        (Some("not today"), vec![])
    );
}

#[tokio::test]
async fn command_hook_receives_every_documented_field() {
    let line = "cat >&2; exit 2";
    let event = HookEvent::PostToolCall {
        tool: ToolName {
            name: "read_file".into(),
            also: vec!["Read".into()],
        },
        tool_use_id: "t1".into(),
        tool_input: json!({"path": "a\0b"}),
        tool_response: ToolResponse {
            status: haft_types::ToolStatus::Success,
            text: "x".into(),
        },
    };
    let (outcome, _) = call_callbacks(command_hook(HookPoint::PostToolCall, line), &event).await;
    let told: Value = serde_json::from_str(&outcome.block.unwrap()).unwrap();
    assert_eq!(
        told,
        json!({
            "session_id": "c1", "cwd": "/", "permission_mode": "ask", "hook_event_name": "post_tool_call",
            "tool_name": "read_file", "tool_use_id": "t1", "tool_input": {"path": "a\0b"},
            "tool_response": {"status": "success", "text": "x"},
        })
    );
}

#[tokio::test]
async fn command_hook_output_sets_the_outcome() {
    let print = |json: Value| command_hook(HookPoint::PreToolCall, &format!("echo '{json}'"));
    let specific = |fields: Value| json!({"hookSpecificOutput": fields});
    let cases = [
        (
            specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "r"})),
            HookOutcome {
                block: Some("r".into()),
                ..HookOutcome::default()
            },
        ),
        (
            specific(json!({"permissionDecision": "allow"})),
            HookOutcome {
                permission: Some(Decision::Allow),
                ..HookOutcome::default()
            },
        ),
        (
            specific(json!({"updatedInput": {"command": "b"}})),
            HookOutcome {
                input: Some(json!({"command": "b"})),
                ..HookOutcome::default()
            },
        ),
        (
            specific(json!({"additionalContext": "c"})),
            HookOutcome {
                context: vec!["c".into()],
                ..HookOutcome::default()
            },
        ),
        (
            json!({"continue": false, "stopReason": "s"}),
            HookOutcome {
                stop: Some("s".into()),
                ..HookOutcome::default()
            },
        ),
        (
            json!({"systemMessage": "m", "suppressOutput": true}),
            HookOutcome {
                messages: vec!["m".into()],
                ..HookOutcome::default()
            },
        ),
        (
            json!({"decision": "block", "reason": "b"}),
            HookOutcome {
                block: Some("b".into()),
                ..HookOutcome::default()
            },
        ),
        (json!({}), HookOutcome::default()),
    ];
    for (printed, expected) in cases {
        assert_eq!(
            call_callbacks(print(printed.clone()), &call(json!({}))).await,
            (expected, vec![]),
            "{printed}"
        );
    }
}

#[test]
fn join_approves_only_the_arguments_that_were_seen() {
    let leave = |permission| HookOutcome {
        permission: Some(permission),
        ..HookOutcome::default()
    };
    let change = || HookOutcome {
        input: Some(json!({"command": "rm -rf ."})),
        ..HookOutcome::default()
    };
    let joined = |all: Vec<HookOutcome>| {
        let mut first = HookOutcome::default();
        for next in all {
            first.merge(next);
        }
        first.permission
    };
    assert_eq!(joined(vec![leave(Decision::Allow), change()]), None);
    assert_eq!(
        joined(vec![change(), leave(Decision::Allow)]),
        Some(Decision::Allow)
    );
    assert_eq!(
        joined(vec![leave(Decision::Ask), change()]),
        Some(Decision::Ask)
    );
    let both = HookOutcome {
        permission: Some(Decision::Allow),
        ..change()
    };
    assert_eq!(joined(vec![both.clone()]), Some(Decision::Allow));
    assert_eq!(joined(vec![both, change()]), None);
}

#[tokio::test]
async fn command_hook_output_is_context_only_for_documented_events() {
    let prompt = HookEvent::UserPromptSubmit {
        prompt: "hi".into(),
    };
    let (outcome, _) = call_callbacks(
        command_hook(HookPoint::UserPromptSubmit, "echo it is raining"),
        &prompt,
    )
    .await;
    assert_eq!(outcome.context, ["it is raining"]);
    let (outcome, _) = call_callbacks(
        command_hook(HookPoint::PreToolCall, "echo it is raining"),
        &call(json!({})),
    )
    .await;
    assert_eq!(outcome, HookOutcome::default());
}

#[tokio::test]
async fn command_hook_that_cannot_block_shows_a_message() {
    let event = HookEvent::PreCompact {
        trigger: "auto",
        rounds: 3,
    };
    let (outcome, problems) = call_callbacks(
        command_hook(HookPoint::PreCompact, "echo no >&2; exit 2"),
        &event,
    )
    .await;
    assert_eq!(
        (outcome.block, outcome.messages, problems),
        (None, vec!["no".to_owned()], vec![])
    );
}

#[tokio::test]
async fn command_hook_failures_are_reported_without_effect() {
    let cases = [
        ("exit 1", "exit code 1"),
        ("echo broken >&2; exit 7", "exit code 7: broken"),
        ("kill -9 $$", "signal 9"),
        ("sleep 60", "longer than 2 s"),
        ("sleep 60 & sleep 60", "longer than 2 s"),
        ("echo '{\"decision\": '", "cannot be read"),
        ("echo '{\"decision\": \"maybe\"}'", "`maybe` is no decision"),
        (
            "echo '{\"hookSpecificOutput\": {\"updatedInput\": 3}}'",
            "not an object",
        ),
        ("nonexistent-program", "exit code 127"),
        (
            "head -c 100000000 /dev/zero | tr '\\0' x",
            "printed 100000000 bytes",
        ),
    ];
    for (line, told) in cases {
        let (outcome, problems) =
            call_callbacks(command_hook(HookPoint::PreToolCall, line), &call(json!({}))).await;
        assert_eq!(outcome, HookOutcome::default(), "{line}");
        assert!(
            problems.len() == 1 && problems[0].contains(told),
            "{line}: {problems:?}"
        );
    }
}

#[tokio::test]
async fn matcher_matches_all_names_of_a_tool() {
    for (matcher, fits) in [
        ("execute_command", true),
        ("Bash", true),
        ("Bas", false),
        ("Edit|Write", false),
        ("*", true),
    ] {
        let config = format!(
            "[[PreToolUse]]\nmatcher = \"{matcher}\"\nhooks = [{{ command = \"exit 2\", sandbox = false }}]\n"
        );
        let (outcome, _) = call_callbacks(hooks_from_config(&config), &call(json!({}))).await;
        assert_eq!(outcome.block.is_some(), fits, "{matcher}");
    }
}

#[tokio::test]
async fn call_starts_no_command_after_cancel() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let event = call(json!({}));
    let place = PathBuf::from("/");
    let context = HookContext {
        event: &event,
        conversation_id: "",
        cwd: &place,
        root: &place,
        mode: PermissionMode::Ask,
        cancel: &cancel,
    };
    // The command would create the file if it ran.
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("started");
    let hooks = Callbacks::new(command_hook(
        HookPoint::PreToolCall,
        &format!("touch {}", trace.display()),
    ));
    assert_eq!(hooks.call(&context).await, (HookOutcome::default(), vec![]));
    assert!(!trace.exists());
}

/// Approves every request and records its reason.
struct Agreeing(Mutex<Vec<String>>);

#[async_trait]
impl Approver for Agreeing {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        self.0.lock().unwrap().push(approval.reason.clone());
        ApprovalReply::Once
    }

    async fn save_rules(&self, _rules: &[String]) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn start_guard_asks_before_unconfined_or_changed_commands() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    std::fs::write(root.join("fmt.sh"), "one").unwrap();
    let lines = vec!["sh fmt.sh".to_owned()];
    let trusted = Footprint::read_files_named_by(&root, &root, &lines)
        .files()
        .clone();
    let request = |level, layer, can_ask| StartRequest {
        name: "hook",
        lines: lines.clone(),
        level,
        root: &root,
        cwd: &root,
        layer,
        can_ask,
    };
    for (level, layer, asked) in [
        (Level::Project, SandboxLayer::Namespace, 0),
        (Level::User, SandboxLayer::Namespace, 0),
        (Level::Project, SandboxLayer::Landlock, 1),
        (Level::User, SandboxLayer::Landlock, 0),
        (Level::Project, SandboxLayer::None, 1),
        (Level::User, SandboxLayer::None, 1),
    ] {
        let person = Arc::new(Agreeing(Mutex::default()));
        let guard = StartGuard::new(
            Some(Arc::clone(&person) as _),
            Arc::default(),
            trusted.clone(),
        );
        for _ in 0..2 {
            assert_eq!(guard.check(&request(level, layer, true)).await, Ok(()));
        }
        assert_eq!(
            person.0.lock().unwrap().len(),
            asked,
            "once: {level:?} {layer:?}"
        );
        let alone = StartGuard::new(None, Arc::default(), trusted.clone());
        let refused = |checked: Result<(), StartRefusal>| checked.map_err(|refusal| refusal.again);
        let expected = |again| if asked == 0 { Ok(()) } else { Err(again) };
        assert_eq!(
            refused(alone.check(&request(level, layer, true)).await),
            expected(false),
            "{level:?} {layer:?}"
        );
        assert_eq!(
            refused(alone.check(&request(level, layer, true)).await),
            expected(true),
            "{level:?} {layer:?}"
        );
    }
    let person = Arc::new(Agreeing(Mutex::default()));
    let guard = StartGuard::new(Some(Arc::clone(&person) as _), Arc::default(), trusted);
    for content in ["two", "three"] {
        std::fs::write(root.join("fmt.sh"), content).unwrap();
        assert!(
            guard
                .check(&request(Level::Project, SandboxLayer::Namespace, false))
                .await
                .is_err(),
            "not now"
        );
        for _ in 0..2 {
            assert_eq!(
                guard
                    .check(&request(Level::Project, SandboxLayer::Namespace, true))
                    .await,
                Ok(())
            );
        }
        assert_eq!(
            guard
                .check(&request(Level::User, SandboxLayer::Namespace, true))
                .await,
            Ok(()),
            "the user's own word"
        );
    }
    let asked = person.0.lock().unwrap().clone();
    assert_eq!(
        asked, ["`fmt.sh` changed since the folder was trusted"; 2],
        "for each content once"
    );
}

#[tokio::test]
async fn start_guard_waits_for_an_earlier_question() {
    let shared = Arc::new(DecisionState::default());
    let person = Arc::new(Agreeing(Mutex::default()));
    let guard = StartGuard::new(
        Some(Arc::clone(&person) as _),
        Arc::clone(&shared),
        BTreeMap::new(),
    );
    let here = Path::new("/");
    let request = |can_ask| StartRequest {
        name: "hook",
        lines: vec!["true".to_owned()],
        level: Level::User,
        root: here,
        cwd: here,
        layer: SandboxLayer::None,
        can_ask,
    };
    let turn = shared.lock_prompt().await;
    let now = guard.check(&request(false)).await;
    assert!(now.is_err(), "where nobody can be asked nobody waits");
    let asked = request(true);
    let mut asking = Box::pin(guard.check(&asked));
    assert!(futures::poll!(&mut asking).is_pending());
    assert!(person.0.lock().unwrap().is_empty(), "somebody else asks");
    drop(turn);
    assert_eq!(asking.await, Ok(()));
    assert_eq!(person.0.lock().unwrap().len(), 1);
}
