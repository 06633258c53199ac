//! Tests of calls to tools of MCP servers.

use haft_tool::{Access, Intent, Workspace};
use haft_types::{Decision, PermissionMode};

use crate::{
    PermissionRequest, PermissionRule, PermissionRules, Permissions, ProjectFiles, Verdict,
};

fn decide(mode: PermissionMode, rules: &[(Decision, &str)], server: &str, tool: &str) -> Verdict {
    let rules = rules
        .iter()
        .fold(PermissionRules::default(), |rules, (by, text)| {
            rules.with_rule(*by, PermissionRule::parse(text, None).unwrap())
        });
    let call = PermissionRequest {
        tool: "use_mcp_tool",
        access: Access::Execute,
        intent: Intent::Server {
            server: server.into(),
            tool: tool.into(),
        },
        requires_approval: false,
        leaves_sandbox: false,
        project_files: ProjectFiles::Unchanging,
    };
    let nowhere = std::path::PathBuf::from("/nonexistent");
    let workspace = Workspace {
        root: nowhere.clone(),
        extra: Vec::new(),
        cwd: nowhere.clone(),
        spill: nowhere.clone(),
        journal: nowhere,
    };
    Permissions {
        mode,
        rules,
        ..Permissions::default()
    }
    .decide(&call, &workspace)
}

#[test]
fn mcp_tool_needs_approval_and_is_remembered_by_its_mcp_name() {
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let verdict = decide(mode, &[], "github", "create_issue");
        assert_eq!(verdict.decision, Decision::Ask, "{mode:?}");
        assert_eq!(verdict.remember, ["mcp__github__create_issue"]);
    }
    assert_eq!(
        decide(PermissionMode::Plan, &[], "github", "list").decision,
        Decision::Deny
    );
    assert_eq!(
        decide(PermissionMode::Yolo, &[], "github", "list").decision,
        Decision::Allow
    );
}

#[test]
fn mcp_rules_name_a_tool_a_server_or_a_prefix() {
    use Decision::{Allow, Ask};
    for (rule, server, tool, wanted) in [
        ("mcp__github__list", "github", "list", Allow),
        ("mcp__github__list", "github", "lists", Ask),
        ("mcp__github__list", "github2", "list", Ask),
        ("mcp__github", "github", "anything", Allow),
        ("mcp__github", "github2", "anything", Ask),
        ("mcp__github__*", "github", "anything", Allow),
        ("mcp__github__get_*", "github", "get_me", Allow),
        ("mcp__github__get_*", "github", "set_me", Ask),
        ("mcp__git*", "github", "list", Ask),
        ("mcp__*", "github", "list", Ask),
        ("mcp__s__a/b:c", "s", "a/b:c", Allow),
        ("use_mcp_tool", "github", "list", Allow),
        ("execute_command", "github", "list", Ask),
    ] {
        let verdict = decide(PermissionMode::Ask, &[(Allow, rule)], server, tool);
        assert_eq!(
            verdict.decision, wanted,
            "{rule} and {server}/{tool}: {}",
            verdict.reason
        );
    }
}

#[test]
fn mcp_deny_overrides_ask_and_ask_overrides_allow() {
    let both = [
        (Decision::Allow, "mcp__s"),
        (Decision::Deny, "mcp__s__drop"),
    ];
    for mode in [PermissionMode::Ask, PermissionMode::Yolo] {
        assert_eq!(decide(mode, &both, "s", "drop").decision, Decision::Deny);
        assert_eq!(decide(mode, &both, "s", "list").decision, Decision::Allow);
        assert_eq!(
            decide(mode, &[(Decision::Deny, "use_mcp_tool")], "s", "list").decision,
            Decision::Deny
        );
    }
    let asking = [(Decision::Allow, "mcp__s"), (Decision::Ask, "mcp__s__drop")];
    let verdict = decide(PermissionMode::Ask, &asking, "s", "drop");
    assert_eq!(
        (verdict.decision, verdict.remember),
        (Decision::Ask, Vec::new()),
        "no rule would help"
    );
    assert_eq!(
        decide(PermissionMode::Yolo, &asking, "s", "drop").decision,
        Decision::Allow
    );
}
