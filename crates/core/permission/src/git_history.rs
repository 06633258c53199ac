//! Lists the files that the commits of a git repository contain, without running git.
//!
//! All commits of the object store count, also those that no branch leads to: `git show` prints
//! them, too.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::git_index::Repository;
use super::git_objects::{ObjectId, ObjectKind, ObjectStore, parse_hex};

/// The maximum number of files and folders in all commits. A file counts once, however many
/// versions it has; a folder counts once per version.
const MAX_ENTRIES: usize = 400_000;
/// The maximum size of all paths, in bytes.
const MAX_PATH_BYTES: usize = 64 << 20;
/// The length of the shortest abbreviation of an id that git accepts.
const MIN_ID_DIGITS: usize = 4;

/// The mode of a folder in a tree, and the type bits of a submodule's.
const FOLDER_MODE: &[u8] = b"40000";
const SUBMODULE_MODE: &[u8] = b"160000";

/// Everything that git can print from the commits of a repository.
pub(super) struct History {
    /// The paths of all files in all commits, relative to the work tree.
    pub(super) files: HashSet<PathBuf>,
    /// The ids of all folders and contents of files that are in no commit, in hexadecimal digits,
    /// sorted. Their paths are unknown.
    loose_contents: Vec<String>,
}

impl History {
    /// True if the repository has contents of files that are in no commit.
    pub(super) fn has_loose_contents(&self) -> bool {
        !self.loose_contents.is_empty()
    }

    /// True if a word names, by its id, content that is in no commit.
    pub(super) fn names_loose_content(&self, word: &str) -> bool {
        // `commit:path` and `commit..commit`.
        let revisions = word.split(':').next().unwrap_or_default();
        revisions
            .split("..")
            .filter_map(|revision| {
                revision
                    .trim_matches('.')
                    .split(['^', '~', '@'])
                    .find(|part| !part.is_empty())
            })
            .any(|revision| self.has_loose_content_with_prefix(&revision.to_ascii_lowercase()))
    }

    fn has_loose_content_with_prefix(&self, digits: &str) -> bool {
        if digits.len() < MIN_ID_DIGITS {
            return false;
        }
        let at = self
            .loose_contents
            .partition_point(|id| id.as_str() < digits);
        self.loose_contents
            .get(at)
            .is_some_and(|id| id.starts_with(digits))
    }
}

/// Reads the history of a repository. Returns `None` if it is too large or cannot be read in full.
///
/// Reads every commit and tree, up to the limits of [`ObjectStore`]: some tenths of a second for a
/// repository with 100,000 objects.
pub(super) fn read_history(repository: &Repository) -> Option<History> {
    let mut store = ObjectStore::open(&repository.objects_folder(), repository.hash_length())?;
    let mut history = History {
        files: HashSet::new(),
        loose_contents: Vec::new(),
    };
    let mut walk = TreeWalk::default();
    let mut others = Vec::new();
    for id in store.list_ids() {
        match store.find_kind(&id)? {
            ObjectKind::Commit => {
                let commit = store.read(&id)?;
                walk.push(parse_root_tree(&commit)?, Vec::new())?;
            }
            ObjectKind::Tree | ObjectKind::Content => others.push(id),
            ObjectKind::Tag => {}
        }
    }
    while let Some((tree, folder)) = walk.open.pop() {
        let tree = store.read(&tree)?;
        let mut rest = &*tree;
        while !rest.is_empty() {
            let entry = parse_tree_entry(&mut rest, repository.hash_length())?;
            let path = join_path(&folder, entry.name);
            match entry.mode {
                FOLDER_MODE => walk.push(entry.id.to_vec(), path)?,
                SUBMODULE_MODE => {}
                _ => {
                    walk.found.insert(entry.id.to_vec());
                    let path = PathBuf::from(OsStr::from_bytes(&path));
                    if !history.files.contains(&path) {
                        walk.count(path.as_os_str().len())?;
                        history.files.insert(path);
                    }
                }
            }
        }
    }
    others.retain(|id| !walk.found.contains(id));
    history.loose_contents = others.iter().map(|id| format_hex(id)).collect();
    history.loose_contents.sort_unstable();
    Some(history)
}

/// The folders of all commits that are still to be read.
#[derive(Default)]
struct TreeWalk {
    open: Vec<(ObjectId, Vec<u8>)>,
    seen: HashSet<(ObjectId, Vec<u8>)>,
    /// The folders and contents that are in a commit.
    found: HashSet<ObjectId>,
    entries: usize,
    path_bytes: usize,
}

impl TreeWalk {
    /// Adds a tree and its path, unless this tree was already found at this path.
    fn push(&mut self, tree: ObjectId, path: Vec<u8>) -> Option<()> {
        let folder = (tree, path);
        if !self.seen.contains(&folder) {
            self.count(folder.1.len())?;
            self.found.insert(folder.0.clone());
            self.seen.insert(folder.clone());
            self.open.push(folder);
        }
        Some(())
    }

    /// Counts an entry. Returns `None` if a limit is exceeded.
    fn count(&mut self, path_bytes: usize) -> Option<()> {
        self.entries += 1;
        self.path_bytes += path_bytes;
        (self.entries <= MAX_ENTRIES && self.path_bytes <= MAX_PATH_BYTES).then_some(())
    }
}

/// An entry of a folder.
struct TreeEntry<'a> {
    mode: &'a [u8],
    name: &'a [u8],
    id: &'a [u8],
}

fn parse_tree_entry<'a>(rest: &mut &'a [u8], hash_length: usize) -> Option<TreeEntry<'a>> {
    let bytes: &'a [u8] = rest;
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    // Some programs write `040000`.
    let zeros = bytes.iter().take_while(|byte| **byte == b'0').count();
    let entry = TreeEntry {
        mode: bytes.get(zeros..space)?,
        name: bytes.get(space + 1..end)?,
        id: bytes.get(end + 1..end + 1 + hash_length)?,
    };
    *rest = bytes.get(end + 1 + hash_length..)?;
    Some(entry)
}

/// Returns the id of a commit's root folder.
fn parse_root_tree(commit: &[u8]) -> Option<ObjectId> {
    let line = commit.split(|byte| *byte == b'\n').next()?;
    let digits = line.strip_prefix(b"tree ")?;
    parse_hex(std::str::from_utf8(digits).ok()?)
}

fn join_path(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() {
        name.to_vec()
    } else {
        [folder, b"/", name].concat()
    }
}

fn format_hex(id: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * id.len());
    for byte in id {
        digits.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
        );
    }
    digits
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use tempfile::TempDir;

    use super::super::git_index::find_repository;
    use super::*;

    /// Runs a script in a folder. Returns its output.
    fn run_script(folder: &Path, script: &str) -> String {
        let mut command = Command::new("sh");
        command.current_dir(folder).args(["-ec", script]);
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "t"),
            ("GIT_AUTHOR_EMAIL", "t@t"),
            ("GIT_COMMITTER_NAME", "t"),
            ("GIT_COMMITTER_EMAIL", "t@t"),
        ] {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {complaints}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn has_git() -> bool {
        let found = Command::new("git").arg("--version").output().is_ok();
        if !found {
            eprintln!("skipped: there is no git");
        }
        found
    }

    /// A repository whose commits hold files that are gone, partly in packs, partly not.
    fn repository(format: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        run_script(
            folder.path(),
            &format!(
                "git init -q --object-format={format}\n\
                 mkdir -p src/deep many && echo 1 > src/deep/a && for n in $(seq 40); do echo $n > many/file-$n; done\n\
                 echo secret > .env && git add . && git commit -qm one && git rm -q .env\n\
                 for n in $(seq 8); do echo $n >> many/file-$n; mkdir new-$n; echo $n > new-$n/x; git add .; git commit -qm $n; done\n\
                 mkdir secrets && echo k > secrets/key && git add . && git commit -qm gone && git reset -q --hard HEAD~1\n\
                 git gc -q && echo 2 > later && git add . && git commit -qm later\n\
                 echo x > stashed && git add . && git stash -q"
            ),
        );
        folder
    }

    fn history(folder: &Path) -> Option<History> {
        read_history(&find_repository(folder).unwrap())
    }

    #[test]
    fn history_lists_the_files_of_all_commits() {
        if !has_git() {
            return;
        }
        for format in ["sha1", "sha256"] {
            let folder = repository(format);
            let found = history(folder.path()).unwrap();
            for file in [
                ".env",
                "src/deep/a",
                "many/file-40",
                "new-8/x",
                "secrets/key",
                "later",
                "stashed",
            ] {
                assert!(found.files.contains(Path::new(file)), "{format} {file}");
            }
            assert_eq!(found.files.len(), 1 + 1 + 40 + 8 + 1 + 1 + 1, "{format}");
            let packs = run_script(folder.path(), "ls .git/objects/pack/*.pack");
            assert_eq!(packs.lines().count(), 1);
            run_script(folder.path(), "git worktree add -q linked");
            let linked = history(&folder.path().join("linked")).unwrap();
            assert_eq!(linked.files, found.files);
        }
    }

    #[test]
    fn history_finds_contents_that_are_in_no_commit() {
        if !has_git() {
            return;
        }
        let folder = repository("sha1");
        assert!(!history(folder.path()).unwrap().has_loose_contents());
        // `git add`, and then other changes, leave such contents behind.
        let loose = run_script(folder.path(), "echo hidden | git hash-object -w --stdin");
        let commit = run_script(folder.path(), "git rev-parse HEAD~2");
        let known = run_script(folder.path(), "git rev-parse HEAD:later HEAD^{tree}");
        let known: Vec<&str> = known.lines().collect();
        let found = history(folder.path()).unwrap();
        assert!(found.has_loose_contents());
        for word in [
            loose.clone(),
            loose[..7].to_owned(),
            loose.to_ascii_uppercase(),
            format!("{commit}..{loose}"),
            format!("^{loose}"),
        ] {
            assert!(found.names_loose_content(&word), "{word}");
        }
        for word in [
            commit.clone(),
            commit[..10].to_owned(),
            format!("{commit}~2:{loose}"),
            known[0].to_owned(),
            format!("{}:later", known[1]),
            "HEAD".to_owned(),
            "main...HEAD".to_owned(),
            "zzzz".to_owned(),
            loose[..3].to_owned(),
        ] {
            assert!(!found.names_loose_content(&word), "{word}");
        }
    }

    #[test]
    fn history_of_an_empty_repository_has_no_files() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert!(history(folder.path()).unwrap().files.is_empty());
    }

    /// Damages bytes of the packs' beginnings: the result is unknown or complete, without a
    /// panic.
    #[test]
    fn history_of_a_damaged_repository_is_unknown() {
        if !has_git() {
            return;
        }
        let folder = repository("sha1");
        let packs = folder.path().join(".git/objects/pack");
        for entry in fs::read_dir(&packs).unwrap() {
            let path = entry.unwrap().path();
            let whole = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            for at in (0..whole.len().min(1_600)).step_by(41) {
                let mut bytes = whole.clone();
                bytes[at] ^= 0xa5;
                fs::write(&path, bytes).unwrap();
                let _ = history(folder.path());
            }
            fs::write(&path, &whole[..whole.len() / 2]).unwrap();
            let is_needed = path
                .extension()
                .is_some_and(|ending| ending == "pack" || ending == "idx");
            assert_eq!(
                history(folder.path()).is_none(),
                is_needed,
                "{}",
                path.display()
            );
            fs::write(&path, &whole).unwrap();
        }
        assert!(history(folder.path()).is_some());
        let alternates = folder.path().join(".git/objects/info/alternates");
        fs::write(alternates, "/elsewhere\n").unwrap();
        assert!(
            history(folder.path()).is_none(),
            "objects of another folder"
        );
    }
}
