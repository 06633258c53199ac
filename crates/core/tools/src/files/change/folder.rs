//! A folder that is kept open, so that every operation acts on that folder even if its path
//! changes.
//!
//! Invariant: no symbolic link is followed, neither on the way to the folder nor in it. A path is
//! resolved once, before any operation. If a folder is then replaced with a symbolic link, the next
//! operation fails instead of acting elsewhere.

mod put_back;

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, linkat, mkdirat, openat, readlinkat, renameat,
    renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::journal::random_name;

/// The suffix of a third file name, which exists for a moment while two files are exchanged by link
/// and rename.
const SPARE_SUFFIX: &str = ".old";

/// Flags to open a folder only as a starting point. On Linux, this needs no permission to list the
/// folder.
const FOLDER_FLAGS: OFlags = PLACE.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = OFlags::RDONLY;

/// An open folder. All writes to a project go through an open folder.
pub struct OpenFolder {
    descriptor: OwnedFd,
    path: PathBuf,
    renames: RenameMode,
}

/// Controls how files are renamed and exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenameMode {
    /// In one step if the file system supports atomic operations, else in several steps.
    Best,
    /// Always in several steps.
    #[cfg(test)]
    Plain,
}

impl OpenFolder {
    /// Opens a folder by its absolute path, which must not contain symbolic links, `.` or `..`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            descriptor: open_absolute(path, FOLDER_FLAGS)?,
            path: path.to_owned(),
            renames: RenameMode::Best,
        })
    }

    /// Opens a folder, and creates the folder and its parents if they are missing.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        match (Self::open(path), path.parent(), path.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let parent = Self::open_or_create(parent)?;
                match mkdirat(&parent.descriptor, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => parent.sync(),
                    // Another process created the folder in the meantime.
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                parent.open_subfolder(name)
            }
            (result, _, _) => result,
        }
    }

    /// Returns the missing folders on the way to `path`, including `path` itself, outermost first.
    pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
        let absent = |folder: &&Path| matches!(Self::open(folder), Err(error) if error.kind() == io::ErrorKind::NotFound);
        let mut missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(absent)
            .map(Path::to_owned)
            .collect();
        missing.reverse();
        missing
    }

    fn open_subfolder(&self, name: &OsStr) -> io::Result<Self> {
        let descriptor = openat(
            &self.descriptor,
            name,
            FOLDER_FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(Self {
            descriptor,
            path: self.path.join(name),
            renames: self.renames,
        })
    }

    /// Returns the path under which the folder was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the metadata of an entry without opening it or following a symbolic link.
    #[cfg(not(target_os = "linux"))]
    pub fn symlink_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        let held = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let found = self.path.join(name).symlink_metadata()?;
        // Another folder may be at this path by now.
        let is_same = (found.dev(), found.ino()) == (held.st_dev as u64, held.st_ino);
        if is_same {
            Ok(found)
        } else {
            Err(Errno::LOOP.into())
        }
    }

    /// Returns the metadata of an entry without opening it or following a symbolic link.
    #[cfg(target_os = "linux")]
    pub fn symlink_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.descriptor, name, flags, Mode::empty())?).metadata()
    }

    /// Opens a file for reading. Does not block on a pipe. Fails if the entry is a symbolic link.
    pub fn open_for_reading(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, Mode::empty())?.into())
    }

    /// Creates a file; fails if the name exists. The umask is applied to `mode`.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, to_mode(mode))?.into())
    }

    /// Removes a file or a symbolic link.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Creates a symbolic link; fails if the name exists.
    pub fn create_symlink(&self, target: &OsStr, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.descriptor, name)?)
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.descriptor, name, Vec::new())?.into_bytes())
    }

    pub fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.descriptor, name, to_mode(mode))?)
    }

    /// Sets the mode of a file or folder, which need not be readable.
    #[cfg(not(target_os = "linux"))]
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::chmodat(
            &self.descriptor,
            name,
            to_mode(mode),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets the mode of a file or folder, which need not be readable.
    #[cfg(target_os = "linux")]
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = File::from(openat(&self.descriptor, name, flags, Mode::empty())?);
        if held.metadata()?.is_symlink() {
            return Err(Errno::LOOP.into());
        }
        Ok(rustix::fs::chmod(
            format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held)),
            to_mode(mode),
        )?)
    }

    /// Returns an unpredictable name that starts with `prefix`. If a file with this name is left
    /// behind, [`OpenFolder::remove_leftovers`] finds it by the prefix.
    pub fn temporary_name(prefix: &str) -> io::Result<OsString> {
        Ok(format!("{prefix}{}.tmp", random_name()?).into())
    }

    /// Removes the files with names from [`OpenFolder::temporary_name`] that a killed process left
    /// behind.
    pub fn remove_leftovers(&self, prefix: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(openat(&self.descriptor, ".", flags, Mode::empty())?)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name.as_bytes().starts_with(prefix.as_bytes()) && name.as_bytes().ends_with(b".tmp")
            {
                self.remove_file(&name)?;
            }
        }
        Ok(())
    }

    /// Removes a subfolder if it is empty.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    /// Exchanges a file and its temporary file. At every moment, `name` refers to one of the two
    /// files.
    ///
    /// A file system without an atomic exchange (NFS and some FUSE file systems) needs three steps.
    /// If another process renames a file to `name` between the first and the second step, that file
    /// is lost; no program can close this gap.
    pub fn exchange_files(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        if self.renames == RenameMode::Best {
            match renameat_with(
                &self.descriptor,
                temporary,
                &self.descriptor,
                name,
                RenameFlags::EXCHANGE,
            ) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                result => return Ok(result?),
            }
        }
        let spare = spare_name(temporary);
        self.link_or_copy(name, &spare)?;
        if let Err(error) = self.rename_over(temporary, name) {
            let _ = self.remove_file(&spare);
            return Err(error);
        }
        self.rename_over(&spare, temporary)
    }

    /// Renames a file; fails if the new name exists.
    pub fn rename_no_replace(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if self.renames == RenameMode::Best {
            match renameat_with(
                &self.descriptor,
                from,
                &self.descriptor,
                to,
                RenameFlags::NOREPLACE,
            ) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                result => return Ok(result?),
            }
        }
        // A hard link never replaces an existing file. A file that has both names for a moment is
        // recognized by its inode.
        match linkat(
            &self.descriptor,
            from,
            &self.descriptor,
            to,
            AtFlags::empty(),
        ) {
            Ok(()) => self.remove_file(from),
            // Without hard links, checking first is the best option.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match self.symlink_metadata(to) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(_) => self.rename_over(from, to),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Completes or undoes an [`exchange_files`](Self::exchange_files) or a
    /// [`rename_no_replace`](Self::rename_no_replace) that was interrupted between two of its
    /// steps.
    pub(crate) fn finish_interrupted(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        let spare = spare_name(temporary);
        if self.symlink_metadata(&spare).is_ok() {
            match self.symlink_metadata(temporary) {
                Ok(_) => self.remove_file(&spare)?,
                Err(_) => self.rename_over(&spare, temporary)?,
            }
        }
        if let (Ok(one), Ok(other)) = (
            self.symlink_metadata(temporary),
            self.symlink_metadata(name),
        ) && (one.dev(), one.ino()) == (other.dev(), other.ino())
        {
            self.remove_file(temporary)?;
        }
        Ok(())
    }

    fn rename_over(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Creates a hard link to a file, or copies the file if the file system has no hard links.
    fn link_or_copy(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
        match linkat(
            &self.descriptor,
            name,
            &self.descriptor,
            second,
            AtFlags::empty(),
        ) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                let mut file = self.open_for_reading(name)?;
                let metadata = file.metadata()?;
                if !metadata.is_file() {
                    return Err(Errno::PERM.into());
                }
                let mut copy = self.create_file(second, metadata.permissions().mode() & 0o777)?;
                io::copy(&mut file, &mut copy)?;
                copy.flush()?;
                copy.sync_all()
            }
            result => Ok(result?),
        }
    }

    /// Makes renames in this folder survive a power cut, if the file system can sync folders.
    /// Failures are ignored, because files are complete either way.
    pub fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(open) = openat(&self.descriptor, ".", flags, Mode::empty()) {
            let _ = File::from(open).sync_all();
        }
    }
}

fn spare_name(temporary: &OsStr) -> OsString {
    let mut name = temporary.to_owned();
    name.push(SPARE_SUFFIX);
    name
}

/// Converts a mode to the platform's type, whose integer width differs between platforms.
fn to_mode(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode as _)
}

/// Opens an absolute path without following symbolic links.
pub(crate) fn open_absolute(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        // With `O_NOFOLLOW`, a link in place of a folder would be reported as "not a folder";
        // without it, as a link.
        let follow = if flags.contains(OFlags::DIRECTORY) {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        // Without links and `..` in the path, RESOLVE_BENEATH would forbid nothing more.
        let resolve =
            rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(
            CWD,
            path,
            flags | follow | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        ) {
            // Before Linux 5.6 there is no openat2, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            result => return Ok(result?),
        }
    }
    open_step_by_step(path, flags | OFlags::CLOEXEC)
}

fn open_step_by_step(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => steps.push(name),
            // A resolved path has none of these.
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(Errno::INVAL.into());
            }
        }
    }
    let root = openat(CWD, "/", FOLDER_FLAGS, Mode::empty())?;
    let Some((last, way)) = steps.split_last() else {
        return Ok(root);
    };
    let mut at = root;
    for name in way {
        at = openat(&at, *name, FOLDER_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

#[cfg(test)]
mod tests;
