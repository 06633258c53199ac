//! A folder held open, so that what is done in it is done in that very folder.
//!
//! Invariant: no symbolic link is followed, neither on the way to the folder nor in it. A path is
//! resolved once, before anything is done; a folder that is swapped for a link after that makes the
//! next step fail instead of leading it elsewhere.

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

/// Where two files change places by link and rename, the one that has to wait stands under this
/// name for a moment.
const SPARE: &str = ".old";

/// Only to be a starting point: on Linux this needs no permission to list the folder.
const AS_PLACE: OFlags = PLACE.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = OFlags::RDONLY;

/// An open folder. Whatever haft writes into a project is written through one.
pub struct OpenFolder {
    descriptor: OwnedFd,
    path: PathBuf,
    renames: Renames,
}

/// How files change places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renames {
    /// In one step, and in several where the file system can't.
    Best,
    /// In several steps, as if the file system couldn't.
    #[cfg(test)]
    Plain,
}

impl OpenFolder {
    /// Opens a folder by its absolute path, which must hold no links, `.` or `..`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            descriptor: reach(path, AS_PLACE)?,
            path: path.to_owned(),
            renames: Renames::Best,
        })
    }

    /// Opens a folder and makes what is missing on the way to it.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        match (Self::open(path), path.parent(), path.file_name()) {
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let parent = Self::open_or_make(parent)?;
                match mkdirat(&parent.descriptor, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) => parent.sync(),
                    // Someone else made it just now.
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                parent.inside(name)
            }
            (result, _, _) => result,
        }
    }

    /// The folders on the way to this one that do not exist, outermost first.
    pub fn missing(path: &Path) -> Vec<PathBuf> {
        let absent = |folder: &&Path| matches!(Self::open(folder), Err(error) if error.kind() == io::ErrorKind::NotFound);
        let mut missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(absent)
            .map(Path::to_owned)
            .collect();
        missing.reverse();
        missing
    }

    fn inside(&self, name: &OsStr) -> io::Result<Self> {
        let descriptor = openat(
            &self.descriptor,
            name,
            AS_PLACE | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(Self {
            descriptor,
            path: self.path.join(name),
            renames: self.renames,
        })
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stands under a name, a link as itself; nothing is opened.
    #[cfg(not(target_os = "linux"))]
    pub fn look(&self, name: &OsStr) -> io::Result<Metadata> {
        let held = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let found = self.path.join(name).symlink_metadata()?;
        // The path may lead to another folder by now.
        let is_same = (found.dev(), found.ino()) == (held.st_dev as u64, held.st_ino);
        if is_same {
            Ok(found)
        } else {
            Err(Errno::LOOP.into())
        }
    }

    /// What stands under a name, a link as itself; nothing is opened.
    #[cfg(target_os = "linux")]
    pub fn look(&self, name: &OsStr) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.descriptor, name, flags, Mode::empty())?).metadata()
    }

    /// Opens a file for reading. A pipe does not block, a link is an error.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, Mode::empty())?.into())
    }

    /// Makes a file under a name that must be free. The umask applies.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, as_mode(mode))?.into())
    }

    /// Removes a file or a link.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// Makes a link, under a name that must be free.
    pub fn link(&self, target: &OsStr, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.descriptor, name)?)
    }

    /// Where a link leads.
    pub fn target(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.descriptor, name, Vec::new())?.into_bytes())
    }

    /// Makes a folder inside this one.
    pub fn make_folder(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.descriptor, name, as_mode(mode))?)
    }

    /// Sets the mode of a file or folder, which need not be readable.
    #[cfg(not(target_os = "linux"))]
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::chmodat(
            &self.descriptor,
            name,
            as_mode(mode),
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
            as_mode(mode),
        )?)
    }

    /// A name in it that nobody can foresee; all that begin alike are removed by
    /// [`OpenFolder::remove_left`].
    pub fn temporary_name(beginning: &str) -> io::Result<OsString> {
        Ok(format!("{beginning}{}.tmp", random_name()?).into())
    }

    /// Removes the files with names of this kind that a killed process left.
    pub fn remove_left(&self, beginning: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::new(openat(&self.descriptor, ".", flags, Mode::empty())?)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name.as_bytes().starts_with(beginning.as_bytes())
                && name.as_bytes().ends_with(b".tmp")
            {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Removes a folder inside this one, if it is empty.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    /// Lets a file and its temporary change places: at every moment the name has one or the other.
    ///
    /// A file system that can't do it in one step (NFS and some FUSE ones) does it in three.
    /// Whoever renames another file over this name between the first and the second of them
    /// loses it; nothing a program can do closes that gap there.
    pub fn exchange(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        if self.renames == Renames::Best {
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
        self.duplicate(name, &spare)?;
        if let Err(error) = self.rename(temporary, name) {
            let _ = self.remove(&spare);
            return Err(error);
        }
        self.rename(&spare, temporary)
    }

    /// Gives a file another name, which must be free.
    pub fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if self.renames == Renames::Best {
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
        // A link is never made over something that is there; a file that has both names for a
        // moment is known by its inode.
        match linkat(
            &self.descriptor,
            from,
            &self.descriptor,
            to,
            AtFlags::empty(),
        ) {
            Ok(()) => self.remove(from),
            // No hard links either: asking first is the best there is.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match self.look(to) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(_) => self.rename(from, to),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Clears up behind an [`exchange`](Self::exchange) or a
    /// [`rename_to_free`](Self::rename_to_free) that was done in steps and interrupted between
    /// them, so that either all or nothing of it was done.
    pub(crate) fn settle(&self, temporary: &OsStr, name: &OsStr) -> io::Result<()> {
        let spare = spare_name(temporary);
        if self.look(&spare).is_ok() {
            match self.look(temporary) {
                Ok(_) => self.remove(&spare)?,
                Err(_) => self.rename(&spare, temporary)?,
            }
        }
        if let (Ok(one), Ok(other)) = (self.look(temporary), self.look(name))
            && (one.dev(), one.ino()) == (other.dev(), other.ino())
        {
            self.remove(temporary)?;
        }
        Ok(())
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// The same file under a second name; a copy where there are no hard links.
    fn duplicate(&self, name: &OsStr, second: &OsStr) -> io::Result<()> {
        match linkat(
            &self.descriptor,
            name,
            &self.descriptor,
            second,
            AtFlags::empty(),
        ) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                let mut file = self.read(name)?;
                let metadata = file.metadata()?;
                if !metadata.is_file() {
                    return Err(Errno::PERM.into());
                }
                let mut copy = self.create(second, metadata.permissions().mode() & 0o777)?;
                io::copy(&mut file, &mut copy)?;
                copy.flush()?;
                copy.sync_all()
            }
            result => Ok(result?),
        }
    }

    /// Makes renames survive a power cut. Best effort: some file systems can't sync a folder, and
    /// files are whole either way.
    pub fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(open) = openat(&self.descriptor, ".", flags, Mode::empty()) {
            let _ = File::from(open).sync_all();
        }
    }
}

fn spare_name(temporary: &OsStr) -> OsString {
    let mut name = temporary.to_owned();
    name.push(SPARE);
    name
}

/// Its type is not the same everywhere.
fn as_mode(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode as _)
}

/// Opens what stands at an absolute path, following no link.
pub(crate) fn reach(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        // A link in the place of a folder is then reported as a link, not as something that is no
        // folder.
        let follow = if flags.contains(OFlags::DIRECTORY) {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        // With neither links nor `..` on the way there is nothing left that RESOLVE_BENEATH could
        // forbid.
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
    step_by_step(path, flags | OFlags::CLOEXEC)
}

fn step_by_step(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => steps.push(name),
            // Nothing that was resolved has these.
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(Errno::INVAL.into());
            }
        }
    }
    let root = openat(CWD, "/", AS_PLACE, Mode::empty())?;
    let Some((last, way)) = steps.split_last() else {
        return Ok(root);
    };
    let mut at = root;
    for name in way {
        at = openat(&at, *name, AS_PLACE | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(openat(&at, *last, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

#[cfg(test)]
mod tests;
