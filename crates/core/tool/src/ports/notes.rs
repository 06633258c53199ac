//! Notes on the folders and files of a project, shared by its conversations.

use std::path::Path;

use async_trait::async_trait;
use haft_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::PortError;

/// A note on a folder or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The id within the project, such as `n7`; never reused.
    pub id: String,
    /// The folder or file, relative to the project; `.` is the project itself.
    pub path: String,
    pub note: String,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl Note {
    /// Maximum notes of one folder or file that are shown unasked.
    pub const SHOWN: usize = 5;

    /// True if the note is about this path, a folder above it or something below it.
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
    /// Returns every note, oldest first by the time of the last change.
    async fn list(&self) -> Result<Vec<Note>, PortError>;

    /// Adds a note and returns once it is stored. A duplicate of an existing note replaces it.
    async fn add(&self, path: &str, note: &str) -> Result<Note, PortError>;

    async fn update(&self, id: &str, note: &str) -> Result<Note, PortError>;

    /// Deletes a note and returns it.
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
