//! Cursor's rules.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// Markdown files that end in `.mdc`.
pub(super) const RULES: &str = ".cursor/rules";

pub(super) const FOLDERS: &[Convention] = &[Convention {
    kind: KnowledgeKind::Rules,
    project: &[RULES],
    home: &[],
    repositories: &[],
}];
