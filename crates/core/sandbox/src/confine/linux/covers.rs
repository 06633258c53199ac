//! Covers for protected files that do not exist: placeholders that are present while a command
//! runs.
//!
//! A mount needs a mount point. A missing folder is therefore covered by an empty folder, and a
//! missing file by a socket without a listener, which version control ignores and which no program
//! reads by mistake.
//!
//! Concurrent commands share covers, and any process may be killed at any time. Covers are
//! therefore noted before they are created, in a file on which every process that needs the covers
//! holds a shared lock. A process that finds no other lock holder removes the covers.
//!
//! Invariant: a cover exists as long as any command that needs it runs; only empty, noted entries
//! are removed.
//!
//! The names are removed at once, but the disk blocks of folders are freed only when this process
//! ends: on disks with online discard that costs from 40 µs per folder up to 50 ms in total under
//! load, for which no command should wait.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use haft_files::LockFile;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};

use super::known_folders::KnownFolders;
use super::protected_names::{self, CoverKind, MissingEntry, ProtectedEntry};
use super::{AtStep, ConfinementFailure, ConfinementStep, SandboxPolicy};

/// The extension of the file that lists the covers. The name of the lock file is the part before
/// this extension.
const NOTES_EXTENSION: &str = "covers";
/// The extension of the file that stores the [`KnownFolders`].
const FOLDERS_EXTENSION: &str = "folders";
/// Harmless errors when creating a cover: another process created the cover first, or no process,
/// including the command, can create files there.
const HARMLESS_COVER_ERRORS: [io::ErrorKind; 3] = [
    io::ErrorKind::AlreadyExists,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::ReadOnlyFilesystem,
];

/// The covers that a command needs. On drop, covers that no other command needs are removed.
#[derive(Debug, Default)]
pub(crate) struct PlacedCovers {
    folders: Vec<FolderCovers>,
}

#[derive(Debug)]
struct FolderCovers {
    notes: CoverNotes,
    list: File,
    covered: Vec<PathBuf>,
    /// All protected entries of the project folder, including covers.
    protected: Vec<ProtectedEntry>,
}

impl PlacedCovers {
    /// Creates covers where protected files are missing.
    pub(crate) fn place(policy: &SandboxPolicy) -> Result<Self, ConfinementFailure> {
        let mut covers = Self::default();
        for folder in &policy.projects {
            let held = FolderCovers::place(&policy.notes, folder, policy.home.as_deref())
                .at_step(ConfinementStep::Covers)?;
            covers.folders.push(held);
        }
        Ok(covers)
    }

    /// Returns all current covers, including those created by other commands.
    pub(crate) fn cover_paths(&self) -> Vec<PathBuf> {
        self.folders
            .iter()
            .flat_map(|held| held.covered.iter().cloned())
            .collect()
    }

    /// Returns the entries to seal, including covers.
    pub(crate) fn protected_entries(&self) -> Vec<ProtectedEntry> {
        self.folders
            .iter()
            .flat_map(|held| held.protected.iter().cloned())
            .collect()
    }
}

impl FolderCovers {
    fn place(folder_of_notes: &Path, folder: &Path, home: Option<&Path>) -> io::Result<Self> {
        haft_files::create_folder(folder_of_notes)?;
        let notes = CoverNotes::for_folder(folder_of_notes, folder);
        let held = notes.lock()?;
        let mut list = notes.open_list()?;
        // Without another lock holder, the noted entries were left by a killed process. This is not
        // a `LockFile` because the lock of one open file changes from exclusive to shared.
        if list.try_lock().is_ok() {
            drop(remove_noted_covers(&mut list)?);
            list.unlock()?;
        }
        list.lock_shared()?;
        let mut covered = read_paths(&mut list)?;
        let mut missing = protected_names::find_missing(folder, home);
        // An entry inside a cover is already covered by it.
        missing.retain(|missing| !covered.iter().any(|cover| missing.path.starts_with(cover)));
        let mut noted = covered.clone();
        noted.extend(missing.iter().map(|missing| missing.path.clone()));
        // The note is written before the cover is created: a cover without a note would never be
        // removed.
        write_paths(&mut list, &noted)?;
        for missing in &missing {
            match create_cover(missing) {
                Ok(()) => covered.push(missing.path.clone()),
                Err(error) if HARMLESS_COVER_ERRORS.contains(&error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
        if covered != noted {
            write_paths(&mut list, &covered)?;
        }
        let mut known = KnownFolders::read(
            notes.lock_file.with_extension(FOLDERS_EXTENSION),
            protected_names::format_searched_names(),
            &list.metadata()?,
        );
        let found = protected_names::find_protected(folder, &mut known)?;
        known.write();
        drop(held);
        Ok(Self {
            notes,
            list,
            covered,
            protected: found,
        })
    }

    fn remove_if_unused(&mut self) -> io::Result<()> {
        let _held = self.notes.lock()?;
        self.list.unlock()?;
        // If other processes still need the covers, those will remove them.
        if self.list.try_lock().is_ok() {
            // The kernel closes the leaked descriptors when this process ends, and frees the blocks
            // then.
            remove_noted_covers(&mut self.list)?
                .into_iter()
                .for_each(std::mem::forget);
        }
        Ok(())
    }
}

impl Drop for FolderCovers {
    fn drop(&mut self) {
        // Entries that could not be removed stay noted; the next command tries again.
        let _ = self.remove_if_unused();
    }
}

/// The lock file and the list of covers of one project folder.
#[derive(Debug)]
struct CoverNotes {
    lock_file: PathBuf,
    list: PathBuf,
}

impl CoverNotes {
    fn for_folder(notes: &Path, folder: &Path) -> Self {
        // FNV-1a: the name only has to be short and stable.
        let hash = folder
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let lock_file = notes.join(format!("{hash:016x}"));
        Self {
            list: lock_file.with_extension(NOTES_EXTENSION),
            lock_file,
        }
    }

    /// Waits for the exclusive lock that is needed to change covers and notes.
    fn lock(&self) -> io::Result<LockFile> {
        LockFile::acquire(&self.lock_file)
    }

    fn open_list(&self) -> io::Result<File> {
        haft_files::open_or_create(&self.list)
    }
}

fn create_cover(missing: &MissingEntry) -> io::Result<()> {
    match missing.kind {
        CoverKind::Folder => DirBuilder::new().mode(0o755).create(&missing.path),
        CoverKind::File => {
            let mode = Mode::RUSR | Mode::WUSR;
            match mknodat(CWD, &missing.path, FileType::Socket, mode, 0) {
                // The file system does not support sockets.
                Err(
                    rustix::io::Errno::PERM
                    | rustix::io::Errno::OPNOTSUPP
                    | rustix::io::Errno::INVAL,
                ) => haft_files::create_new(&missing.path).map(drop),
                made => Ok(made?),
            }
        }
    }
}

/// Removes the covers in `list` and then the notes. Covers that were filled with content are kept:
/// they no longer belong to haft. Returns the open folders; their disk blocks are freed when the
/// folders are closed.
fn remove_noted_covers(list: &mut File) -> io::Result<Vec<OwnedFd>> {
    let mut folders = Vec::new();
    // Reverse order, because an entry inside another cover comes later in the list.
    for path in read_paths(list)?.iter().rev() {
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        let kind = metadata.file_type();
        let _ = if kind.is_dir() {
            folders.extend(openat(
                CWD,
                path,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            ));
            fs::remove_dir(path)
        } else if kind.is_socket() || (kind.is_file() && metadata.len() == 0) {
            fs::remove_file(path)
        } else {
            Ok(())
        };
    }
    write_paths(list, &[])?;
    Ok(folders)
}

fn read_paths(list: &mut File) -> io::Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    list.rewind()?;
    list.read_to_end(&mut bytes)?;
    // If the writer was killed while writing, the last path is incomplete and its cover does not
    // exist.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == 0)
        .map_or(&[][..], |end| &bytes[..end]);
    let paths = whole
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty());
    Ok(paths
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect())
}

fn write_paths(list: &mut File, paths: &[PathBuf]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    list.rewind()?;
    list.write_all(&bytes)?;
    list.set_len(bytes.len() as u64)
}

/// Removes covers that were left behind because all processes that used them were killed. `notes`
/// is [`SandboxPolicy::notes`].
pub fn remove_stale_covers(notes: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(notes) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let list = entry?.path();
        if list.extension() != Some(OsStr::new(NOTES_EXTENSION)) {
            continue;
        }
        let notes = CoverNotes {
            lock_file: list.with_extension(""),
            list,
        };
        let _held = notes.lock()?;
        let mut list = notes.open_list()?;
        if list.try_lock().is_ok() {
            drop(remove_noted_covers(&mut list)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    struct CoverFixture {
        project: TempDir,
        notes: TempDir,
    }

    impl CoverFixture {
        fn new() -> Self {
            let place = Self {
                project: TempDir::new().unwrap(),
                notes: TempDir::new().unwrap(),
            };
            fs::create_dir(place.project.path().join(".git")).unwrap();
            fs::write(place.project.path().join("README"), "").unwrap();
            place
        }

        fn cover(&self) -> FolderCovers {
            FolderCovers::place(self.notes.path(), self.project.path(), None).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.project.path()).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }

        fn is_bare(&self) -> bool {
            self.names() == [".git", "README"]
        }
    }

    #[test]
    fn covers_exist_while_held() {
        let place = CoverFixture::new();
        let held = place.cover();
        assert!(place.project.path().join(".vscode").is_dir());
        assert!(
            fs::symlink_metadata(place.project.path().join(".mcp.json"))
                .unwrap()
                .file_type()
                .is_socket()
        );
        assert!(
            !held.covered.contains(&place.project.path().join(".git")),
            "it is there"
        );
        drop(held);
        assert!(place.is_bare(), "{:?}", place.names());
    }

    #[test]
    fn covers_stay_open_until_the_process_ends() {
        let place = CoverFixture::new();
        let cover = place.project.path().join(".vscode");
        drop(place.cover());
        let deleted = PathBuf::from(format!("{} (deleted)", cover.display()));
        let held = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        assert_eq!(
            held.filter(|open| *open == deleted).count(),
            1,
            "its name is gone, and nobody waited for the rest"
        );
    }

    #[test]
    fn covers_are_removed_by_their_last_holder() {
        let place = CoverFixture::new();
        let first = place.cover();
        let second = place.cover();
        assert_eq!(first.covered, second.covered);
        drop(first);
        assert!(!place.is_bare());
        let third = place.cover();
        drop(second);
        assert!(!place.is_bare());
        drop(third);
        assert!(place.is_bare(), "{:?}", place.names());
    }

    #[test]
    fn covers_that_were_replaced_or_filled_stay() {
        let place = CoverFixture::new();
        let held = place.cover();
        fs::write(place.project.path().join(".vscode/settings.json"), "mine").unwrap();
        fs::remove_file(place.project.path().join(".mcp.json")).unwrap();
        fs::write(place.project.path().join(".mcp.json"), "mine").unwrap();
        drop(held);
        assert_eq!(place.names(), [".git", ".mcp.json", ".vscode", "README"]);
    }

    #[test]
    fn covers_of_a_killed_process_are_removed_by_the_next() {
        let place = CoverFixture::new();
        let left = |place: &CoverFixture| {
            let held = place.cover();
            let lock = held.list.try_clone().unwrap();
            std::mem::forget(held);
            // The kernel unlocks the file when a process is killed.
            lock.unlock().unwrap();
        };
        left(&place);
        assert!(!place.is_bare());
        remove_stale_covers(place.notes.path()).unwrap();
        assert!(place.is_bare(), "{:?}", place.names());

        left(&place);
        drop(place.cover());
        assert!(place.is_bare(), "{:?}", place.names());

        let held = place.cover();
        remove_stale_covers(place.notes.path()).unwrap();
        assert!(!place.is_bare(), "somebody needs them");
        drop(held);
        assert!(place.is_bare());
    }
}
