//! The folders and files of Claude Code.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// The folder of Claude Code's rule files. A rule file that names no paths is sent in every
/// request.
pub(super) const RULES_FOLDER: &str = ".claude/rules";

/// The settings files of Claude Code in a project.
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
