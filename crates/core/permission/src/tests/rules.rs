use haft_types::{Decision, PermissionMode};

use super::{Project, config, permissions};
use crate::{
    PermissionRequest, PermissionRule, PermissionRules, PermissionsConfig, RuleConfig, RuleOrigin,
    RulesError,
};

fn error_of(rule: &str) -> String {
    PermissionRule::parse(rule, None).unwrap_err().to_string()
}

#[test]
fn parse_reports_why_a_rule_is_invalid() {
    for (rule, why) in [
        ("", "is not a rule"),
        ("execute_command(ls", "is not a rule"),
        ("rm -rf", "is not a rule"),
        (
            "execute_command(ls; rm)",
            "more or less than one plain command",
        ),
        (
            "execute_command(ls > f)",
            "more or less than one plain command",
        ),
        ("execute_command(ls $x)", "`$x` is not a literal word"),
        ("execute_command(ls *.rs:*)", "`*.rs` is not a literal word"),
        ("execute_command(X=1)", "names no command"),
        ("execute_command('ls)", "a quote without its end"),
        ("excute_command(ls)", "takes no pattern"),
        ("todo_write(x)", "takes no pattern"),
        ("read_file(../x)", "`..` is not taken"),
        ("read_file(~/x)", "there is none"),
        ("read_file([)", "cannot be read"),
    ] {
        assert!(error_of(rule).contains(why), "{rule}: {}", error_of(rule));
    }
}

#[test]
fn parse_accepts_aliases_of_tool_names() {
    let rule = PermissionRule::parse(" Bash(git status:*) ", None).unwrap();
    assert_eq!(
        (rule.tool(), rule.text()),
        ("execute_command", "Bash(git status:*)")
    );
    let home = std::path::Path::new("/home/me");
    assert!(PermissionRule::parse("Read(~/notes/**)", Some(home)).is_ok());
    assert!(PermissionRule::parse("some_mcp_tool", None).is_ok());
    assert!(PermissionRule::parse("execute_command(npm run *)", None).is_ok());
}

fn load_rule_with_examples(
    rule: &str,
    decision: Decision,
    matches: &[&str],
    no_match: &[&str],
) -> Result<PermissionRules, RulesError> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let rule = RuleConfig {
        rule: rule.to_owned(),
        decision,
        matches: owned(matches),
        no_match: owned(no_match),
    };
    PermissionRules::load(
        &PermissionsConfig {
            rules: vec![rule],
            ..PermissionsConfig::default()
        },
        None,
    )
}

#[test]
fn load_checks_the_examples_of_a_rule() {
    let good = [
        load_rule_with_examples(
            "execute_command(cargo test:*)",
            Decision::Allow,
            &["cargo test", "cargo test -q | cargo test"],
            &["cargo testall", "cargo test > f", "cargo test; ls"],
        ),
        load_rule_with_examples(
            "execute_command(rm:*)",
            Decision::Deny,
            &["rm x", "ls; sudo rm x"],
            &["ls", "rmdir x"],
        ),
        load_rule_with_examples(
            "execute_command(git push:*)",
            Decision::Ask,
            &["git push", "git -C x push"],
            &["git pull"],
        ),
        load_rule_with_examples(
            "write_to_file(src/**)",
            Decision::Allow,
            &["src/a.rs"],
            &["a.rs", "src/../a.rs", "src/.git/x"],
        ),
        load_rule_with_examples(
            "read_file(**/.env)",
            Decision::Deny,
            &[".env", "a/b/.ENV"],
            &["env"],
        ),
    ];
    for rules in good {
        rules.unwrap();
    }
    let error = load_rule_with_examples(
        "execute_command(git:*)",
        Decision::Allow,
        &["git -c x=y log"],
        &[],
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains(
            "the allow rule `execute_command(git:*)` must match its example `git -c x=y log`"
        ),
        "{error}"
    );
    let error = load_rule_with_examples("execute_command(rm)", Decision::Deny, &["rm x"], &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("must match its example `rm x`"), "{error}");
    let error = load_rule_with_examples("execute_command(ls:*)", Decision::Allow, &[], &["ls -l"])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("must not match its example `ls -l`"),
        "{error}"
    );
}

#[test]
fn project_rules_only_tighten() {
    let user = PermissionRules::load(
        &config(
            &["execute_command(ls:*)", "execute_command(git:*)"],
            &[],
            &[],
        ),
        None,
    )
    .unwrap();
    let project = config(
        &["execute_command(rm:*)"],
        &["execute_command(git push:*)"],
        &["execute_command(ls -x)"],
    );
    let rules = user.tightened_by(&project, None).unwrap();
    let own = rules
        .iter()
        .filter(|rule| rule.origin != RuleOrigin::BuiltIn);
    let standing: Vec<_> = own
        .map(|rule| (rule.decision, rule.rule, rule.origin == RuleOrigin::Project))
        .collect();
    assert_eq!(
        standing,
        [
            (Decision::Deny, "execute_command(ls -x)", true),
            (Decision::Ask, "execute_command(git push:*)", true),
            (Decision::Allow, "execute_command(ls:*)", false),
            (Decision::Allow, "execute_command(git:*)", false),
        ]
    );
}

#[test]
fn remembered_rules_allow_exactly_the_line() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["execute_command(ls:*)"],
        &["execute_command(git push:*)"],
        &[],
    );
    let remember = |line: &str| {
        permissions
            .decide(&PermissionRequest::for_command(line), &project.workspace)
            .remember
    };
    assert_eq!(remember("make check"), ["execute_command(make check)"]);
    assert_eq!(
        remember("ls; make 'a b' && echo it\\'s"),
        [
            "execute_command(make 'a b')",
            r"execute_command(echo 'it'\''s')"
        ]
    );
    assert_eq!(remember("echo 'x:*'"), ["execute_command(echo 'x:*')"]);
    // A wrapped command needs no rule of its own, which would also allow it unwrapped.
    assert_eq!(
        remember("npx tsc --noEmit"),
        ["execute_command(npx tsc --noEmit)"]
    );
    assert_eq!(
        remember("env make check"),
        ["execute_command(env make check)"]
    );
    for line in [
        "make > f",
        "make $x",
        "X=1 make",
        "echo $((x))",
        "git push",
        "python3 < x",
        "make; x=1",
        "cat < /etc/passwd",
        "f() { ls; }",
        "find . -delete",
        "git -c core.pager=./e log",
        "git difftool -x e",
        "python3 -c 'x'",
        "tee f",
        "make; sed -i s/a/b/ f",
        "kubectl -n x exec y",
        "curl -o f h",
        "make SHELL=./e",
        "npm --unknown test",
    ] {
        assert!(remember(line).is_empty(), "{line}: {:?}", remember(line));
    }
}

#[test]
fn verdict_lists_every_part_of_a_line() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["execute_command(ls:*)"],
        &[],
        &["execute_command(rm:*)"],
    );
    let verdict = permissions.decide(
        &PermissionRequest::for_command("ls -l && make > f; rm x"),
        &project.workspace,
    );
    let parts: Vec<_> = verdict
        .parts
        .iter()
        .map(|part| (part.command.as_str(), part.decision))
        .collect();
    assert_eq!(
        parts,
        [
            ("ls -l", Decision::Allow),
            ("> f", Decision::Ask),
            ("make", Decision::Ask),
            ("rm x", Decision::Deny)
        ]
    );
    assert_eq!(verdict.rule.as_deref(), Some("execute_command(rm:*)"));
    let json = serde_json::to_value(&verdict).unwrap();
    assert_eq!(json["decision"], "deny");
    assert_eq!(json["parts"][0]["rule"], "execute_command(ls:*)");
}
