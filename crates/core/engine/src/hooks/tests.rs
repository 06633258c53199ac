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
async fn called(
    callbacks: Vec<Arc<dyn Callback>>,
    event: &HookEvent,
) -> (HookOutcome, Vec<String>) {
    let cancel = CancellationToken::new();
    let place = PathBuf::from("/");
    let context = HookContext {
        event,
        conversation_id: "c1",
        cwd: &place,
        root: &place,
        mode: PermissionMode::Ask,
        cancel: &cancel,
    };
    Callbacks::new(callbacks).call(&context).await
}

/// Returns the hooks of a user's configuration.
fn commands(config: &str) -> Vec<Arc<dyn Callback>> {
    let config: HooksConfig = toml::from_str(config).unwrap();
    let paths = KnowledgePaths {
        root: "/".into(),
        cwd: "/".into(),
        trusted: false,
        user: "/nowhere".into(),
        home: None,
    };
    let found = hooks::load(&paths, &config, "/u/config.toml".as_ref(), &mut Vec::new());
    let supervisor = Arc::new(Supervisor::for_tests().unwrap());
    let environment = Arc::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    let guard = Arc::new(StartGuard::new(None, Arc::default(), BTreeMap::new()));
    let host = Arc::new(HookHost {
        supervisor,
        environment,
        sandbox: Sandbox::off("a test"),
        guard,
    });
    found
        .into_iter()
        .map(|hook| Arc::new(CommandHook::new(hook, Arc::clone(&host))) as Arc<dyn Callback>)
        .collect()
}

/// Returns one user hook for `point`.
fn command(point: HookPoint, line: &str) -> Vec<Arc<dyn Callback>> {
    // Only commands that never finish by themselves should time out.
    let timeout = if line.contains("sleep") { 2 } else { 60 };
    commands(&format!(
        "[[{point}]]\nhooks = [{{ command = '''{line}''', timeout = {timeout}, sandbox = false }}]\n"
    ))
}

#[tokio::test]
async fn all_are_called_in_order_even_if_one_fails() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str, outcome: HookOutcome| {
        let order = Arc::clone(&order);
        on(HookPoint::PreToolCall, name, move |context| {
            let HookEvent::PreToolCall { tool_input, .. } = context.event else {
                panic!("another point")
            };
            order.lock().unwrap().push((name, tool_input.clone()));
            outcome.clone()
        })
    };
    let broken = on(HookPoint::PreToolCall, "broken", |_| {
        panic!("a bug in a callback")
    });
    let elsewhere = on(HookPoint::Stop, "elsewhere", |_| {
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
    let (outcome, problems) = called(all, &call(json!({"command": "a"}))).await;
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
async fn the_strictest_decision_counts() {
    let deciding = |decision| {
        on(HookPoint::PreToolCall, "x", move |_| HookOutcome {
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
        called(all, &call(json!({}))).await.0.permission,
        Some(Decision::Ask)
    );
}

#[tokio::test]
async fn a_command_reads_json_and_exit_code_two_blocks() {
    let line = r#"grep -q '"tool_name":"execute_command"' && { echo "not today" >&2; exit 2; }"#;
    let (outcome, problems) = called(
        command(HookPoint::PreToolCall, line),
        &call(json!({"command": "ls"})),
    )
    .await;
    assert_eq!(
        (outcome.block.as_deref(), problems),
        (Some("not today"), vec![])
    );
}

#[tokio::test]
async fn a_command_is_told_everything_documented() {
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
    let (outcome, _) = called(command(HookPoint::PostToolCall, line), &event).await;
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
async fn what_a_command_prints_is_carried_out() {
    let print = |json: Value| command(HookPoint::PreToolCall, &format!("echo '{json}'"));
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
            called(print(printed.clone()), &call(json!({}))).await,
            (expected, vec![]),
            "{printed}"
        );
    }
}

#[test]
fn leave_is_given_for_the_arguments_that_were_seen() {
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
            first.join(next);
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
async fn words_are_context_only_where_that_is_documented() {
    let prompt = HookEvent::UserPromptSubmit {
        prompt: "hi".into(),
    };
    let (outcome, _) = called(
        command(HookPoint::UserPromptSubmit, "echo it is raining"),
        &prompt,
    )
    .await;
    assert_eq!(outcome.context, ["it is raining"]);
    let (outcome, _) = called(
        command(HookPoint::PreToolCall, "echo it is raining"),
        &call(json!({})),
    )
    .await;
    assert_eq!(outcome, HookOutcome::default());
}

#[tokio::test]
async fn where_nothing_can_be_kept_from_happening_the_user_is_told() {
    let event = HookEvent::PreCompact {
        trigger: "auto",
        rounds: 3,
    };
    let (outcome, problems) = called(
        command(HookPoint::PreCompact, "echo no >&2; exit 2"),
        &event,
    )
    .await;
    assert_eq!(
        (outcome.block, outcome.messages, problems),
        (None, vec!["no".to_owned()], vec![])
    );
}

#[tokio::test]
async fn failures_of_every_kind_are_told_and_no_more() {
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
            called(command(HookPoint::PreToolCall, line), &call(json!({}))).await;
        assert_eq!(outcome, HookOutcome::default(), "{line}");
        assert!(
            problems.len() == 1 && problems[0].contains(told),
            "{line}: {problems:?}"
        );
    }
}

#[tokio::test]
async fn a_matcher_knows_a_tool_by_all_its_names() {
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
        let (outcome, _) = called(commands(&config), &call(json!({}))).await;
        assert_eq!(outcome.block.is_some(), fits, "{matcher}");
    }
}

#[tokio::test]
async fn a_cancelled_run_does_not_wait() {
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
    let hooks = Callbacks::new(command(
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

    async fn remember(&self, _rules: &[String]) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn what_starts_by_itself_is_asked_where_nothing_holds_it_or_it_changed() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    std::fs::write(root.join("fmt.sh"), "one").unwrap();
    let lines = vec!["sh fmt.sh".to_owned()];
    let trusted = Footprint::of_lines(&root, &root, &lines).files().clone();
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
async fn a_question_about_a_start_waits_for_its_turn() {
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
    let turn = shared.turn_to_ask().await;
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
