//! Checks whether a file may be changed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use haft_tool::FileState;

use crate::failure::Coded;
use crate::files::disk::{LoadedFile, format_mtime};
use crate::files::documents;
use crate::scope::FileScope;

/// The reason why a file may not be changed. `name` is the path as the model may write it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeRefusal {
    #[error("`{name}` exists and was not read in this conversation; read it first, then write it")]
    Unread { name: String },
    #[error(
        "`{name}` was changed by someone else since it was read ({change}); read it again, then repeat the change"
    )]
    Changed { name: String, change: String },
    #[error(
        "`{name}` has no write permission for its owner (mode {mode:o}) and is left alone; ask the user if it should be changed"
    )]
    ReadOnly { name: String, mode: u32 },
    #[error(
        "`{name}` is {kind}: what is shown of it is not its content, so it cannot be edited or overwritten as text; use a program that knows the format, or write to another path"
    )]
    Document { name: String, kind: &'static str },
}

impl Coded for ChangeRefusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Unread { .. } => "not_read",
            Self::Changed { .. } => "changed_since_read",
            Self::ReadOnly { .. } => "read_only",
            Self::Document { .. } => "document",
        }
    }
}

/// The proof, required before a change of a file, that the model knows the file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadRequirement {
    /// The model must have read the file, because its whole content is replaced.
    MustBeRead,
    /// No read is required: the change contains the text that it replaces, or removes or moves the
    /// file by its name.
    Proven,
}

/// Checks whether a file, in its current state, may be changed.
pub(crate) fn check_changeable(
    scope: &FileScope,
    path: &Path,
    name: &str,
    now: &LoadedFile,
    knowledge: ReadRequirement,
) -> Result<(), ChangeRefusal> {
    let mode = now.metadata.mode() & 0o7777;
    // The mode is checked instead of the kernel's permission: root may write every file, and still
    // should not.
    if mode & 0o200 == 0 {
        return Err(ChangeRefusal::ReadOnly {
            name: name.to_owned(),
            mode,
        });
    }
    match knowledge {
        ReadRequirement::MustBeRead => reject_document(scope, path, name, now)?,
        // A file need not be read to be removed or moved.
        ReadRequirement::Proven => {}
    }
    match (scope.reads.last_seen(path), knowledge) {
        (Some(seen), _) if seen.hash == now.state.hash => Ok(()),
        (Some(seen), _) => Err(ChangeRefusal::Changed {
            name: name.to_owned(),
            change: describe_change(seen, now.state),
        }),
        (None, ReadRequirement::MustBeRead) => Err(ChangeRefusal::Unread {
            name: name.to_owned(),
        }),
        (None, ReadRequirement::Proven) => Ok(()),
    }
}

/// Rejects a document such as a PDF file, because the model only gets its extracted text.
pub(crate) fn reject_document(
    scope: &FileScope,
    path: &Path,
    name: &str,
    now: &LoadedFile,
) -> Result<(), ChangeRefusal> {
    match documents::detect_format(scope, path, &now.bytes) {
        Some(format) => Err(ChangeRefusal::Document {
            name: name.to_owned(),
            kind: format.name,
        }),
        None => Ok(()),
    }
}

fn describe_change(seen: FileState, now: FileState) -> String {
    let size = if seen.size == now.size {
        format!("still {} bytes, but other content", now.size)
    } else {
        format!("{} bytes then, {} bytes now", seen.size, now.size)
    };
    match format_mtime(now.mtime_ns) {
        Some(time) if seen.mtime_ns != now.mtime_ns => format!("{size}, last modified {time}"),
        _ => size,
    }
}
