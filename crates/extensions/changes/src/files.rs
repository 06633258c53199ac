//! Records, undoes, and redoes the changes haft made to files.
//!
//! [`ChangeRecord`] is the record of one conversation: it lists, undoes, and redoes changes.
//! [`FileChanges`] is the part that sessions use: it saves files before tools change them, and
//! finds the changes of commands by scanning the tree before and after each.
//!
//! Invariant: only changes that haft made are undone, and an undo or redo is in the record before
//! it is on disk.

mod adopt;
mod apply;
mod disk;
mod merge;
mod plan;
mod recorder;
mod scan;
mod summary;
mod walk;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::CallName;
use haft_types::{ConversationId, MessageId};

use self::plan::{Disk, PathOutcome, PlannedUndo};
use crate::versions::{
    FileStep, FileVersion, PathChange, SqliteVersions, StepId, StepKind, VersionsError,
};

pub use self::adopt::clean_up_killed_merges;
pub(crate) use self::adopt::{
    AdoptError, Adoption, MERGE_NOTE_EXTENSION, MergeContent, adopt_changes, write_merge_note,
};
pub use self::plan::Conflict;
pub use self::recorder::FileChanges;
pub use self::scan::{Difference, ScanLimits, ScanOutcome, Tree};
pub use self::summary::{ChangesSummary, FileSummary, StepSummary, SummaryKind, unified_diff};

/// Selects the changes that an undo reverses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The changes made by the most recent call that changed files and has not been undone.
    LastCall,
    /// The changes made by the call with this id.
    Call(String),
    /// The changes made by all calls in the messages with these ids.
    Messages(Vec<MessageId>),
    /// The most recent change to this file that has not been undone.
    File(PathBuf),
    /// All changes that the conversation made to files.
    Session,
}

/// Selects whether an undo or redo changes files or only reports what it would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Carries out the undo or redo.
    Apply,
    /// Changes no files; only reports what the undo or redo would change.
    DryRun,
}

/// The result of an undo or redo for one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReversedPath {
    pub path: PathBuf,
    /// The version before the undo or redo.
    pub before: FileVersion,
    /// The version after the undo or redo, or the reason why the path is unchanged.
    pub after: Result<FileVersion, Conflict>,
}

/// The result of an undo or redo: the calls whose changes it reversed, and the result for each
/// path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The calls whose changes were undone or redone, oldest first.
    pub calls: Vec<CallName>,
    /// Every path that the undone or redone calls had changed, sorted by path.
    pub paths: Vec<ReversedPath>,
}

impl Report {
    /// True if no path was left unchanged because of a conflict.
    pub fn is_clean(&self) -> bool {
        self.paths.iter().all(|path| path.after.is_ok())
    }
}

/// The reason why nothing was undone or redone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// There are no changes, or all of them are undone already.
    #[error(
        "there is nothing to undo: no changes of files are recorded, or all of them were taken back"
    )]
    NothingToUndo,
    /// There is no undo left to redo.
    #[error("there is nothing to redo: no undo is left to be reversed")]
    NothingToRedo,
    /// No call that changed files has this id.
    #[error("no call `{0}` changed files")]
    UnknownCall(String),
    /// The changes of the call are undone already.
    #[error("the changes of call `{0}` were taken back already")]
    AlreadyUndone(String),
    /// No call changed the file, or all changes of the file are undone already.
    #[error("no recorded change of `{}` is left to undo", .0.display())]
    UnchangedFile(PathBuf),
    /// The store of file versions could not be read or written.
    #[error(transparent)]
    Versions(#[from] VersionsError),
}

/// The record of the file changes in one conversation.
#[derive(Clone)]
pub struct ChangeRecord {
    versions: Arc<SqliteVersions>,
    conversation: ConversationId,
}

impl ChangeRecord {
    /// Creates the record of the file changes in `conversation`. The file versions are stored in
    /// `versions`.
    pub fn new(versions: Arc<SqliteVersions>, conversation: ConversationId) -> Self {
        Self {
            versions,
            conversation,
        }
    }

    /// Returns all recorded calls, undos and redos of the conversation, oldest first. Returns an
    /// empty list if the store does not exist yet.
    pub fn steps(&self) -> Result<Vec<FileStep>, VersionsError> {
        if self.versions.exists() {
            self.versions.steps(&self.conversation)
        } else {
            Ok(Vec::new())
        }
    }

    /// Returns the conversation's file changes in the form used for display and export.
    pub fn summary(&self) -> Result<ChangesSummary, VersionsError> {
        Ok(summary::summarize_steps(&self.steps()?))
    }

    /// Returns the content of `version`, or `None` if it has no content or the content is no longer
    /// stored.
    pub fn read_content(&self, version: &FileVersion) -> Result<Option<Vec<u8>>, VersionsError> {
        match version.hash().map(|hash| self.versions.read_content(hash)) {
            None | Some(Err(VersionsError::Gone { .. })) => Ok(None),
            Some(content) => content.map(Some),
        }
    }

    /// Undoes the changes that `target` selects. `by` is the tool call that requested the undo, if
    /// there is one.
    pub fn undo(
        &self,
        target: &Target,
        by: Option<&CallName>,
        mode: Mode,
    ) -> Result<Report, UndoError> {
        self.reverse_changes(StepKind::Undo, by, mode, |steps| {
            select_changes(steps, target)
        })
    }

    /// Redoes the changes that the most recent undo reversed, skipping undos that were redone
    /// already.
    pub fn redo(&self, mode: Mode) -> Result<Report, UndoError> {
        self.reverse_changes(StepKind::Redo, None, mode, |steps| {
            let undone = |step: &&FileStep| {
                step.kind == StepKind::Undo && !find_active_changes(steps, step).is_empty()
            };
            let step = steps
                .iter()
                .rev()
                .find(undone)
                .ok_or(UndoError::NothingToRedo)?;
            Ok(build_selection([(step, find_active_changes(steps, step))]))
        })
    }

    fn reverse_changes(
        &self,
        kind: StepKind,
        by: Option<&CallName>,
        mode: Mode,
        select: impl Fn(&[FileStep]) -> Result<Selection, UndoError>,
    ) -> Result<Report, UndoError> {
        if !self.versions.exists() {
            return Err(select(&[]).err().unwrap_or(UndoError::NothingToUndo));
        }
        let _alone = self.versions.lock_undo()?;
        let mut steps = self.versions.steps(&self.conversation)?;
        if apply::finish_incomplete_reversals(self.versions.as_ref(), &steps)? {
            steps = self.versions.steps(&self.conversation)?;
        }
        let selected = select(&steps)?;
        let planned = plan::plan_undo(&steps, &selected, &Disk(self.versions.as_ref()));
        let failed = match mode {
            Mode::DryRun => Vec::new(),
            Mode::Apply => self.apply_plan(kind, by, &planned)?,
        };
        Ok(build_report(&steps, &selected, planned, failed))
    }

    fn apply_plan(
        &self,
        kind: StepKind,
        by: Option<&CallName>,
        planned: &[PlannedUndo],
    ) -> Result<Vec<apply::FailedPath>, VersionsError> {
        let reversals: Vec<_> = planned.iter().filter_map(PlannedUndo::reversal).collect();
        if reversals.is_empty() {
            return Ok(Vec::new());
        }
        let merged = planned.iter().filter_map(|one| match &one.outcome {
            PathOutcome::Restore { content, .. } => content.clone(),
            PathOutcome::KeepFolder | PathOutcome::Conflict(_) => None,
        });
        let step = self.versions.begin_reversal(
            &self.conversation,
            kind,
            by,
            &reversals,
            &merged.collect::<Vec<_>>(),
        )?;
        apply::apply_reversals(self.versions.as_ref(), step, reversals)
    }

    /// Finishes an undo or redo that was interrupted by a kill.
    pub fn finish_interrupted(&self) -> Result<(), VersionsError> {
        if self.steps()?.iter().all(|step| step.done) {
            return Ok(());
        }
        let _alone = self.versions.lock_undo()?;
        apply::finish_incomplete_reversals(
            self.versions.as_ref(),
            &self.versions.steps(&self.conversation)?,
        )
        .map(drop)
    }
}

/// For each path, the steps whose change to that path is to be reversed.
type Selection = BTreeMap<PathBuf, BTreeSet<StepId>>;

fn build_selection<'a>(
    chosen: impl IntoIterator<Item = (&'a FileStep, Vec<&'a PathChange>)>,
) -> Selection {
    let mut selected = Selection::new();
    for (step, changes) in chosen {
        for change in changes {
            selected
                .entry(change.path.clone())
                .or_default()
                .insert(step.id);
        }
    }
    selected
}

/// Returns those changes of a step that are in effect: never undone, or undone and then redone.
fn find_active_changes<'a>(steps: &[FileStep], step: &'a FileStep) -> Vec<&'a PathChange> {
    let in_effect = |change: &&PathChange| match change.taken_back {
        None => true,
        Some(undo) => {
            let undo = steps
                .binary_search_by_key(&undo, |step| step.id)
                .ok()
                .and_then(|at| steps.get(at));
            let reversal = undo.and_then(|undo| {
                undo.changes
                    .iter()
                    .find(|reversal| reversal.path == change.path)
            });
            reversal.is_some_and(|reversal| reversal.taken_back.is_some())
        }
    };
    step.changes.iter().filter(in_effect).collect()
}

fn select_changes(steps: &[FileStep], target: &Target) -> Result<Selection, UndoError> {
    let calls = || {
        steps
            .iter()
            .rev()
            .filter(|step| step.kind == StepKind::Call)
    };
    let with_changes = |step: &'_ FileStep| !find_active_changes(steps, step).is_empty();
    let whole = |step| build_selection([(step, find_active_changes(steps, step))]);
    match target {
        Target::LastCall => calls()
            .find(|step| with_changes(step))
            .map(whole)
            .ok_or(UndoError::NothingToUndo),
        Target::Call(id) => {
            let mut named = calls()
                .filter(|step| step.call.as_ref().is_some_and(|call| call.call_id == *id))
                .peekable();
            if named.peek().is_none() {
                return Err(UndoError::UnknownCall(id.clone()));
            }
            named
                .find(|step| with_changes(step))
                .map(whole)
                .ok_or_else(|| UndoError::AlreadyUndone(id.clone()))
        }
        Target::Messages(ids) => {
            let of = |step: &&FileStep| {
                step.call
                    .as_ref()
                    .is_some_and(|call| ids.contains(&call.message_id))
            };
            reject_empty_selection(build_selection(
                calls()
                    .filter(of)
                    .map(|step| (step, find_active_changes(steps, step))),
            ))
        }
        Target::Session => reject_empty_selection(build_selection(
            calls().map(|step| (step, find_active_changes(steps, step))),
        )),
        Target::File(path) => {
            let found = calls().find(|step| {
                find_active_changes(steps, step)
                    .iter()
                    .any(|change| change.path == *path)
            });
            let step = found.ok_or_else(|| UndoError::UnchangedFile(path.clone()))?;
            // Folders that the call created for the file are removed with it, if nothing else is in
            // them.
            let concerns =
                |change: &&PathChange| change.path == *path || is_folder_made_for(change, path);
            Ok(build_selection([(
                step,
                find_active_changes(steps, step)
                    .into_iter()
                    .filter(concerns)
                    .collect(),
            )]))
        }
    }
}

fn is_folder_made_for(change: &PathChange, path: &Path) -> bool {
    change.before == FileVersion::Absent
        && matches!(change.after, Some(FileVersion::Folder { .. }))
        && path.starts_with(&change.path)
}

fn reject_empty_selection(selected: Selection) -> Result<Selection, UndoError> {
    if selected.is_empty() {
        Err(UndoError::NothingToUndo)
    } else {
        Ok(selected)
    }
}

fn build_report(
    steps: &[FileStep],
    selected: &Selection,
    planned: Vec<PlannedUndo>,
    failed: Vec<apply::FailedPath>,
) -> Report {
    let mut failed: HashMap<PathBuf, Conflict> = failed.into_iter().collect();
    let chosen: BTreeSet<StepId> = selected.values().flatten().copied().collect();
    // A redo reverses undos; the calls it redoes are those that the undos reversed.
    let concerned = |step: &&FileStep| {
        step.kind == StepKind::Call
            && (chosen.contains(&step.id)
                || step
                    .changes
                    .iter()
                    .any(|change| change.taken_back.is_some_and(|by| chosen.contains(&by))))
    };
    let calls = steps
        .iter()
        .filter(concerned)
        .filter_map(|step| step.call.clone())
        .collect();
    let paths = planned.into_iter().map(
        |PlannedUndo {
             path,
             now,
             outcome: fate,
             ..
         }| {
            let after = match (failed.remove(&path), fate) {
                (Some(conflict), _) | (None, PathOutcome::Conflict(conflict)) => Err(conflict),
                (None, PathOutcome::Restore { to, .. }) => Ok(to),
                (None, PathOutcome::KeepFolder) => Ok(now),
            };
            ReversedPath {
                path,
                before: now,
                after,
            }
        },
    );
    Report {
        calls,
        paths: paths.collect(),
    }
}

#[cfg(test)]
mod tests;
