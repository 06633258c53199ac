//! The folder that programs reading the public skills format share.

use super::Convention;
use crate::knowledge::KnowledgeKind;

pub(super) const FOLDERS: &[Convention] = &[Convention {
    kind: KnowledgeKind::Skills,
    project: &[".agents/skills"],
    home: &[".agents/skills"],
    repositories: &[],
}];
