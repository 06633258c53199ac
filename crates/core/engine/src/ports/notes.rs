//! Notes on folders and files, stored with the project and shared by all its conversations.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_context::{FolderNotes, folder_notes_text};
use haft_store::{Store, StoreError};
use haft_tool::{Note, PortError, ProjectNotes};
use haft_types::Clock;

use super::document::{DocumentOwner, KeptDocument};
use crate::stored_state::FolderNoteList;

/// The stored notes of a project.
pub struct StoredNotes {
    document: KeptDocument<FolderNoteList>,
    clock: Arc<dyn Clock>,
    root: PathBuf,
}

impl FolderNoteList {
    /// Removes a note and returns it. `id` may omit the leading `n`.
    fn take(&mut self, id: &str) -> Result<Note, PortError> {
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
    /// Loads the notes on the folder `root`, which are stored under `namespace`.
    pub async fn open(
        store: Arc<dyn Store>,
        namespace: &str,
        root: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let document =
            KeptDocument::open(store, DocumentOwner::Project(namespace.to_owned())).await?;
        Ok(Self {
            document,
            clock,
            root,
        })
    }

    /// Returns the reminder for the model: the newest notes on every folder above `files`, from
    /// shallow to deep. The files are in the project, or in the copy of the project at `copy` that
    /// a sub-agent works in.
    pub fn reminder(&self, copy: &Path, files: &[PathBuf]) -> String {
        let FolderNoteList { notes, .. } = self.document.copy();
        if notes.is_empty() {
            return String::new();
        }
        let folders: BTreeSet<(usize, String)> = files
            .iter()
            .filter_map(|path| {
                path.strip_prefix(copy)
                    .or_else(|_| path.strip_prefix(&self.root))
                    .ok()
            })
            .flat_map(|path| path.ancestors().skip(1))
            .map(|folder| (folder.components().count(), name(folder)))
            .collect();
        let shown: Vec<(String, Vec<String>)> = folders
            .into_iter()
            .map(|(_, folder)| {
                let own: Vec<_> = notes.iter().filter(|note| note.path == folder).collect();
                let newest = &own[own.len().saturating_sub(Note::SHOWN)..];
                (
                    folder,
                    newest
                        .iter()
                        .map(|note| format!("{}: {}", note.id, note.note))
                        .collect(),
                )
            })
            .collect();
        let shown: Vec<_> = shown
            .iter()
            .map(|(folder, notes)| FolderNotes { folder, notes })
            .collect();
        folder_notes_text(&shown)
    }
}

/// Returns the folder's name as notes contain it: a relative path, or `.` for the root.
fn name(folder: &Path) -> String {
    if folder.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        folder.display().to_string()
    }
}

#[async_trait]
impl ProjectNotes for StoredNotes {
    async fn list(&self) -> Result<Vec<Note>, PortError> {
        Ok(self.document.read().await?.notes)
    }

    async fn add(&self, path: &str, note: &str) -> Result<Note, PortError> {
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

    async fn update(&self, id: &str, note: &str) -> Result<Note, PortError> {
        let updated_at = self.clock.now();
        let update = |list: &mut FolderNoteList| {
            let changed = Note {
                note: note.to_owned(),
                updated_at,
                ..list.take(id)?
            };
            // A changed note becomes the newest one.
            list.notes.push(changed.clone());
            Ok(changed)
        };
        self.document.edit(update).await
    }

    async fn delete(&self, id: &str) -> Result<Note, PortError> {
        self.document
            .edit(|list: &mut FolderNoteList| list.take(id))
            .await
    }
}

#[cfg(test)]
mod tests;
