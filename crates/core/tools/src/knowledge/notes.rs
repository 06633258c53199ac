//! Notes on folders and files, stored with the project and shared by its conversations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_store::{Store, StoreError};
use haft_tool::PortError;
use haft_types::{Clock, Timestamp};
use serde::{Deserialize, Serialize};

use super::kept_document::{DocumentOwner, KeptDocument};
use crate::limits::LimitsConfig;

/// A note on a folder or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The note's id within the project, such as `n7`. An id is never reused.
    pub id: String,
    /// The folder or file, as a path relative to the project; `.` is the project itself.
    pub path: String,
    /// The text of the note.
    pub note: String,
    /// The time when the note was written or last changed.
    pub updated_at: Timestamp,
}

impl Note {
    /// True if the note is on `path`, on a folder above `path`, or on a file or folder below
    /// `path`.
    pub fn concerns(&self, path: &str) -> bool {
        let own = Path::new(&self.path);
        let path = Path::new(path);
        let everything = |path: &Path| path == Path::new(".");
        everything(own) || everything(path) || path.starts_with(own) || own.starts_with(path)
    }
}

/// All notes of a project in their stored form, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct FolderNoteList {
    /// The highest number that was ever used in a note id.
    last_number: u32,
    notes: Vec<Note>,
}

/// The key of the notes in the store.
const KEY: &str = "notes";

/// The notes of a project, in the store with a copy in memory.
pub struct StoredNotes {
    document: KeptDocument<FolderNoteList>,
    clock: Arc<dyn Clock>,
    root: PathBuf,
    /// The maximum number of notes on one folder or file that are shown without a query.
    max_shown: u32,
}

impl FolderNoteList {
    /// Removes the note with this id and returns it. The `n` of the id may be missing.
    fn remove_note(&mut self, id: &str) -> Result<Note, PortError> {
        let digits = id.trim().trim_start_matches(['n', 'N']);
        let at = self
            .notes
            .iter()
            .position(|note| note.id.trim_start_matches('n') == digits);
        at.map(|at| self.notes.remove(at))
            .ok_or_else(|| PortError::Unknown {
                what: "note",
                id: id.to_owned(),
            })
    }
}

impl StoredNotes {
    /// Opens the notes of a namespace. The paths of these notes are relative to the folder `root`.
    pub async fn open(
        store: Arc<dyn Store>,
        namespace: &str,
        root: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let owner = DocumentOwner::Project(namespace.to_owned());
        let document = KeptDocument::open(store, owner, KEY).await?;
        Ok(Self {
            document,
            clock,
            root,
            max_shown: LimitsConfig::default().shown_notes,
        })
    }

    /// Sets the number of notes on one folder or file that are shown without a query.
    #[must_use]
    pub fn with_max_shown(self, max_shown: u32) -> Self {
        Self { max_shown, ..self }
    }

    /// Splits the notes on one folder or file, oldest first, into those that are shown only on
    /// request and those that are always shown.
    pub(crate) fn split_shown<'a, 'n>(
        &self,
        notes: &'a [&'n Note],
    ) -> (&'a [&'n Note], &'a [&'n Note]) {
        notes.split_at(notes.len().saturating_sub(self.max_shown as usize))
    }

    /// Returns the newest notes on the folders above `files`, from memory. Each folder that has
    /// notes is returned with one line per note, outermost folders first. The files lie in the
    /// project, or in a sub-agent's copy of the project at `copy`.
    pub fn folder_notes_above(&self, copy: &Path, files: &[PathBuf]) -> Vec<(String, Vec<String>)> {
        let FolderNoteList { notes, .. } = self.document.copy();
        if notes.is_empty() {
            return Vec::new();
        }
        let folders: BTreeSet<(usize, String)> = files
            .iter()
            .filter_map(|path| {
                path.strip_prefix(copy)
                    .or_else(|_| path.strip_prefix(&self.root))
                    .ok()
            })
            .flat_map(|path| path.ancestors().skip(1))
            .map(|folder| (folder.components().count(), folder_name(folder)))
            .collect();
        folders
            .into_iter()
            .map(|(_, folder)| {
                let own: Vec<_> = notes.iter().filter(|note| note.path == folder).collect();
                let (_, newest) = self.split_shown(&own);
                let lines = newest
                    .iter()
                    .map(|note| format!("{}: {}", note.id, note.note))
                    .collect();
                (folder, lines)
            })
            .filter(|(_, lines): &(String, Vec<String>)| !lines.is_empty())
            .collect()
    }

    /// Reads all notes, oldest first. A changed note counts as new.
    pub async fn list(&self) -> Result<Vec<Note>, PortError> {
        Ok(self.document.read().await?.notes)
    }

    /// Adds a note, or makes an existing note with equal text and path the newest one. The note is
    /// stored when this method returns.
    pub async fn add(&self, path: &str, note: &str) -> Result<Note, PortError> {
        let updated_at = self.clock.now();
        let add = |list: &mut FolderNoteList| {
            // A call that is repeated after a crash must not add a second copy of its note.
            let same = list
                .notes
                .iter()
                .position(|known| known.path == path && known.note == note);
            let id = if let Some(at) = same {
                list.notes.remove(at).id
            } else {
                list.last_number += 1;
                format!("n{}", list.last_number)
            };
            let note = Note {
                id,
                path: path.to_owned(),
                note: note.to_owned(),
                updated_at,
            };
            list.notes.push(note.clone());
            Ok(note)
        };
        self.document.edit(add).await
    }

    /// Replaces the text of a note, which makes it the newest note.
    pub async fn update(&self, id: &str, note: &str) -> Result<Note, PortError> {
        let updated_at = self.clock.now();
        let update = |list: &mut FolderNoteList| {
            let changed = Note {
                note: note.to_owned(),
                updated_at,
                ..list.remove_note(id)?
            };
            // A changed note becomes the newest one.
            list.notes.push(changed.clone());
            Ok(changed)
        };
        self.document.edit(update).await
    }

    /// Removes a note and returns it.
    pub async fn delete(&self, id: &str) -> Result<Note, PortError> {
        self.document
            .edit(|list: &mut FolderNoteList| list.remove_note(id))
            .await
    }
}

/// Returns the name of a folder as notes store it.
fn folder_name(folder: &Path) -> String {
    if folder.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        folder.display().to_string()
    }
}

#[cfg(test)]
mod tests;
