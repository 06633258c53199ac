//! The errors of a collection over local folders.

use std::path::PathBuf;

/// The reason why a collection over local folders cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RagError {
    /// None of the folders of the collection exists.
    #[error("none of the folders of the collection is there ({}); bring them back, or change `folders` in its configuration", format_folders(.0))]
    NoFolder(Vec<PathBuf>),
    /// A file of the index could not be created, locked, or removed.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// A verb for the error message that names the failed action, such as `create`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// Another process is still building the index, which contains no passages yet.
    #[error("another process is building the index `{}`; try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The database of the index could not be read or written.
    #[error("the index `{}` failed: {source}; it can be deleted, and is made again", .path.display())]
    Database {
        path: PathBuf,
        source: rusqlite::Error,
    },
}

fn format_folders(folders: &[PathBuf]) -> String {
    folders
        .iter()
        .map(|folder| format!("`{}`", folder.display()))
        .collect::<Vec<_>>()
        .join(", ")
}
