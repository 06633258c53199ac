//! The folders and files of Claude Code.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// Rules that are sent in every request unless they name files.
pub(super) const RULES_FOLDER: &str = ".claude/rules";

/// The project settings files.
pub(super) const SETTINGS_FILES: [&str; 2] =
    [".claude/settings.json", ".claude/settings.local.json"];

pub(super) const FOLDERS: &[Convention] = &[
    Convention {
        kind: KnowledgeKind::Rules,
        project: &[RULES_FOLDER],
        home: &[],
        repositories: &[],
    },
    Convention {
        kind: KnowledgeKind::Agents,
        project: &[".claude/agents"],
        home: &[".claude/agents"],
        repositories: &[],
    },
    Convention {
        kind: KnowledgeKind::Skills,
        project: &[".claude/skills"],
        home: &[".claude/skills"],
        repositories: &[],
    },
    Convention {
        kind: KnowledgeKind::Commands,
        project: &[".claude/commands"],
        home: &[".claude/commands"],
        repositories: &[],
    },
];
