use std::os::unix::fs::PermissionsExt;

use haft_types::{MessageId, Timestamp};
use tempfile::TempDir;

use super::*;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

fn versions(cap_mb: u32) -> (TempDir, SqliteVersions) {
    let folder = tempfile::tempdir().unwrap();
    let versions = reopened(folder.path(), cap_mb);
    (folder, versions)
}

fn reopened(folder: &Path, cap_mb: u32) -> SqliteVersions {
    let config = StoreConfig {
        versions_mb: cap_mb,
        ..StoreConfig::default()
    };
    SqliteVersions::at(&folder.join("versions"), &config, Arc::new(Still))
}

fn content(bytes: &[u8]) -> FileContent {
    FileContent::pack(ContentHash::of(bytes), bytes.to_vec())
}

fn file(bytes: &[u8]) -> FileVersion {
    FileVersion::File {
        mode: 0o644,
        size: bytes.len() as u64,
        hash: ContentHash::of(bytes),
    }
}

fn call(id: &str) -> CallName {
    CallName {
        message_id: MessageId::derived(ContentHash::of(b"m")),
        call_id: id.into(),
        tool: "write_to_file".into(),
    }
}

fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// Returns bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Records one call that changed one file from absent to `bytes`.
fn change(versions: &SqliteVersions, of: &str, id: &str, path: &str, bytes: &[u8]) {
    let path = PathBuf::from(path);
    versions
        .save(
            &conversation(of),
            &call(id),
            &[(path.clone(), FileVersion::Absent)],
            &[],
        )
        .unwrap();
    versions
        .changed(
            &conversation(of),
            &call(id),
            &[(path, file(bytes))],
            &[content(bytes)],
        )
        .unwrap();
}

#[test]
fn nothing_is_made_before_it_is_needed_and_then_for_the_owner_only() {
    let (folder, versions) = versions(10);
    assert!(!versions.exists() && !folder.path().join("versions").exists());
    change(&versions, "c", "1", "/p/a", b"a");
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path().join("versions")), 0o700);
    assert_eq!(mode(folder.path().join("versions/versions.db")), 0o600);
}

#[test]
fn contents_come_back_whole_or_not_at_all() {
    let (folder, versions) = versions(10);
    let samples = [
        b"".to_vec(),
        b"short".to_vec(),
        b"line\n".repeat(5000),
        noise(1, 40_000),
    ];
    for bytes in &samples {
        change(&versions, "c", &bytes.len().to_string(), "/p/a", bytes);
    }
    let versions = reopened(folder.path(), 10);
    for bytes in &samples {
        assert_eq!(&versions.content(ContentHash::of(bytes)).unwrap(), bytes);
    }
    assert!(matches!(
        versions.content(ContentHash::of(b"other")),
        Err(VersionsError::Gone { .. })
    ));
    let tamper =
        "UPDATE contents SET bytes = CAST(substr(bytes, 2) || x'00' AS BLOB) WHERE size > 0";
    Connection::open(folder.path().join("versions/versions.db"))
        .unwrap()
        .execute(tamper, [])
        .unwrap();
    for bytes in &samples[1..] {
        let read = versions.content(ContentHash::of(bytes));
        assert!(
            matches!(read, Err(VersionsError::DamagedContent { .. })),
            "{read:?}"
        );
    }
}

#[test]
fn a_call_keeps_its_first_before_and_its_last_after() {
    let (_folder, versions) = versions(10);
    let conversation = conversation("c");
    let path = PathBuf::from("/p/a");
    for (before, after) in [(b"1", b"2"), (b"2", b"3")] {
        versions
            .save(
                &conversation,
                &call("x"),
                &[(path.clone(), file(before))],
                &[content(before)],
            )
            .unwrap();
        versions
            .changed(
                &conversation,
                &call("x"),
                &[(path.clone(), file(after))],
                &[content(after)],
            )
            .unwrap();
    }
    let steps = versions.steps(&conversation).unwrap();
    assert_eq!(steps.len(), 1);
    assert_eq!(
        (steps[0].changes[0].before, steps[0].changes[0].after),
        (file(b"1"), Some(file(b"3")))
    );
    assert_eq!(steps[0].call.as_ref(), Some(&call("x")));

    // The file is back in its first state: the call has no net change.
    versions
        .changed(&conversation, &call("x"), &[(path, file(b"1"))], &[])
        .unwrap();
    assert_eq!(versions.steps(&conversation).unwrap(), []);
}

#[test]
fn a_call_that_was_killed_has_no_after() {
    let (_folder, versions) = versions(10);
    let path = PathBuf::from("/p/a");
    versions
        .save(
            &conversation("c"),
            &call("x"),
            &[(path, file(b"1"))],
            &[content(b"1")],
        )
        .unwrap();
    assert_eq!(
        versions.steps(&conversation("c")).unwrap()[0].changes[0].after,
        None
    );
}

#[test]
fn a_version_without_its_content_is_recorded_as_unsaved() {
    let (_folder, versions) = versions(10);
    let changes = [(
        PathBuf::from("/p/a"),
        file(b"never stored"),
        FileVersion::Absent,
    )];
    versions
        .record(&conversation("c"), &call("x"), StepId(0), &changes)
        .unwrap();
    assert_eq!(
        versions.steps(&conversation("c")).unwrap()[0].changes[0].before,
        FileVersion::Unsaved { size: 12 }
    );
}

#[test]
fn what_another_step_did_meanwhile_is_not_the_commands_doing() {
    let (_folder, versions) = versions(10);
    let since = versions.newest().unwrap();
    change(&versions, "other", "edit", "/p/a", b"edited");
    let changes = [
        (PathBuf::from("/p/a"), FileVersion::Absent, file(b"edited")),
        (
            PathBuf::from("/p/b"),
            FileVersion::Absent,
            FileVersion::Folder { mode: 0o755 },
        ),
    ];
    let noted = versions
        .record(&conversation("c"), &call("run"), since, &changes)
        .unwrap();
    assert_eq!(noted, [PathBuf::from("/p/b")]);
}

#[test]
fn an_undo_is_known_before_it_is_done_and_forgets_what_it_left() {
    let (_folder, versions) = versions(10);
    let of = conversation("c");
    change(&versions, "c", "1", "/p/a", b"a");
    change(&versions, "c", "2", "/p/b", b"b");
    let ids: Vec<_> = versions
        .steps(&of)
        .unwrap()
        .iter()
        .map(|step| step.id)
        .collect();
    let back = |path: &str, bytes: &[u8], of: StepId| Reversal {
        path: path.into(),
        before: file(bytes),
        after: FileVersion::Absent,
        of: vec![of],
    };
    let reversals = [back("/p/a", b"a", ids[0]), back("/p/b", b"b", ids[1])];
    let undo = versions
        .begin(&of, StepKind::Undo, None, &reversals, &[])
        .unwrap();
    let steps = versions.steps(&of).unwrap();
    assert_eq!(
        (steps[2].kind, steps[2].done, steps[2].changes.len()),
        (StepKind::Undo, false, 2)
    );
    assert_eq!(steps[1].changes[0].taken_back, Some(undo));

    versions.finish(undo, &[Path::new("/p/b")]).unwrap();
    let steps = versions.steps(&of).unwrap();
    assert!(steps[2].done && steps[2].changes.len() == 1);
    assert_eq!(
        (
            steps[0].changes[0].taken_back,
            steps[1].changes[0].taken_back
        ),
        (Some(undo), None)
    );
}

#[test]
fn trees_are_remembered_and_changed_in_place() {
    let (folder, versions) = versions(10);
    let root = Path::new("/p");
    let stamp = FileStamp {
        mtime_ns: 1,
        ctime_ns: 2,
        inode: 3,
        device: 4,
    };
    let known = |bytes: &[u8], stamp| KnownFile {
        version: file(bytes),
        stamp,
    };
    let update = TreeUpdate {
        known: vec![
            ("a".into(), known(b"a", Some(stamp))),
            ("b".into(), known(b"b", None)),
        ],
        contents: vec![content(b"a"), content(b"b")],
        gone: Vec::new(),
    };
    versions.update_tree(root, &update).unwrap();
    let update = TreeUpdate {
        gone: vec!["b".into()],
        ..TreeUpdate::default()
    };
    versions.update_tree(root, &update).unwrap();
    let tree = reopened(folder.path(), 10).tree(root).unwrap();
    assert_eq!(tree, [(PathBuf::from("a"), known(b"a", Some(stamp)))]);
    assert_eq!(versions.tree(Path::new("/q")).unwrap(), []);
    let is_stored = |bytes: &[u8]| versions.content(ContentHash::of(bytes)).is_ok();
    assert!(is_stored(b"a") && !is_stored(b"x"));
}

#[test]
fn beyond_the_cap_the_oldest_goes_first_and_what_is_live_stays() {
    let (folder, versions) = versions(3);
    let big = |seed: u64| noise(seed, 1024 * 1024);
    let root = Path::new("/scanned");
    let scanned = TreeUpdate {
        known: vec![(
            "a".into(),
            KnownFile {
                version: file(&big(100)),
                stamp: None,
            },
        )],
        contents: vec![content(&big(100))],
        gone: Vec::new(),
    };
    versions.update_tree(root, &scanned).unwrap();
    for (seed, of) in [(1, "old"), (2, "live"), (3, "new"), (4, "newest")] {
        change(&versions, of, "1", &format!("/p/{of}"), &big(seed));
    }
    let _live = reopened(folder.path(), 3)
        .hold(&conversation("live"), &[])
        .unwrap();
    let before = versions.used_bytes().unwrap();
    versions.trim().unwrap();
    let there = |seed: u64| versions.content(ContentHash::of(&big(seed))).is_ok();
    assert!(
        !there(100) && versions.tree(root).unwrap().is_empty(),
        "a scan nobody uses goes before any change"
    );
    assert_eq!([1, 2, 3, 4].map(there), [false, true, false, true]);
    assert!(versions.steps(&conversation("old")).unwrap().is_empty());
    assert!(versions.used_bytes().unwrap() < 3 * 1024 * 1024 && before > 5 * 1024 * 1024);
    let on_disk = folder
        .path()
        .join("versions/versions.db")
        .metadata()
        .unwrap()
        .len();
    assert!(
        on_disk < 3 * 1024 * 1024 + 64 * 1024,
        "the room is given back: {on_disk}"
    );
}

#[test]
fn a_live_tree_stays_too() {
    let (folder, versions) = versions(0);
    let update = TreeUpdate {
        known: vec![(
            "a".into(),
            KnownFile {
                version: file(b"a"),
                stamp: None,
            },
        )],
        contents: vec![content(b"a")],
        gone: Vec::new(),
    };
    for root in ["/one", "/two"] {
        versions.update_tree(Path::new(root), &update).unwrap();
    }
    let live = reopened(folder.path(), 0)
        .hold(&conversation("c"), &[Path::new("/two")])
        .unwrap();
    versions.trim().unwrap();
    assert_eq!(
        ["/one", "/two"].map(|root| versions.tree(Path::new(root)).unwrap().len()),
        [0, 1]
    );
    drop(live);
    versions.trim().unwrap();
    assert_eq!(versions.tree(Path::new("/two")).unwrap(), []);
    assert!(matches!(
        versions.content(ContentHash::of(b"a")),
        Err(VersionsError::Gone { .. })
    ));
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    let (folder, versions) = versions(10);
    std::fs::create_dir(folder.path().join("versions")).unwrap();
    let path = folder.path().join("versions/versions.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 7; CREATE TABLE t (x)")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = versions.newest().unwrap_err().to_string();
    assert!(error.contains("is not a haft database"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn file_time_is_not_before_what_was_written() {
    let (folder, versions) = versions(10);
    let before = versions.file_time().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "a").unwrap();
    let seen = path.metadata().unwrap();
    let written = seen.ctime() * 1_000_000_000 + seen.ctime_nsec();
    assert!(before <= written && written <= versions.file_time().unwrap());
}

/// A host's own store can have its own kind of guard.
#[test]
fn a_guard_releases_what_it_holds_when_it_is_dropped() {
    let held = Arc::new(());
    let guard = VersionsGuard::new(Arc::clone(&held));
    assert_eq!(Arc::strong_count(&held), 2);
    drop(guard);
    assert_eq!(Arc::strong_count(&held), 1);
    let (_folder, versions) = versions(1);
    drop(versions.undoing().unwrap());
    drop(versions.undoing().unwrap());
}

#[test]
fn what_a_purged_conversation_changed_is_gone_and_the_rest_stays() {
    let (folder, versions) = versions(10);
    let gone = noise(1, 3_000);
    let shared = noise(2, 3_000);
    let kept = noise(3, 3_000);
    for (of, id, bytes) in [
        ("a", "1", &gone),
        ("a", "2", &shared),
        ("b", "3", &shared),
        ("b", "4", &kept),
    ] {
        change(&versions, of, id, "/p/a", bytes);
    }
    versions
        .purge(&[conversation("a"), conversation("unknown")])
        .unwrap();
    assert!(versions.steps(&conversation("a")).unwrap().is_empty());
    assert!(versions.content(ContentHash::of(&gone)).is_err());
    assert_eq!(versions.content(ContentHash::of(&shared)).unwrap(), shared);
    assert_eq!(versions.content(ContentHash::of(&kept)).unwrap(), kept);
    for entry in std::fs::read_dir(folder.path().join("versions")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(64).any(|window| window == &gone[..64]));
    }
    let empty = reopened(folder.path().join("elsewhere").as_path(), 10);
    empty.purge(&[conversation("a")]).unwrap();
    assert!(!empty.exists(), "nothing is made");
}
