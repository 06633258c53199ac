//! The folders of Cursor.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// The folder of Cursor's rule files, which have the extension `.mdc`.
pub(super) const RULES_FOLDER: &str = ".cursor/rules";

pub(super) const FOLDERS: &[Convention] = &[Convention {
    kind: KnowledgeKind::Rules,
    project: &[RULES_FOLDER],
    home: &[],
    repositories: &[],
}];
