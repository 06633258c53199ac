//! What was decided, and why.

use std::path::PathBuf;

use haft_types::Decision;
use serde::Serialize;

use super::PermissionRule;

/// What is to happen with a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it runs.
    pub decision: Decision,
    /// Why; several reasons are separated by semicolons.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// What each part of it came to.
    pub parts: Vec<PartVerdict>,
    /// The files outside the workspace it is about, links followed: reaching them is what is
    /// asked.
    #[serde(skip)]
    pub outside: Vec<PathBuf>,
    /// Whether it is a command line that only reads and commits, and may write to the project's
    /// repository once it is allowed.
    #[serde(skip)]
    pub commits: bool,
    /// The rules that would allow exactly this from now on; none where no rule can.
    #[serde(skip)]
    pub remember: Vec<String>,
    /// Whether it would run outside the sandbox there is.
    #[serde(skip)]
    pub leaves_sandbox: bool,
}

/// What one part of a call came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartVerdict {
    /// The command, redirect or path.
    pub command: String,
    /// Whether it may be done.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
}

impl Verdict {
    /// The verdict on a call that has no parts.
    pub(super) fn plain(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            rule: None,
            parts: Vec::new(),
            outside: Vec::new(),
            commits: false,
            remember: Vec::new(),
            leaves_sandbox: false,
        }
    }

    /// Why it is as strict as it is: its own reason, and that of every further part that says more
    /// than its command does.
    pub(super) fn reasons(&self) -> Vec<String> {
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
                && *reason != unruled(command)
            {
                reasons.push(reason.clone());
            }
        }
        reasons
    }

    /// The verdict on a call as a whole: that of its strictest part.
    pub(super) fn of_parts(parts: Vec<PartVerdict>) -> Self {
        let strictest = parts
            .iter()
            .map(|part| part.decision)
            .max()
            .unwrap_or(Decision::Ask);
        let Some(part) = parts.iter().find(|part| part.decision == strictest) else {
            return Self::plain(Decision::Ask, "there is nothing in it");
        };
        let reason = part.reason.clone();
        let rule = part.rule.clone();
        Self {
            rule,
            parts,
            ..Self::plain(strictest, reason)
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
            ..Self::plain(decision, reason)
        }
    }
}

/// Why a command is asked of which no rule speaks.
pub(super) fn unruled(command: &str) -> String {
    format!("no rule allows `{command}`")
}

/// What is decided of one part, and why.
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

    /// What a rule decides of `what`, which is `it` or a quoted name.
    pub(super) fn by(rule: &PermissionRule, decision: Decision, what: &str) -> Self {
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

    pub(super) fn part(self, command: &str) -> PartVerdict {
        PartVerdict {
            command: command.to_owned(),
            decision: self.decision,
            reason: self.reason,
            rule: self.rule,
        }
    }
}
