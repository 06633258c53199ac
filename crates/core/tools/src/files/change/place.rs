//! Puts the new version of a file in its place, and undoes the step on a rollback.
//!
//! Invariant: content written by another process is never removed or overwritten. Content is
//! inspected only after it was taken out of its place, because no other process can change it
//! unnoticed then.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::folder::OpenFolder;
use super::journal::{Fingerprint, JournalEntry};

/// The folders of a change, each opened only once and kept open until the change is complete.
#[derive(Default)]
pub(super) struct OpenFolders(HashMap<PathBuf, Rc<OpenFolder>>);

impl OpenFolders {
    pub(super) fn get_or_open(
        &mut self,
        path: &Path,
        open: fn(&Path) -> io::Result<OpenFolder>,
    ) -> io::Result<Rc<OpenFolder>> {
        if let Some(known) = self.0.get(path) {
            return Ok(Rc::clone(known));
        }
        let folder = Rc::new(open(path)?);
        self.0.insert(path.to_owned(), Rc::clone(&folder));
        Ok(folder)
    }

    pub(super) fn sync_all(&self) {
        for folder in self.0.values() {
            folder.sync();
        }
    }
}

/// The result of moving a file to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceResult {
    Done,
    /// Another process has changed the file since it was read. The step must be undone.
    Overtaken,
}

/// Exchanges the old file and the new file. Afterwards, the old file has the temporary name.
pub(super) fn place_file(folder: &OpenFolder, entry: &JournalEntry) -> io::Result<PlaceResult> {
    let name = entry.name();
    let temporary = entry.temporary_name();
    let expect = |before| {
        Ok(if has_content(folder, temporary, before)? {
            PlaceResult::Done
        } else {
            PlaceResult::Overtaken
        })
    };
    let (step, overtaken) = match (&entry.before, &entry.after) {
        (Some(_), Some(_)) => (
            folder.exchange_files(temporary, name),
            io::ErrorKind::NotFound,
        ),
        (Some(_), None) => (
            folder.rename_no_replace(name, temporary),
            io::ErrorKind::NotFound,
        ),
        (None, Some(_)) => (
            folder.rename_no_replace(temporary, name),
            io::ErrorKind::AlreadyExists,
        ),
        (None, None) => return Ok(PlaceResult::Done),
    };
    match step {
        Ok(()) => entry.before.as_ref().map_or(Ok(PlaceResult::Done), expect),
        Err(error) if error.kind() == overtaken => Ok(PlaceResult::Overtaken),
        Err(error) => Err(error),
    }
}

/// Finishes an interrupted [`place_file`] by removing the temporary file, if the new file had
/// reached its place. Returns [`PlaceResult::Overtaken`] otherwise.
pub(super) fn finish_placing(folder: &OpenFolder, entry: &JournalEntry) -> io::Result<PlaceResult> {
    let name = entry.name();
    let temporary = entry.temporary_name();
    folder.finish_interrupted(temporary, name)?;
    let done = match (&entry.before, &entry.after) {
        (Some(before), _) if name_exists(folder, temporary)? => {
            has_content(folder, temporary, before)?
        }
        (_, Some(after)) => !name_exists(folder, temporary)? && has_content(folder, name, after)?,
        (_, None) => !name_exists(folder, name)?,
    };
    if !done {
        return Ok(PlaceResult::Overtaken);
    }
    if name_exists(folder, temporary)? {
        folder.remove_file(temporary)?;
    }
    Ok(PlaceResult::Done)
}

/// The result of undoing a step of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RollbackResult {
    /// The step was undone, or had not been carried out.
    Undone,
    /// The step was not undone: another process has changed the file after haft did, and the
    /// content from that process stays.
    Left,
    /// The step was not undone: another process has changed the file after haft did. The earlier
    /// content is kept under the temporary name.
    LeftWithEarlier,
}

/// Undoes [`place_file`], even if the process died before the step was carried out.
pub(super) fn undo_placing(
    folder: &OpenFolder,
    entry: &JournalEntry,
) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary_name();
    folder.finish_interrupted(temporary, name)?;
    match (&entry.before, &entry.after) {
        (Some(before), Some(after)) => undo_replacing(folder, entry, before, after),
        (None, Some(after)) => undo_creating(folder, entry, after),
        // A removed file comes back even if its content is not what was read.
        (Some(_), None) if name_exists(folder, temporary)? => {
            match folder.rename_no_replace(temporary, name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Ok(RollbackResult::LeftWithEarlier)
                }
                result => result.map(|()| RollbackResult::Undone),
            }
        }
        (Some(_) | None, None) => Ok(RollbackResult::Undone),
    }
}

fn undo_replacing(
    folder: &OpenFolder,
    entry: &JournalEntry,
    before: &Fingerprint,
    after: &Fingerprint,
) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary_name();
    if !name_exists(folder, temporary)? {
        return Ok(RollbackResult::Undone);
    }
    if has_content(folder, temporary, after)? {
        // The new content never took its place.
        folder.remove_file(temporary)?;
        return Ok(RollbackResult::Undone);
    }
    if has_content(folder, name, after)? {
        let alone = folder.put_back_file((temporary, name), Some(*after), |name| {
            read_fingerprint(folder, name)
        })?;
        return Ok(if alone {
            RollbackResult::Undone
        } else {
            RollbackResult::LeftWithEarlier
        });
    }
    if has_content(folder, name, before)? && has_content(folder, temporary, before)? {
        // Another process has put the old content back.
        folder.remove_file(temporary)?;
        return Ok(RollbackResult::Undone);
    }
    Ok(RollbackResult::LeftWithEarlier)
}

fn undo_creating(
    folder: &OpenFolder,
    entry: &JournalEntry,
    after: &Fingerprint,
) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary_name();
    if !name_exists(folder, temporary)? {
        if !has_content(folder, name, after)? {
            return Ok(if name_exists(folder, name)? {
                RollbackResult::Left
            } else {
                RollbackResult::Undone
            });
        }
        folder.rename_no_replace(name, temporary)?;
    }
    if has_content(folder, temporary, after)? {
        folder.remove_file(temporary)?;
        return Ok(RollbackResult::Undone);
    }
    // Another process changed the file at this very moment.
    match folder.rename_no_replace(temporary, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(RollbackResult::LeftWithEarlier)
        }
        result => result.map(|()| RollbackResult::Left),
    }
}

fn name_exists(folder: &OpenFolder, name: &OsStr) -> io::Result<bool> {
    match folder.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => there.map(|_| true),
    }
}

/// True if `name` is a regular file with the expected content.
fn has_content(folder: &OpenFolder, name: &OsStr, expected: &Fingerprint) -> io::Result<bool> {
    match folder.symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => {
            Ok(there?.len() == expected.size && read_fingerprint(folder, name)? == Some(*expected))
        }
    }
}

/// Returns the fingerprint of a file, or `None` if it is not a regular file.
fn read_fingerprint(folder: &OpenFolder, name: &OsStr) -> io::Result<Option<Fingerprint>> {
    if !folder.symlink_metadata(name)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    folder.open_for_reading(name)?.read_to_end(&mut bytes)?;
    Ok(Some(Fingerprint::from_bytes(&bytes)))
}
