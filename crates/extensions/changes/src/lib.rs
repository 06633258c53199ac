//! What calls change in files: recorded before it happens, taken back on request, and merged out of
//! copies of the project.
//!
//! [`FileChanges`] is the record a session is given: files are saved before a tool changes them,
//! and what a command changed is found by scanning the tree before and after it. [`ChangeRecord`]
//! shows the changes of a conversation, takes them back and brings them back. [`GitWorktrees`]
//! makes copies of a project for sub-agents and merges their work. Contents and steps are kept in
//! [`versions`]. The tools [`undo_edit`] and [`apply_patch`] are offered where this crate is built
//! in.
//!
//! This crate asks nobody and decides nothing about calls. Only what haft changed is ever taken
//! back.
//!
//! Read first: [`ChangeRecord`], [`versions::SqliteVersions`], [`Report`].

mod files;
mod patch;
mod tool;
pub mod versions;
mod worktree;

pub use files::{
    ChangeRecord, ChangesSummary, Conflict, Difference, FileChanges, FileSummary, Mode, Report,
    ScanLimits, Scanned, StepSummary, SummaryKind, TakenBack, Target, Tree, UndoError,
    sweep_merges, unified_diff,
};
pub use tool::{apply_patch, undo_edit};
pub use worktree::{GitWorktrees, KeptCopy, kept_copies, remove_copy};
