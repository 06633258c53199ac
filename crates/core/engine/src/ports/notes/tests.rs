use haft_store::{SqliteStore, StoreConfig};
use haft_testkit::test::FakeClock;

use super::*;

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

fn reminder(notes: &StoredNotes, read: &[&str]) -> String {
    notes.reminder(
        Path::new("/copy"),
        &read.iter().map(PathBuf::from).collect::<Vec<_>>(),
    )
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
    assert_eq!(reminder(&notes, &[]), "");
    assert_eq!(
        reminder(
            &notes,
            &[
                "/project/src/deep/er/a.rs",
                "/project/src/a.rs",
                "/elsewhere/doc/a"
            ]
        ),
        "### `.`\n\n- n3: all\n\n### `src`\n\n- n2: source\n\n### `src/deep/er`\n\n- n1: deepest\n"
    );
    assert_eq!(reminder(&notes, &["/elsewhere/a.rs"]), "");
    assert_eq!(
        reminder(&notes, &["/copy/src/a.rs"]),
        reminder(&notes, &["/project/src/a.rs"]),
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
    let shown = |text: String| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.strip_prefix("- "))
            .map(str::to_owned)
            .collect()
    };
    let read = &["/project/src/a"];
    assert_eq!(
        shown(reminder(&notes, read)),
        [
            "n2: note 2",
            "n3: note 3",
            "n4: note 4",
            "n5: note 5",
            "n6: note 6"
        ]
    );
    notes.update("n1", "note one").await.unwrap();
    assert_eq!(
        shown(reminder(&notes, read)).last().unwrap(),
        "n1: note one"
    );
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
