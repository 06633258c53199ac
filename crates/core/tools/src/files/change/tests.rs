use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::commit::commit_changes;
use super::folder::OpenFolder;
use super::journal::{Fingerprint, Journal, JournalEntry, JournalRecord, JournalStage};
use super::*;
use crate::files::disk;
use crate::testing::Bench;

fn load(path: &Path) -> LoadedFile {
    disk::load_file(path, "file").unwrap()
}

fn replace<'a>(path: &'a Path, old: &'a LoadedFile, bytes: &'a [u8]) -> PlannedChange<'a> {
    PlannedChange {
        path,
        name: "file",
        step: ChangeAction::Replace { old, bytes },
    }
}

fn create<'a>(path: &'a Path, bytes: &'a [u8]) -> PlannedChange<'a> {
    PlannedChange {
        path,
        name: "file",
        step: ChangeAction::Create { bytes },
    }
}

fn delete<'a>(path: &'a Path, old: &'a LoadedFile) -> PlannedChange<'a> {
    PlannedChange {
        path,
        name: "file",
        step: ChangeAction::Delete { old },
    }
}

fn commit_and_expect_no_journal(
    bench: &Bench,
    changes: &[PlannedChange<'_>],
) -> Result<Vec<WrittenFile>, ChangeError> {
    let result = commit_changes(&bench.workspace().journal, changes);
    let journals = fs::read_dir(&bench.workspace().journal).unwrap().count();
    assert_eq!(journals, 0, "a journal was left");
    result
}

#[test]
fn commit_creates_changes_and_removes_files_together() {
    let bench = Bench::new();
    let changed = bench.write("changed", "old");
    let removed = bench.write("removed", "gone");
    let one = load(&changed);
    let two = load(&removed);
    let made = bench.path("new/folder/made");
    let written = commit_and_expect_no_journal(
        &bench,
        &[
            replace(&changed, &one, b"new"),
            delete(&removed, &two),
            create(&made, b"made"),
        ],
    )
    .unwrap();
    assert_eq!(
        bench.files(),
        ["changed", "new", "new/folder", "new/folder/made"]
    );
    assert_eq!(
        (bench.read("changed"), bench.read("new/folder/made")),
        (b"new".to_vec(), b"made".to_vec())
    );
    assert_eq!(written[0].state, Some(load(&changed).state));
    assert_eq!(written[1].state, None);
    assert_eq!(
        fs::metadata(&bench.workspace().journal).unwrap().mode() & 0o777,
        0o700
    );
}

#[test]
fn commit_rolls_back_all_files_if_one_was_overtaken() {
    let bench = Bench::new();
    let first = bench.write("a", "a1");
    let removed = bench.write("b", "b1");
    let last = bench.write("c", "c1");
    let one = load(&first);
    let two = load(&removed);
    let three = load(&last);
    let made = bench.path("folder/new");
    // Size and time stay the same: only the content differs.
    fs::write(&last, "c2").unwrap();
    fs::File::options()
        .write(true)
        .open(&last)
        .unwrap()
        .set_modified(three.metadata.modified().unwrap())
        .unwrap();
    let changes = [
        replace(&first, &one, b"a2"),
        delete(&removed, &two),
        create(&made, b"new"),
        replace(&last, &three, b"c3"),
    ];
    let error = commit_and_expect_no_journal(&bench, &changes).unwrap_err();
    assert_eq!(error.code(), "changed_since_read");
    assert_eq!(bench.files(), ["a", "b", "c"]);
    assert_eq!(
        (bench.read("a"), bench.read("b"), bench.read("c")),
        (b"a1".into(), b"b1".into(), b"c2".into())
    );
}

#[test]
fn commit_leaves_a_replacement_of_the_file_alone() {
    type Disturbance = fn(&Path);
    let cases: [(&str, Disturbance); 4] = [
        ("gone", |path| fs::remove_file(path).unwrap()),
        ("a link", |path| {
            fs::remove_file(path).unwrap();
            symlink("elsewhere", path).unwrap();
        }),
        ("a folder", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("other content", |path| fs::write(path, "theirs").unwrap()),
    ];
    for (what, happens) in cases {
        for removing in [false, true] {
            let bench = Bench::new();
            let path = bench.write("a", "mine");
            let old = load(&path);
            happens(&path);
            let before = path
                .symlink_metadata()
                .map(|now| (now.ino(), now.file_type()))
                .ok();
            let change = if removing {
                delete(&path, &old)
            } else {
                replace(&path, &old, b"new")
            };
            let error = commit_and_expect_no_journal(&bench, &[change]).unwrap_err();
            assert_eq!(error.code(), "changed_since_read", "{what}");
            let after = path
                .symlink_metadata()
                .map(|now| (now.ino(), now.file_type()))
                .ok();
            assert_eq!(before, after, "{what}");
            assert!(
                bench.files().iter().all(|name| name == "a"),
                "{what}: {:?}",
                bench.files()
            );
        }
    }
}

#[test]
fn commit_never_replaces_an_existing_file_by_a_new_one() {
    let bench = Bench::new();
    let path = bench.write("a", "theirs");
    assert_eq!(
        commit_and_expect_no_journal(&bench, &[create(&path, b"mine")])
            .unwrap_err()
            .code(),
        "changed_since_read"
    );
    assert_eq!(bench.read("a"), b"theirs");
    assert_eq!(bench.files(), ["a"]);
}

#[test]
fn commit_keeps_mode_owner_attributes_and_access_list() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    // An access list with one further user: owner rw-, user 65534 r--, group r--, mask r--, others
    // ---.
    let entry = |tag: u16, permissions: u16, id: u32| {
        [
            tag.to_le_bytes().as_slice(),
            &permissions.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    };
    let none = u32::MAX;
    let list = [
        2_u32.to_le_bytes().to_vec(),
        entry(0x01, 6, none),
        entry(0x02, 4, 65534),
        entry(0x04, 4, none),
        entry(0x10, 4, none),
        entry(0x20, 0, none),
    ]
    .concat();
    let supported = setxattr(&path, "user.note", b"kept", XattrFlags::empty()).is_ok()
        && setxattr(&path, "system.posix_acl_access", &list, XattrFlags::empty()).is_ok();
    if !supported {
        return println!("skipped: this file system has no extended attributes");
    }
    let old = load(&path);
    let written = commit_and_expect_no_journal(&bench, &[replace(&path, &old, b"new")]).unwrap();
    assert!(written[0].notes.is_empty(), "{:?}", written[0].notes);
    let value = |name: &str| {
        let mut value = vec![0; 200];
        let length = getxattr(&path, name, value.as_mut_slice()).unwrap();
        value.truncate(length);
        value
    };
    assert_eq!(value("user.note"), b"kept");
    assert_eq!(value("system.posix_acl_access"), list);
    let now = fs::metadata(&path).unwrap();
    assert_eq!(
        (now.mode(), now.uid(), now.gid()),
        (old.metadata.mode(), old.metadata.uid(), old.metadata.gid())
    );
}

#[test]
fn commit_does_not_give_an_inherited_access_list_to_an_old_file() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let entry = |tag: u16, permissions: u16, id: u32| {
        [
            tag.to_le_bytes().as_slice(),
            &permissions.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    };
    let none = u32::MAX;
    let list = [
        2_u32.to_le_bytes().to_vec(),
        entry(0x01, 7, none),
        entry(0x02, 7, 65534),
        entry(0x04, 5, none),
        entry(0x10, 7, none),
        entry(0x20, 5, none),
    ]
    .concat();
    if setxattr(
        bench.path(""),
        "system.posix_acl_default",
        &list,
        XattrFlags::empty(),
    )
    .is_err()
    {
        return println!("skipped: this file system has no access lists");
    }
    let old = load(&path);
    commit_and_expect_no_journal(&bench, &[replace(&path, &old, b"new")]).unwrap();
    let mut value = [0; 200];
    assert!(
        getxattr(&path, "system.posix_acl_access", &mut value[..]).is_err(),
        "user 65534 may read it now"
    );
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
}

#[test]
fn broken_links_reports_other_hard_links_of_the_file() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    fs::hard_link(&path, bench.path("b")).unwrap();
    let old = load(&path);
    let note = warn_broken_links(&replace(&path, &old, b"new")).unwrap();
    assert_eq!(
        note,
        "`file` had 1 other name (hard link); what they name keeps the old content."
    );
    commit_and_expect_no_journal(&bench, &[replace(&path, &old, b"new")]).unwrap();
    assert_eq!(
        (bench.read("a"), bench.read("b")),
        (b"new".to_vec(), b"old".to_vec())
    );
}

#[test]
fn commit_does_not_follow_a_folder_replaced_by_a_link() {
    let bench = Bench::new();
    let path = bench.write("folder/a", "old");
    let outside = bench.workspace().root.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "old").unwrap();
    let old = load(&path);
    fs::rename(bench.path("folder"), bench.path("moved")).unwrap();
    symlink(&outside, bench.path("folder")).unwrap();
    let made = bench.path("folder/new");
    for change in [
        replace(&path, &old, b"new"),
        delete(&path, &old),
        create(&made, b"new"),
    ] {
        let error = commit_and_expect_no_journal(&bench, &[change]).unwrap_err();
        assert_eq!(error.code(), "link_in_the_way", "{error}");
        assert!(disk::load_file(&path, "a").is_err());
    }
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"old");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

/// The files that a process leaves if it dies at a stage of a change of three files.
struct DeadChange {
    bench: Bench,
    record: JournalRecord,
}

impl DeadChange {
    fn at(stage: JournalStage) -> Self {
        let bench = Bench::new();
        bench.write("changed", "old");
        bench.write("removed", "gone");
        let entry = |name: &str, before: Option<&str>, after: Option<&str>| JournalEntry {
            path: bench.path(name),
            temporary: format!(".haft-{name}.tmp"),
            before: before.map(|text| Fingerprint::from_bytes(text.as_bytes())),
            after: after.map(|text| Fingerprint::from_bytes(text.as_bytes())),
        };
        let entries = vec![
            entry("changed", Some("old"), Some("new")),
            entry("removed", Some("gone"), None),
            entry("made", None, Some("made")),
        ];
        let record = JournalRecord {
            folders: Vec::new(),
            entries,
        };
        let mut journal = Journal::begin(&bench.workspace().journal, &record).unwrap();
        if stage != JournalStage::Writing {
            journal.advance_to(stage).unwrap();
        }
        drop(journal);
        bench.write(".haft-changed.tmp", "new");
        bench.write(".haft-made.tmp", "made");
        Self { bench, record }
    }

    fn place_entries(&self, count: usize) {
        let folder = OpenFolder::open(&self.bench.path("")).unwrap();
        for entry in self.record.entries.iter().take(count) {
            place::place_file(&folder, entry).unwrap();
        }
    }

    fn recover(&self) -> Recovery {
        let mut found = recover_changes(&self.bench.workspace().journal).unwrap();
        assert_eq!(found.len(), 1);
        assert!(
            recover_changes(&self.bench.workspace().journal)
                .unwrap()
                .is_empty(),
            "found twice"
        );
        found.pop().unwrap()
    }

    fn assert_old_files(&self) {
        assert_eq!(self.bench.files(), ["changed", "removed"]);
        assert_eq!(
            (self.bench.read("changed"), self.bench.read("removed")),
            (b"old".to_vec(), b"gone".to_vec())
        );
    }
}

#[test]
fn recover_rolls_back_a_dead_change_at_any_point() {
    for placed in 0..=3 {
        let dead = DeadChange::at(JournalStage::Placing);
        dead.place_entries(placed);
        let recovery = dead.recover();
        assert!(
            matches!(recovery.outcome, RecoveryOutcome::RolledBack),
            "{recovery}"
        );
        dead.assert_old_files();
    }
    let dead = DeadChange::at(JournalStage::Writing);
    fs::write(dead.bench.path(".haft-made.tmp"), "ma").unwrap();
    let recovery = dead.recover();
    assert!(
        recovery
            .to_string()
            .ends_with("was cleared away: nothing had been changed yet."),
        "{recovery}"
    );
    dead.assert_old_files();
}

#[test]
fn recover_keeps_a_dead_change_that_was_done() {
    let dead = DeadChange::at(JournalStage::Done);
    dead.place_entries(3);
    let recovery = dead.recover();
    assert!(
        matches!(recovery.outcome, RecoveryOutcome::AllChanged),
        "{recovery}"
    );
    assert_eq!(dead.bench.files(), ["changed", "made"]);
    assert_eq!(
        (dead.bench.read("changed"), dead.bench.read("made")),
        (b"new".to_vec(), b"made".to_vec())
    );
}

#[test]
fn recover_leaves_a_dead_change_of_one_file_as_it_is() {
    // Every kind of change of one file, before and after its placement, with the expected files.
    type Files<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Option<&str>, Option<&str>, bool, Files<'_>); 6] = [
        (Some("old"), Some("new"), false, &[("a", "old")]),
        (Some("old"), Some("new"), true, &[("a", "new")]),
        (None, Some("new"), false, &[]),
        (None, Some("new"), true, &[("a", "new")]),
        (Some("old"), None, false, &[("a", "old")]),
        (Some("old"), None, true, &[]),
    ];
    for (before, after, placed, expected) in cases {
        let bench = Bench::new();
        let print = |text: &str| Fingerprint::from_bytes(text.as_bytes());
        let path = bench.path("a");
        let temporary = ".haft-a.tmp".to_owned();
        let entry = JournalEntry {
            path,
            temporary,
            before: before.map(print),
            after: after.map(print),
        };
        before.map(|text| bench.write("a", text));
        after.map(|text| bench.write(".haft-a.tmp", text));
        if placed {
            place::place_file(&OpenFolder::open(&bench.path("")).unwrap(), &entry).unwrap();
        }
        let record = JournalRecord {
            folders: Vec::new(),
            entries: vec![entry],
        };
        Journal::begin(&bench.workspace().journal, &record)
            .unwrap()
            .advance_to(JournalStage::Single)
            .unwrap();
        let found = recover_changes(&bench.workspace().journal).unwrap();
        let what = format!("{before:?} {after:?} {placed}: {}", found[0]);
        match found[0].outcome {
            RecoveryOutcome::AllChanged => assert!(placed, "{what}"),
            RecoveryOutcome::NothingChanged => assert!(!placed, "{what}"),
            _ => panic!("{what}"),
        }
        let there: Vec<_> = bench
            .files()
            .into_iter()
            .map(|name| (bench.read(&name), name))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, text)| (text.as_bytes().to_vec(), (*name).to_owned()))
            .collect();
        assert_eq!(there, expected, "{what}");
    }
}

#[test]
fn recover_restores_content_that_a_dead_change_of_one_file_replaced() {
    let bench = Bench::new();
    let print = |text: &str| Some(Fingerprint::from_bytes(text.as_bytes()));
    let path = bench.path("a");
    let temporary = ".haft-a.tmp".to_owned();
    let entry = JournalEntry {
        path,
        temporary,
        before: print("old"),
        after: print("new"),
    };
    // Another process wrote just before the exchange, and ours died right after it.
    bench.write("a", "new");
    bench.write(".haft-a.tmp", "theirs");
    let record = JournalRecord {
        folders: Vec::new(),
        entries: vec![entry],
    };
    Journal::begin(&bench.workspace().journal, &record)
        .unwrap()
        .advance_to(JournalStage::Single)
        .unwrap();
    recover_changes(&bench.workspace().journal).unwrap();
    assert_eq!(bench.read("a"), b"theirs");
    assert_eq!(bench.files(), ["a"]);
}

#[test]
fn recover_leaves_files_that_others_changed_after_the_death() {
    let dead = DeadChange::at(JournalStage::Placing);
    dead.place_entries(3);
    dead.bench.write("changed", "theirs");
    dead.bench.write("removed", "theirs too");
    let recovery = dead.recover();
    let RecoveryOutcome::RolledBackExcept { left } = &recovery.outcome else {
        panic!("{recovery}")
    };
    assert!(
        left.contains("changed") && left.contains("removed") && left.contains(".tmp"),
        "{left}"
    );
    assert_eq!(
        (dead.bench.read("changed"), dead.bench.read("removed")),
        (b"theirs".into(), b"theirs too".into())
    );
    assert_eq!(
        dead.bench.read(".haft-changed.tmp"),
        b"old",
        "nothing is lost"
    );
    assert!(!dead.bench.path("made").exists());
}

#[test]
fn recover_leaves_a_file_that_others_created_in_the_same_place() {
    let dead = DeadChange::at(JournalStage::Placing);
    dead.place_entries(3);
    dead.bench.write("made", "theirs");
    let recovery = dead.recover();
    assert!(
        matches!(recovery.outcome, RecoveryOutcome::RolledBackExcept { .. }),
        "{recovery}"
    );
    assert_eq!(dead.bench.read("made"), b"theirs");
}

#[test]
fn recover_leaves_the_change_of_a_living_process_alone() {
    let bench = Bench::new();
    let journal = Journal::begin(&bench.workspace().journal, &JournalRecord::default()).unwrap();
    assert!(
        recover_changes(&bench.workspace().journal)
            .unwrap()
            .is_empty()
    );
    drop(journal);
    assert_eq!(
        recover_changes(&bench.workspace().journal).unwrap().len(),
        1
    );
}

#[test]
fn recover_ignores_a_truncated_journal_and_keeps_a_damaged_one() {
    let bench = Bench::new();
    let folder = &bench.workspace().journal;
    assert!(
        recover_changes(folder).unwrap().is_empty(),
        "no folder, nothing to do"
    );
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("1.writing"), "{\"fold").unwrap();
    fs::write(folder.join("2.placing"), "{\"fold").unwrap();
    fs::write(folder.join("3.single"), "").unwrap();
    fs::write(folder.join("notes"), "not a journal").unwrap();
    let found = recover_changes(folder).unwrap();
    assert_eq!(found.len(), 1);
    assert!(
        matches!(&found[0].outcome, RecoveryOutcome::Failed { journal, .. } if journal.exists()),
        "{}",
        found[0]
    );
    assert!(recover_changes(folder).unwrap().is_empty());
}

#[test]
fn recover_removes_folders_of_a_dead_change_if_empty() {
    for foreign in [false, true] {
        let bench = Bench::new();
        let folders: Vec<_> = ["new", "new/deep"]
            .map(|name| journal::JournalFolder {
                path: bench.path(name),
            })
            .into_iter()
            .collect();
        let record = JournalRecord {
            folders,
            entries: Vec::new(),
        };
        drop(Journal::begin(&bench.workspace().journal, &record).unwrap());
        fs::create_dir_all(bench.path("new/deep")).unwrap();
        if foreign {
            bench.write("new/theirs", "");
        }
        recover_changes(&bench.workspace().journal).unwrap();
        assert_eq!(
            bench.files(),
            if foreign {
                vec!["new", "new/theirs"]
            } else {
                vec![]
            }
        );
    }
}

#[test]
fn journal_round_trips_a_path_that_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/p/\xFF"));
    let entry = JournalEntry {
        path,
        temporary: "t".into(),
        before: None,
        after: Some(Fingerprint::from_bytes(b"x")),
    };
    let record = JournalRecord {
        folders: Vec::new(),
        entries: vec![entry],
    };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<JournalRecord>(&text).unwrap(),
        record
    );
}
