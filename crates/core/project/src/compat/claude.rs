//! Claude Code's folders.

use super::Convention;
use crate::ground::Kind;

/// Rules that are sent in every request unless they name files.
pub(super) const RULES: &str = ".claude/rules";

/// Its settings of a project.
pub(super) const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

pub(super) const FOLDERS: &[Convention] = &[
    Convention { kind: Kind::Rules, project: &[RULES], home: &[], repositories: &[] },
    Convention { kind: Kind::Agents, project: &[".claude/agents"], home: &[".claude/agents"], repositories: &[] },
    Convention { kind: Kind::Skills, project: &[".claude/skills"], home: &[".claude/skills"], repositories: &[] },
    Convention { kind: Kind::Commands, project: &[".claude/commands"], home: &[".claude/commands"], repositories: &[] },
];
