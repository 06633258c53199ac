use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Home {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    Home {
        _folder: folder,
        path,
    }
}

impl Home {
    fn open(&self, renames: RenameMode) -> OpenFolder {
        OpenFolder {
            renames,
            ..OpenFolder::open(&self.path).unwrap()
        }
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

const BOTH: [RenameMode; 2] = [RenameMode::Best, RenameMode::Plain];

#[test]
fn reach_and_step_by_step_follow_no_link() {
    let home = home();
    fs::create_dir_all(home.path.join("real/inner")).unwrap();
    fs::write(home.path.join("real/inner/file"), "x").unwrap();
    symlink(home.path.join("real"), home.path.join("link")).unwrap();
    let opened = |path: &str, flags: OFlags| {
        let path = home.path.join(path);
        (
            open_absolute(&path, flags).is_ok(),
            open_step_by_step(&path, flags).is_ok(),
        )
    };
    assert_eq!(opened("real/inner", FOLDER_FLAGS), (true, true));
    assert_eq!(opened("real/inner/file", OFlags::RDONLY), (true, true));
    assert_eq!(opened("link/inner", FOLDER_FLAGS), (false, false));
    assert_eq!(opened("link", FOLDER_FLAGS), (false, false));
    assert_eq!(opened("link/inner/file", OFlags::RDONLY), (false, false));
    assert_eq!(opened("real/missing", FOLDER_FLAGS), (false, false));
    assert!(open_step_by_step(&home.path.join("real/../real"), FOLDER_FLAGS).is_err());
}

#[test]
fn open_or_make_creates_missing_folders_but_follows_no_link() {
    let home = home();
    fs::create_dir(home.path.join("a")).unwrap();
    symlink(home.path.join("a"), home.path.join("link")).unwrap();
    let deep = home.path.join("a/b/c");
    assert_eq!(
        OpenFolder::missing_folders(&deep),
        [home.path.join("a/b"), deep.clone()]
    );
    OpenFolder::open_or_create(&deep).unwrap();
    assert!(deep.is_dir());
    assert!(OpenFolder::missing_folders(&deep).is_empty());
    assert!(OpenFolder::open_or_create(&home.path.join("link/d")).is_err());
    assert!(!home.path.join("a/d").exists());
}

#[test]
fn exchange_swaps_entries_of_any_kind() {
    for renames in BOTH {
        let home = home();
        let folder = home.open(renames);
        home.write("name", "old");
        home.write("temporary", "new");
        folder
            .exchange_files("temporary".as_ref(), "name".as_ref())
            .unwrap();
        assert_eq!(
            (home.read("name").as_str(), home.read("temporary").as_str()),
            ("new", "old"),
            "{renames:?}"
        );

        fs::remove_file(home.path.join("name")).unwrap();
        symlink("elsewhere", home.path.join("name")).unwrap();
        folder
            .exchange_files("temporary".as_ref(), "name".as_ref())
            .unwrap();
        assert_eq!(home.read("name"), "old", "{renames:?}");
        assert!(
            folder
                .symlink_metadata("temporary".as_ref())
                .unwrap()
                .is_symlink(),
            "{renames:?}"
        );

        fs::remove_file(home.path.join("name")).unwrap();
        let missing = folder
            .exchange_files("temporary".as_ref(), "name".as_ref())
            .unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound, "{renames:?}");
        assert_eq!(home.names(), ["temporary"], "{renames:?}");
    }
}

#[test]
fn rename_to_free_refuses_a_taken_name() {
    for renames in BOTH {
        let home = home();
        let folder = home.open(renames);
        home.write("from", "mine");
        home.write("taken", "theirs");
        let refused = folder
            .rename_no_replace("from".as_ref(), "taken".as_ref())
            .unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{renames:?}");
        assert_eq!(
            (home.read("from").as_str(), home.read("taken").as_str()),
            ("mine", "theirs"),
            "{renames:?}"
        );
        folder
            .rename_no_replace("from".as_ref(), "free".as_ref())
            .unwrap();
        assert_eq!(home.names(), ["free", "taken"], "{renames:?}");
    }
}

/// The states after a crash between the steps of [`Renames::Plain`].
#[test]
fn settle_completes_or_reverts_interrupted_steps() {
    let settled = |files: &[(&str, &str)], links: &[(&str, &str)]| {
        let home = home();
        for (name, content) in files {
            home.write(name, content);
        }
        for (from, to) in links {
            fs::hard_link(home.path.join(from), home.path.join(to)).unwrap();
        }
        home.open(RenameMode::Plain)
            .finish_interrupted("t".as_ref(), "name".as_ref())
            .unwrap();
        home.names()
            .into_iter()
            .map(|name| (home.read(&name), name))
            .collect::<Vec<_>>()
    };
    let state = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        files
            .iter()
            .map(|(name, content)| ((*content).to_owned(), (*name).to_owned()))
            .collect()
    };
    // An exchange: not begun; the old file linked; the new file in place.
    assert_eq!(
        settled(&[("name", "old"), ("t", "new")], &[]),
        state(&[("name", "old"), ("t", "new")])
    );
    assert_eq!(
        settled(&[("name", "old"), ("t", "new")], &[("name", "t.old")]),
        state(&[("name", "old"), ("t", "new")])
    );
    assert_eq!(
        settled(&[("name", "new"), ("t.old", "old")], &[]),
        state(&[("name", "new"), ("t", "old")])
    );
    // A rename: both names link to one file.
    assert_eq!(
        settled(&[("name", "x")], &[("name", "t")]),
        state(&[("name", "x")])
    );
}
