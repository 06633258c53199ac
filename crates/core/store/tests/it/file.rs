//! Tests of the database file: its mode, rejected files, damage, and concurrent use.

use std::fs;
use std::path::Path;
use std::thread;

use haft_store::{
    Backups, ConversationScope, Fact, NewConversation, NewFork, SearchQuery, Store, StoreConfig,
    StoreError,
};
use rusqlite::Connection;

use crate::support::{Place, TickingClock, conversation, id, user};

async fn fill_store(place: &Place) {
    let store = place.open();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    for n in 0..40 {
        store
            .append_message(&conversation("a"), &user(n, &format!("{n} ").repeat(300)))
            .await
            .unwrap();
    }
}

fn run_sql(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn folder_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let store = place.open();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = place.path().parent().unwrap().to_path_buf();
    assert_eq!(mode(&folder), 0o700);
    // A search creates its index; a lock creates its file.
    let _lock = store.lock(&conversation("a")).await.unwrap();
    store
        .search(SearchQuery {
            text: "x",
            scope: ConversationScope::Everywhere,
            limit: 1,
        })
        .await
        .unwrap();
    Backups::new(
        &place.path(),
        &folder.join("backups"),
        &StoreConfig::default(),
        TickingClock::new(),
    )
    .create()
    .unwrap();
    let below = |folder: &Path| -> Vec<_> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    let (folders, mut files): (Vec<_>, Vec<_>) =
        below(&folder).into_iter().partition(|path| path.is_dir());
    for folder in &folders {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        files.extend(below(folder));
    }
    assert_eq!((folders.len(), files.len()), (2, 10), "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn database_can_be_opened_again_with_all_messages() {
    let place = Place::new();
    fill_store(&place).await;
    let folder = fs::read_dir(place.path().parent().unwrap()).unwrap();
    let files = folder
        .filter(|entry| entry.as_ref().unwrap().path().is_file())
        .count();
    assert_eq!(files, 1, "closing leaves one file");
    assert_eq!(
        place
            .open()
            .messages(&conversation("a"))
            .await
            .unwrap()
            .len(),
        40
    );
}

#[tokio::test]
async fn database_uses_durable_settings() {
    let place = Place::new();
    fill_store(&place).await;
    let connection = Connection::open(place.path()).unwrap();
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    let mark: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .unwrap();
    let format: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(
        (mode.as_str(), &mark.to_be_bytes(), format),
        ("wal", b"haft", 3)
    );
}

/// Creates a database in the first format: two messages, and a fact about the second.
fn make_first_format(path: &Path) {
    fs::create_dir(path.parent().unwrap()).unwrap();
    run_sql(
        path,
        include_str!("../../src/sqlite/migrations/0001_conversations.sql"),
    );
    let old = Connection::open(path).unwrap();
    old.execute_batch(&format!(
        "PRAGMA user_version = 1; PRAGMA application_id = {}",
        i32::from_be_bytes(*b"haft")
    ))
    .unwrap();
    let time = "2026-11-15T10:00:00.000000000Z";
    let conversation =
        "INSERT INTO conversations VALUES (1, 'a', 'p', 'name', '', '{}', ?1, ?1, 2, 0)";
    old.execute(conversation, [time]).unwrap();
    for n in 1..=2 {
        let message = user(n, &n.to_string());
        let body = serde_json::to_string(&message).unwrap();
        let row = (
            n,
            message.message_id.to_string(),
            &message.content_hash().0,
            body,
        );
        old.execute(
            "INSERT INTO messages VALUES (?1, 1, ?1, ?1, ?2, 'user', ?3, ?4)",
            row,
        )
        .unwrap();
    }
    let fact = serde_json::to_string(&Fact::ToolStarted {
        message_id: id(2),
        call_id: "c".into(),
    })
    .unwrap();
    old.execute("INSERT INTO facts VALUES (1, 1, ?1, ?2)", (time, fact))
        .unwrap();
}

#[tokio::test]
async fn open_migrates_an_older_format_with_all_data() {
    let place = Place::new();
    make_first_format(&place.path());
    let store = place.open();
    let a = conversation("a");
    assert_eq!(
        store.messages(&a).await.unwrap(),
        [user(1, "1"), user(2, "2")]
    );
    assert_eq!(store.facts(&a).await.unwrap().len(), 1);
    store
        .set_project_state("p", "notes", serde_json::json!([]))
        .await
        .unwrap();
    store.append_message(&a, &user(3, "3")).await.unwrap();
    // The migrated fact has a position, so a fork before it does not contain it.
    let fork = async |name: &str, n| {
        let fork = NewFork {
            at: Some(id(n)),
            ..NewFork::new(conversation(name))
        };
        store.fork(&a, fork).await.unwrap();
        store.facts(&conversation(name)).await.unwrap().len()
    };
    assert_eq!((fork("b", 1).await, fork("c", 2).await), (0, 1));
}

#[tokio::test]
async fn format_changed_by_a_newer_haft_is_noticed_on_write() {
    let place = Place::new();
    let store = place.open();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    run_sql(&place.path(), "PRAGMA user_version = 99");
    let error = store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, StoreError::NewerFormat { found: 99, .. }),
        "{error:?}"
    );
    assert_eq!(store.messages(&conversation("a")).await.unwrap(), []);
}

#[test]
fn open_refuses_a_newer_format() {
    let place = Place::new();
    drop(place.open());
    run_sql(&place.path(), "PRAGMA user_version = 7");
    let before = fs::read(place.path()).unwrap();
    let error = place.try_open().err().unwrap();
    assert!(
        matches!(
            error,
            StoreError::NewerFormat {
                found: 7,
                known: 3,
                ..
            }
        ),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(
        message.contains('7') && message.contains('3') && message.contains("conversations.db"),
        "{message}"
    );
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

#[test]
fn foreign_file_is_refused_and_left_alone() {
    let place = Place::new();
    fs::create_dir(place.path().parent().unwrap()).unwrap();
    let text = "not a database at all, but long enough to be taken for one. ".repeat(20);
    fs::write(place.path(), &text).unwrap();
    assert!(matches!(
        place.try_open(),
        Err(StoreError::NotADatabase { .. })
    ));
    assert_eq!(fs::read_to_string(place.path()).unwrap(), text);

    fs::remove_file(place.path()).unwrap();
    run_sql(&place.path(), "CREATE TABLE theirs (x)");
    let before = fs::read(place.path()).unwrap();
    assert!(matches!(
        place.try_open(),
        Err(StoreError::NotADatabase { .. })
    ));
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

#[test]
fn open_uses_an_empty_file_as_a_new_database() {
    let place = Place::new();
    fs::create_dir(place.path().parent().unwrap()).unwrap();
    fs::write(place.path(), "").unwrap();
    drop(place.open());
}

#[test]
fn open_names_an_impossible_path() {
    let place = Place::new();
    fs::write(
        place.path().parent().unwrap(),
        "a file where the folder should be",
    )
    .unwrap();
    let error = place.try_open().err().unwrap();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("data"), "{error}");

    let place = Place::new();
    fs::create_dir_all(place.path()).unwrap();
    let error = place.try_open().err().unwrap();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains("conversations.db"), "{error}");
}

/// Calls every kind of read and write; only returning without a panic matters.
async fn read_and_write_everything(place: &Place) -> Result<(), StoreError> {
    let store = place.try_open()?;
    let a = conversation("a");
    store.list(ConversationScope::Everywhere).await?;
    store.messages(&a).await?;
    store.export(&a).await?;
    store.logged_requests(&a).await?;
    store
        .append_message(&a, &user(1_000, "after the damage"))
        .await
}

#[tokio::test]
async fn database_that_is_damaged_gives_errors_but_never_a_panic() {
    let place = Place::new();
    fill_store(&place).await;
    let sound = fs::read(place.path()).unwrap();
    let mut refused = 0;
    // Overwrites one part after the other; the first 100 bytes are the header.
    for start in (100..sound.len()).step_by(1_009) {
        let mut damaged = sound.clone();
        let end = sound.len().min(start + 512);
        damaged[start..end].fill(0xa5);
        fs::write(place.path(), damaged).unwrap();
        match read_and_write_everything(&place).await {
            Err(
                StoreError::Damaged { .. }
                | StoreError::NotADatabase { .. }
                | StoreError::Database { .. },
            ) => {
                refused += 1;
            }
            Err(StoreError::UnknownConversation { .. }) | Ok(()) => {}
            Err(other) => panic!("at {start}: {other:?}"),
        }
    }
    assert!(refused > 10, "only {refused} damages were noticed");
}

#[tokio::test]
async fn database_that_is_truncated_gives_an_error() {
    let place = Place::new();
    fill_store(&place).await;
    let sound = fs::read(place.path()).unwrap();
    for length in [50, 4_096, sound.len() / 2] {
        fs::write(place.path(), &sound[..length]).unwrap();
        let error = read_and_write_everything(&place).await.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Damaged { .. } | StoreError::NotADatabase { .. }
            ),
            "cut to {length}: {error:?}"
        );
    }
}

#[tokio::test]
async fn messages_error_names_an_unreadable_message() {
    let place = Place::new();
    fill_store(&place).await;
    run_sql(
        &place.path(),
        r#"UPDATE messages SET body = '{"role": "user"}' WHERE position = 3"#,
    );
    let error = place.open().messages(&conversation("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(
        error.to_string().contains("message 3 of conversation `a`"),
        "{error}"
    );
}

#[tokio::test]
async fn lock_held_by_another_connection_is_a_timeout_error() {
    let place = Place::new();
    let store = place.open_impatient();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::LockTimeout { .. }), "{error:?}");
    assert!(
        error.to_string().contains("conversations.db") && error.to_string().contains("0.2 s"),
        "{error}"
    );
    assert_eq!(
        store.messages(&conversation("a")).await.unwrap(),
        [],
        "reading goes on meanwhile"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
    assert_eq!(store.messages(&conversation("a")).await.unwrap().len(), 1);
}

#[test]
fn database_can_be_created_and_used_by_several_threads() {
    let place = Place::new();
    let work = |who: u32| {
        let config = StoreConfig::default();
        let store =
            haft_store::SqliteStore::open(&place.path(), &config, TickingClock::new()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let own = conversation(&format!("own {who}"));
            store
                .create(NewConversation::new(own.clone(), "p"))
                .await
                .unwrap();
            match store
                .create(NewConversation::new(conversation("shared"), "p"))
                .await
            {
                Ok(_) | Err(StoreError::IdTaken { .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
            for n in 0..20 {
                store.append_message(&own, &user(n, "own")).await.unwrap();
                store
                    .append_message(&conversation("shared"), &user(who * 100 + n, "shared"))
                    .await
                    .unwrap();
            }
            assert_eq!(store.messages(&own).await.unwrap().len(), 20);
        });
    };
    thread::scope(|scope| {
        for who in 0..6 {
            scope.spawn(move || work(who));
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let shared = runtime
        .block_on(place.open().messages(&conversation("shared")))
        .unwrap();
    assert_eq!(shared.len(), 120);
}
