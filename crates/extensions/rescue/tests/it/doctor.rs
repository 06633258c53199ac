//! Tests which problems `examine` finds and repairs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_rescue::{Check, CheckHealth, StoreFiles, examine_store, salvage_conversations};
use haft_store::{
    Backups, ConversationScope, NewConversation, NewFork, SearchQuery, Store, StoreConfig,
    StoreError, find_damaged_copies,
};
use rusqlite::Connection;

use crate::support::{Place, TickingClock, conversation, id, user};
use haft_store::conformance::sent;

fn patient(place: &Place) -> StoreFiles {
    let folder = place.path().parent().unwrap().to_path_buf();
    StoreFiles {
        database: place.path(),
        backups: folder.join("backups"),
        versions: folder.join("versions"),
        config: StoreConfig::default(),
        clock: TickingClock::new(),
    }
}

fn examine_place(place: &Place) -> Vec<Check> {
    examine_store(&patient(place))
}

#[track_caller]
fn find_check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks
        .iter()
        .find(|check| check.name == name)
        .unwrap_or_else(|| panic!("no check `{name}` in {checks:?}"))
}

/// Returns a closed store with data of every kind.
async fn filled_store() -> Place {
    let place = Place::new();
    let store = place.open();
    let mut new = NewConversation::new(conversation("a"), "p");
    new.messages = (0..50)
        .map(|n| user(n, &format!("{n} ").repeat(400)))
        .collect();
    store.create(new).await.unwrap();
    let fork = NewFork {
        at: Some(id(10)),
        ..NewFork::new(conversation("b"))
    };
    store.fork(&conversation("a"), fork).await.unwrap();
    store
        .append_message(&conversation("b"), &user(100, "own"))
        .await
        .unwrap();
    store
        .log_request(
            &conversation("a"),
            sent(&[&user(900, "system"), &user(0, &"0 ".repeat(400))]),
        )
        .await
        .unwrap();
    store
        .set_current_conversation("p", &conversation("a"))
        .await
        .unwrap();
    store
        .search(SearchQuery {
            text: "own",
            scope: ConversationScope::Everywhere,
            limit: 1,
        })
        .await
        .unwrap();
    let patient = patient(&place);
    Backups::new(
        &patient.database,
        &patient.backups,
        &patient.config,
        TickingClock::new(),
    )
    .create()
    .unwrap();
    place
}

fn run_sql(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}"))
        .unwrap();
}

#[tokio::test]
async fn examine_finds_no_problem_in_a_sound_store() {
    let place = filled_store().await;
    let before = fs::read(place.path()).unwrap();
    let checks = examine_place(&place);
    let healths: Vec<_> = checks
        .iter()
        .map(|check| (check.name, check.health))
        .collect();
    let ok = |name| (name, CheckHealth::Ok);
    assert_eq!(
        healths,
        [
            ok("files"),
            ok("database"),
            ok("messages"),
            ok("references"),
            ok("requests"),
            ok("search index"),
            ok("backups"),
            ("file versions", CheckHealth::Skipped)
        ],
        "{checks:?}"
    );
    assert!(
        find_check(&checks, "messages")
            .message
            .contains("51 messages")
    );
    assert_eq!(fs::read(place.path()).unwrap(), before);
    let nothing = Place::new();
    assert!(
        examine_place(&nothing)
            .iter()
            .all(|check| check.health == CheckHealth::Skipped)
    );
    assert!(!nothing.path().exists(), "looking makes nothing");
}

#[tokio::test]
async fn examine_names_a_changed_message() {
    let place = filled_store().await;
    run_sql(
        &place.path(),
        "UPDATE messages SET body = replace(body, '7 7', '8 7') WHERE position = 8",
    );
    run_sql(
        &place.path(),
        "UPDATE messages SET body = '{\"role\"' WHERE position = 9 AND conversation = 1",
    );
    let checks = examine_place(&place);
    let found = find_check(&checks, "messages");
    assert_eq!(
        (found.health, found.details.len()),
        (CheckHealth::Damaged, 2),
        "{found:?}"
    );
    assert!(
        found.details[0].starts_with("message 8 of conversation `a`"),
        "{found:?}"
    );
    assert!(
        found.details[1].starts_with("message 9 of conversation `a`"),
        "{found:?}"
    );
    assert_eq!(find_check(&checks, "database").health, CheckHealth::Ok);
}

#[tokio::test]
async fn examine_names_a_missing_message_and_repairs_counters() {
    let place = filled_store().await;
    run_sql(&place.path(), "DELETE FROM messages WHERE position = 20");
    let found = examine_place(&place);
    let references = find_check(&found, "references");
    assert_eq!(references.health, CheckHealth::Damaged);
    assert_eq!(
        references.details,
        ["conversation `a` has 49 of 50 messages"]
    );

    let place = filled_store().await;
    run_sql(
        &place.path(),
        "UPDATE conversations SET messages = 3 WHERE id = 'b'; DELETE FROM lineage WHERE conversation = 1;
         INSERT INTO current_conversations VALUES ('lost', 99)",
    );
    let found = examine_place(&place);
    // SQLite itself detects the last of the three changes.
    assert_eq!(find_check(&found, "database").health, CheckHealth::Damaged);
    let references = find_check(&found, "references");
    assert_eq!(
        (references.health, references.details.len()),
        (CheckHealth::Repaired, 3),
        "{references:?}"
    );
    assert!(
        examine_place(&place)
            .iter()
            .all(|check| check.health <= CheckHealth::Skipped),
        "{:?}",
        examine_place(&place)
    );
    let store = place.open();
    assert_eq!(store.messages(&conversation("a")).await.unwrap().len(), 50);
    store
        .append_message(&conversation("b"), &user(101, "next"))
        .await
        .unwrap();
    assert_eq!(store.messages(&conversation("b")).await.unwrap().len(), 13);
}

#[tokio::test]
async fn examine_rebuilds_a_wrong_index() {
    let place = filled_store().await;
    {
        let connection = Connection::open(place.path()).unwrap();
        // The definition of the index is replaced, so that its entries do not fit.
        connection
            .execute_batch(
                "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = 'CREATE UNIQUE INDEX messages_by_id ON messages (conversation, key)'
                 WHERE name = 'messages_by_id';",
            )
            .unwrap();
    }
    let found = examine_place(&place);
    let database = find_check(&found, "database");
    assert_eq!(database.health, CheckHealth::Repaired, "{database:?}");
    assert!(
        database.details[0].contains("messages_by_id"),
        "{database:?}"
    );
    assert_eq!(
        find_check(&examine_place(&place), "database").health,
        CheckHealth::Ok
    );
}

#[tokio::test]
async fn examine_names_a_request_with_a_missing_text() {
    let place = filled_store().await;
    run_sql(&place.path(), "DELETE FROM texts");
    let found = examine_place(&place);
    let requests = find_check(&found, "requests");
    assert_eq!(requests.health, CheckHealth::Damaged);
    assert!(
        requests.details[0].starts_with("conversation `a`: text `"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn examine_removes_a_damaged_index_and_reports_a_damaged_backup() {
    let place = filled_store().await;
    let patient = patient(&place);
    let index = place.path().with_file_name("search.db");
    fs::write(&index, b"no index ".repeat(1_000)).unwrap();
    let backup = fs::read_dir(&patient.backups)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&backup).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4_096].fill(0xa5);
    fs::write(&backup, bytes).unwrap();
    let found = examine_place(&place);
    assert_eq!(
        find_check(&found, "search index").health,
        CheckHealth::Repaired
    );
    assert!(!index.exists());
    let backups = find_check(&found, "backups");
    assert_eq!(backups.health, CheckHealth::Warning);
    assert!(
        backups.details[0].starts_with("haft-000001-"),
        "{backups:?}"
    );
}

#[tokio::test]
async fn examine_makes_files_private_and_removes_leftovers() {
    let place = filled_store().await;
    let patient = patient(&place);
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let left = [
        place.path().with_file_name("conversations.db.new"),
        patient.backups.join("unfinished"),
    ];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    let found = examine_place(&place);
    let files = find_check(&found, "files");
    assert_eq!(
        (files.health, files.details.len()),
        (CheckHealth::Repaired, 3),
        "{files:?}"
    );
    assert_eq!(
        fs::metadata(place.path()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(left.iter().all(|path| !path.exists()));
}

#[tokio::test]
async fn examine_distinguishes_a_damaged_database_from_a_newer_one() {
    let place = filled_store().await;
    run_sql(&place.path(), "PRAGMA user_version = 99");
    let found = examine_place(&place);
    let newer = find_check(&found, "database");
    assert_eq!(newer.health, CheckHealth::Warning);
    assert!(newer.message.contains("99"), "{newer:?}");
    let mut bytes = fs::read(place.path()).unwrap();
    bytes[..200].fill(0);
    fs::write(place.path(), bytes).unwrap();
    let found = examine_place(&place);
    let damaged = find_check(&found, "database");
    assert_eq!(damaged.health, CheckHealth::Damaged);
    assert!(
        damaged.message.contains("is not a haft database"),
        "{damaged:?}"
    );
}

/// Returns a store as a killed process leaves it, with `damage` applied to its log.
async fn killed_store(damage: impl FnOnce(&mut Vec<u8>)) -> Place {
    let place = Place::new();
    let killed = Place::new();
    let store = place.open();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    for n in 0..20 {
        store
            .append_message(&conversation("a"), &user(n, &format!("{n} ").repeat(3_000)))
            .await
            .unwrap();
    }
    let log = |place: &Place| place.path().with_file_name("conversations.db-wal");
    fs::create_dir_all(killed.path().parent().unwrap()).unwrap();
    fs::copy(place.path(), killed.path()).unwrap();
    let mut bytes = fs::read(log(&place)).unwrap();
    damage(&mut bytes);
    fs::write(log(&killed), bytes).unwrap();
    killed
}

#[tokio::test]
async fn examine_copies_a_damaged_log_before_sqlite_discards_it() {
    let place = killed_store(|log| {
        let middle = log.len() / 2;
        log[middle] ^= 1;
    })
    .await;
    // SQLite reports no error and continues with the frames before the damage.
    let store = place.open();
    let left = store.messages(&conversation("a")).await.unwrap().len();
    assert!((5..15).contains(&left), "{left}");
    store
        .append_message(&conversation("a"), &user(100, "it goes on"))
        .await
        .unwrap();
    drop(store);
    drop(place.open());
    let copies = find_damaged_copies(&place.path());
    assert_eq!(copies.len(), 1, "{copies:?}");
    let checks = examine_place(&place);
    let log = find_check(&checks, "log");
    assert_eq!(
        (log.health, &log.details),
        (CheckHealth::Damaged, &vec![copies[0].display().to_string()])
    );
    assert_eq!(
        find_check(&checks, "messages").health,
        CheckHealth::Ok,
        "the others are as they were"
    );
    let mut found = 0;
    salvage_conversations::<StoreError>(&copies[0], |one| {
        found += one.document.messages.len();
        Ok(())
    })
    .unwrap();
    assert!(found >= 19, "{found} of 20 were salvaged");
}

#[tokio::test]
async fn examine_copies_a_damaged_log_once_and_accepts_a_truncated_one() {
    let damaged = killed_store(|log| log[5_000] ^= 1).await;
    let log = fs::read(damaged.path().with_file_name("conversations.db-wal")).unwrap();
    for _ in 0..2 {
        assert_eq!(
            find_check(&examine_place(&damaged), "log").health,
            CheckHealth::Damaged
        );
        assert_eq!(find_damaged_copies(&damaged.path()).len(), 1);
        // As if the process that examined the store had been killed.
        fs::write(damaged.path().with_file_name("conversations.db-wal"), &log).unwrap();
    }
    let cut = killed_store(|log| log.truncate(log.len() - 5_000)).await;
    assert!(cut.open().messages(&conversation("a")).await.unwrap().len() == 19);
    assert!(examine_place(&cut).iter().all(|check| check.name != "log"));
}
