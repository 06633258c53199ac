//! Defines the version of a path, and its columns in a database row.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_store::database::SqliteFailure;
use haft_types::ContentHash;
use rusqlite::Row;

/// The state of a path at one moment: absent, a file, a link, a folder, or something unsaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileVersion {
    /// Nothing exists at the path.
    Absent,
    /// A regular file.
    File {
        /// The permission bits of the file.
        mode: u32,
        /// The size of the file, in bytes.
        size: u64,
        /// The hash of the content, which is the key of the stored content.
        hash: ContentHash,
    },
    Link {
        /// The hash of the target, which is the key of the stored target.
        hash: ContentHash,
    },
    /// A folder. Its entries are not part of the version.
    Folder {
        /// The permission bits of the folder.
        mode: u32,
    },
    /// A path whose content was not saved: too large, unreadable, or neither file, link nor folder.
    Unsaved {
        /// The size of the content that was not saved, in bytes.
        size: u64,
    },
}

impl FileVersion {
    /// Returns the key of the stored content, or `None` if the version has no stored content.
    pub fn hash(&self) -> Option<ContentHash> {
        match self {
            Self::File { hash, .. } | Self::Link { hash } => Some(*hash),
            Self::Absent | Self::Folder { .. } | Self::Unsaved { .. } => None,
        }
    }

    /// True if the version was saved completely, so that it can be restored.
    pub fn is_saved(&self) -> bool {
        match self {
            Self::Absent | Self::File { .. } | Self::Link { .. } | Self::Folder { .. } => true,
            Self::Unsaved { .. } => false,
        }
    }

    /// Returns the permission bits, if the version has any.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Absent | Self::Link { .. } | Self::Unsaved { .. } => None,
        }
    }

    pub(super) fn to_columns(self) -> VersionColumns {
        let (kind, size) = match self {
            Self::Absent => ("absent", 0),
            Self::File { size, .. } => ("file", size),
            Self::Link { .. } => ("link", 0),
            Self::Folder { .. } => ("folder", 0),
            Self::Unsaved { size } => ("unsaved", size),
        };
        VersionColumns {
            kind,
            mode: self.mode().unwrap_or(0),
            size: size.cast_signed(),
            hash: self.hash().map(|hash| hash.0),
        }
    }

    /// Reads a version from the four columns that begin at index `first`.
    pub(super) fn from_row(row: &Row<'_>, first: usize) -> Result<Self, SqliteFailure> {
        let kind: String = row.get(first)?;
        let mode: u32 = row.get(first + 1)?;
        let size = row.get::<_, i64>(first + 2)?.cast_unsigned();
        let hash = row.get::<_, Option<[u8; 16]>>(first + 3)?.map(ContentHash);
        match (kind.as_str(), hash) {
            ("absent", None) => Ok(Self::Absent),
            ("file", Some(hash)) => Ok(Self::File { mode, size, hash }),
            ("link", Some(hash)) => Ok(Self::Link { hash }),
            ("folder", None) => Ok(Self::Folder { mode }),
            ("unsaved", None) => Ok(Self::Unsaved { size }),
            (kind, _) => Err(SqliteFailure::Damaged(format!(
                "`{kind}` is not what a path can hold"
            ))),
        }
    }
}

/// A version in the form in which a database row stores it, with one field per column.
pub(super) struct VersionColumns {
    pub(super) kind: &'static str,
    pub(super) mode: u32,
    pub(super) size: i64,
    pub(super) hash: Option<[u8; 16]>,
}

pub(super) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

pub(super) fn read_path(row: &Row<'_>, column: usize) -> Result<PathBuf, SqliteFailure> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
}
