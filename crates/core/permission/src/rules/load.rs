//! Loads rules from the configuration and checks them against their examples: a rule by itself must
//! match its `match` examples and must not match its `no_match` examples.

use std::path::Path;

use haft_tool::{Access, FileUse, Intent, Workspace};
use haft_types::{Decision, PermissionMode};

use super::{PermissionRules, ReadingCommands};
use crate::config::{PermissionsConfig, RuleConfig};
use crate::decide::{Confinement, Permissions};
use crate::request::{PermissionRequest, ProjectFiles};
use crate::rule::{HOST_TOOLS, PermissionRule, READ_TOOLS, RuleError, WRITE_TOOLS};

/// The reason why configured rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A rule cannot be parsed.
    #[error("permissions: {0}")]
    Rule(#[from] RuleError),
    /// A rule contradicts one of its examples.
    #[error(
        "permissions: the {decision} rule `{rule}` must {must} its example `{example}`, but it does not ({why})"
    )]
    Example {
        rule: String,
        decision: Decision,
        /// The requirement that the example does not meet: `match` or `not match`.
        must: &'static str,
        example: String,
        /// The reason for the decision that was made on the example.
        why: String,
    },
}

impl PermissionRules {
    /// Loads the user's rules and checks every example. `home` replaces `~` in patterns.
    pub fn load(config: &PermissionsConfig, home: Option<&Path>) -> Result<Self, RulesError> {
        let reading = if config.reading_commands {
            ReadingCommands::All
        } else {
            ReadingCommands::None
        };
        let mut rules = Self {
            reading,
            ..Self::default()
        };
        for (decision, texts) in [
            (Decision::Allow, &config.allow),
            (Decision::Ask, &config.ask),
            (Decision::Deny, &config.deny),
        ] {
            for text in texts {
                rules.add(decision, PermissionRule::parse(text, home)?);
            }
        }
        for long in &config.rules {
            rules.add(long.decision, parse_and_check(long, home)?);
        }
        Ok(rules)
    }

    /// Returns a copy of these rules with the deny and ask rules of a project added. The project's
    /// allow rules are left out, because a project can only tighten the rules.
    pub fn tightened_by(
        &self,
        project: &PermissionsConfig,
        home: Option<&Path>,
    ) -> Result<Self, RulesError> {
        let project = Self::load(project, home)?;
        let mut rules = self.clone();
        for (decision, added) in [(Decision::Ask, project.ask), (Decision::Deny, project.deny)] {
            for rule in added {
                rules.project.push((decision, rule.to_string()));
                rules.add(decision, rule);
            }
        }
        Ok(rules)
    }
}

/// Parses a rule and checks it against its examples.
fn parse_and_check(long: &RuleConfig, home: Option<&Path>) -> Result<PermissionRule, RulesError> {
    let rule = PermissionRule::parse(&long.rule, home)?;
    let expected = long.matches.iter().map(|example| (example, true));
    let excluded = long.no_match.iter().map(|example| (example, false));
    for (example, wanted) in expected.chain(excluded) {
        let found = try_example(&rule, long.decision, example);
        if found.decides != wanted {
            return Err(RulesError::Example {
                rule: long.rule.clone(),
                decision: long.decision,
                must: if wanted { "match" } else { "not match" },
                example: example.clone(),
                why: found.why,
            });
        }
    }
    Ok(rule)
}

/// The result of applying a single rule to an example.
struct ExampleOutcome {
    /// True if the decision on the example is the decision of the rule.
    decides: bool,
    /// The reason for the decision.
    why: String,
}

/// Decides an example, which is a command line, a path, or a host, with `rule` as the only rule. If
/// the rule asks or denies, every call that the rule does not cover is allowed.
fn try_example(rule: &PermissionRule, decision: Decision, example: &str) -> ExampleOutcome {
    // This folder does not exist: the result must not depend on the files of this machine.
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
    let mut rules = PermissionRules::default().with_rule(decision, rule.clone());
    if decision != Decision::Allow
        && let Ok(everything) = PermissionRule::parse(rule.tool(), None)
    {
        // Allows everything else, so that only the rule itself can be the reason.
        rules = rules.with_rule(Decision::Allow, everything);
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
