//! Tests of calls that connect to hosts.

use haft_tool::{Access, Intent, Workspace};
use haft_types::{Decision, PermissionMode};

use crate::{
    PermissionRequest, PermissionRule, PermissionRules, Permissions, ProjectFiles, RuleConfig,
    RuleError, Verdict,
};

fn decide(mode: PermissionMode, rules: &[(Decision, &str)], tool: &str, hosts: &[&str]) -> Verdict {
    let rules = rules
        .iter()
        .fold(PermissionRules::default(), |rules, (by, text)| {
            rules.with_rule(*by, PermissionRule::parse(text, None).unwrap())
        });
    let call = PermissionRequest {
        tool,
        access: Access::Read,
        intent: Intent::Hosts(hosts.iter().map(|host| (*host).to_owned()).collect()),
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
fn host_needs_approval_in_every_mode_but_yolo() {
    for mode in [
        PermissionMode::Plan,
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let verdict = decide(mode, &[], "web_crawl", &["docs.rs"]);
        assert_eq!(verdict.decision, Decision::Ask, "{mode:?}");
        assert_eq!(verdict.remember, ["web_crawl(domain:docs.rs)"], "{mode:?}");
    }
    assert_eq!(
        decide(PermissionMode::Yolo, &[], "web_crawl", &["docs.rs"]).decision,
        Decision::Allow
    );
    assert_eq!(
        decide(PermissionMode::Ask, &[], "web_crawl", &[]).decision,
        Decision::Ask
    );
}

#[test]
fn host_rules_allow_exact_names_and_deny_subdomains() {
    use Decision::{Allow, Ask, Deny};
    for (by, rule, host, wanted) in [
        (
            Allow,
            "web_crawl(domain:example.com)",
            "Example.COM.",
            Allow,
        ),
        (Allow, "WebFetch(domain:example.com)", "example.com", Allow),
        (
            Allow,
            "web_crawl(domain:example.com)",
            "www.example.com",
            Ask,
        ),
        (
            Allow,
            "web_crawl(domain:example.com)",
            "badexample.com",
            Ask,
        ),
        (
            Allow,
            "web_crawl(domain:*.example.com)",
            "www.example.com",
            Allow,
        ),
        (Allow, "web_crawl(domain:*.example.com)", "example.com", Ask),
        (
            Allow,
            "web_crawl(domain:*.example.com)",
            "badexample.com",
            Ask,
        ),
        (
            Allow,
            "use_rag_tool(domain:example.com)",
            "example.com",
            Ask,
        ),
        (Allow, "web_crawl", "anything.org", Allow),
        (
            Deny,
            "web_crawl(domain:example.com)",
            "www.example.com",
            Deny,
        ),
        (Deny, "web_crawl(domain:*.example.com)", "example.com", Deny),
        (Deny, "web_crawl(domain:example.com)", "badexample.com", Ask),
        (
            Deny,
            "web_crawl(domain:example.com)",
            "a.EXAMPLE.com.",
            Deny,
        ),
        (Deny, "web_crawl(domain:[::1])", "[0:0:0:0:0:0:0:1]", Deny),
        (Deny, "web_crawl(domain:fd00:0::1)", "[fd00::1]", Deny),
        (
            Deny,
            "web_crawl(domain:xn--bcher-kva.example)",
            "www.xn--bcher-kva.example",
            Deny,
        ),
    ] {
        let verdict = decide(PermissionMode::Ask, &[(by, rule)], "web_crawl", &[host]);
        assert_eq!(
            verdict.decision, wanted,
            "{rule} and {host}: {}",
            verdict.reason
        );
    }
}

#[test]
fn host_rules_decide_by_the_strictest_host() {
    let rules = [
        (Decision::Allow, "web_crawl(domain:a.org)"),
        (Decision::Deny, "web_crawl(domain:b.org)"),
    ];
    assert_eq!(
        decide(PermissionMode::Ask, &rules, "web_crawl", &["a.org"]).decision,
        Decision::Allow
    );
    assert_eq!(
        decide(
            PermissionMode::Yolo,
            &rules,
            "web_crawl",
            &["a.org", "b.org"]
        )
        .decision,
        Decision::Deny
    );
    let asking = [
        (Decision::Allow, "web_crawl"),
        (Decision::Ask, "web_crawl(domain:a.org)"),
    ];
    assert_eq!(
        decide(PermissionMode::Ask, &asking, "web_crawl", &["a.org"]).decision,
        Decision::Ask
    );
}

#[test]
fn host_rule_without_a_host_is_rejected() {
    for text in [
        "web_crawl(example.com)",
        "web_crawl(domain:)",
        "web_crawl(domain:*.)",
        "web_crawl(domain:a/b)",
        "web_crawl(domain:bücher.example)",
        "web_crawl(domain:例え.jp)",
    ] {
        assert!(
            matches!(PermissionRule::parse(text, None), Err(RuleError::Domain(_))),
            "{text}"
        );
    }
    let config = super::super::PermissionsConfig {
        rules: vec![RuleConfig {
            rule: "web_crawl(domain:*.example.com)".into(),
            decision: Decision::Allow,
            matches: vec!["www.example.com".into()],
            no_match: vec!["example.com.evil.org".into()],
        }],
        ..Default::default()
    };
    assert!(PermissionRules::load(&config, None).is_ok());
}
