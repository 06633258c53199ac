//! Folders of other programs whose conventions haft reads, one module per program.

mod agent_skills;
mod auto_coder;
mod claude;
mod cursor;

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
const CONVENTIONS: [&[Convention]; 4] = [
    auto_coder::FOLDERS,
    claude::FOLDERS,
    cursor::FOLDERS,
    agent_skills::FOLDERS,
];

fn of(kind: KnowledgeKind) -> impl Iterator<Item = &'static Convention> {
    CONVENTIONS
        .into_iter()
        .flatten()
        .filter(move |convention| convention.kind == kind)
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
    of(kind)
        .flat_map(|convention| convention.repositories)
        .copied()
}

/// Claude Code's settings in a project, in which hooks stand.
pub(crate) fn claude_settings() -> [&'static str; 2] {
    claude::SETTINGS
}

/// How the names of rule files in a folder end.
pub(crate) fn rule_endings(folder: &Path) -> &'static [&'static str] {
    if folder.ends_with(cursor::RULES) {
        &["md", "mdc"]
    } else {
        &["md"]
    }
}

/// Files of standing instructions beside `AGENTS.md`, by their path below a folder.
pub(crate) const INSTRUCTIONS: [&str; 3] =
    ["CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"];

/// Folders below a project's root with descriptions of its folders, laid out like haft's own.
pub(crate) const ACTIVE_CONTEXT: &str = auto_coder::ACTIVE_CONTEXT;

/// What another program's chat remembers of a project.
pub(crate) const MEMORY: &str = auto_coder::MEMORY;

/// Where another program keeps documentation of libraries in a project.
pub(crate) const LIBRARIES: &str = auto_coder::LIBRARIES;

/// Whether the rules of this file's program are sent in every request unless they say otherwise.
pub(crate) fn rules_apply_always(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with(claude::RULES))
}
