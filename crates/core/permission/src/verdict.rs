//! Decisions and their reasons.

use std::path::PathBuf;

use haft_types::Decision;
use serde::{Deserialize, Serialize};

use super::PermissionRule;

/// The decision on a tool call, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub decision: Decision,
    /// The reason for the decision; several reasons are separated by semicolons.
    pub reason: String,
    /// The rule that decided; `None` if no rule did.
    pub rule: Option<String>,
    /// The verdicts on the parts of the call, such as the commands of a command line.
    pub parts: Vec<PartVerdict>,
    /// The files outside the workspace that the call would use, with links resolved. An approval of
    /// the call covers access to these files.
    #[serde(skip)]
    pub outside: Vec<PathBuf>,
    /// True if the call is a command line that only reads and commits. Once allowed, it may write
    /// to the project's repository.
    #[serde(skip)]
    pub commits: bool,
    /// Rules that would allow exactly this call from now on; empty if there are no such rules.
    #[serde(skip)]
    pub remember: Vec<String>,
    /// The reason why [`Self::remember`] is empty, if the call needs an approval.
    #[serde(skip)]
    pub not_remembered: Option<String>,
    /// True if the call would run outside an existing sandbox.
    #[serde(skip)]
    pub leaves_sandbox: bool,
}

/// The verdict on one part of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartVerdict {
    /// The text of the part: a command, a redirect, or a path.
    pub command: String,
    pub decision: Decision,
    pub reason: String,
    /// The rule that decided; `None` if no rule did.
    pub rule: Option<String>,
}

impl Verdict {
    /// Creates the verdict on a call without parts.
    pub(super) fn without_parts(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            rule: None,
            parts: Vec::new(),
            outside: Vec::new(),
            commits: false,
            remember: Vec::new(),
            not_remembered: None,
            leaves_sandbox: false,
        }
    }

    /// Returns all reasons for the decision, without repetitions: the verdict's own reason, and the
    /// reasons of the parts with an equal decision.
    pub(super) fn distinct_reasons(&self) -> Vec<String> {
        let mut reasons = vec![self.reason.clone()];
        for PartVerdict {
            command,
            decision,
            reason,
            ..
        } in &self.parts
        {
            if *decision == self.decision
                && !reasons.contains(reason)
                && *reason != format_no_rule_reason(command)
            {
                reasons.push(reason.clone());
            }
        }
        reasons
    }

    /// Combines the verdicts on the parts of a call into one, with the strictest decision of all
    /// parts.
    pub(super) fn from_parts(parts: Vec<PartVerdict>) -> Self {
        let strictest = parts
            .iter()
            .map(|part| part.decision)
            .max()
            .unwrap_or(Decision::Ask);
        let Some(part) = parts.iter().find(|part| part.decision == strictest) else {
            return Self::without_parts(Decision::Ask, "there is nothing in it");
        };
        let reason = part.reason.clone();
        let rule = part.rule.clone();
        Self {
            rule,
            parts,
            ..Self::without_parts(strictest, reason)
        }
    }
}

impl From<Ruling> for Verdict {
    fn from(
        Ruling {
            decision,
            reason,
            rule,
        }: Ruling,
    ) -> Self {
        Self {
            rule,
            ..Self::without_parts(decision, reason)
        }
    }
}

/// Formats the reason for requiring an approval of a command that no rule covers.
pub(super) fn format_no_rule_reason(command: &str) -> String {
    format!("no rule allows `{command}`")
}

/// The decision on one part of a call, with its reason.
pub(super) struct Ruling {
    pub(super) decision: Decision,
    pub(super) reason: String,
    pub(super) rule: Option<String>,
}

impl Ruling {
    pub(super) fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            rule: None,
        }
    }

    /// Creates the ruling that follows from a rule; `what` names the object in the reason: `it` or
    /// a quoted name.
    pub(super) fn by_rule(rule: &PermissionRule, decision: Decision, what: &str) -> Self {
        let reason = match decision {
            Decision::Allow => format!("`{rule}` allows {what}"),
            Decision::Ask => format!("the rule `{rule}` asks for {what}"),
            Decision::Deny => format!("the rule `{rule}` denies {what}"),
        };
        Self::new(decision, reason).with_rule(rule)
    }

    pub(super) fn with_rule(self, rule: &PermissionRule) -> Self {
        Self {
            rule: Some(rule.to_string()),
            ..self
        }
    }

    pub(super) fn into_part(self, command: &str) -> PartVerdict {
        PartVerdict {
            command: command.to_owned(),
            decision: self.decision,
            reason: self.reason,
            rule: self.rule,
        }
    }
}
