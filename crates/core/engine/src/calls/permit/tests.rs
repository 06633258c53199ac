use std::collections::VecDeque;

use async_trait::async_trait;
use haft_permission::{Confinement, PermissionRules, PermissionsConfig, ProjectFiles};
use haft_tool::{Access, Intent, ToolContext, ToolOutput};
use haft_types::ToolSpec;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

/// A tool that only reports that it ran.
struct Fake(ToolSpec, Access);

impl Fake {
    fn new(name: &str, access: Access) -> Self {
        let required = if access == Access::Execute {
            "command"
        } else {
            "path"
        };
        let parameters = json!({ "type": "object", "required": [required] });
        Self(
            ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters,
            },
            access,
        )
    }
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self) -> Access {
        self.1
    }

    fn intent(&self, arguments: &Value) -> Intent {
        match self.1 {
            Access::State => Intent::Nothing,
            Access::Read => Intent::for_read(arguments, "path"),
            Access::Write => Intent::for_write(arguments, "path"),
            Access::Execute => Intent::for_command(arguments),
        }
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> ToolOutput {
        Envelope::success(format!("ran {arguments}")).into()
    }
}

/// An approver that gives the scripted replies in order and records the requests.
struct Scripted {
    answers: Mutex<VecDeque<ApprovalReply>>,
    asked: Mutex<Vec<Approval>>,
    written: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = ApprovalReply>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
            written: Mutex::default(),
        })
    }
}

#[async_trait]
impl Approver for Scripted {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        self.asked.lock().unwrap().push(approval.clone());
        self.answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("asked more often than expected")
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.written.lock().unwrap().extend_from_slice(rules);
        Ok(())
    }
}

fn permit(allow: &[&str], deny: &[&str], approver: Option<Arc<dyn Approver>>) -> Permit {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let config = PermissionsConfig {
        allow: owned(allow),
        deny: owned(deny),
        ..PermissionsConfig::default()
    };
    let rules = PermissionRules::load(&config, None).unwrap();
    Permit::new(
        Permissions {
            mode: PermissionMode::Ask,
            rules,
            confinement: Confinement::None,
        },
        approver,
        workspace(),
    )
}

fn workspace() -> Workspace {
    let root = PathBuf::from("/nowhere/project");
    Workspace {
        cwd: root.clone(),
        root,
        extra: Vec::new(),
        spill: "/nowhere/spill".into(),
        journal: "/nowhere/journal".into(),
    }
}

fn context() -> ToolContext {
    ToolContext {
        workspace: workspace(),
        ..ToolContext::bare("/nowhere/project", "call", CancellationToken::new())
    }
}

fn execute_command_tool() -> Fake {
    Fake::new("execute_command", Access::Execute)
}

fn command_arguments(command: &str) -> Value {
    json!({ "command": command, "requires_approval": false })
}

/// Regression test: a small model requested to leave the sandbox for every command, and repeated
/// the request after each refusal.
#[tokio::test]
async fn decide_refuses_to_leave_the_sandbox_without_need() {
    let decide = async |confinement, rule: &str, more: Value| {
        let mut arguments = json!({"command": "python3 secret.py"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let permit = permit(&[rule], &[], None);
        permit.permissions.lock().unwrap().confinement = confinement;
        permit
            .decide(
                &execute_command_tool(),
                &context(),
                &arguments,
                Opinion::None,
                ProjectFiles::Unchanging,
            )
            .await
            .map_err(|denied| denied.envelope.text)
    };
    let outside = json!({"sandbox": "outside"});
    let approval = json!({"sandbox": "outside", "requires_approval": true});
    let all = "execute_command";
    let none = "execute_command(ls:*)";
    let told = decide(Confinement::Sandbox, all, outside.clone())
        .await
        .unwrap_err();
    assert!(
        told.contains("send the same call without `sandbox`") && !told.contains("yolo"),
        "{told}"
    );
    // A request to leave is refused in the sandbox, too, if the call needs approval anyway or the
    // model requests a review.
    for (rule, more) in [(none, outside.clone()), (all, approval)] {
        let told = decide(Confinement::Sandbox, rule, more).await.unwrap_err();
        assert!(!told.contains("without `sandbox`"), "{told}");
    }
    assert_eq!(
        decide(Confinement::None, all, outside).await,
        Ok(Granted::default())
    );
}

#[tokio::test]
async fn decide_refuses_without_an_approver_what_needs_approval() {
    let permit = permit(&["execute_command(ls:*)"], &["execute_command(rm:*)"], None);
    assert_eq!(
        permit
            .decide(
                &execute_command_tool(),
                &context(),
                &command_arguments("ls -l"),
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
    let denied = permit
        .decide(
            &execute_command_tool(),
            &context(),
            &command_arguments("make check"),
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    assert!(denied.needs_user);
    assert!(
        denied.envelope.text.contains("nobody can be asked"),
        "{}",
        denied.envelope.text
    );
    assert!(
        denied
            .envelope
            .text
            .contains("haft permissions add \"execute_command(make check)\""),
        "{}",
        denied.envelope.text
    );
    let denied = permit
        .decide(
            &execute_command_tool(),
            &context(),
            &command_arguments("rm x"),
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    assert!(
        denied
            .envelope
            .text
            .contains("the rule `execute_command(rm:*)` denies `rm x`"),
        "{}",
        denied.envelope.text
    );
    let outside = permit
        .decide(
            &Fake::new("read_file", Access::Read),
            &context(),
            &json!({ "path": "/etc/passwd" }),
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    assert_eq!(
        outside.envelope.error.map(|error| error.code),
        Some("outside_workspace".into())
    );
    assert!(!outside.needs_user);
}

/// Returns the part of the refusal of `arguments` that follows "The user can allow it with".
async fn refusal_advice(
    permit: &Permit,
    tool: &Fake,
    arguments: &Value,
    opinion: Opinion,
) -> String {
    let denied = permit
        .decide(
            tool,
            &context(),
            arguments,
            opinion,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    let text = denied.envelope.text;
    text.split("The user can allow it with ")
        .nth(1)
        .unwrap_or_else(|| panic!("{text}"))
        .to_owned()
}

#[tokio::test]
async fn refusal_names_only_options_that_allow_the_call() {
    let write = Fake::new("write_to_file", Access::Write);
    let confined = |permit: Permit| {
        permit.permissions.lock().unwrap().confinement = Confinement::Sandbox;
        permit
    };
    let none = permit(&[], &[], None);
    assert_eq!(
        refusal_advice(&none, &write, &json!({"path": "a.txt"}), Opinion::None).await,
        "`haft permissions add \"write_to_file(a.txt)\"`, or `--permission-mode accept-edits` (all edits in the project)."
    );
    let terminal = "an answer at a terminal: `haft`, or `haft run --ask`.";
    let rule = "`haft permissions add \"execute_command(make)\"`";
    let auto = "`--permission-mode auto` (all commands, inside the sandbox)";
    // Without a sandbox, only the mode that no advice names would run the command.
    assert_eq!(
        refusal_advice(
            &none,
            &execute_command_tool(),
            &command_arguments("make"),
            Opinion::None
        )
        .await,
        format!("{rule}.")
    );
    assert_eq!(
        refusal_advice(
            &none,
            &execute_command_tool(),
            &command_arguments("python3 -c x"),
            Opinion::None
        )
        .await,
        terminal
    );
    let held = confined(permit(&[], &[], None));
    assert_eq!(
        refusal_advice(
            &held,
            &execute_command_tool(),
            &command_arguments("make"),
            Opinion::None
        )
        .await,
        format!("{rule}, or {auto}.")
    );
    assert_eq!(
        refusal_advice(
            &held,
            &execute_command_tool(),
            &command_arguments("python3 -c x"),
            Opinion::None
        )
        .await,
        format!("{auto}.")
    );
    // A hook requires approval regardless of rules and modes.
    assert_eq!(
        refusal_advice(
            &held,
            &execute_command_tool(),
            &command_arguments("make"),
            Opinion::Ask
        )
        .await,
        terminal
    );
    let protected = json!({"path": ".git/config"});
    assert_eq!(
        refusal_advice(&held, &write, &protected, Opinion::None).await,
        terminal
    );
    let outside = json!({"path": "/etc/it's $HOME/x"});
    let read = Fake::new("read_file", Access::Read);
    let folder = r"`--add-dir '/etc/it'\''s $HOME'` (everything in this folder).";
    let told = refusal_advice(&held, &read, &outside, Opinion::None).await;
    assert!(
        told.ends_with(folder) && told.contains(r"add 'read_file(/etc/it'\''s $HOME/x)'`"),
        "{told}"
    );
    let told = refusal_advice(&held, &write, &outside, Opinion::None).await;
    assert!(
        told.contains(r"$HOME' --permission-mode accept-edits` (everything in this folder)"),
        "{told}"
    );
}

#[tokio::test]
async fn refusal_in_plan_mode_names_only_options_that_allow_the_call() {
    let plan = |deny: &[&str], approver: Option<Arc<dyn Approver>>| {
        let permit = permit(&["execute_command(ls:*)"], deny, approver);
        permit.set_mode(PermissionMode::Plan);
        permit.permissions.lock().unwrap().confinement = Confinement::Sandbox;
        permit
    };
    let tool = execute_command_tool();
    let make = command_arguments("make");
    let alone = plan(&[], None);
    let end = " Do not try to get around it; say what you would have done.";
    for (arguments, opinion, ways) in [
        (
            make.clone(),
            Opinion::None,
            "`--allow \"execute_command(make)\" --permission-mode ask`, or `--permission-mode auto` (all commands, inside the sandbox).",
        ),
        (
            command_arguments("ls -l"),
            Opinion::None,
            "`--permission-mode ask`.",
        ),
        (
            make.clone(),
            Opinion::Ask,
            "an answer at a terminal: `haft --permission-mode ask`, or `haft run --ask --permission-mode ask`.",
        ),
    ] {
        assert_eq!(
            refusal_advice(&alone, &tool, &arguments, opinion).await,
            format!("{ways}{end}")
        );
    }
    let outside = json!({"path": "/etc/x"});
    let write = Fake::new("write_to_file", Access::Write);
    assert_eq!(
        refusal_advice(&alone, &write, &outside, Opinion::None).await,
        format!(
            "`--allow \"write_to_file(/etc/x)\" --permission-mode ask`, or `--add-dir /etc --permission-mode accept-edits` (everything in this folder).{end}"
        )
    );
    let attended = plan(&[], Some(Scripted::new([]) as _));
    assert_eq!(
        refusal_advice(&attended, &tool, &make, Opinion::None).await,
        format!("permission mode `ask`, which asks first.{end}")
    );
    // No mode helps against a rule that denies the call.
    let denied = plan(&["execute_command(make:*)"], None)
        .decide(
            &tool,
            &context(),
            &make,
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    assert!(
        !denied.envelope.text.contains("can allow it"),
        "{}",
        denied.envelope.text
    );
}

#[tokio::test]
async fn approval_request_shows_the_whole_call_and_obeys_the_reply() {
    let approver = Scripted::new([
        ApprovalReply::Once,
        ApprovalReply::No {
            reason: "use make instead".into(),
        },
        ApprovalReply::Always,
    ]);
    let permit = permit(&[], &[], Some(Arc::clone(&approver) as _));
    let write = Fake::new("write_to_file", Access::Write);
    let arguments = json!({ "path": "a.txt", "content": "one\ntwo\n" });
    assert_eq!(
        permit
            .decide(
                &write,
                &context(),
                &arguments,
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
    let denied = permit
        .decide(
            &execute_command_tool(),
            &context(),
            &command_arguments("cargo build"),
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap_err();
    assert!(
        denied.envelope.text.contains("They said: use make instead"),
        "{}",
        denied.envelope.text
    );
    assert!(!denied.needs_user);
    assert_eq!(
        permit
            .decide(
                &execute_command_tool(),
                &context(),
                &command_arguments("make"),
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
    // The approval was remembered: no second request.
    assert_eq!(
        permit
            .decide(
                &execute_command_tool(),
                &context(),
                &command_arguments("make"),
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
    let asked = approver.asked.lock().unwrap();
    assert_eq!(asked[0].subject, "path: a.txt\ncontent:\none\ntwo\n");
    assert_eq!(asked[1].subject, "cargo build");
    assert_eq!(*approver.written.lock().unwrap(), ["execute_command(make)"]);
    assert_eq!(asked.len(), 3);
}

#[tokio::test]
async fn decide_grants_an_approved_file_outside_the_project() {
    let approver = Scripted::new([ApprovalReply::Once]);
    let permit = permit(&[], &[], Some(approver as _));
    let granted = permit
        .decide(
            &Fake::new("read_file", Access::Read),
            &context(),
            &json!({ "path": "/etc/hosts" }),
            Opinion::None,
            ProjectFiles::Unchanging,
        )
        .await
        .unwrap();
    assert_eq!(granted.outside, [PathBuf::from("/etc/hosts")]);
}

#[tokio::test]
async fn decide_leaves_incomplete_arguments_to_the_tool() {
    let permit = permit(&[], &[], None);
    assert_eq!(
        permit
            .decide(
                &execute_command_tool(),
                &context(),
                &json!({ "requires_approval": false }),
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
    assert_eq!(
        permit
            .decide(
                &Fake::new("write_to_file", Access::Write),
                &context(),
                &json!({}),
                Opinion::None,
                ProjectFiles::Unchanging
            )
            .await,
        Ok(Granted::default())
    );
}

#[tokio::test]
async fn arguments_are_decided_as_they_would_run() {
    // A hook may have changed them before; nothing can change them afterwards.
    let strict = permit(&["execute_command(ls:*)"], &["execute_command(rm:*)"], None);
    let files = ProjectFiles::Changing;
    for (changed, runs) in [("ls -a", true), ("rm x", false), ("make", false)] {
        let decided = strict
            .decide(
                &execute_command_tool(),
                &context(),
                &command_arguments(changed),
                Opinion::None,
                files,
            )
            .await;
        assert_eq!(decided.is_ok(), runs, "{changed}");
    }
    let asked = Scripted::new([ApprovalReply::Once]);
    let asking = permit(&[], &[], Some(asked as _));
    let read = Fake::new("read_file", Access::Read);
    let path = json!({ "path": "/etc/hosts" });
    let granted = asking
        .decide(&read, &context(), &path, Opinion::None, files)
        .await
        .unwrap();
    assert_eq!(granted.outside, [PathBuf::from("/etc/hosts")]);
}

#[tokio::test]
async fn decide_lets_opinions_change_questions_but_not_rules() {
    let permit = permit(&["execute_command(ls:*)"], &["execute_command(rm:*)"], None);
    for (command, opinion, runs) in [
        ("ls", Opinion::None, true),
        ("ls", Opinion::Ask, false),
        ("make", Opinion::None, false),
        ("make", Opinion::Allow, true),
        ("rm x", Opinion::Allow, false),
    ] {
        let decided = permit
            .decide(
                &execute_command_tool(),
                &context(),
                &command_arguments(command),
                opinion,
                ProjectFiles::Unchanging,
            )
            .await;
        assert_eq!(decided.is_ok(), runs, "{command} {opinion:?}");
    }
}
