//! Changes any number of files, all or none.
//!
//! Every tool that writes goes through [`apply_changes`]. Invariants:
//!
//! - At every moment, a path holds either the whole old content or the whole new content, and a
//!   failure leaves all files as they were: no temporary file, no empty folder.
//! - No symbolic link is followed after a path was resolved ([`folder`]).
//! - A file that another process has changed since it was read is never overwritten: the content
//!   that a step replaces is compared with the content that was read, and is put back if it differs
//!   ([`place`]).
//! - A process that dies during a change leaves a journal ([`journal`]), and the next start rolls
//!   the change back ([`recover`]).
//! - A changed file keeps its mode, owner and extended attributes ([`file_attributes`]). A file
//!   with several hard links becomes a separate file, and the result reports that.

mod commit;
mod file_attributes;
mod folder;
mod journal;
mod place;
mod recover;
mod stored_path;

use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_tool::FileState;
use haft_types::{Envelope, find_notices_in};
use serde_json::{Value, json};

use crate::failure::{Coded, ToolFailure};
use crate::files::disk::LoadedFile;
use crate::scope::FileScope;

use commit::{UnrestoredFile, WrittenFile};

pub use folder::OpenFolder;
pub(crate) use folder::open_absolute;
pub use recover::{Recovery, RecoveryOutcome, recover_changes};

/// A change to one file that has been planned, but not made.
pub(crate) struct PlannedChange<'a> {
    pub(crate) path: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) step: ChangeAction<'a>,
}

/// The effect of a change on a file: the file is created, replaced or deleted.
pub(crate) enum ChangeAction<'a> {
    /// Creates a file, which must not exist, and any missing folders above it.
    Create { bytes: &'a [u8] },
    /// Creates a file with the mode, owner and attributes of the file `like`: the second half of a
    /// move.
    CreateLike {
        bytes: &'a [u8],
        like: &'a LoadedFile,
    },
    /// Replaces the content of the file, if the content is still the one that was read.
    Replace {
        old: &'a LoadedFile,
        bytes: &'a [u8],
    },
    /// Removes the file, if its content is still the one that was read.
    Delete { old: &'a LoadedFile },
}

/// The error of a failed change. The files are as they were before, unless the message reports
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error("cannot {doing} `{name}`: {source}; nothing was changed")]
    Io {
        doing: &'static str,
        name: String,
        source: io::Error,
    },
    #[error(
        "a symbolic link was put in the way of `{name}` just now; it is not followed, nothing was changed"
    )]
    Link { name: String },
    #[error("cannot keep a note of the change in `{}`: {source}; nothing was changed", .at.display())]
    Journal { at: PathBuf, source: io::Error },
    #[error(
        "`{name}` was changed by someone else while it was being written; nothing was changed, read it again"
    )]
    Overtaken { name: String },
    #[error(
        "cannot keep the owner (user {uid}, group {gid}) of `{name}`: {source}; nothing was changed"
    )]
    Owner {
        name: String,
        uid: u32,
        gid: u32,
        source: io::Error,
    },
    #[error("{cause}, but what someone else changed at the same moment was left: {}", format_unrestored(.left))]
    Left {
        cause: Box<ChangeError>,
        left: Vec<UnrestoredFile>,
    },
    #[error(
        "{cause}, or would have been: taking the change back failed too ({source}). What was under way is noted in `{}`; look at these files before anything else",
        .journal.display()
    )]
    Stuck {
        cause: Box<ChangeError>,
        source: io::Error,
        journal: PathBuf,
    },
}

impl Coded for ChangeError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Journal { .. } => "io",
            Self::Link { .. } => "link_in_the_way",
            Self::Overtaken { .. } => "changed_since_read",
            Self::Owner { .. } => "owner",
            Self::Left { cause, .. } => cause.code(),
            Self::Stuck { .. } => "half_changed",
        }
    }
}

impl ChangeError {
    fn with_unrestored(self, left: Vec<UnrestoredFile>) -> Self {
        if left.is_empty() {
            self
        } else {
            Self::Left {
                cause: Box::new(self),
                left,
            }
        }
    }
}

/// Formats the files that were not rolled back because another process had changed them, as part of
/// a sentence.
fn format_unrestored(left: &[UnrestoredFile]) -> String {
    let mut text = String::new();
    for one in left {
        if !text.is_empty() {
            text.push_str(", ");
        }
        let _ = write!(text, "`{}`", one.path.display());
        if let Some(earlier) = &one.earlier {
            let _ = write!(
                text,
                " (its earlier content is kept in `{}`)",
                earlier.display()
            );
        }
    }
    text
}

/// The result of changing one or more files.
pub(crate) struct ChangeOutcome {
    /// The new state of each file, in the order of the changes; `None` for a deleted file.
    pub(crate) states: Vec<Option<FileState>>,
    /// Sentences about unexpected effects on each file, in the order of the changes.
    pub(crate) notes: Vec<Vec<String>>,
}

impl ChangeOutcome {
    /// Returns the states of the changed files for the tool result. The read ledger is rebuilt from
    /// these states when a conversation is resumed.
    pub(crate) fn ledger_context(&self, changes: &[PlannedChange<'_>]) -> Value {
        let files: Vec<Value> = changes
            .iter()
            .zip(&self.states)
            .filter_map(|(change, state)| Some(file_state_to_json(change.path, (*state)?)))
            .collect();
        match <[Value; 1]>::try_from(files) {
            Ok([file]) => json!({ "file": file }),
            Err(files) if files.is_empty() => Value::Null,
            Err(files) => json!({ "files": files }),
        }
    }

    /// Returns the result of a tool call that made the changes in `changes`, including notes on
    /// unexpected effects.
    pub(crate) fn build_envelope(
        &self,
        mut text: String,
        mut data: Value,
        changes: &[PlannedChange<'_>],
    ) -> Envelope {
        if let Some(note) = self.join_notes() {
            text.extend(["\n", &note]);
            data["note"] = note.into();
        }
        Envelope {
            context: self.ledger_context(changes),
            ..Envelope::success(text).with_data(data)
        }
    }

    /// Joins all notes, one per line; `None` if there are none.
    pub(crate) fn join_notes(&self) -> Option<String> {
        let sentences = self.notes.concat();
        (!sentences.is_empty()).then(|| sentences.join("\n"))
    }
}

/// Returns the state of a file as JSON, for tool results.
pub(crate) fn file_state_to_json(path: &Path, state: FileState) -> Value {
    json!({ "path": path.display().to_string(), "size": state.size, "mtime_ns": state.mtime_ns, "hash": state.hash })
}

/// Changes either all of the files or none: saves their current content for undo, changes them, and
/// records their new state. `changes` must contain each file only once.
pub(crate) fn apply_changes(
    scope: &FileScope,
    changes: &[PlannedChange<'_>],
) -> Result<ChangeOutcome, ToolFailure> {
    reject_notices(changes)?;
    let paths: Vec<&Path> = changes.iter().map(|change| change.path).collect();
    scope.history.save_files(&scope.call_id, &paths)?;
    let written = commit::commit_changes(&scope.workspace.journal, changes)?;
    // The files have changed: the result must say so, whatever happens now.
    let unrecorded = scope.history.record_changed(&scope.call_id, &paths).err();

    let mut done = ChangeOutcome {
        states: Vec::with_capacity(changes.len()),
        notes: Vec::with_capacity(changes.len()),
    };
    for (change, WrittenFile { state, mut notes }) in changes.iter().zip(written) {
        if let Some(state) = state {
            scope.reads.record_seen(change.path, state);
        }
        notes.extend(warn_broken_links(change));
        done.states.push(state);
        done.notes.push(notes);
    }
    if let (Some(error), Some(last)) = (unrecorded, done.notes.last_mut()) {
        last.push(format!(
            "The change is made, but could not be noted for undo: {error}."
        ));
    }
    Ok(done)
}

/// Rejects a change that writes one of haft's own notices into a file. A model may copy a notice
/// that it got in place of omitted text. A notice that the file already contains may stay.
fn reject_notices(changes: &[PlannedChange<'_>]) -> Result<(), ToolFailure> {
    for change in changes {
        let (old, bytes) = match &change.step {
            ChangeAction::Create { bytes } => (None, *bytes),
            ChangeAction::CreateLike { bytes, like } => (Some(*like), *bytes),
            ChangeAction::Replace { old, bytes } => (Some(*old), *bytes),
            ChangeAction::Delete { .. } => continue,
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            continue;
        };
        let old_text = old.and_then(|old| std::str::from_utf8(&old.bytes).ok());
        let new_notice =
            find_notices_in(text).find(|notice| !old_text.is_some_and(|old| old.contains(notice)));
        if let Some(notice) = new_notice {
            return Err(ToolFailure::new(
                "haft_notice",
                format!(
                    "the new text of `{}` holds `{notice}`. That is a notice that haft puts in place of text it left out, not \
                     the text itself; nothing was changed. Get the text first, from the message that the notice names or by \
                     reading the file, and write that",
                    change.name
                ),
            ));
        }
    }
    Ok(())
}

/// Warns that replacing a file detaches it from its other hard links.
fn warn_broken_links(change: &PlannedChange<'_>) -> Option<String> {
    let ChangeAction::Replace { old, .. } = &change.step else {
        return None;
    };
    let others = old
        .metadata
        .nlink()
        .checked_sub(1)
        .filter(|others| *others > 0)?;
    let names = if others == 1 {
        "1 other name (hard link)".into()
    } else {
        format!("{others} other names (hard links)")
    };
    Some(format!(
        "`{}` had {names}; what they name keeps the old content.",
        change.name
    ))
}

#[cfg(test)]
mod tests;
