//! Records which files tool calls change, undoes and redoes those changes, and merges changes from
//! copies of the project.
//!
//! [`FileChanges`] is the record that a session uses: a file is saved before a tool changes it, and
//! the changes of a command are found by scanning the tree before and after it. [`ChangeRecord`]
//! lists, undoes, and redoes the changes of a conversation. [`GitWorktrees`] makes copies of a
//! project for sub-agents and merges their work. [`versions`] stores the contents and the steps.
//! The tools [`undo_edit`] and [`apply_patch`] are available in builds that include this crate.
//!
//! This crate must not ask for approval or decide which calls may run. It undoes only changes that
//! haft made.
//!
//! Read first: [`ChangeRecord`], [`versions::SqliteVersions`], [`Report`].

mod files;
mod patch;
#[cfg(any(test, fuzzing))]
mod patch_check;
mod tool;
pub mod versions;
mod worktree;

pub use files::{
    ChangeRecord, ChangesSummary, Conflict, Difference, FileChanges, FileSummary, Mode, Report,
    ReversedPath, ScanLimits, ScanOutcome, StepSummary, SummaryKind, Target, Tree, UndoError,
    clean_up_killed_merges, unified_diff,
};
#[cfg(any(test, fuzzing))]
pub use patch_check::check_patch;
pub use tool::{apply_patch, undo_edit};
pub use worktree::{GitWorktrees, KeptCopy, list_kept_copies, remove_copy};
