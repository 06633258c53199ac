//! Finds the changes of commands with a scan of the workspace before and after each command.
//!
//! Invariant: a change is attributed to a call only if it happened while that call ran. Changes
//! that the scan before a command finds were made by others and are never undone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_tool::{CallName, FileChange, Workspace};
use haft_types::{ChangeKind, ConversationId};

use super::ChangeRecord;
use super::scan::{Difference, ScanLimits, ScanOutcome, Tree};
use crate::versions::{FileVersion, SqliteVersions, StepId, VersionsError, VersionsGuard};

/// The maximum number of files that a note to the user names. Further files are only counted.
const MAX_NAMED_FILES: usize = 5;

/// Records the changes that a session makes to its workspace.
pub(crate) struct WorkspaceWatch {
    pub(super) record: ChangeRecord,
    workspace: Workspace,
    trees: Mutex<Trees>,
    live: Mutex<Option<VersionsGuard>>,
}

/// The workspace's scanned trees, and whether scanning was given up.
struct Trees {
    all: Vec<Tree>,
    /// The reason why the trees are no longer scanned, for example because a tree has too many
    /// paths.
    given_up: Option<String>,
    /// True once a note about unsaved files or a failed scan has been reported, so that the note is
    /// not repeated after later calls.
    noted: bool,
}

/// The state of the workspace before a command runs.
pub(crate) enum CommandBaseline {
    /// The trees were scanned. The value is the id of the newest step at the time of the scan.
    Known(StepId),
    /// The trees could not be scanned, so the command cannot be undone. The value is the reason.
    Unknown(String),
}

/// The file changes made by a command, and notes for the user about them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandChanges {
    pub(crate) changes: Vec<FileChange>,
    pub(crate) notes: Vec<String>,
}

impl WorkspaceWatch {
    /// Creates the watch of a workspace for a conversation. Nothing is read or created before the
    /// first call that is watched. `private` holds haft's own folders, which are not scanned.
    pub(crate) fn new(
        versions: Arc<SqliteVersions>,
        conversation: ConversationId,
        workspace: Workspace,
        private: &[PathBuf],
    ) -> Self {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let skip: Arc<[PathBuf]> = private.iter().map(real).collect();
        let roots: BTreeSet<&PathBuf> = [&workspace.root]
            .into_iter()
            .chain(&workspace.extra)
            .collect();
        let trees = roots.iter().filter(|root| {
            !roots
                .iter()
                .any(|other| other != *root && root.starts_with(other))
        });
        let trees = trees
            .map(|root| Tree::new(root, ScanLimits::default(), Arc::clone(&skip)))
            .collect();
        Self {
            record: ChangeRecord::new(versions, conversation),
            workspace,
            trees: Mutex::new(Trees {
                all: trees,
                given_up: None,
                noted: false,
            }),
            live: Mutex::default(),
        }
    }

    fn versions(&self) -> &SqliteVersions {
        self.record.versions.as_ref()
    }

    fn lock_trees(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prevents the removal of the stored versions that this session may restore.
    pub(super) fn hold_versions(&self) -> Result<(), VersionsError> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.is_none() {
            let trees = self.lock_trees();
            let roots: Vec<&Path> = trees.all.iter().map(Tree::root).collect();
            *live = Some(self.versions().hold(&self.record.conversation, &roots)?);
            self.versions().trim()?;
            self.record.finish_interrupted()?;
        }
        Ok(())
    }

    /// Scans the workspace before a command runs.
    pub(crate) fn scan_before_command(&self) -> CommandBaseline {
        self.find_baseline_step()
            .map_or_else(CommandBaseline::Unknown, CommandBaseline::Known)
    }

    fn find_baseline_step(&self) -> Result<StepId, String> {
        let message = |error: VersionsError| error.to_string();
        self.hold_versions().map_err(message)?;
        self.scan_trees()?;
        self.versions().newest_step().map_err(message)
    }

    fn scan_trees(&self) -> Result<Vec<Difference>, String> {
        let mut trees = self.lock_trees();
        if let Some(why) = &trees.given_up {
            return Err(why.clone());
        }
        let mut differences = Vec::new();
        for tree in &mut trees.all {
            match tree
                .scan(self.versions())
                .map_err(|error| error.to_string())?
            {
                ScanOutcome::Changed(changed) => differences.extend(changed),
                ScanOutcome::TooLarge => {
                    let why = too_large_reason(tree);
                    trees.given_up = Some(why.clone());
                    return Err(why);
                }
            }
        }
        Ok(differences)
    }

    /// Scans the workspace after a command ran, and records its changes.
    pub(crate) fn scan_after_command(
        &self,
        call: &CallName,
        before: CommandBaseline,
    ) -> CommandChanges {
        let mut found = CommandChanges::default();
        let since = match before {
            CommandBaseline::Known(since) => since,
            CommandBaseline::Unknown(why) => {
                // Reported once per session, because the problem applies to every command.
                if !std::mem::replace(&mut self.lock_trees().noted, true) {
                    found
                        .notes
                        .push(format!("[Undo does not cover commands: {why}.]"));
                }
                return found;
            }
        };
        found.notes.extend(self.report_unsaved_once());
        if let Err(why) = self.record_changes(call, since, &mut found) {
            found
                .notes
                .push(format!("[Undo does not cover this command: {why}.]"));
        }
        found
    }

    fn record_changes(
        &self,
        call: &CallName,
        since: StepId,
        found: &mut CommandChanges,
    ) -> Result<(), String> {
        let message = |error: VersionsError| error.to_string();
        let mut differences = self.scan_trees()?;
        if differences.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = differences
            .iter()
            .map(|one| (one.path.clone(), one.before, one.after))
            .collect();
        let recorded = self
            .versions()
            .save_scanned(&self.record.conversation, call, since, &rows)
            .map_err(message)?;
        let recorded: BTreeSet<_> = recorded.into_iter().collect();
        differences.retain(|one| recorded.contains(&one.path));
        found.changes = differences.iter().filter_map(to_file_change).collect();
        let lost: Vec<_> = differences
            .iter()
            .filter(|one| !one.before.is_saved())
            .map(|one| &one.path)
            .collect();
        if !lost.is_empty() {
            let names = join_names(lost.iter().map(|path| self.workspace.display_path(path)));
            found.notes.push(format!(
                "[Changed without having been saved, so that undo cannot bring back: {names}.]"
            ));
        }
        self.versions().trim().map_err(message)
    }

    fn report_unsaved_once(&self) -> Option<String> {
        let mut trees = self.lock_trees();
        if std::mem::replace(&mut trees.noted, true) {
            return None;
        }
        let unsaved: Vec<_> = trees.all.iter().flat_map(Tree::unsaved_files).collect();
        if unsaved.is_empty() {
            return None;
        }
        let shown = unsaved.iter().map(|(path, size)| {
            format!(
                "{} ({})",
                self.workspace.display_path(path),
                format_size(*size)
            )
        });
        Some(format!(
            "[Undo of commands does not cover files that are too large or unreadable: {}.]",
            join_names(shown)
        ))
    }
}

/// Lists the first [`MAX_NAMED_FILES`] names, followed by the number of omitted names.
fn join_names(all: impl Iterator<Item = String>) -> String {
    let all: Vec<_> = all.collect();
    let mut text = all
        .iter()
        .take(MAX_NAMED_FILES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > MAX_NAMED_FILES {
        // Writing to a String cannot fail.
        let _ = write!(text, " and {} more", all.len() - MAX_NAMED_FILES);
    }
    haft_text::sanitize(&text).into_owned()
}

fn too_large_reason(tree: &Tree) -> String {
    format!(
        "`{}` has more than {} files and folders",
        tree.root().display(),
        ScanLimits::default().paths
    )
}

pub(super) fn format_size(size: u64) -> String {
    match size {
        0..1024 => format!("{size} bytes"),
        1024..1_048_576 => format!("{} KB", size / 1024),
        1_048_576.. => format!("{:.1} MB", size as f64 / 1_048_576.0),
    }
}

/// Converts a scan difference to a file change for events. Returns `None` if the path is a folder.
fn to_file_change(difference: &Difference) -> Option<FileChange> {
    let is_file = |version: FileVersion| match version {
        FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => true,
        FileVersion::Absent | FileVersion::Folder { .. } => false,
    };
    let kind = match (is_file(difference.before), is_file(difference.after)) {
        (false, false) => return None,
        (false, true) => ChangeKind::Added,
        (true, false) => ChangeKind::Deleted,
        (true, true) => ChangeKind::Modified,
    };
    Some(FileChange {
        path: difference.path.clone(),
        kind,
    })
}
