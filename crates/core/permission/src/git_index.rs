//! Reads the names of tracked files from the index of a git repository, without running git.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The maximum size of an index that is read, in bytes. The files of a larger index are unknown.
const MAX_INDEX_BYTES: u64 = 32 << 20;
/// The maximum number of names that are read.
const MAX_NAMES: usize = 200_000;

/// The length of a file's fields before its hash.
const FIXED_FIELDS: usize = 40;
const SHA1_LENGTH: usize = 20;
const SHA256_LENGTH: usize = 32;
/// The flag of an entry with two more bytes of flags.
const EXTENDED_FLAG: u16 = 0x4000;

/// A repository with a work tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repository {
    pub(super) work_tree: PathBuf,
    folder: PathBuf,
}

impl Repository {
    /// Returns the folder that linked work trees of the repository share.
    fn common_folder(&self) -> PathBuf {
        match fs::read_to_string(self.folder.join("commondir")) {
            Ok(path) => self.folder.join(path.trim_end_matches('\n')),
            Err(_) => self.folder.clone(),
        }
    }

    /// Returns the folder with the commits and versions of files.
    pub(super) fn objects_folder(&self) -> PathBuf {
        self.common_folder().join("objects")
    }

    /// Returns the length of the hashes that name objects, in bytes.
    pub(super) fn hash_length(&self) -> usize {
        let config = fs::read_to_string(self.common_folder().join("config")).unwrap_or_default();
        if config.to_ascii_lowercase().contains("sha256") {
            SHA256_LENGTH
        } else {
            SHA1_LENGTH
        }
    }
}

/// The files that a repository tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrackedFiles {
    /// Paths relative to the work tree. The list is empty if there is no index.
    Known(Vec<PathBuf>),
    /// The index could not be read or has an unknown format.
    Unknown,
}

/// True if git may use a repository without a work tree in the folder `start` or above it, where it
/// meets one before any other repository.
pub(super) fn is_in_bare_repository(start: &Path) -> bool {
    start
        .ancestors()
        .take_while(|folder| !folder.join(".git").exists())
        .any(|folder| {
            ["HEAD", "objects", "refs"]
                .iter()
                .all(|name| folder.join(name).exists())
        })
}

/// Finds the repository that git would use in the folder `start`.
pub(super) fn find_repository(start: &Path) -> Option<Repository> {
    start.ancestors().find_map(|work_tree| {
        let entry = work_tree.join(".git");
        let metadata = entry.metadata().ok()?;
        let folder = if metadata.is_dir() {
            entry
        } else {
            let text = fs::read_to_string(&entry).ok()?;
            work_tree.join(text.strip_prefix("gitdir:")?.trim())
        };
        Some(Repository {
            work_tree: work_tree.to_owned(),
            folder,
        })
    })
}

pub(super) fn list_tracked_files(repository: &Repository) -> TrackedFiles {
    let path = repository.folder.join("index");
    let Ok(metadata) = path.metadata() else {
        return TrackedFiles::Known(Vec::new());
    };
    if metadata.len() > MAX_INDEX_BYTES {
        return TrackedFiles::Unknown;
    }
    let Ok(bytes) = fs::read(&path) else {
        return TrackedFiles::Unknown;
    };
    match parse_index(&bytes, repository.hash_length()) {
        Some(names) => TrackedFiles::Known(names),
        None => TrackedFiles::Unknown,
    }
}

/// Parses an index of version 2, 3 or 4. Returns `None` for any other format, and for an index that
/// refers to a second file.
fn parse_index(bytes: &[u8], hash_length: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let count = usize::try_from(number(8)?).ok()?;
    if count > MAX_NAMES {
        return None;
    }
    let mut names = Vec::new();
    let mut last = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let start = at;
        at += FIXED_FIELDS + hash_length;
        let flags = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
        at += 2;
        if flags & EXTENDED_FLAG != 0 {
            at += 2;
        }
        if version == 4 {
            let (removed, length) = parse_offset(bytes.get(at..)?)?;
            at += length;
            last.truncate(last.len().checked_sub(removed)?);
        } else {
            last.clear();
        }
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        last.extend_from_slice(&rest[..end]);
        names.push(PathBuf::from(OsStr::from_bytes(&last)));
        at += end + 1;
        if version < 4 {
            // Entries are padded to a multiple of eight bytes.
            at = start + (at - start).next_multiple_of(8);
        }
    }
    // The extension `link` says that entries are in another file.
    let rest = bytes.get(at..bytes.len().checked_sub(hash_length)?)?;
    (!rest.windows(4).any(|name| name == b"link")).then_some(names)
}

/// Parses the number of bytes by which a name of version 4 differs from the end of the previous
/// one. Returns the number and its length.
pub(super) fn parse_offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        if at > 0 {
            value += 1;
        }
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
mod tests {
    use std::process::Command;

    use super::*;

    fn run_git(folder: &Path, arguments: &[&str]) -> bool {
        let mut command = Command::new("git");
        command.current_dir(folder).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.output().is_ok_and(|output| output.status.success())
    }

    #[test]
    fn list_tracked_files_reads_every_version_of_the_index() {
        let names = ["a", "src/a long name.rs", "src/a long name.txt", "z/y/x"];
        for version in ["2", "4"] {
            let folder = tempfile::tempdir().unwrap();
            if !run_git(folder.path(), &["init", "-q"]) {
                eprintln!("skipped: there is no git");
                return;
            }
            for name in names {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
            assert!(run_git(folder.path(), &["add", "."]));
            // An entry with extended flags makes a version 3 of version 2.
            fs::write(folder.path().join("later"), "x").unwrap();
            assert!(run_git(folder.path(), &["add", "-N", "later"]));
            assert!(run_git(
                folder.path(),
                &["update-index", "--index-version", version]
            ));
            let repository = find_repository(&folder.path().join("src")).unwrap();
            let TrackedFiles::Known(found) = list_tracked_files(&repository) else {
                panic!("version {version} is unknown");
            };
            let expected = ["a", "later", names[1], names[2], names[3]];
            assert_eq!(found, expected.map(PathBuf::from), "version {version}");
            assert!(run_git(folder.path(), &["update-index", "--split-index"]));
            assert_eq!(list_tracked_files(&repository), TrackedFiles::Unknown);
        }
    }

    #[test]
    fn list_tracked_files_of_a_damaged_index_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        let repository = find_repository(folder.path()).unwrap();
        assert_eq!(
            list_tracked_files(&repository),
            TrackedFiles::Known(Vec::new())
        );
        for bytes in [&b"DIRC\0\0\0\x02\0\0\0\x09"[..], b"", b"DIRC\0\0\0\x09"] {
            fs::write(folder.path().join(".git/index"), bytes).unwrap();
            assert_eq!(list_tracked_files(&repository), TrackedFiles::Unknown);
        }
    }
}
