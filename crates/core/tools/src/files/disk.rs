//! Opens and loads regular files, and rejects files of all other types.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use haft_tool::FileState;
use haft_types::{ContentHash, Timestamp};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::failure::Coded;
use crate::files::change::open_absolute;

/// The maximum size, in bytes, of a file that is loaded completely, for hashing, decoding and
/// editing.
pub(crate) const MAX_LOADED: u64 = 32 * 1024 * 1024;

/// An error while opening or loading a file. `name` is the path as the model may write it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    #[error("`{name}` does not exist")]
    NotFound { name: String },
    #[error("`{name}` is a folder, not a file; list it to see what is in it")]
    Folder { name: String },
    #[error("`{name}` is not a regular file (a pipe, socket or device) and is never opened")]
    Special { name: String },
    #[error(
        "a symbolic link was put in the way of `{name}` just now; it is not followed, look again"
    )]
    Link { name: String },
    #[error(
        "`{name}` has {size} bytes; files of more than {MAX_LOADED} bytes cannot be edited or overwritten here; change it with a program"
    )]
    TooLarge { name: String, size: u64 },
    #[error("cannot {doing} `{name}`: {source}")]
    Io {
        doing: &'static str,
        name: String,
        source: io::Error,
    },
}

impl Coded for DiskError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Folder { .. } => "is_folder",
            Self::Special { .. } => "not_a_file",
            Self::Link { .. } => "link_in_the_way",
            Self::TooLarge { .. } => "too_large",
            Self::Io { .. } => "io",
        }
    }

    fn missing_path(&self) -> Option<&str> {
        if let Self::NotFound { name } = self {
            Some(name)
        } else {
            None
        }
    }
}

/// The content of a file in memory, and the attributes to keep when the file is replaced.
pub(crate) struct LoadedFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) state: FileState,
    pub(crate) metadata: Metadata,
    /// The open file, from which its extended attributes are copied.
    pub(crate) file: File,
}

/// Opens a resolved path if it is a regular file. Follows no symbolic links, because the path was
/// resolved before.
pub(crate) fn open_file(path: &Path, name: &str) -> Result<(File, Metadata), DiskError> {
    let fail = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => DiskError::NotFound {
            name: name.to_owned(),
        },
        _ if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => DiskError::Link {
            name: name.to_owned(),
        },
        _ => DiskError::Io {
            doing: "open",
            name: name.to_owned(),
            source,
        },
    };
    // The kind is checked before the file is opened: opening a device can have side effects.
    check_regular_file(&path.symlink_metadata().map_err(fail)?, name)?;
    // A pipe put there in between must not block, and a link put there now is not followed.
    let file = File::from(open_absolute(path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(fail)?);
    let metadata = file.metadata().map_err(fail)?;
    check_regular_file(&metadata, name)?;
    Ok((file, metadata))
}

/// Opens a path that a folder walk reported as a regular file, with as few system calls as
/// possible.
pub(crate) fn open_walked_file(path: &Path) -> io::Result<File> {
    let file = File::from(open_absolute(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

fn check_regular_file(metadata: &Metadata, name: &str) -> Result<(), DiskError> {
    if metadata.is_dir() {
        Err(DiskError::Folder {
            name: name.to_owned(),
        })
    } else if metadata.is_symlink() {
        Err(DiskError::Link {
            name: name.to_owned(),
        })
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(DiskError::Special {
            name: name.to_owned(),
        })
    }
}

pub(crate) fn load_file(path: &Path, name: &str) -> Result<LoadedFile, DiskError> {
    let (file, metadata) = open_file(path, name)?;
    load_open_file(file, &metadata, name)
}

/// Loads a file that [`open_file`] opened.
pub(crate) fn load_open_file(
    file: File,
    metadata: &Metadata,
    name: &str,
) -> Result<LoadedFile, DiskError> {
    let fail = |source| DiskError::Io {
        doing: "read",
        name: name.to_owned(),
        source,
    };
    let mut bytes = Vec::with_capacity(metadata.len().min(MAX_LOADED) as usize);
    let mut reader = file.take(MAX_LOADED + 1);
    reader.read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MAX_LOADED {
        return Err(DiskError::TooLarge {
            name: name.to_owned(),
            size: metadata.len(),
        });
    }
    // Read after the content, so that the time is never older than the content.
    let metadata = reader.get_ref().metadata().map_err(fail)?;
    Ok(LoadedFile {
        state: compute_file_state(&bytes, &metadata),
        bytes,
        metadata,
        file: reader.into_inner(),
    })
}

/// Returns the state of a file with the content `bytes`, for the read ledger.
pub(crate) fn compute_file_state(bytes: &[u8], metadata: &Metadata) -> FileState {
    FileState {
        size: bytes.len() as u64,
        mtime_ns: mtime_ns(metadata),
        hash: ContentHash::from_content(bytes),
    }
}

/// Returns a file's modification time in nanoseconds since 1970.
pub(crate) fn mtime_ns(metadata: &Metadata) -> i64 {
    metadata
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(metadata.mtime_nsec())
}

/// Formats a modification time for people and models; `None` if it is out of range.
pub(crate) fn format_mtime(mtime_ns: i64) -> Option<String> {
    Timestamp::from_nanosecond(i128::from(mtime_ns))
        .ok()
        .map(|time| time.to_string())
}
