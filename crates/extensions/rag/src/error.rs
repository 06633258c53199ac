//! Why a collection could not be asked.

use std::path::PathBuf;

/// Why a collection could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum RagError {
    /// None of its folders is there.
    #[error("none of the folders of the collection is there ({}); bring them back, or change `folders` in its configuration", show(.0))]
    NoFolder(Vec<PathBuf>),
    /// A file of the index could not be made, locked or removed.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another process holds the index, and it holds nothing yet.
    #[error("another process is building the index `{}`; try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The index failed.
    #[error("the index `{}` failed: {source}; it can be deleted, and is made again", .path.display())]
    Database {
        /// The index.
        path: PathBuf,
        /// What the database says.
        source: rusqlite::Error,
    },
}

fn show(folders: &[PathBuf]) -> String {
    folders
        .iter()
        .map(|folder| format!("`{}`", folder.display()))
        .collect::<Vec<_>>()
        .join(", ")
}
