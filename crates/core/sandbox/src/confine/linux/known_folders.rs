//! Remembers folders of a project without protected names from one command to the next: checking
//! that a folder is unchanged costs a twentieth of reading it.
//!
//! The memory is a file in haft's own folder, where no confined command can write.
//!
//! Invariant: a remembered folder is used only if the protected names are unchanged, the folder has
//! the remembered inode and times, and these times were older than the reading by more than any
//! file system's rounding. A later change is then visible in the times, because no process can set
//! back the time of the last change.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_files::Durability;

/// The maximum time, in seconds, by which two changes with equal timestamps can differ; some
/// network file systems count whole seconds.
const MAX_TIME_ROUNDING_SECS: i64 = 2;

/// The device, the inode, and the change and modification times of a folder.
type FolderStamp = [i64; 6];

/// The folders of a project that were already searched, with their subfolders, so that unchanged
/// folders are not read again.
#[derive(Debug, Default)]
pub(super) struct KnownFolders {
    file: PathBuf,
    /// The protected names for which the folders were searched. The folders are valid only for
    /// these names, because another version of haft may protect other names.
    names: String,
    /// The current time of the file system, in seconds.
    now: i64,
    /// The stamp of each folder and the names of its subfolders.
    folders: HashMap<PathBuf, (FolderStamp, Vec<OsString>)>,
    used: HashMap<PathBuf, (FolderStamp, Vec<OsString>)>,
    changed: bool,
}

impl KnownFolders {
    /// Reads the remembered folders from `file`, or none if the file was written for other `names`.
    /// `written_now` is the metadata of a file that was just written and provides the file system's
    /// current time.
    pub(super) fn read(file: PathBuf, names: String, written_now: &Metadata) -> Self {
        let bytes = fs::read(&file).unwrap_or_default();
        // A field without its end was cut off.
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == 0)
            .map_or(&[][..], |end| &bytes[..end]);
        let mut fields = whole.split(|byte| *byte == 0);
        let mut folders = HashMap::new();
        let is_same = fields.next() == Some(names.as_bytes());
        let mut fields = fields.take_while(|_| is_same);
        while let Some((path, stamp_and_names)) = parse_folder(&mut fields) {
            folders.insert(path, stamp_and_names);
        }
        Self {
            file,
            names,
            now: written_now.mtime(),
            folders,
            ..Self::default()
        }
    }

    /// Returns the subfolders of `folder` if the folder is remembered and unchanged.
    pub(super) fn unchanged_subfolders(&mut self, folder: &Path) -> Option<Vec<PathBuf>> {
        let (stamp, names) = self
            .folders
            .remove(folder)
            .filter(|(known, _)| read_stamp(folder) == Some(*known))?;
        let below = names.iter().map(|name| folder.join(name)).collect();
        self.used.insert(folder.to_owned(), (stamp, names));
        Some(below)
    }

    /// Returns the stamp of a folder that is about to be read, or `None` if the folder changed too
    /// recently to be remembered.
    pub(super) fn stable_stamp(&self, folder: &Path) -> Option<FolderStamp> {
        read_stamp(folder).filter(|stamp| stamp[2] < self.now - MAX_TIME_ROUNDING_SECS)
    }

    /// Remembers a folder that was read, with its stamp and its subfolders.
    pub(super) fn remember(&mut self, folder: &Path, stamp: FolderStamp, below: &[PathBuf]) {
        let names = below
            .iter()
            .filter_map(|path| path.file_name().map(OsStr::to_owned))
            .collect();
        self.used.insert(folder.to_owned(), (stamp, names));
        self.changed = true;
    }

    /// Saves the folders that were used in this search. Errors are ignored: folders that were not
    /// saved are read again next time.
    pub(super) fn write(self) {
        if !self.changed && self.folders.is_empty() {
            return;
        }
        let mut bytes = [self.names.as_bytes(), &[0]].concat();
        for (path, (stamp, names)) in &self.used {
            let stamp = stamp.map(|part| part.to_string()).join(" ");
            for field in [
                path.as_os_str().as_bytes(),
                stamp.as_bytes(),
                names.len().to_string().as_bytes(),
            ] {
                bytes.extend_from_slice(field);
                bytes.push(0);
            }
            for name in names {
                bytes.extend(name.as_bytes().iter().chain(&[0]));
            }
        }
        let _ = haft_files::replace_file(&self.file, &bytes, Durability::Process);
    }
}

/// Returns the stamp of a folder, or `None` for a link or a file.
fn read_stamp(folder: &Path) -> Option<FolderStamp> {
    let seen = folder.symlink_metadata().ok().filter(Metadata::is_dir)?;
    let device = seen.dev().cast_signed();
    let inode = seen.ino().cast_signed();
    Some([
        device,
        inode,
        seen.ctime(),
        seen.ctime_nsec(),
        seen.mtime(),
        seen.mtime_nsec(),
    ])
}

fn parse_folder<'a>(
    fields: &mut impl Iterator<Item = &'a [u8]>,
) -> Option<(PathBuf, (FolderStamp, Vec<OsString>))> {
    let path = fields.next().filter(|path| !path.is_empty())?;
    let numbers = |field: &[u8]| -> Option<Vec<i64>> {
        std::str::from_utf8(field)
            .ok()?
            .split(' ')
            .map(|part| part.parse().ok())
            .collect()
    };
    let stamp = numbers(fields.next()?)?.try_into().ok()?;
    let count = usize::try_from(*numbers(fields.next()?)?.first()?).ok()?;
    let names: Vec<_> = fields
        .take(count)
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    (names.len() == count).then(|| (PathBuf::from(OsStr::from_bytes(path)), (stamp, names)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use tempfile::TempDir;

    use super::super::protected_names::{self, ProtectedEntry};
    use super::*;

    struct Memory {
        project: TempDir,
        notes: TempDir,
    }

    impl Memory {
        fn new() -> Self {
            let memory = Self {
                project: TempDir::new().unwrap(),
                notes: TempDir::new().unwrap(),
            };
            for folder in ["a/b/c", "d", "long/deeper/.git"] {
                fs::create_dir_all(memory.path(folder)).unwrap();
            }
            memory
        }

        fn path(&self, name: &str) -> PathBuf {
            self.project.path().join(name)
        }

        /// Returns the protected files found `later` seconds from now, and the number of folders
        /// that were known.
        fn look(&self, later: u64) -> (Vec<String>, usize) {
            self.look_for(protected_names::format_searched_names(), later)
        }

        fn look_for(&self, names: String, later: u64) -> (Vec<String>, usize) {
            let clock = tempfile::tempfile().unwrap();
            clock
                .set_modified(SystemTime::now() + Duration::from_secs(later))
                .unwrap();
            let file = self.notes.path().join("folders");
            let mut known = KnownFolders::read(file, names, &clock.metadata().unwrap());
            let before = known.folders.len();
            let found = protected_names::find_protected(self.project.path(), &mut known).unwrap();
            let remembered = before - known.folders.len();
            known.write();
            let found = found.into_iter().filter_map(|entry| match entry {
                ProtectedEntry::Protected(path) => Some(
                    path.strip_prefix(self.project.path())
                        .ok()?
                        .display()
                        .to_string(),
                ),
                ProtectedEntry::Anchor(_) => None,
            });
            let mut found: Vec<_> = found.collect();
            found.sort();
            (found, remembered)
        }
    }

    #[test]
    fn known_folders_are_read_again_only_if_changed() {
        let memory = Memory::new();
        let git = || "long/deeper/.git".to_owned();
        assert_eq!(memory.look(0), (vec![git()], 0));
        assert_eq!(
            memory.look(0),
            (vec![git()], 0),
            "what changed a moment ago may change again unseen"
        );
        assert_eq!(memory.look(60), (vec![git()], 0));
        assert_eq!(
            memory.look(60),
            (vec![git()], 6),
            "all but the one with a protected name"
        );

        // Adding an entry changes a folder even if its times are set back.
        let times = fs::metadata(memory.path("a/b"))
            .unwrap()
            .modified()
            .unwrap();
        fs::create_dir(memory.path("a/b/.git")).unwrap();
        fs::File::open(memory.path("a/b"))
            .unwrap()
            .set_modified(times)
            .unwrap();
        assert_eq!(memory.look(60).0, ["a/b/.git".to_owned(), git()]);
        fs::remove_dir(memory.path("a/b/.git")).unwrap();

        // The folder is replaced by another one, and by a link.
        memory.look(60);
        fs::create_dir_all(memory.path("new/b/c/.vscode")).unwrap();
        fs::rename(memory.path("a"), memory.path("old")).unwrap();
        fs::rename(memory.path("new"), memory.path("a")).unwrap();
        assert_eq!(memory.look(60).0, ["a/b/c/.vscode".to_owned(), git()]);
        fs::rename(memory.path("d"), memory.path("f")).unwrap();
        std::os::unix::fs::symlink("long", memory.path("d")).unwrap();
        assert_eq!(
            memory.look(60).0,
            ["a/b/c/.vscode".to_owned(), git()],
            "links are not followed"
        );
    }

    #[test]
    fn known_folders_for_other_names_are_ignored() {
        let memory = Memory::new();
        memory.look_for("names of an older version".to_owned(), 60);
        assert_eq!(
            memory.look(60).1,
            0,
            "a name may be protected that was not looked for"
        );
        assert_eq!(memory.look(60).1, 6);
    }

    #[test]
    fn known_folders_file_that_is_damaged_is_ignored() {
        let memory = Memory::new();
        memory.look(60);
        let file = memory.notes.path().join("folders");
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(
                memory.look(60).0,
                ["long/deeper/.git"],
                "{length} of {} bytes",
                whole.len()
            );
        }
    }
}
