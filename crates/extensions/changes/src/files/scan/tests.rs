use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use haft_store::StoreConfig;
use haft_testkit::support::FakeClock;
use tempfile::TempDir;

use crate::versions::SqliteVersions;

use super::*;

struct Place {
    _folder: TempDir,
    root: PathBuf,
    versions: SqliteVersions,
    limits: ScanLimits,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("project");
        fs::create_dir(&root).unwrap();
        let versions = SqliteVersions::new(
            &base.join("versions"),
            &StoreConfig::default(),
            Arc::new(FakeClock::default()),
        );
        Self {
            _folder: folder,
            root,
            versions,
            limits: ScanLimits::default(),
        }
    }

    fn tree(&self) -> Tree {
        Tree::new(&self.root, self.limits, Arc::default())
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.root.join(name);
        let folder = path.parent().unwrap();
        if !folder.exists() {
            fs::create_dir_all(folder).unwrap();
            self.set_mode(folder, 0o755);
        }
        let is_new = !path.exists();
        fs::write(&path, content).unwrap();
        if is_new {
            self.set_mode(&path, 0o644);
        }
    }

    fn set_mode(&self, path: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Waits until new writes get a later time stamp than earlier ones.
    fn wait_for_a_later_stamp(&self) {
        let before = self.versions.current_file_time().unwrap();
        while self.versions.current_file_time().unwrap() <= before {}
    }

    /// Scans, and returns each difference as `name: before → after`.
    fn scan(&self, tree: &mut Tree) -> Vec<String> {
        let ScanOutcome::Changed(differences) = tree.scan(&self.versions).unwrap() else {
            panic!("too large")
        };
        let show = |version: FileVersion| match version {
            FileVersion::Absent => "nothing".to_owned(),
            FileVersion::File { mode, hash, .. } => {
                let content = String::from_utf8(self.versions.read_content(hash).unwrap()).unwrap();
                format!("{content}@{mode:o}")
            }
            FileVersion::Link { hash } => {
                format!(
                    "->{}",
                    String::from_utf8(self.versions.read_content(hash).unwrap()).unwrap()
                )
            }
            FileVersion::Folder { mode } => format!("folder@{mode:o}"),
            FileVersion::Unsaved { size } => format!("unsaved {size}"),
        };
        let name = |path: &Path| path.strip_prefix(&self.root).unwrap().display().to_string();
        differences
            .iter()
            .map(|one| {
                format!(
                    "{}: {} → {}",
                    name(&one.path),
                    show(one.before),
                    show(one.after)
                )
            })
            .collect()
    }
}

#[test]
fn scan_finds_every_kind_of_change_and_stores_the_content() {
    let place = Place::new();
    for name in [
        "same",
        "changed",
        "deleted",
        "mode",
        "folder/inner",
        "becomes-folder",
    ] {
        place.write(name, name);
    }
    symlink("target", place.root.join("link")).unwrap();
    let mut tree = place.tree();
    assert_eq!(place.scan(&mut tree).len(), 8);
    assert_eq!(place.scan(&mut tree), [""; 0]);

    place.write("changed", "CHANGED");
    place.write("new/file", "new");
    fs::remove_file(place.root.join("deleted")).unwrap();
    place.set_mode("mode", 0o755);
    fs::rename(place.root.join("folder"), place.root.join("moved")).unwrap();
    fs::remove_file(place.root.join("link")).unwrap();
    symlink("elsewhere", place.root.join("link")).unwrap();
    fs::remove_file(place.root.join("becomes-folder")).unwrap();
    fs::create_dir(place.root.join("becomes-folder")).unwrap();
    place.set_mode("becomes-folder", 0o755);
    assert_eq!(
        place.scan(&mut tree),
        [
            "becomes-folder: becomes-folder@644 → folder@755",
            "changed: changed@644 → CHANGED@644",
            "deleted: deleted@644 → nothing",
            "folder: folder@755 → nothing",
            "folder/inner: folder/inner@644 → nothing",
            "link: ->target → ->elsewhere",
            "mode: mode@644 → mode@755",
            "moved: nothing → folder@755",
            "moved/inner: nothing → folder/inner@644",
            "new: nothing → folder@755",
            "new/file: nothing → new@644",
        ]
    );
}

#[test]
fn scan_finds_a_change_that_keeps_size_and_time() {
    let place = Place::new();
    place.write("a", "one");
    let mut tree = place.tree();
    // Repeatedly, within one tick of the file system's clock.
    for turn in 0..50 {
        place.scan(&mut tree);
        let content = format!("{turn:03}");
        place.write("a", &content);
        assert_eq!(place.scan(&mut tree).len(), 1, "turn {turn}");
    }
    // With the old modification time restored.
    let old = fs::File::open(place.root.join("a"))
        .unwrap()
        .metadata()
        .unwrap()
        .modified()
        .unwrap();
    place.write("a", "xyz");
    fs::File::options()
        .write(true)
        .open(place.root.join("a"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    assert_eq!(place.scan(&mut tree), ["a: 049@644 → xyz@644"]);
}

#[test]
fn scan_in_another_process_continues_from_the_last_scan() {
    let place = Place::new();
    place.write("a", "a");
    place.write("b", "b");
    place.scan(&mut place.tree());
    place.set_mode("a", 0o600);
    assert_eq!(place.scan(&mut place.tree()), ["a: a@644 → a@600"]);
}

#[test]
fn scan_does_not_read_unchanged_files_again() {
    let place = Place::new();
    place.write("a", "a");
    place.write("b", "b");
    place.wait_for_a_later_stamp();
    place.scan(&mut place.tree());
    // A wrong stored version of `a` is believed, because the file's stamp is unchanged.
    let mut known = place.versions.known_files(&place.root).unwrap();
    known.sort_by(|one, other| one.0.cmp(&other.0));
    known[0].1.version = known[1].1.version;
    let update = TreeUpdate {
        known,
        ..TreeUpdate::default()
    };
    place.versions.update_tree(&place.root, &update).unwrap();
    assert_eq!(place.scan(&mut place.tree()), [""; 0]);
    // Until the file is touched.
    place.write("a", "a");
    assert_eq!(place.scan(&mut place.tree()), ["a: b@644 → a@644"]);
}

#[test]
fn scan_skips_ignored_private_and_git_files() {
    let place = Place::new();
    place.write(".gitignore", "target/\n*.log\n");
    for name in [
        "target/x",
        "a.log",
        ".git/config",
        "private/db",
        "seen",
        ".hidden",
    ] {
        place.write(name, "x");
    }
    let mut tree = Tree::new(
        &place.root,
        place.limits,
        Arc::new([place.root.join("private")]),
    );
    let names: Vec<_> = place
        .scan(&mut tree)
        .iter()
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(names, [".gitignore", ".hidden", "seen"]);
}

#[test]
fn scan_is_not_misled_by_new_ignore_rules() {
    let place = Place::new();
    place.write(".gitignore", "old\nchanged\n");
    for name in ["old", "changed", "kept", "kept-and-changed"] {
        place.write(name, name);
    }
    // Existing files differ from new ones by their age.
    place.wait_for_a_later_stamp();
    let mut tree = place.tree();
    place.scan(&mut tree);
    place.write(".gitignore", "kept*\n");
    place.write("changed", "CHANGED");
    place.write("kept-and-changed", "KEPT");
    place.write("new", "new");
    assert_eq!(
        place.scan(&mut tree),
        [
            ".gitignore: old\nchanged\n@644 → kept*\n@644",
            "changed: unsaved 7 → CHANGED@644",
            "kept-and-changed: kept-and-changed@644 → KEPT@644",
            "new: nothing → new@644",
        ],
        "`old` was there before, `kept` is there still"
    );
}

#[test]
fn scan_watches_large_files_without_saving_them() {
    let mut place = Place::new();
    place.limits = ScanLimits {
        file: 10,
        total: 25,
        paths: 100,
    };
    place.write("big", "more than ten bytes");
    for name in ["a", "b", "c"] {
        place.write(name, "ten bytes!");
    }
    place.write("small", "1234");
    let mut tree = place.tree();
    place.scan(&mut tree);
    let unsaved: Vec<_> = tree
        .unsaved_files()
        .into_iter()
        .map(|(path, size)| (path.file_name().unwrap().to_owned(), size))
        .collect();
    assert_eq!(
        unsaved,
        [("big".into(), 19), ("c".into(), 10)],
        "the smallest are saved first"
    );
    place.write("big", "again more than ten bytes");
    place.write("c", "other byte");
    assert_eq!(
        place.scan(&mut tree),
        ["big: unsaved 19 → unsaved 25", "c: unsaved 10 → unsaved 10"]
    );
    fs::remove_file(place.root.join("a")).unwrap();
    place.write("c", "fits now!!");
    assert_eq!(
        place.scan(&mut tree),
        ["a: ten bytes!@644 → nothing", "c: unsaved 10 → unsaved 10"]
    );
    place.write("c", "fits now..");
    assert_eq!(
        place.scan(&mut tree),
        ["c: unsaved 10 → fits now..@644"],
        "room that came free is used"
    );
}

#[test]
fn scan_gives_up_on_too_many_paths() {
    let mut place = Place::new();
    place.limits.paths = 5;
    for name in 0..20 {
        place.write(&name.to_string(), "x");
    }
    assert!(matches!(
        place.tree().scan(&place.versions).unwrap(),
        ScanOutcome::TooLarge
    ));
}
