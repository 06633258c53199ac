//! Examples that go with a rule: it alone must decide them, or leave them alone.

use haft_tool::{Access, FileUse, Intent, Workspace};
use haft_types::{Decision, PermissionMode};

use super::rule::{HOST_TOOLS, PermissionRule, READ_TOOLS, WRITE_TOOLS};
use super::{Confinement, PermissionRequest, PermissionRules, Permissions, ProjectFiles};

/// Whether a rule decides an example.
pub(super) struct ExampleOutcome {
    pub(super) decides: bool,
    pub(super) why: String,
}

/// Whether this rule, standing alone, gives its decision for a command line, a path or a host.
pub(super) fn decides(rule: &PermissionRule, decision: Decision, example: &str) -> ExampleOutcome {
    // A project that exists nowhere: examples say what a rule means, whatever lies on this disk.
    let root = "/nowhere/project";
    let workspace = Workspace {
        root: root.into(),
        extra: Vec::new(),
        cwd: root.into(),
        spill: "/nowhere/spill".into(),
        journal: "/nowhere/journal".into(),
    };
    let access = match rule.tool() {
        tool if READ_TOOLS.contains(&tool) => Access::Read,
        tool if WRITE_TOOLS.contains(&tool) => Access::Write,
        tool if HOST_TOOLS.contains(&tool) => Access::Read,
        _ => Access::Execute,
    };
    let intent = match access {
        Access::Read if HOST_TOOLS.contains(&rule.tool()) => {
            Intent::Hosts(vec![example.to_owned()])
        }
        Access::Read | Access::State => Intent::Files(vec![FileUse::Read(example.to_owned())]),
        Access::Write => Intent::Files(vec![FileUse::Write(example.to_owned())]),
        Access::Execute => Intent::Command {
            line: example.to_owned(),
            cwd: None,
        },
    };
    let call = PermissionRequest {
        tool: rule.tool(),
        access,
        intent,
        requires_approval: false,
        leaves_sandbox: false,
        project_files: ProjectFiles::Changing,
    };
    let mut rules = PermissionRules::default().with(decision, rule.clone());
    if decision != Decision::Allow
        && let Ok(everything) = PermissionRule::parse(rule.tool(), None)
    {
        // What it asks or denies would be allowed without it.
        rules = rules.with(Decision::Allow, everything);
    }
    let permissions = Permissions {
        mode: PermissionMode::Ask,
        rules,
        confinement: Confinement::None,
    };
    let verdict = permissions.decide(&call, &workspace);
    let by_rule = verdict
        .parts
        .iter()
        .any(|part| part.rule.as_deref() == Some(rule.text()) && part.decision == decision)
        || verdict.rule.as_deref() == Some(rule.text());
    ExampleOutcome {
        decides: verdict.decision == decision && by_rule,
        why: verdict.reason,
    }
}
