use haft_store::{SqliteStore, StoreConfig};
use haft_testkit::support::FakeClock;

use super::*;
use crate::testing::pinned;

const ROOT: &str = "/project";

async fn notes(folder: &Path) -> StoredNotes {
    let clock: Arc<FakeClock> = Arc::default();
    let store = SqliteStore::open(
        &folder.join("conversations.db"),
        &StoreConfig::default(),
        clock.clone(),
    )
    .unwrap();
    StoredNotes::open(Arc::new(store), "p", ROOT.into(), clock)
        .await
        .unwrap()
}

fn above(notes: &StoredNotes, read: &[&str]) -> Vec<(String, Vec<String>)> {
    let read: Vec<_> = read.iter().map(PathBuf::from).collect();
    notes.folder_notes_above(Path::new("/copy"), &read)
}

#[test]
fn a_note_concerns_what_is_above_and_below_but_not_beside() {
    let note = |path: &str| Note {
        id: "n1".into(),
        path: path.into(),
        note: "text".into(),
        updated_at: Timestamp::UNIX_EPOCH,
    };
    for related in [".", "src", "src/a", "src/a/b.rs"] {
        assert!(note("src/a").concerns(related), "{related}");
        assert!(note(related).concerns("src/a"), "{related}");
    }
    for other in ["src/ab", "src/b", "doc"] {
        assert!(!note("src/a").concerns(other), "{other}");
    }
}

#[test]
fn key_and_shape_are_what_earlier_versions_stored() {
    let note = Note {
        id: "n1".into(),
        path: "src".into(),
        note: "code".into(),
        updated_at: Timestamp::UNIX_EPOCH,
    };
    let list = FolderNoteList {
        last_number: 1,
        notes: vec![note],
    };
    assert_eq!(KEY, "notes");
    pinned(
        &list,
        r#"{"last_number":1,"notes":[{"id":"n1","path":"src","note":"code","updated_at":"1970-01-01T00:00:00Z"}]}"#,
    );
}

#[tokio::test]
async fn the_folders_above_what_was_read_are_shown_shallow_to_deep() {
    let folder = tempfile::tempdir().unwrap();
    let notes = notes(folder.path()).await;
    for (path, note) in [
        ("src/deep/er", "deepest"),
        ("src", "source"),
        (".", "all"),
        ("doc", "beside"),
        ("src/a.rs", "on a file"),
    ] {
        notes.add(path, note).await.unwrap();
    }
    assert_eq!(above(&notes, &[]), []);
    let read = [
        "/project/src/deep/er/a.rs",
        "/project/src/a.rs",
        "/elsewhere/doc/a",
    ];
    let on = |folder: &str, lines: &[&str]| {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        (folder.to_owned(), lines)
    };
    assert_eq!(
        above(&notes, &read),
        [
            on(".", &["n3: all"]),
            on("src", &["n2: source"]),
            on("src/deep/er", &["n1: deepest"])
        ]
    );
    assert_eq!(above(&notes, &["/elsewhere/a.rs"]), []);
    assert_eq!(
        above(&notes, &["/copy/src/a.rs"]),
        above(&notes, &["/project/src/a.rs"]),
        "a copy of the project"
    );
}

#[tokio::test]
async fn the_newest_five_are_shown_and_a_changed_note_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let notes = notes(folder.path()).await;
    for number in 1..=6 {
        notes.add("src", &format!("note {number}")).await.unwrap();
    }
    let shown = || -> Vec<String> {
        let all = above(&notes, &["/project/src/a"]);
        all.into_iter().flat_map(|(_, lines)| lines).collect()
    };
    assert_eq!(
        shown(),
        [
            "n2: note 2",
            "n3: note 3",
            "n4: note 4",
            "n5: note 5",
            "n6: note 6"
        ]
    );
    notes.update("n1", "note one").await.unwrap();
    assert_eq!(shown().last().unwrap(), "n1: note one");
    // The letter may be left out, and an id is never used again.
    assert_eq!(notes.delete("6").await.unwrap().note, "note 6");
    assert_eq!(
        notes.delete("n6").await,
        Err(PortError::Unknown {
            what: "note",
            id: "n6".into()
        })
    );
    assert_eq!(notes.add("src", "next").await.unwrap().id, "n7");
    assert_eq!(
        notes.add("src", "note 2").await.unwrap().id,
        "n2",
        "said again it is the same note"
    );
    assert_eq!(notes.list().await.unwrap().len(), 6);
}

#[tokio::test]
async fn folder_notes_are_as_many_as_the_limit_allows() {
    let folder = tempfile::tempdir().unwrap();
    let mut notes = notes(folder.path()).await;
    for number in 1..=7 {
        notes.add("src", &format!("note {number}")).await.unwrap();
    }
    for (limit, expected) in [(0, 0), (1, 1), (6, 6), (u32::MAX, 7)] {
        notes = notes.with_max_shown(limit);
        let shown = above(&notes, &["/project/src/a.rs"]);
        let count: usize = shown.iter().map(|(_, lines)| lines.len()).sum();
        assert_eq!(count, expected, "{limit}");
    }
}

#[tokio::test]
async fn notes_of_two_processes_are_both_kept() {
    let folder = tempfile::tempdir().unwrap();
    let one = notes(folder.path()).await;
    let other = notes(folder.path()).await;
    let add = |notes: StoredNotes, name: &'static str| async move {
        for number in 0..20 {
            notes.add("src", &format!("{name} {number}")).await.unwrap();
        }
    };
    tokio::join!(add(one, "one"), add(other, "other"));
    let all = notes(folder.path()).await.list().await.unwrap();
    let ids: BTreeSet<_> = all.iter().map(|note| note.id.clone()).collect();
    assert_eq!((all.len(), ids.len()), (40, 40));
}
