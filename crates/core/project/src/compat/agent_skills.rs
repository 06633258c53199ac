//! The folder shared by programs that implement the public skills format.

use super::Convention;
use crate::knowledge::KnowledgeKind;

pub(super) const FOLDERS: &[Convention] = &[Convention {
    kind: KnowledgeKind::Skills,
    project: &[".agents/skills"],
    home: &[".agents/skills"],
    repositories: &[],
}];
