//! What a path holds, and how it is made to hold something else.
//!
//! Invariant: a file or link is replaced in one step: whoever looks sees the old one or the new one. What is not as expected at
//! the last moment is left alone.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use haft_store::versions::{FileContent, FileStamp, FileVersion};
use haft_types::ContentHash;
use rustix::fs::{CWD, Gid, OFlags, RenameFlags, Uid, fchown, renameat_with};

/// The largest file that is saved before a tool changes it.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;

/// What was found at a path.
pub(super) struct Seen {
    pub(super) version: FileVersion,
    /// The content of a file, the target of a link.
    pub(super) bytes: Vec<u8>,
    /// As it was before the content was read; none when it changed meanwhile, or there is nothing.
    pub(super) stamp: Option<FileStamp>,
}

impl Seen {
    fn without_content(version: FileVersion, stamp: Option<FileStamp>) -> Self {
        Self { version, bytes: Vec::new(), stamp }
    }

    /// The content, ready to be stored.
    pub(super) fn pack(self) -> Option<FileContent> {
        self.version.hash().map(|hash| FileContent::pack(hash, self.bytes))
    }
}

/// Looks at a path without following a link at its end. A file of more than `largest` bytes is not read.
pub(super) fn look(path: &Path, largest: u64) -> Seen {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => look_at_file(path, largest)
            .unwrap_or_else(|_| Seen::without_content(FileVersion::Unsaved { size: metadata.len() }, None)),
        Ok(metadata) if metadata.is_symlink() => match path.read_link() {
            Ok(target) => {
                let bytes = target.into_os_string().into_vec();
                let version = FileVersion::Link { hash: ContentHash::of(&bytes) };
                Seen { version, bytes, stamp: Some(stamp(&metadata)) }
            }
            Err(_) => Seen::without_content(FileVersion::Unsaved { size: 0 }, None),
        },
        Ok(metadata) if metadata.is_dir() => {
            Seen::without_content(FileVersion::Folder { mode: mode(&metadata) }, Some(stamp(&metadata)))
        }
        Ok(metadata) => Seen::without_content(FileVersion::Unsaved { size: metadata.len() }, Some(stamp(&metadata))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Seen::without_content(FileVersion::Absent, None)
        }
        Err(_) => Seen::without_content(FileVersion::Unsaved { size: 0 }, None),
    }
}

fn look_at_file(path: &Path, largest: u64) -> io::Result<Seen> {
    // A pipe or link put there in between must neither block nor be followed.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > largest {
        return Ok(Seen::without_content(FileVersion::Unsaved { size: metadata.len() }, Some(stamp(&metadata))));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    let mut reader = file.take(largest + 1);
    reader.read_to_end(&mut bytes)?;
    let after = reader.get_ref().metadata()?;
    if bytes.len() as u64 > largest {
        return Ok(Seen::without_content(FileVersion::Unsaved { size: after.len() }, None));
    }
    let version = FileVersion::File { mode: mode(&after), size: bytes.len() as u64, hash: ContentHash::of(&bytes) };
    let steady = stamp(&metadata) == stamp(&after);
    Ok(Seen { version, bytes, stamp: steady.then(|| stamp(&metadata)) })
}

/// The version at a path, whatever its size.
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

/// A path could not be made to hold something else. It holds what it held.
#[derive(Debug, thiserror::Error)]
pub(super) enum PutError {
    #[error("it was changed by someone else just now")]
    Overtaken,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Makes `path`, which holds `from`, hold `to`. `bytes` is the content of a file or the target of a link; `temporary` is a
/// free name in the same folder.
pub(super) fn put(
    path: &Path,
    (from, to): (FileVersion, FileVersion),
    bytes: &[u8],
    temporary: &Path,
) -> Result<(), PutError> {
    let made = match to {
        FileVersion::Absent => remove(path, from),
        FileVersion::Folder { mode } => put_folder(path, from, mode),
        FileVersion::File { mode, hash, .. } => match from {
            // Only the mode: the file stays the same one.
            FileVersion::File { hash: same, .. } if same == hash => {
                check(path, from).and_then(|()| set_mode(path, mode))
            }
            _ => write_file(temporary, path, mode, bytes).and_then(|()| take_place(temporary, path, from)),
        },
        FileVersion::Link { .. } => {
            // One that a killed undo left.
            let _ = fs::remove_file(temporary);
            let made = symlink(OsStr::from_bytes(bytes), temporary).map_err(PutError::from);
            made.and_then(|()| take_place(temporary, path, from))
        }
        FileVersion::Unsaved { .. } => Err(io::Error::other("its content was not saved").into()),
    };
    if made.is_err() {
        let _ = fs::remove_file(temporary);
    }
    made
}

/// Makes changes in a folder survive a power cut. Best effort: some file systems can't sync a folder, and each file is whole
/// either way.
pub(super) fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

fn check(path: &Path, expected: FileVersion) -> Result<(), PutError> {
    if version_at(path) == expected { Ok(()) } else { Err(PutError::Overtaken) }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), PutError> {
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn remove(path: &Path, from: FileVersion) -> Result<(), PutError> {
    match from {
        FileVersion::Absent => Ok(()),
        // Refused by the kernel when it is not empty.
        FileVersion::Folder { .. } => Ok(fs::remove_dir(path)?),
        FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
            check(path, from)?;
            Ok(fs::remove_file(path)?)
        }
    }
}

fn put_folder(path: &Path, from: FileVersion, mode: u32) -> Result<(), PutError> {
    match from {
        FileVersion::Folder { .. } => {}
        FileVersion::Absent | FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => {
            remove(path, from)?;
            DirBuilder::new().mode(mode | 0o700).create(path)?;
        }
    }
    set_mode(path, mode)
}

fn write_file(temporary: &Path, path: &Path, mode: u32, bytes: &[u8]) -> Result<(), PutError> {
    // One that a killed undo left.
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(bytes)?;
    if let Ok(old) = path.symlink_metadata()
        && old.is_file()
    {
        let made = file.metadata()?;
        if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
            fchown(&file, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid()))).map_err(io::Error::from)?;
        }
    }
    // After the owner: changing that takes away the set-id bits.
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file.sync_all()?)
}

fn take_place(temporary: &Path, path: &Path, from: FileVersion) -> Result<(), PutError> {
    match from {
        FileVersion::Absent => return take_free_place(temporary, path),
        FileVersion::Folder { .. } => {
            fs::remove_dir(path)?;
            return take_free_place(temporary, path);
        }
        FileVersion::File { .. } | FileVersion::Link { .. } | FileVersion::Unsaved { .. } => check(path, from)?,
    }
    Ok(fs::rename(temporary, path)?)
}

fn take_free_place(temporary: &Path, path: &Path) -> Result<(), PutError> {
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(PutError::Overtaken),
        // Not every file system knows this kind of renaming.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            check(path, FileVersion::Absent)?;
            Ok(fs::rename(temporary, path)?)
        }
        Err(error) => Err(io::Error::from(error).into()),
    }
}
