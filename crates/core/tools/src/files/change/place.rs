//! Puts a file in its place, and undoes that.
//!
//! Invariant: content written by another process is never removed or overwritten. Content taken out
//! of a place is inspected afterwards: only then can no other process change it unnoticed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::folder::OpenFolder;
use super::journal::{JournalEntry, Print};

/// The folders of a change, each opened once and held until the change is over.
#[derive(Default)]
pub(super) struct OpenFolders(HashMap<PathBuf, Rc<OpenFolder>>);

impl OpenFolders {
    pub(super) fn get(
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

    pub(super) fn sync(&self) {
        for folder in self.0.values() {
            folder.sync();
        }
    }
}

/// The result of putting a file in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    Yes,
    /// The place held other content than was read. The step must be undone.
    Overtaken,
}

/// Exchanges the old file and the new one; the old one then has the temporary name.
pub(super) fn place(folder: &OpenFolder, entry: &JournalEntry) -> io::Result<Placed> {
    let name = entry.name();
    let temporary = entry.temporary();
    let expect = |before| {
        Ok(if holds(folder, temporary, before)? {
            Placed::Yes
        } else {
            Placed::Overtaken
        })
    };
    let (step, overtaken) = match (&entry.before, &entry.after) {
        (Some(_), Some(_)) => (folder.exchange(temporary, name), io::ErrorKind::NotFound),
        (Some(_), None) => (
            folder.rename_to_free(name, temporary),
            io::ErrorKind::NotFound,
        ),
        (None, Some(_)) => (
            folder.rename_to_free(temporary, name),
            io::ErrorKind::AlreadyExists,
        ),
        (None, None) => return Ok(Placed::Yes),
    };
    match step {
        Ok(()) => entry.before.as_ref().map_or(Ok(Placed::Yes), expect),
        Err(error) if error.kind() == overtaken => Ok(Placed::Overtaken),
        Err(error) => Err(error),
    }
}

/// Completes [`place_file`] after an interruption if it had reached its end, and returns whether it
/// had.
pub(super) fn finish(folder: &OpenFolder, entry: &JournalEntry) -> io::Result<Placed> {
    let name = entry.name();
    let temporary = entry.temporary();
    folder.settle(temporary, name)?;
    let done = match (&entry.before, &entry.after) {
        (Some(before), _) if exists(folder, temporary)? => holds(folder, temporary, before)?,
        (_, Some(after)) => !exists(folder, temporary)? && holds(folder, name, after)?,
        (_, None) => !exists(folder, name)?,
    };
    if !done {
        return Ok(Placed::Overtaken);
    }
    if exists(folder, temporary)? {
        folder.remove(temporary)?;
    }
    Ok(Placed::Yes)
}

/// The result of undoing a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RollbackResult {
    /// All that was done is undone.
    Yes,
    /// Another process changed the file after haft did; its content stays.
    Left,
    /// Another process changed the file after haft did, and the earlier content is kept under the
    /// temporary name.
    LeftWithEarlier,
}

/// Undoes [`place_file`], whether or not the step was carried out before the process died.
pub(super) fn take_back(folder: &OpenFolder, entry: &JournalEntry) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary();
    folder.settle(temporary, name)?;
    match (&entry.before, &entry.after) {
        (Some(before), Some(after)) => take_back_content(folder, entry, before, after),
        (None, Some(after)) => take_back_new(folder, entry, after),
        // A removed file comes back even if its content is not what was read.
        (Some(_), None) if exists(folder, temporary)? => {
            match folder.rename_to_free(temporary, name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Ok(RollbackResult::LeftWithEarlier)
                }
                result => result.map(|()| RollbackResult::Yes),
            }
        }
        (Some(_) | None, None) => Ok(RollbackResult::Yes),
    }
}

fn take_back_content(
    folder: &OpenFolder,
    entry: &JournalEntry,
    before: &Print,
    after: &Print,
) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary();
    if !exists(folder, temporary)? {
        return Ok(RollbackResult::Yes);
    }
    if holds(folder, temporary, after)? {
        // The new content never took its place.
        folder.remove(temporary)?;
        return Ok(RollbackResult::Yes);
    }
    if holds(folder, name, after)? {
        let alone = folder.put_back((temporary, name), Some(*after), |name| print(folder, name))?;
        return Ok(if alone {
            RollbackResult::Yes
        } else {
            RollbackResult::LeftWithEarlier
        });
    }
    if holds(folder, name, before)? && holds(folder, temporary, before)? {
        // Another process has put the old content back.
        folder.remove(temporary)?;
        return Ok(RollbackResult::Yes);
    }
    Ok(RollbackResult::LeftWithEarlier)
}

fn take_back_new(
    folder: &OpenFolder,
    entry: &JournalEntry,
    after: &Print,
) -> io::Result<RollbackResult> {
    let name = entry.name();
    let temporary = entry.temporary();
    if !exists(folder, temporary)? {
        if !holds(folder, name, after)? {
            return Ok(if exists(folder, name)? {
                RollbackResult::Left
            } else {
                RollbackResult::Yes
            });
        }
        folder.rename_to_free(name, temporary)?;
    }
    if holds(folder, temporary, after)? {
        folder.remove(temporary)?;
        return Ok(RollbackResult::Yes);
    }
    // Another process changed the file at this very moment.
    match folder.rename_to_free(temporary, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(RollbackResult::LeftWithEarlier)
        }
        result => result.map(|()| RollbackResult::Left),
    }
}

fn exists(folder: &OpenFolder, name: &OsStr) -> io::Result<bool> {
    match folder.look(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => there.map(|_| true),
    }
}

/// True if `name` is a regular file with exactly this content.
fn holds(folder: &OpenFolder, name: &OsStr, expected: &Print) -> io::Result<bool> {
    match folder.look(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(there?.len() == expected.size && print(folder, name)? == Some(*expected)),
    }
}

/// Returns the fingerprint of a file, or `None` if it is not a regular file.
fn print(folder: &OpenFolder, name: &OsStr) -> io::Result<Option<Print>> {
    if !folder.look(name)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    folder.read(name)?.read_to_end(&mut bytes)?;
    Ok(Some(Print::of(&bytes)))
}
