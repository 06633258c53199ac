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
    let versions = reopen_versions(folder.path(), cap_mb);
    (folder, versions)
}

fn reopen_versions(folder: &Path, cap_mb: u32) -> SqliteVersions {
    let config = StoreConfig {
        versions_mb: cap_mb,
        ..StoreConfig::default()
    };
    SqliteVersions::new(&folder.join("versions"), &config, Arc::new(Still))
}

fn content(bytes: &[u8]) -> FileContent {
    FileContent::pack(ContentHash::from_content(bytes), bytes.to_vec())
}

fn file(bytes: &[u8]) -> FileVersion {
    FileVersion::File {
        mode: 0o644,
        size: bytes.len() as u64,
        hash: ContentHash::from_content(bytes),
    }
}

fn call(id: &str) -> CallName {
    CallName {
        message_id: MessageId::from_hash(ContentHash::from_content(b"m")),
        call_id: id.into(),
        tool: "write_to_file".into(),
    }
}

fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// Returns bytes that do not compress.
fn incompressible_bytes(seed: u64, len: usize) -> Vec<u8> {
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
fn record_change(versions: &SqliteVersions, of: &str, id: &str, path: &str, bytes: &[u8]) {
    let path = PathBuf::from(path);
    versions
        .save_before(
            &conversation(of),
            &call(id),
            &[(path.clone(), FileVersion::Absent)],
            &[],
        )
        .unwrap();
    versions
        .save_after(
            &conversation(of),
            &call(id),
            &[(path, file(bytes))],
            &[content(bytes)],
        )
        .unwrap();
}

#[test]
fn versions_folder_is_created_on_first_use_and_private() {
    let (folder, versions) = versions(10);
    assert!(!versions.exists() && !folder.path().join("versions").exists());
    record_change(&versions, "c", "1", "/p/a", b"a");
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.path().join("versions")), 0o700);
    assert_eq!(mode(folder.path().join("versions/versions.db")), 0o600);
}

#[test]
fn content_is_returned_whole_or_not_at_all() {
    let (folder, versions) = versions(10);
    let samples = [
        b"".to_vec(),
        b"short".to_vec(),
        b"line\n".repeat(5000),
        incompressible_bytes(1, 40_000),
    ];
    for bytes in &samples {
        record_change(&versions, "c", &bytes.len().to_string(), "/p/a", bytes);
    }
    let versions = reopen_versions(folder.path(), 10);
    for bytes in &samples {
        assert_eq!(
            &versions
                .read_content(ContentHash::from_content(bytes))
                .unwrap(),
            bytes
        );
    }
    assert!(matches!(
        versions.read_content(ContentHash::from_content(b"other")),
        Err(VersionsError::Gone { .. })
    ));
    let tamper =
        "UPDATE contents SET bytes = CAST(substr(bytes, 2) || x'00' AS BLOB) WHERE size > 0";
    Connection::open(folder.path().join("versions/versions.db"))
        .unwrap()
        .execute(tamper, [])
        .unwrap();
    for bytes in &samples[1..] {
        let read = versions.read_content(ContentHash::from_content(bytes));
        assert!(
            matches!(read, Err(VersionsError::DamagedContent { .. })),
            "{read:?}"
        );
    }
}

#[test]
fn call_keeps_its_first_before_and_its_last_after() {
    let (_folder, versions) = versions(10);
    let conversation = conversation("c");
    let path = PathBuf::from("/p/a");
    for (before, after) in [(b"1", b"2"), (b"2", b"3")] {
        versions
            .save_before(
                &conversation,
                &call("x"),
                &[(path.clone(), file(before))],
                &[content(before)],
            )
            .unwrap();
        versions
            .save_after(
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
        .save_after(&conversation, &call("x"), &[(path, file(b"1"))], &[])
        .unwrap();
    assert_eq!(versions.steps(&conversation).unwrap(), []);
}

#[test]
fn call_that_was_killed_has_no_after() {
    let (_folder, versions) = versions(10);
    let path = PathBuf::from("/p/a");
    versions
        .save_before(
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
fn version_without_content_is_recorded_as_unsaved() {
    let (_folder, versions) = versions(10);
    let changes = [(
        PathBuf::from("/p/a"),
        file(b"never stored"),
        FileVersion::Absent,
    )];
    versions
        .save_scanned(&conversation("c"), &call("x"), StepId(0), &changes)
        .unwrap();
    assert_eq!(
        versions.steps(&conversation("c")).unwrap()[0].changes[0].before,
        FileVersion::Unsaved { size: 12 }
    );
}

#[test]
fn record_omits_changes_that_another_step_made_meanwhile() {
    let (_folder, versions) = versions(10);
    let since = versions.newest_step().unwrap();
    record_change(&versions, "other", "edit", "/p/a", b"edited");
    let changes = [
        (PathBuf::from("/p/a"), FileVersion::Absent, file(b"edited")),
        (
            PathBuf::from("/p/b"),
            FileVersion::Absent,
            FileVersion::Folder { mode: 0o755 },
        ),
    ];
    let noted = versions
        .save_scanned(&conversation("c"), &call("run"), since, &changes)
        .unwrap();
    assert_eq!(noted, [PathBuf::from("/p/b")]);
}

#[test]
fn undo_is_stored_before_it_runs_and_drops_what_it_left() {
    let (_folder, versions) = versions(10);
    let of = conversation("c");
    record_change(&versions, "c", "1", "/p/a", b"a");
    record_change(&versions, "c", "2", "/p/b", b"b");
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
        .begin_reversal(&of, StepKind::Undo, None, &reversals, &[])
        .unwrap();
    let steps = versions.steps(&of).unwrap();
    assert_eq!(
        (steps[2].kind, steps[2].done, steps[2].changes.len()),
        (StepKind::Undo, false, 2)
    );
    assert_eq!(steps[1].changes[0].taken_back, Some(undo));

    versions
        .finish_reversal(undo, &[Path::new("/p/b")])
        .unwrap();
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
fn tree_is_stored_and_updated_in_place() {
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
    let tree = reopen_versions(folder.path(), 10)
        .known_files(root)
        .unwrap();
    assert_eq!(tree, [(PathBuf::from("a"), known(b"a", Some(stamp)))]);
    assert_eq!(versions.known_files(Path::new("/q")).unwrap(), []);
    let is_stored = |bytes: &[u8]| {
        versions
            .read_content(ContentHash::from_content(bytes))
            .is_ok()
    };
    assert!(is_stored(b"a") && !is_stored(b"x"));
}

#[test]
fn cap_removes_the_oldest_contents_and_keeps_live_ones() {
    let (folder, versions) = versions(3);
    let big = |seed: u64| incompressible_bytes(seed, 1024 * 1024);
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
        record_change(&versions, of, "1", &format!("/p/{of}"), &big(seed));
    }
    let _live = reopen_versions(folder.path(), 3)
        .hold(&conversation("live"), &[])
        .unwrap();
    let before = versions.used_bytes().unwrap();
    versions.trim().unwrap();
    let there = |seed: u64| {
        versions
            .read_content(ContentHash::from_content(&big(seed)))
            .is_ok()
    };
    assert!(
        !there(100) && versions.known_files(root).unwrap().is_empty(),
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
fn cap_keeps_a_live_tree() {
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
    let live = reopen_versions(folder.path(), 0)
        .hold(&conversation("c"), &[Path::new("/two")])
        .unwrap();
    versions.trim().unwrap();
    assert_eq!(
        ["/one", "/two"].map(|root| versions.known_files(Path::new(root)).unwrap().len()),
        [0, 1]
    );
    drop(live);
    versions.trim().unwrap();
    assert_eq!(versions.known_files(Path::new("/two")).unwrap(), []);
    assert!(matches!(
        versions.read_content(ContentHash::from_content(b"a")),
        Err(VersionsError::Gone { .. })
    ));
}

#[test]
fn foreign_file_is_left_alone() {
    let (folder, versions) = versions(10);
    std::fs::create_dir(folder.path().join("versions")).unwrap();
    let path = folder.path().join("versions/versions.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 7; CREATE TABLE t (x)")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = versions.newest_step().unwrap_err().to_string();
    assert!(error.contains("is not a haft database"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn file_time_is_not_before_the_last_write() {
    let (folder, versions) = versions(10);
    let before = versions.current_file_time().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "a").unwrap();
    let seen = path.metadata().unwrap();
    let written = seen.ctime() * 1_000_000_000 + seen.ctime_nsec();
    assert!(before <= written && written <= versions.current_file_time().unwrap());
}

/// A host's own store can have its own kind of guard.
#[test]
fn guard_releases_its_value_when_dropped() {
    let held = Arc::new(());
    let guard = VersionsGuard::new(Arc::clone(&held));
    assert_eq!(Arc::strong_count(&held), 2);
    drop(guard);
    assert_eq!(Arc::strong_count(&held), 1);
    let (_folder, versions) = versions(1);
    drop(versions.lock_undo().unwrap());
    drop(versions.lock_undo().unwrap());
}

#[test]
fn purge_removes_a_conversations_contents_and_keeps_shared_ones() {
    let (folder, versions) = versions(10);
    let gone = incompressible_bytes(1, 3_000);
    let shared = incompressible_bytes(2, 3_000);
    let kept = incompressible_bytes(3, 3_000);
    for (of, id, bytes) in [
        ("a", "1", &gone),
        ("a", "2", &shared),
        ("b", "3", &shared),
        ("b", "4", &kept),
    ] {
        record_change(&versions, of, id, "/p/a", bytes);
    }
    versions
        .purge(&[conversation("a"), conversation("unknown")])
        .unwrap();
    assert!(versions.steps(&conversation("a")).unwrap().is_empty());
    assert!(
        versions
            .read_content(ContentHash::from_content(&gone))
            .is_err()
    );
    assert_eq!(
        versions
            .read_content(ContentHash::from_content(&shared))
            .unwrap(),
        shared
    );
    assert_eq!(
        versions
            .read_content(ContentHash::from_content(&kept))
            .unwrap(),
        kept
    );
    for entry in std::fs::read_dir(folder.path().join("versions")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(64).any(|window| window == &gone[..64]));
    }
    let empty = reopen_versions(folder.path().join("elsewhere").as_path(), 10);
    empty.purge(&[conversation("a")]).unwrap();
    assert!(!empty.exists(), "nothing is made");
}
