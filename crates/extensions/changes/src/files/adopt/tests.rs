use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Mutex;

use haft_tool::PortError;

use super::*;

/// Records the calls of [`FileHistory`] in order.
#[derive(Default)]
struct Noted {
    told: Mutex<Vec<String>>,
    /// A file that is changed by another program when a file is saved.
    meanwhile: Option<PathBuf>,
}

impl FileHistory for Noted {
    fn save_files(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.told
            .lock()
            .unwrap()
            .push(format!("save {call} {}", paths.len()));
        if let Some(path) = &self.meanwhile {
            fs::write(path, "somebody else's\n").unwrap();
        }
        Ok(())
    }

    fn record_changed(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.told
            .lock()
            .unwrap()
            .push(format!("changed {call} {}", paths.len()));
        Ok(())
    }
}

/// A project and a copy of it.
struct Two {
    folder: tempfile::TempDir,
    noted: Noted,
}

impl Two {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        fs::create_dir(folder.path().join("copy")).unwrap();
        Self {
            folder,
            noted: Noted::default(),
        }
    }

    fn project(&self, name: &str) -> PathBuf {
        self.folder.path().join("project").join(name)
    }

    fn copy(&self, name: &str) -> PathBuf {
        self.folder.path().join("copy").join(name)
    }

    fn change(&self, name: &str, base: MergeContent) -> Adoption {
        Adoption {
            path: self.project(name),
            copy: self.copy(name),
            base,
        }
    }

    fn adopt(&self, changes: &[Adoption]) -> Result<Vec<FileChange>, AdoptError> {
        adopt_changes(&self.project(""), &self.noted, "c", changes)
    }
}

fn file(text: &str) -> MergeContent {
    MergeContent::File {
        bytes: text.into(),
        executable: false,
    }
}

#[test]
fn adopt_makes_and_records_each_kind_of_change_once() {
    let two = Two::new();
    for (name, text) in [
        ("same.txt", "a\n"),
        ("gone.txt", "b\n"),
        ("run.sh", "c\n"),
        ("both.txt", "1\n2\n3\nfour\n"),
    ] {
        fs::write(two.project(name), text).unwrap();
    }
    fs::write(two.copy("same.txt"), "A\n").unwrap();
    fs::write(two.copy("run.sh"), "c\n").unwrap();
    fs::set_permissions(two.project("run.sh"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(two.copy("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(two.copy("both.txt"), "one\n2\n3\n4\n").unwrap();
    fs::create_dir(two.copy("new")).unwrap();
    symlink("../same.txt", two.copy("new/link")).unwrap();
    let changed = two
        .adopt(&[
            two.change("same.txt", file("a\n")),
            two.change("gone.txt", file("b\n")),
            two.change("run.sh", file("c\n")),
            two.change("both.txt", file("1\n2\n3\n4\n")),
            two.change("new/link", MergeContent::Absent),
        ])
        .unwrap();
    assert_eq!(changed.len(), 5);
    assert_eq!(fs::read_to_string(two.project("same.txt")).unwrap(), "A\n");
    assert!(!two.project("gone.txt").exists());
    assert_eq!(
        two.project("run.sh")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o750,
        "who reads it may run it"
    );
    assert_eq!(
        fs::read_to_string(two.project("both.txt")).unwrap(),
        "one\n2\n3\nfour\n"
    );
    assert_eq!(
        two.project("new/link").read_link().unwrap(),
        Path::new("../same.txt")
    );
    assert_eq!(*two.noted.told.lock().unwrap(), ["save c 5", "changed c 5"]);
}

#[test]
fn adopt_changes_no_file_if_there_is_a_conflict() {
    let two = Two::new();
    fs::write(two.project("a.txt"), "a\n").unwrap();
    fs::write(two.copy("a.txt"), "A\n").unwrap();
    fs::write(two.project("b.txt"), "mine\n").unwrap();
    fs::write(two.copy("b.txt"), "theirs\n").unwrap();
    let changes = [
        two.change("a.txt", file("a\n")),
        two.change("b.txt", file("b\n")),
    ];
    let Err(AdoptError::Conflicts(paths)) = two.adopt(&changes) else {
        panic!("it was merged")
    };
    assert_eq!(paths, [two.project("b.txt")]);
    assert_eq!(fs::read_to_string(two.project("a.txt")).unwrap(), "a\n");
    assert!(two.noted.told.lock().unwrap().is_empty());
}

#[test]
fn adopt_skips_equal_changes_and_keeps_the_projects_own() {
    let two = Two::new();
    fs::write(two.project("a.txt"), "same\n").unwrap();
    fs::write(two.copy("a.txt"), "same\n").unwrap();
    fs::write(two.project("b.txt"), "mine\n").unwrap();
    fs::write(two.copy("b.txt"), "b\n").unwrap();
    let changes = [
        two.change("a.txt", file("a\n")),
        two.change("b.txt", file("b\n")),
    ];
    assert_eq!(two.adopt(&changes).unwrap(), []);
    assert_eq!(fs::read_to_string(two.project("b.txt")).unwrap(), "mine\n");
}

#[test]
fn adopt_follows_no_link_in_the_project() {
    let two = Two::new();
    let outside = two.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, two.project("folder")).unwrap();
    fs::create_dir(two.copy("folder")).unwrap();
    fs::write(two.copy("folder/a.txt"), "a\n").unwrap();
    assert!(matches!(
        two.adopt(&[two.change("folder/a.txt", MergeContent::Absent)]),
        Err(AdoptError::Conflicts(_))
    ));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn adopt_rolls_back_if_another_program_writes_meanwhile() {
    let mut two = Two::new();
    for name in ["a.txt", "b.txt"] {
        fs::write(two.project(name), "old\n").unwrap();
        fs::write(two.copy(name), "new\n").unwrap();
    }
    fs::create_dir(two.copy("deep")).unwrap();
    fs::write(two.copy("deep/c.txt"), "new\n").unwrap();
    // The other program writes after the changes are planned and before they are made.
    two.noted.meanwhile = Some(two.project("b.txt"));
    let changes = [
        two.change("deep/c.txt", MergeContent::Absent),
        two.change("a.txt", file("old\n")),
        two.change("b.txt", file("old\n")),
    ];
    let Err(AdoptError::Conflicts(paths)) = two.adopt(&changes) else {
        panic!("it was merged")
    };
    assert_eq!(paths, [two.project("b.txt")]);
    assert_eq!(fs::read_to_string(two.project("a.txt")).unwrap(), "old\n");
    assert_eq!(
        fs::read_to_string(two.project("b.txt")).unwrap(),
        "somebody else's\n"
    );
    assert_eq!(
        fs::read_dir(two.project("")).unwrap().count(),
        2,
        "nothing is left over"
    );
    assert_eq!(
        *two.noted.told.lock().unwrap(),
        ["save c 3", "changed c 3"],
        "how it was left is noted"
    );
}

#[test]
fn merge_leftovers_are_removed_at_the_next_start() {
    let two = Two::new();
    fs::create_dir(two.project("deep")).unwrap();
    let left = [
        ".haft-merge-0123456789abcdef.tmp",
        "deep/.haft-merge-fedcba.tmp",
    ];
    let others = [
        ".haft-merge-notes.md",
        ".haft-other-1.tmp",
        "haft-merge-1.tmp",
        "deep/a.txt",
    ];
    for name in left.iter().chain(&others) {
        fs::write(two.project(name), "x").unwrap();
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(".haft-merge-1.tmp"), "theirs").unwrap();
    symlink(outside.path(), two.project("link")).unwrap();
    let notes = two.folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    let changes: Vec<_> = ["a.txt", "deep/a.txt", "link/a.txt", "gone/a.txt"]
        .map(|name| two.change(name, MergeContent::Absent))
        .into();
    let lock = write_merge_note(&notes.join("c1.merging"), &changes).unwrap();
    clean_up_killed_merges(&notes);
    assert!(
        two.project(left[0]).exists(),
        "a merge that goes on is left alone"
    );
    // The process is killed: its lock is released, its note stays.
    drop(lock);
    clean_up_killed_merges(&notes);
    assert!(left.iter().all(|name| !two.project(name).exists()));
    assert!(others.iter().all(|name| two.project(name).exists()));
    assert!(
        outside.path().join(".haft-merge-1.tmp").exists(),
        "a folder swapped for a link is not followed"
    );
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    clean_up_killed_merges(&two.folder.path().join("nothing"));
}
