//! What was decided, and why.

use std::path::PathBuf;

use haft_types::Decision;
use serde::Serialize;

/// What is to happen with a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether it runs.
    pub decision: Decision,
    /// Why, in one sentence.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// What each part of it came to.
    pub parts: Vec<PartVerdict>,
    /// The files outside the workspace it is about, links followed: reaching them is what is asked.
    #[serde(skip)]
    pub outside: Vec<PathBuf>,
    /// The rules that would allow exactly this from now on; none where no rule can.
    #[serde(skip)]
    pub remember: Vec<String>,
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
            remember: Vec::new(),
        }
    }

    /// The verdict on a call as a whole: that of its strictest part.
    pub(super) fn of_parts(parts: Vec<PartVerdict>) -> Self {
        let strictest = parts.iter().map(|part| part.decision).max().unwrap_or(Decision::Ask);
        let Some(part) = parts.iter().find(|part| part.decision == strictest) else {
            return Self::plain(Decision::Ask, "there is nothing in it");
        };
        Self {
            decision: strictest,
            reason: part.reason.clone(),
            rule: part.rule.clone(),
            parts,
            ..Self::plain(strictest, "")
        }
    }
}

/// The making of a part's verdict.
pub(super) struct Ruling {
    pub(super) decision: Decision,
    pub(super) reason: String,
    pub(super) rule: Option<String>,
}

impl Ruling {
    pub(super) fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self { decision, reason: reason.into(), rule: None }
    }

    pub(super) fn by(mut self, rule: &super::PermissionRule) -> Self {
        self.rule = Some(rule.to_string());
        self
    }

    pub(super) fn part(self, command: &str) -> PartVerdict {
        PartVerdict { command: command.to_owned(), decision: self.decision, reason: self.reason, rule: self.rule }
    }
}
