//! Reads the version at a path and replaces it.
//!
//! Invariants: a file or link is replaced in one step, so readers see either the old one or the new
//! one. No link on the way to a path is followed ([`OpenFolder`]): files behind a link are neither
//! read nor written. If the replaced version was not the expected one, it is restored.

use std::ffi::OsStr;
use std::fs::{Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use haft_tools::OpenFolder;
use haft_types::ContentHash;

use crate::versions::{FileContent, FileStamp, FileVersion};

/// The maximum size of a file that is saved before a tool changes it, in bytes.
pub(super) const MAX_SAVED_BYTES: u64 = 64 * 1024 * 1024;

/// The version and content found at a path.
pub(super) struct PathSnapshot {
    pub(super) version: FileVersion,
    /// The content of a file, or the target of a link.
    pub(super) bytes: Vec<u8>,
    /// The metadata of the path from before the content was read. `None` if the metadata changed
    /// during the read, or if nothing is at the path.
    pub(super) stamp: Option<FileStamp>,
}

impl PathSnapshot {
    fn without_content(version: FileVersion, stamp: Option<FileStamp>) -> Self {
        Self {
            version,
            bytes: Vec::new(),
            stamp,
        }
    }

    /// Returns the content in the form in which it is stored, or `None` if the version has no
    /// content.
    pub(super) fn pack(self) -> Option<FileContent> {
        self.version
            .hash()
            .map(|hash| FileContent::pack(hash, self.bytes))
    }
}

/// Opens the parent folder of `path` and returns it with the file name.
fn open_parent(path: &Path) -> io::Result<(OpenFolder, &OsStr)> {
    let (folder, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or(io::ErrorKind::InvalidFilename)?;
    Ok((OpenFolder::open(folder)?, name))
}

/// Reads the version at `path` without following links. The content of a file larger than `largest`
/// bytes is not read.
pub(super) fn inspect_path(path: &Path, largest: u64) -> PathSnapshot {
    match open_parent(path) {
        Ok((folder, name)) => inspect_entry(&folder, name, largest),
        Err(error) => inspect_unreachable(path, &error),
    }
}

/// Returns the snapshot of a path whose parent folder could not be opened: absent if nothing can be
/// at the path, else unsaved.
fn inspect_unreachable(path: &Path, error: &io::Error) -> PathSnapshot {
    let nothing = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    let absent = nothing(error) || path.symlink_metadata().is_err_and(|error| nothing(&error));
    PathSnapshot::without_content(
        if absent {
            FileVersion::Absent
        } else {
            FileVersion::Unsaved { size: 0 }
        },
        None,
    )
}

fn inspect_entry(folder: &OpenFolder, name: &OsStr, largest: u64) -> PathSnapshot {
    match folder.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => {
            inspect_file(folder, name, largest).unwrap_or_else(|_| {
                PathSnapshot::without_content(
                    FileVersion::Unsaved {
                        size: metadata.len(),
                    },
                    None,
                )
            })
        }
        Ok(metadata) if metadata.is_symlink() => match folder.read_link(name) {
            Ok(bytes) => {
                let version = FileVersion::Link {
                    hash: ContentHash::from_content(&bytes),
                };
                PathSnapshot {
                    version,
                    bytes,
                    stamp: Some(stamp_from_metadata(&metadata)),
                }
            }
            Err(_) => PathSnapshot::without_content(FileVersion::Unsaved { size: 0 }, None),
        },
        Ok(metadata) if metadata.is_dir() => PathSnapshot::without_content(
            FileVersion::Folder {
                mode: permission_bits(&metadata),
            },
            Some(stamp_from_metadata(&metadata)),
        ),
        Ok(metadata) => PathSnapshot::without_content(
            FileVersion::Unsaved {
                size: metadata.len(),
            },
            Some(stamp_from_metadata(&metadata)),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            PathSnapshot::without_content(FileVersion::Absent, None)
        }
        Err(_) => PathSnapshot::without_content(FileVersion::Unsaved { size: 0 }, None),
    }
}

fn inspect_file(folder: &OpenFolder, name: &OsStr, largest: u64) -> io::Result<PathSnapshot> {
    // Neither blocks on a pipe nor follows a link that was put there in the meantime.
    let file = folder.open_for_reading(name)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > largest {
        return Ok(PathSnapshot::without_content(
            FileVersion::Unsaved {
                size: metadata.len(),
            },
            Some(stamp_from_metadata(&metadata)),
        ));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let mut reader = file.take(largest + 1);
    reader.read_to_end(&mut bytes)?;
    let after = reader.get_ref().metadata()?;
    if bytes.len() as u64 > largest {
        return Ok(PathSnapshot::without_content(
            FileVersion::Unsaved { size: after.len() },
            None,
        ));
    }
    let version = FileVersion::File {
        mode: permission_bits(&after),
        size: bytes.len() as u64,
        hash: ContentHash::from_content(&bytes),
    };
    let steady = stamp_from_metadata(&metadata) == stamp_from_metadata(&after);
    Ok(PathSnapshot {
        version,
        bytes,
        stamp: steady.then(|| stamp_from_metadata(&metadata)),
    })
}

/// Returns the version at `path`. Files larger than [`MAX_SAVED_BYTES`] are
/// [`FileVersion::Unsaved`].
pub(super) fn version_at(path: &Path) -> FileVersion {
    inspect_path(path, MAX_SAVED_BYTES).version
}

pub(super) fn permission_bits(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

pub(super) fn stamp_from_metadata(metadata: &Metadata) -> FileStamp {
    let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
    FileStamp {
        mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
    }
}

/// The reason why the version at a path could not be replaced. The path keeps its content.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplaceError {
    #[error("it was changed by someone else just now")]
    ChangedMeanwhile,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Replaces the version `from` at `path` with the version `to`. `bytes` is the content of a file or
/// the target of a link. Temporary files are created in the folder of `path`, and their names begin
/// with `temporary_prefix`.
pub(super) fn replace_path(
    path: &Path,
    (from, to): (FileVersion, FileVersion),
    bytes: &[u8],
    temporary_prefix: &str,
) -> Result<(), ReplaceError> {
    let (folder, name) = open_parent(path)?;
    let temporary = OpenFolder::temporary_name(temporary_prefix)?;
    let spot = ReplaceTarget {
        folder,
        name,
        temporary: &temporary,
    };
    match to {
        FileVersion::Absent => spot.remove_entry(from),
        FileVersion::Folder { mode } => spot.place_folder(from, mode),
        FileVersion::File { mode, hash, .. } => match from {
            // Only the mode differs: the file keeps its inode.
            FileVersion::File { hash: same, .. } if same == hash => {
                spot.verify_version(name, from)?;
                Ok(spot.folder.set_mode(name, mode)?)
            }
            _ => spot.swap_in_temporary(from, spot.write_temporary(mode, bytes)),
        },
        FileVersion::Link { .. } => spot.swap_in_temporary(
            from,
            spot.folder
                .create_symlink(OsStr::from_bytes(bytes), &temporary),
        ),
        FileVersion::Unsaved { .. } => Err(io::Error::other("its content was not saved").into()),
    }
}

/// Ensures that changes in a folder survive a power cut, if possible: some file systems can't sync
/// a folder. Even then, each file in the folder is either completely old or completely new.
pub(super) fn sync_folder(folder: &Path) {
    if let Ok(folder) = OpenFolder::open(folder) {
        folder.sync();
    }
}

/// A path to be replaced: its open folder, its name, and an unused temporary name in that folder.
struct ReplaceTarget<'a> {
    folder: OpenFolder,
    name: &'a OsStr,
    temporary: &'a OsStr,
}

impl ReplaceTarget<'_> {
    fn verify_version(&self, name: &OsStr, expected: FileVersion) -> Result<(), ReplaceError> {
        let found = inspect_entry(&self.folder, name, MAX_SAVED_BYTES).version;
        if found == expected {
            Ok(())
        } else {
            Err(ReplaceError::ChangedMeanwhile)
        }
    }

    fn remove_entry(&self, from: FileVersion) -> Result<(), ReplaceError> {
        match from {
            FileVersion::Absent => Ok(()),
            // The kernel refuses to remove a folder that is not empty.
            FileVersion::Folder { .. } => Ok(self.folder.remove_folder(self.name)?),
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                self.verify_version(self.name, from)?;
                self.folder.rename_no_replace(self.name, self.temporary)?;
                if let Err(overtaken) = self.verify_version(self.temporary, from) {
                    return match self.folder.rename_no_replace(self.temporary, self.name) {
                        // Another process created the name again, and its version is newer.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            Err(self.overwritten_twice_error())
                        }
                        result => result.map_err(ReplaceError::from).and(Err(overtaken)),
                    };
                }
                Ok(self.folder.remove_file(self.temporary)?)
            }
        }
    }

    fn place_folder(&self, from: FileVersion, mode: u32) -> Result<(), ReplaceError> {
        match from {
            FileVersion::Folder { .. } => {}
            FileVersion::Absent
            | FileVersion::File { .. }
            | FileVersion::Link { .. }
            | FileVersion::Unsaved { .. } => {
                self.remove_entry(from)?;
                self.folder.create_folder(self.name, mode | 0o700)?;
            }
        }
        Ok(self.folder.set_mode(self.name, mode)?)
    }

    /// Writes the temporary file with the owner and group of the file it will replace.
    fn write_temporary(&self, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.folder.create_file(self.temporary, 0o600)?;
        file.write_all(bytes)?;
        if let Ok(old) = self.folder.symlink_metadata(self.name)
            && old.is_file()
        {
            let made = file.metadata()?;
            if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
                fchown(&file, Some(old.uid()), Some(old.gid()))?;
            }
        }
        // Set after the owner, because changing the owner clears the set-id bits.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    }

    /// Moves the temporary file or link to the target path. `made` is the result of creating the
    /// temporary file or link.
    fn swap_in_temporary(
        &self,
        from: FileVersion,
        made: io::Result<()>,
    ) -> Result<(), ReplaceError> {
        let version = |name: &OsStr| Ok(inspect_entry(&self.folder, name, MAX_SAVED_BYTES).version);
        // The version is read back, because not all file systems store modes.
        let ours = version(self.temporary)?;
        let placed = made.map_err(ReplaceError::from).and_then(|()| match from {
            FileVersion::Absent => self.move_to_free_name(),
            FileVersion::Folder { .. } => {
                self.folder.remove_folder(self.name)?;
                self.move_to_free_name()
            }
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                self.verify_version(self.name, from)?;
                Ok(self.folder.exchange_files(self.temporary, self.name)?)
            }
        });
        if placed.is_ok()
            && from.hash().is_some()
            && self.verify_version(self.temporary, from).is_err()
        {
            // Another process wrote the path in the meantime: the version of that process is
            // restored. If that fails, its version stays under the temporary name.
            let alone = self
                .folder
                .put_back_file((self.temporary, self.name), ours, version)?;
            return Err(if alone {
                ReplaceError::ChangedMeanwhile
            } else {
                self.overwritten_twice_error()
            });
        }
        let _ = self.folder.remove_file(self.temporary);
        placed
    }

    /// Returns the error for a path that other processes wrote twice during the replacement. The
    /// newer of the two versions is at the path; the older one stays under the temporary name.
    fn overwritten_twice_error(&self) -> ReplaceError {
        let beside = self.folder.path().join(self.temporary);
        let text = format!(
            "others are writing it; what they wrote before is kept as `{}`",
            beside.display()
        );
        ReplaceError::Io(io::Error::other(text))
    }

    fn move_to_free_name(&self) -> Result<(), ReplaceError> {
        match self.folder.rename_no_replace(self.temporary, self.name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ReplaceError::ChangedMeanwhile)
            }
            placed => Ok(placed?),
        }
    }
}
