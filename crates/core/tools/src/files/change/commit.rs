//! Changes the files of a call, all or none.
//!
//! Each step is on disk before the next begins: the journal; the temporary files beside their
//! targets; the journal's second stage; each file in its place; and for several files the journal's
//! third stage. A failure before the last step rolls everything back. After the last step, the
//! change is complete, and only temporary files must still be removed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haft_tool::FileState;

use super::file_attributes::{self, AttributeError};
use super::folder::OpenFolder;
use super::journal::{self, Fingerprint, Journal, JournalEntry, JournalRecord, JournalStage};
use super::place::{self, OpenFolders, PlaceResult, RollbackResult};
use super::{ChangeAction, ChangeError, PlannedChange};
use crate::files::disk::{LoadedFile, compute_file_state};

/// The operating system's error code for a symbolic link that was not followed.
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

/// The prefix of the names of temporary files.
const TEMPORARY_PREFIX: &str = ".haft-";

/// The new state of one file after a change, with notes for the model.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// The new state of the file; `None` if the file was deleted.
    pub(crate) state: Option<FileState>,
    /// Sentences about attributes of the file that could not be kept.
    pub(crate) notes: Vec<String>,
}

/// Changes either all files in `changes` or none. `changes` must contain each file only once.
pub(super) fn commit_changes(
    journal: &Path,
    changes: &[PlannedChange<'_>],
) -> Result<Vec<WrittenFile>, ChangeError> {
    let noted = |source| ChangeError::Journal {
        at: journal.to_owned(),
        source,
    };
    let record = build_journal_record(changes).map_err(noted)?;
    let mut journal = Journal::begin(journal, &record).map_err(noted)?;
    let mut folders = OpenFolders::default();
    let stages = if changes.len() == 1 {
        (JournalStage::Single, None)
    } else {
        (JournalStage::Placing, Some(JournalStage::Done))
    };
    let prepared = write_temporary_files(changes, &record, &mut folders).and_then(|written| {
        journal
            .advance_to(stages.0)
            .map(|()| written)
            .map_err(noted)
    });
    let written = match prepared {
        Ok(written) => written,
        Err(error) => {
            discard_prepared_files(&record, &mut folders);
            journal.remove_file();
            return Err(error);
        }
    };
    let placed = place_files(changes, &record, &mut folders)
        .inspect(|()| folders.sync_all())
        .and_then(|()| {
            stages
                .1
                .map_or(Ok(()), |done| journal.advance_to(done))
                .map_err(noted)
        });
    if let Err(error) = placed {
        return Err(match roll_back(&record, &mut folders) {
            Ok(left) => {
                journal.remove_file();
                error.with_unrestored(left)
            }
            Err(source) => ChangeError::Stuck {
                cause: Box::new(error),
                source,
                journal: journal.set_aside(),
            },
        });
    }
    discard_temporary_files(&record, &mut folders);
    journal.remove_file();
    Ok(written)
}

fn build_journal_record(changes: &[PlannedChange<'_>]) -> io::Result<JournalRecord> {
    let mut record = JournalRecord::default();
    for change in changes {
        let (before, after) = match &change.step {
            ChangeAction::Create { bytes } | ChangeAction::CreateLike { bytes, .. } => {
                (None, Some(*bytes))
            }
            ChangeAction::Replace { old, bytes } => (Some(*old), Some(*bytes)),
            ChangeAction::Delete { old } => (Some(*old), None),
        };
        let before = before.map(|old| Fingerprint {
            size: old.state.size,
            hash: old.state.hash,
        });
        let entry = JournalEntry {
            path: change.path.to_owned(),
            temporary: format!("{TEMPORARY_PREFIX}{}.tmp", journal::random_name()?),
            before,
            after: after.map(Fingerprint::from_bytes),
        };
        if before.is_none() {
            for path in OpenFolder::missing_folders(entry.folder()) {
                if !record.folders.iter().any(|known| known.path == path) {
                    record.folders.push(journal::JournalFolder { path });
                }
            }
        }
        record.entries.push(entry);
    }
    Ok(record)
}

fn write_temporary_files(
    changes: &[PlannedChange<'_>],
    record: &JournalRecord,
    folders: &mut OpenFolders,
) -> Result<Vec<WrittenFile>, ChangeError> {
    let mut written = Vec::with_capacity(changes.len());
    for (change, entry) in changes.iter().zip(&record.entries) {
        let folder = folders
            .get_or_open(entry.folder(), OpenFolder::open_or_create)
            .map_err(|source| {
                let name = change.name.to_owned();
                match source.raw_os_error() {
                    Some(LOOP) => ChangeError::Link { name },
                    _ => ChangeError::Io {
                        doing: "open the folder of",
                        name,
                        source,
                    },
                }
            })?;
        written.push(match &change.step {
            ChangeAction::Create { bytes } => {
                write_temporary_file(&folder, entry, change, bytes, None)?
            }
            ChangeAction::CreateLike { bytes, like } => {
                write_temporary_file(&folder, entry, change, bytes, Some(like))?
            }
            ChangeAction::Replace { old, bytes } => {
                write_temporary_file(&folder, entry, change, bytes, Some(old))?
            }
            ChangeAction::Delete { .. } => WrittenFile {
                state: None,
                notes: Vec::new(),
            },
        });
    }
    Ok(written)
}

fn write_temporary_file(
    folder: &OpenFolder,
    entry: &JournalEntry,
    change: &PlannedChange<'_>,
    bytes: &[u8],
    like: Option<&LoadedFile>,
) -> Result<WrittenFile, ChangeError> {
    let fail = |doing| {
        move |source| ChangeError::Io {
            doing,
            name: change.name.to_owned(),
            source,
        }
    };
    // A file that replaces a private one is private from the first byte on. A new file gets 0666
    // minus the umask.
    let mode = if like.is_some() { 0o600 } else { 0o666 };
    let mut file: File = folder
        .create_file(entry.temporary_name(), mode)
        .map_err(fail("make a temporary file beside"))?;
    file.write_all(bytes).map_err(fail("write"))?;
    let mut notes = Vec::new();
    if let Some(like) = like {
        let lost = file_attributes::copy_attributes(&file, like).map_err(|error| match error {
            AttributeError::Owner { uid, gid, source } => ChangeError::Owner {
                name: change.name.to_owned(),
                uid,
                gid,
                source,
            },
            AttributeError::Mode(source) => fail("set the mode of")(source),
        })?;
        notes.extend(lost.iter().map(|name| {
            format!(
                "The extended attribute `{name}` of `{}` could not be kept.",
                change.name
            )
        }));
    }
    file.sync_all().map_err(fail("sync"))?;
    let metadata = file.metadata().map_err(fail("look at"))?;
    Ok(WrittenFile {
        state: Some(compute_file_state(bytes, &metadata)),
        notes,
    })
}

fn place_files(
    changes: &[PlannedChange<'_>],
    record: &JournalRecord,
    folders: &mut OpenFolders,
) -> Result<(), ChangeError> {
    for (change, entry) in changes.iter().zip(&record.entries) {
        let placed = folders
            .get_or_open(entry.folder(), OpenFolder::open)
            .and_then(|folder| place::place_file(&folder, entry));
        match placed {
            Ok(PlaceResult::Done) => {}
            Ok(PlaceResult::Overtaken) => {
                return Err(ChangeError::Overtaken {
                    name: change.name.to_owned(),
                });
            }
            Err(source) => {
                return Err(ChangeError::Io {
                    doing: "replace",
                    name: change.name.to_owned(),
                    source,
                });
            }
        }
    }
    Ok(())
}

/// A file that was not rolled back because another process changed it after haft had changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnrestoredFile {
    pub(super) path: PathBuf,
    /// The file that contains the content from before the change, if there is one.
    pub(super) earlier: Option<PathBuf>,
}

/// Rolls back all steps of a change, the last step first. Returns the files that could not be
/// restored.
pub(super) fn roll_back(
    record: &JournalRecord,
    folders: &mut OpenFolders,
) -> io::Result<Vec<UnrestoredFile>> {
    let mut left = Vec::new();
    for entry in record.entries.iter().rev() {
        let folder = match folders.get_or_open(entry.folder(), OpenFolder::open) {
            // The folder is gone, and with it everything that could be rolled back.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            result => result?,
        };
        let earlier = match place::undo_placing(&folder, entry)? {
            RollbackResult::Undone => continue,
            RollbackResult::Left => None,
            RollbackResult::LeftWithEarlier => Some(folder.path().join(entry.temporary_name())),
        };
        left.push(UnrestoredFile {
            path: entry.path.clone(),
            earlier,
        });
    }
    folders.sync_all();
    remove_empty_folders(record);
    Ok(left)
}

/// Removes the temporary files and the created folders of a change that has not changed any file
/// yet.
pub(super) fn discard_prepared_files(record: &JournalRecord, folders: &mut OpenFolders) {
    discard_temporary_files(record, folders);
    remove_empty_folders(record);
}

/// Removes the temporary files of a change. Failures are ignored, because a leftover temporary file
/// does no harm.
pub(super) fn discard_temporary_files(record: &JournalRecord, folders: &mut OpenFolders) {
    for entry in &record.entries {
        if let Ok(folder) = folders.get_or_open(entry.folder(), OpenFolder::open) {
            let _ = folder.finish_interrupted(entry.temporary_name(), entry.name());
            let _ = folder.remove_file(entry.temporary_name());
        }
    }
}

/// Removes the folders that were created for the change, unless another process has put files into
/// them.
fn remove_empty_folders(record: &JournalRecord) {
    for made in record.folders.iter().rev() {
        if let (Some(parent), Some(name)) = (made.path.parent(), made.path.file_name())
            && let Ok(parent) = OpenFolder::open(parent)
        {
            let _ = parent.remove_folder(name);
        }
    }
}
