//! Tests when backups are made, what they contain, and how one is restored.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_store::{
    Backup, Backups, ConversationScope, NewConversation, SearchQuery, SqliteStore, Store,
    StoreConfig, StoreError,
};
use haft_types::{Clock, Timestamp};

use crate::support::{Place, TickingClock, conversation, tick, user};

fn backup_folder(place: &Place) -> PathBuf {
    place.path().parent().unwrap().join("backups")
}

fn backups(place: &Place) -> Backups {
    Backups::new(
        &place.path(),
        &backup_folder(place),
        &StoreConfig::default(),
        TickingClock::new(),
    )
}

/// Opens the store as a session does, with backups, optionally appends a message, and closes it.
async fn session(place: &Place, message: Option<u32>) {
    session_at(place, message, TickingClock::new()).await;
}

async fn session_at(place: &Place, message: Option<u32>, clock: Arc<dyn Clock>) {
    let open =
        || SqliteStore::open(&place.path(), &StoreConfig::default(), Arc::clone(&clock)).unwrap();
    let mut store = open();
    store.start_backups(&backup_folder(place)).unwrap();
    // Waits for the backup that opening makes in the background, so that the message comes after
    // it.
    drop(store);
    if let Some(n) = message {
        open()
            .append_message(&conversation("a"), &user(n, &n.to_string()))
            .await
            .unwrap();
    }
}

async fn place_with_a() -> Place {
    let place = Place::new();
    place
        .open()
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    place
}

async fn count_messages(place: &Place) -> usize {
    place
        .open()
        .messages(&conversation("a"))
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn backup_is_made_on_opening_only_after_a_change() {
    let place = place_with_a().await;
    session(&place, Some(1)).await;
    assert_eq!(backups(&place).list().unwrap().len(), 1);
    session(&place, None).await;
    assert_eq!(
        backups(&place).list().unwrap().len(),
        2,
        "the message came after the first"
    );
    session(&place, None).await;
    session(&place, None).await;
    assert_eq!(
        backups(&place).list().unwrap().len(),
        2,
        "nothing changed since"
    );
    session(&place, Some(2)).await;
    session(&place, None).await;
    assert_eq!(backups(&place).list().unwrap().len(), 3);
}

/// A clock that tests can set.
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        tick(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn backups_continue_in_order_when_the_clock_is_set_back() {
    let place = place_with_a().await;
    let clock = Arc::new(Set(AtomicI64::new(100_000)));
    for n in 1..=14 {
        session_at(&place, Some(n), Arc::clone(&clock) as Arc<dyn Clock>).await;
        clock.0.fetch_sub(5_000, Ordering::Relaxed);
    }
    let all = backups(&place).list().unwrap();
    assert_eq!(all.len(), 10);
    // The last in the list is the newest, regardless of its time.
    backups(&place).restore(&all[9].path).unwrap();
    // It was made when the last session began, before or after that session's own message.
    assert!(count_messages(&place).await >= 13);
}

#[tokio::test]
async fn restore_replaces_the_database_and_keeps_a_copy_of_it() {
    let place = place_with_a().await;
    let store = place.open();
    store
        .append_message(&conversation("a"), &user(1, "the apple"))
        .await
        .unwrap();
    let backup: Backup = backups(&place).create().unwrap();
    assert_eq!(
        backups(&place).list().unwrap(),
        std::slice::from_ref(&backup)
    );
    assert!(backup.bytes > 0);
    store
        .append_message(&conversation("a"), &user(2, "the pear"))
        .await
        .unwrap();
    let search = SearchQuery {
        text: "the",
        scope: ConversationScope::Everywhere,
        limit: 5,
    };
    assert_eq!(store.search(search).await.unwrap().len(), 2);

    let error = backups(&place).restore(&backup.path).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("conversations.db"), "{error}");
    drop(store);

    backups(&place).restore(&backup.path).unwrap();
    assert_eq!(count_messages(&place).await, 1);
    assert_eq!(
        place.open().search(search).await.unwrap().len(),
        1,
        "the index follows"
    );
    // A backup of the replaced database exists and can be restored, too.
    let replaced = backups(&place).list().unwrap().pop().unwrap();
    assert!(replaced.name.contains("replaced"), "{replaced:?}");
    backups(&place).restore(&replaced.path).unwrap();
    assert_eq!(count_messages(&place).await, 2);
}

/// Restoring works without a usable database.
#[tokio::test]
async fn restore_replaces_a_lost_or_damaged_database() {
    let place = place_with_a().await;
    place
        .open()
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
    let backup = backups(&place).create().unwrap();
    for damage in [
        None,
        Some(&b"no database at all, but long enough to be one"[..]),
    ] {
        fs::remove_file(place.path()).unwrap();
        if let Some(damage) = damage {
            fs::write(place.path(), damage.repeat(50)).unwrap();
            // A log of another database must not be replayed over the restored one.
            fs::write(
                place.path().with_file_name("conversations.db-wal"),
                damage.repeat(50),
            )
            .unwrap();
        }
        backups(&place).restore(&backup.path).unwrap();
        assert_eq!(count_messages(&place).await, 1);
    }
}

#[tokio::test]
async fn create_never_replaces_a_sound_backup_by_a_damaged_one() {
    let place = place_with_a().await;
    {
        let store = place.open();
        for n in 0..200 {
            store
                .append_message(&conversation("a"), &user(n, &"x".repeat(3_000)))
                .await
                .unwrap();
        }
    }
    let sound = backups(&place).create().unwrap();
    let mut bytes = fs::read(place.path()).unwrap();
    let middle = bytes.len() / 2 / 4_096 * 4_096;
    bytes[middle..middle + 8_192].fill(0xa5);
    fs::write(place.path(), bytes).unwrap();
    let error = backups(&place).create().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    session(&place, None).await;
    assert_eq!(backups(&place).list().unwrap(), [sound]);
    assert_eq!(
        fs::read_dir(backup_folder(&place)).unwrap().count(),
        1,
        "nothing unfinished is left"
    );
}

#[tokio::test]
async fn restore_refuses_files_that_are_no_backups() {
    let place = place_with_a().await;
    let other = place.path().with_file_name("other");
    fs::write(&other, "text ".repeat(1_000)).unwrap();
    let error = backups(&place).restore(&other).unwrap_err();
    assert!(
        matches!(error, StoreError::NotADatabase { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("other"), "{error}");
    let missing = backups(&place)
        .restore(&backup_folder(&place).join("missing.db"))
        .unwrap_err();
    assert!(missing.to_string().contains("missing.db"), "{missing}");
    let theirs = place.path().with_file_name("theirs.db");
    rusqlite::Connection::open(&theirs)
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    assert!(matches!(
        backups(&place).restore(&theirs),
        Err(StoreError::NotADatabase { .. })
    ));
    assert_eq!(count_messages(&place).await, 0, "the database is as it was");
}

#[tokio::test]
async fn backup_made_during_writes_is_complete() {
    let place = place_with_a().await;
    let writer = place.open();
    let backups = backups(&place);
    let copying = std::thread::spawn(move || {
        (0..5)
            .map(|_| backups.create().unwrap())
            .collect::<Vec<_>>()
    });
    for n in 0..200 {
        writer
            .append_message(&conversation("a"), &user(n, &"x".repeat(2_000)))
            .await
            .unwrap();
    }
    for backup in copying.join().unwrap() {
        let copy =
            SqliteStore::open(&backup.path, &StoreConfig::default(), TickingClock::new()).unwrap();
        let stored = copy.messages(&conversation("a")).await.unwrap();
        let all: Vec<_> = (0..stored.len() as u32)
            .map(|n| user(n, &"x".repeat(2_000)))
            .collect();
        assert_eq!(stored, all);
        assert_eq!(
            copy.get(&conversation("a"))
                .await
                .unwrap()
                .unwrap()
                .messages,
            stored.len() as u64
        );
    }
}
