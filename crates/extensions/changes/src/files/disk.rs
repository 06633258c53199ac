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

/// The largest file that is saved before a tool changes it, in bytes.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;

/// The version and content found at a path.
pub(super) struct Seen {
    pub(super) version: FileVersion,
    /// The content of a file, or the target of a link.
    pub(super) bytes: Vec<u8>,
    /// The stamp from before the content was read. `None` if it changed during the read, or if
    /// nothing is at the path.
    pub(super) stamp: Option<FileStamp>,
}

impl Seen {
    fn without_content(version: FileVersion, stamp: Option<FileStamp>) -> Self {
        Self {
            version,
            bytes: Vec::new(),
            stamp,
        }
    }

    /// Returns the content, packed for the store.
    pub(super) fn pack(self) -> Option<FileContent> {
        self.version
            .hash()
            .map(|hash| FileContent::pack(hash, self.bytes))
    }
}

/// Opens the parent folder of `path` and returns it with the file name.
fn place(path: &Path) -> io::Result<(OpenFolder, &OsStr)> {
    let (folder, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or(io::ErrorKind::InvalidFilename)?;
    Ok((OpenFolder::open(folder)?, name))
}

/// Reads the version at `path` without following links. The content of a file larger than `largest`
/// bytes is not read.
pub(super) fn look(path: &Path, largest: u64) -> Seen {
    match place(path) {
        Ok((folder, name)) => look_in(&folder, name, largest),
        Err(error) => unseen(path, &error),
    }
}

/// Returns the snapshot of a path whose parent folder could not be opened: absent, or unsaved if
/// something may be behind a link or an error.
fn unseen(path: &Path, error: &io::Error) -> Seen {
    let nothing = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    let absent = nothing(error) || path.symlink_metadata().is_err_and(|error| nothing(&error));
    Seen::without_content(
        if absent {
            FileVersion::Absent
        } else {
            FileVersion::Unsaved { size: 0 }
        },
        None,
    )
}

fn look_in(folder: &OpenFolder, name: &OsStr, largest: u64) -> Seen {
    match folder.look(name) {
        Ok(metadata) if metadata.is_file() => {
            look_at_file(folder, name, largest).unwrap_or_else(|_| {
                Seen::without_content(
                    FileVersion::Unsaved {
                        size: metadata.len(),
                    },
                    None,
                )
            })
        }
        Ok(metadata) if metadata.is_symlink() => match folder.target(name) {
            Ok(bytes) => {
                let version = FileVersion::Link {
                    hash: ContentHash::of(&bytes),
                };
                Seen {
                    version,
                    bytes,
                    stamp: Some(stamp(&metadata)),
                }
            }
            Err(_) => Seen::without_content(FileVersion::Unsaved { size: 0 }, None),
        },
        Ok(metadata) if metadata.is_dir() => Seen::without_content(
            FileVersion::Folder {
                mode: mode(&metadata),
            },
            Some(stamp(&metadata)),
        ),
        Ok(metadata) => Seen::without_content(
            FileVersion::Unsaved {
                size: metadata.len(),
            },
            Some(stamp(&metadata)),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Seen::without_content(FileVersion::Absent, None)
        }
        Err(_) => Seen::without_content(FileVersion::Unsaved { size: 0 }, None),
    }
}

fn look_at_file(folder: &OpenFolder, name: &OsStr, largest: u64) -> io::Result<Seen> {
    // Neither blocks on a pipe nor follows a link that was put there in the meantime.
    let file = folder.read(name)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > largest {
        return Ok(Seen::without_content(
            FileVersion::Unsaved {
                size: metadata.len(),
            },
            Some(stamp(&metadata)),
        ));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let mut reader = file.take(largest + 1);
    reader.read_to_end(&mut bytes)?;
    let after = reader.get_ref().metadata()?;
    if bytes.len() as u64 > largest {
        return Ok(Seen::without_content(
            FileVersion::Unsaved { size: after.len() },
            None,
        ));
    }
    let version = FileVersion::File {
        mode: mode(&after),
        size: bytes.len() as u64,
        hash: ContentHash::of(&bytes),
    };
    let steady = stamp(&metadata) == stamp(&after);
    Ok(Seen {
        version,
        bytes,
        stamp: steady.then(|| stamp(&metadata)),
    })
}

/// Returns the version at `path`. Files above the size limit are [`FileVersion::Unsaved`].
pub(super) fn version_at(path: &Path) -> FileVersion {
    look(path, LARGEST).version
}

pub(super) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

pub(super) fn stamp(metadata: &Metadata) -> FileStamp {
    let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
    FileStamp {
        mtime_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
    }
}

/// The reason why a path could not be replaced. Its content is unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    #[error("it was changed by someone else just now")]
    Overtaken,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Replaces the version `from` at `path` with `to`. `bytes` is the content of a file or the target
/// of a link. Temporary names in the folder of `path` begin with `temporary_prefix`.
pub(super) fn put(
    path: &Path,
    (from, to): (FileVersion, FileVersion),
    bytes: &[u8],
    beginning: &str,
) -> Result<(), PutError> {
    let (folder, name) = place(path)?;
    let temporary = OpenFolder::temporary_name(beginning)?;
    let spot = Spot {
        folder,
        name,
        temporary: &temporary,
    };
    match to {
        FileVersion::Absent => spot.remove(from),
        FileVersion::Folder { mode } => spot.put_folder(from, mode),
        FileVersion::File { mode, hash, .. } => match from {
            // Only the mode differs: the file keeps its inode.
            FileVersion::File { hash: same, .. } if same == hash => {
                spot.check(name, from)?;
                Ok(spot.folder.set_mode(name, mode)?)
            }
            _ => spot.take_place(from, spot.write_file(mode, bytes)),
        },
        FileVersion::Link { .. } => {
            spot.take_place(from, spot.folder.link(OsStr::from_bytes(bytes), &temporary))
        }
        FileVersion::Unsaved { .. } => Err(io::Error::other("its content was not saved").into()),
    }
}

/// Makes changes in a folder survive a power cut. Best effort: some file systems can't sync a
/// folder, and each file is whole either way.
pub(super) fn sync_folder(folder: &Path) {
    if let Ok(folder) = OpenFolder::open(folder) {
        folder.sync();
    }
}

/// A name in an open folder, and an unused temporary name beside it.
struct Spot<'a> {
    folder: OpenFolder,
    name: &'a OsStr,
    temporary: &'a OsStr,
}

impl Spot<'_> {
    fn check(&self, name: &OsStr, expected: FileVersion) -> Result<(), PutError> {
        let found = look_in(&self.folder, name, LARGEST).version;
        if found == expected {
            Ok(())
        } else {
            Err(PutError::Overtaken)
        }
    }

    fn remove(&self, from: FileVersion) -> Result<(), PutError> {
        match from {
            FileVersion::Absent => Ok(()),
            // The kernel refuses to remove a folder that is not empty.
            FileVersion::Folder { .. } => Ok(self.folder.remove_folder(self.name)?),
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                self.check(self.name, from)?;
                self.folder.rename_to_free(self.name, self.temporary)?;
                if let Err(overtaken) = self.check(self.temporary, from) {
                    return match self.folder.rename_to_free(self.temporary, self.name) {
                        // Another process created the name again, and its version is newer.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            Err(self.kept_beside())
                        }
                        result => result.map_err(PutError::from).and(Err(overtaken)),
                    };
                }
                Ok(self.folder.remove(self.temporary)?)
            }
        }
    }

    fn put_folder(&self, from: FileVersion, mode: u32) -> Result<(), PutError> {
        match from {
            FileVersion::Folder { .. } => {}
            FileVersion::Absent
            | FileVersion::File { .. }
            | FileVersion::Link { .. }
            | FileVersion::Unsaved { .. } => {
                self.remove(from)?;
                self.folder.make_folder(self.name, mode | 0o700)?;
            }
        }
        Ok(self.folder.set_mode(self.name, mode)?)
    }

    /// Writes the temporary file with the owner and group of the file it will replace.
    fn write_file(&self, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.folder.create(self.temporary, 0o600)?;
        file.write_all(bytes)?;
        if let Ok(old) = self.folder.look(self.name)
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

    /// Moves the temporary file or link into place, if it could be created.
    fn take_place(&self, from: FileVersion, made: io::Result<()>) -> Result<(), PutError> {
        let version = |name: &OsStr| Ok(look_in(&self.folder, name, LARGEST).version);
        // Read back, because not all file systems store modes.
        let ours = version(self.temporary)?;
        let placed = made.map_err(PutError::from).and_then(|()| match from {
            FileVersion::Absent => self.take_free_place(),
            FileVersion::Folder { .. } => {
                self.folder.remove_folder(self.name)?;
                self.take_free_place()
            }
            FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
                self.check(self.name, from)?;
                Ok(self.folder.exchange(self.temporary, self.name)?)
            }
        });
        if placed.is_ok() && from.hash().is_some() && self.check(self.temporary, from).is_err() {
            // Another process wrote the path in the meantime: its version is restored. If that
            // fails, it stays under the temporary name.
            let alone = self
                .folder
                .put_back((self.temporary, self.name), ours, version)?;
            return Err(if alone {
                PutError::Overtaken
            } else {
                self.kept_beside()
            });
        }
        let _ = self.folder.remove(self.temporary);
        placed
    }

    /// Returns the error for a path that others wrote twice during the replacement. Their last
    /// version is at the path, and the one before it stays under the temporary name.
    fn kept_beside(&self) -> PutError {
        let beside = self.folder.path().join(self.temporary);
        let text = format!(
            "others are writing it; what they wrote before is kept as `{}`",
            beside.display()
        );
        PutError::Io(io::Error::other(text))
    }

    fn take_free_place(&self) -> Result<(), PutError> {
        match self.folder.rename_to_free(self.temporary, self.name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(PutError::Overtaken),
            placed => Ok(placed?),
        }
    }
}
