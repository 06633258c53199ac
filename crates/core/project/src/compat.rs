//! Folders of other programs whose conventions haft reads, one module per program.

mod agent_skills;
mod auto_coder;
mod claude;

use std::path::Path;

use crate::knowledge::KnowledgeKind;

/// Where a program keeps a kind of things.
struct Convention {
    kind: KnowledgeKind,
    /// In a project, best first.
    project: &'static [&'static str],
    /// In the user's home.
    home: &'static [&'static str],
    /// In the user's home, with a `repos` folder for single projects below.
    repositories: &'static [&'static str],
}

/// In the order they are looked for.
const CONVENTIONS: [&[Convention]; 3] = [auto_coder::FOLDERS, claude::FOLDERS, agent_skills::FOLDERS];

fn of(kind: KnowledgeKind) -> impl Iterator<Item = &'static Convention> {
    CONVENTIONS.into_iter().flatten().filter(move |convention| convention.kind == kind)
}

/// Folders below a project's root.
pub(crate) fn in_project(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    of(kind).flat_map(|convention| convention.project).copied()
}

/// Folders below the user's home.
pub(crate) fn in_home(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    of(kind).flat_map(|convention| convention.home).copied()
}

/// Folders below the user's home that hold `repos/PROJECT`.
pub(crate) fn repositories(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    of(kind).flat_map(|convention| convention.repositories).copied()
}

/// Claude Code's settings in a project, in which hooks stand.
pub(crate) fn claude_settings() -> [&'static str; 2] {
    claude::SETTINGS
}

/// Whether the rules of this file's program are sent in every request unless they say otherwise.
pub(crate) fn rules_apply_always(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with(claude::RULES))
}
