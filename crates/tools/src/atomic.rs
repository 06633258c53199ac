//! Replacing a file in one step.
//!
//! Invariant: at every moment the path holds either the whole old content or the whole new one, and a failure leaves
//! nothing behind: no temporary file, no empty folder. The new content is on disk before it takes the old one's place, and
//! mode and owner are those of the old file.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haft_tool::FileState;
use rustix::fs::{Gid, Uid, fchown};
use tempfile::NamedTempFile;

use crate::disk::{Loaded, mtime_ns, state_of};
use crate::failure::Coded;

/// What the new file replaces.
pub(crate) enum Replaces<'a> {
    /// Nothing: there was no such file.
    Nothing,
    /// This file, if it is still the same when the new one is ready.
    File(&'a Loaded),
}

/// A file that could not be written. The old content is still there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("cannot {doing} `{}`: {source}; nothing was written", .at.display())]
    Io { doing: &'static str, at: PathBuf, source: io::Error },
    #[error("`{}` was changed by someone else while it was being written; nothing was written, read it again", .at.display())]
    Overtaken { at: PathBuf },
    #[error("cannot keep the owner (user {uid}, group {gid}) of `{}`: {source}; nothing was written", .at.display())]
    Owner { at: PathBuf, uid: u32, gid: u32, source: io::Error },
}

impl Coded for WriteError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Overtaken { .. } => "changed_since_read",
            Self::Owner { .. } => "owner",
        }
    }
}

/// Puts `bytes` at a resolved path and returns how the file looks then.
pub(crate) fn write(path: &Path, bytes: &[u8], replaces: &Replaces<'_>) -> Result<FileState, WriteError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let made = make_folders(folder)?;
    write_in(folder, path, bytes, replaces).inspect_err(|_| {
        for folder in made.iter().rev() {
            // Only empty folders go; what someone else put there in between stays.
            let _ = fs::remove_dir(folder);
        }
    })
}

fn write_in(folder: &Path, path: &Path, bytes: &[u8], replaces: &Replaces<'_>) -> Result<FileState, WriteError> {
    let fail = |doing| move |source| WriteError::Io { doing, at: path.to_owned(), source };
    // The mode of a new file is what the umask makes of 0666; that of an old one is copied below.
    let mut temporary = tempfile::Builder::new()
        .prefix(".haft-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(fail("make a temporary file beside"))?;
    temporary.write_all(bytes).map_err(fail("write"))?;
    if let Replaces::File(old) = replaces {
        keep_owner_and_mode(temporary.as_file(), old, path)?;
    }
    temporary.as_file().sync_all().map_err(fail("sync"))?;
    let state = state_of(bytes, &temporary.as_file().metadata().map_err(fail("look at"))?);
    take_place(temporary, path, replaces)?;
    sync_folder(folder);
    Ok(state)
}

fn keep_owner_and_mode(new: &File, old: &Loaded, path: &Path) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io { doing: "set the mode of", at: path.to_owned(), source };
    let (uid, gid) = (old.metadata.uid(), old.metadata.gid());
    let made = new.metadata().map_err(fail)?;
    if (made.uid(), made.gid()) != (uid, gid) {
        fchown(new, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(|error| WriteError::Owner {
            at: path.to_owned(),
            uid,
            gid,
            source: error.into(),
        })?;
    }
    // After the owner: changing that takes away the set-id bits.
    new.set_permissions(Permissions::from_mode(old.metadata.mode() & 0o7777)).map_err(fail)
}

fn take_place(temporary: NamedTempFile, path: &Path, replaces: &Replaces<'_>) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io { doing: "replace", at: path.to_owned(), source };
    let overtaken = || WriteError::Overtaken { at: path.to_owned() };
    match replaces {
        Replaces::Nothing => {
            temporary.persist_noclobber(path).map(drop).map_err(|refused| match refused.error.kind() {
                io::ErrorKind::AlreadyExists => overtaken(),
                _ => fail(refused.error),
            })
        }
        Replaces::File(old) => {
            let now = path.symlink_metadata().map_err(|_| overtaken())?;
            let identity = |file: &fs::Metadata| (file.dev(), file.ino(), file.len(), mtime_ns(file));
            if identity(&now) != identity(&old.metadata) {
                return Err(overtaken());
            }
            temporary.persist(path).map(drop).map_err(|refused| fail(refused.error))
        }
    }
}

/// Makes the missing folders of a path and returns them, outermost first.
fn make_folders(folder: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let mut missing: Vec<&Path> = folder.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    missing.reverse();
    let mut made = Vec::with_capacity(missing.len());
    for one in missing {
        match DirBuilder::new().create(one) {
            Ok(()) => made.push(one.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                for folder in made.iter().rev() {
                    let _ = fs::remove_dir(folder);
                }
                return Err(WriteError::Io { doing: "make the folder", at: one.to_owned(), source });
            }
        }
        if let Some(parent) = one.parent() {
            sync_folder(parent);
        }
    }
    Ok(made)
}

/// Makes a rename survive a power cut. Best effort: some file systems can't sync a folder, and the file is whole either way.
fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|open| open.sync_all());
}
