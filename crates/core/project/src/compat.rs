//! The folders and files of other programs that haft reads, with one module per program.

mod agent_skills;
mod auto_coder;
mod claude;
mod cursor;

use std::path::Path;

use crate::knowledge::KnowledgeKind;

/// The folders in which one program stores one kind of knowledge.
struct Convention {
    kind: KnowledgeKind,
    /// Folders below a project's root that contain the knowledge, in order of precedence.
    project: &'static [&'static str],
    /// Folders below the user's home that contain the knowledge, in order of precedence.
    home: &'static [&'static str],
    /// Folders below the user's home whose subfolder `repos/PROJECT` contains the knowledge for the
    /// project `PROJECT`.
    repositories: &'static [&'static str],
}

/// The conventions of all programs, in order of precedence.
const CONVENTIONS: [&[Convention]; 4] = [
    auto_coder::FOLDERS,
    claude::FOLDERS,
    cursor::FOLDERS,
    agent_skills::FOLDERS,
];

fn conventions_for(kind: KnowledgeKind) -> impl Iterator<Item = &'static Convention> {
    CONVENTIONS
        .into_iter()
        .flatten()
        .filter(move |convention| convention.kind == kind)
}

/// Returns the folders below a project's root that contain knowledge of the kind `kind`.
pub(crate) fn project_folders(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    conventions_for(kind)
        .flat_map(|convention| convention.project)
        .copied()
}

/// Returns the folders below the user's home that contain knowledge of the kind `kind`.
pub(crate) fn home_folders(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    conventions_for(kind)
        .flat_map(|convention| convention.home)
        .copied()
}

/// Returns the folders below the user's home whose `repos/PROJECT` subfolder contains knowledge of
/// the kind `kind`.
pub(crate) fn repository_folders(kind: KnowledgeKind) -> impl Iterator<Item = &'static str> {
    conventions_for(kind)
        .flat_map(|convention| convention.repositories)
        .copied()
}

/// Returns the paths of Claude Code's project settings files, which may contain hooks.
pub(crate) fn claude_settings_files() -> [&'static str; 2] {
    claude::SETTINGS_FILES
}

/// Returns the file extensions of rule files in `folder`.
pub(crate) fn rule_file_extensions(folder: &Path) -> &'static [&'static str] {
    if folder.ends_with(cursor::RULES_FOLDER) {
        &["md", "mdc"]
    } else {
        &["md"]
    }
}

/// The instruction files that are read in addition to `AGENTS.md`, relative to the folder to which
/// they apply.
pub(crate) const INSTRUCTION_FILES: [&str; 3] =
    ["CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"];

/// The folder in which auto-coder stores its descriptions of a project's folders. Its structure is
/// that of `.haft/active-context`.
pub(crate) const ACTIVE_CONTEXT: &str = auto_coder::ACTIVE_CONTEXT;

/// The files in which auto-coder's chat stores its memory of a project, in order of precedence.
pub(crate) const MEMORY_FILES: [&str; 2] = auto_coder::MEMORY_FILES;

/// The files in which auto-coder stores only the libraries in use.
pub(crate) const LIBRARY_LISTS: [&str; 2] = auto_coder::LIBRARY_LISTS;

/// True if the commands in `folder`, a folder of commands, are Jinja templates.
pub(crate) fn has_command_templates(folder: &Path) -> bool {
    folder.ends_with(auto_coder::COMMANDS_FOLDER)
}

/// The folder of a project in which auto-coder stores library documentation.
pub(crate) const LIBRARIES_FOLDER: &str = auto_coder::LIBRARIES_FOLDER;

/// True if the rule file `path` belongs to a program whose rules are sent in every request by
/// default.
pub(crate) fn rules_apply_always(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with(claude::RULES_FOLDER))
}
