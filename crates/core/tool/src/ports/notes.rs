//! Notes on the folders and files of a project, shared by its conversations.

use std::path::Path;

use async_trait::async_trait;
use haft_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::PortError;

/// A note on a folder or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id within the project, such as `n7`; never used again for another.
    pub id: String,
    /// What it is about, relative to the project; `.` is the project itself.
    pub path: String,
    /// The note.
    pub note: String,
    /// When it was written or last changed.
    pub updated_at: Timestamp,
}

impl Note {
    /// How many notes of one folder or file are shown by themselves; more can be asked for.
    pub const SHOWN: usize = 5;

    /// Whether the note is on this path, on a folder above it or on something below it.
    pub fn concerns(&self, path: &str) -> bool {
        let own = Path::new(&self.path);
        let path = Path::new(path);
        let everything = |path: &Path| path == Path::new(".");
        everything(own) || everything(path) || path.starts_with(own) || own.starts_with(path)
    }
}

/// The notes of a project.
#[async_trait]
pub trait ProjectNotes: Send + Sync {
    /// Every note, oldest first; a changed one counts as new.
    async fn list(&self) -> Result<Vec<Note>, PortError>;

    /// Adds a note; one that says the same about the same path is that note again. When it returns,
    /// it is stored.
    async fn add(&self, path: &str, note: &str) -> Result<Note, PortError>;

    /// Replaces the text of a note.
    async fn update(&self, id: &str, note: &str) -> Result<Note, PortError>;

    /// Takes a note away and gives it back.
    async fn delete(&self, id: &str) -> Result<Note, PortError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_concerns_what_is_above_and_below_but_not_beside() {
        let note = |path: &str| Note {
            id: "n1".into(),
            path: path.into(),
            note: "text".into(),
            updated_at: Timestamp::UNIX_EPOCH,
        };
        for related in [".", "src", "src/a", "src/a/b.rs"] {
            assert!(note("src/a").concerns(related), "{related}");
            assert!(note(related).concerns("src/a"), "{related}");
        }
        for other in ["src/ab", "src/b", "doc"] {
            assert!(!note("src/a").concerns(other), "{other}");
        }
    }
}
