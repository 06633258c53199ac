//! Tests which problems `examine` finds and repairs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_rescue::{Check, CheckHealth, Patient, examine, salvage};
use haft_store::{
    Backups, ConversationScope, NewConversation, NewFork, SearchQuery, Store, StoreConfig,
    StoreError, damaged_copies,
};
use rusqlite::Connection;

use crate::support::{Place, TickingClock, conversation, id, user};
use haft_store::conformance::sent;

fn patient(place: &Place) -> Patient {
    let folder = place.path().parent().unwrap().to_path_buf();
    Patient {
        database: place.path(),
        backups: folder.join("backups"),
        versions: folder.join("versions"),
        config: StoreConfig::default(),
        clock: TickingClock::new(),
    }
}

fn look(place: &Place) -> Vec<Check> {
    examine(&patient(place))
}

#[track_caller]
fn check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks
        .iter()
        .find(|check| check.name == name)
        .unwrap_or_else(|| panic!("no check `{name}` in {checks:?}"))
}

/// Returns a closed store with data of every kind.
async fn filled() -> Place {
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
        .append(&conversation("b"), &user(100, "own"))
        .await
        .unwrap();
    store
        .log_request(
            &conversation("a"),
            sent(&[&user(900, "system"), &user(0, &"0 ".repeat(400))]),
        )
        .await
        .unwrap();
    store.set_current("p", &conversation("a")).await.unwrap();
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

fn change(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}"))
        .unwrap();
}

#[tokio::test]
async fn a_sound_store_is_found_sound_and_left_as_it_is() {
    let place = filled().await;
    let before = fs::read(place.path()).unwrap();
    let checks = look(&place);
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
    assert!(check(&checks, "messages").message.contains("51 messages"));
    assert_eq!(fs::read(place.path()).unwrap(), before);
    let nothing = Place::new();
    assert!(
        look(&nothing)
            .iter()
            .all(|check| check.health == CheckHealth::Skipped)
    );
    assert!(!nothing.path().exists(), "looking makes nothing");
}

#[tokio::test]
async fn a_message_that_is_not_what_was_stored_is_named() {
    let place = filled().await;
    change(
        &place.path(),
        "UPDATE messages SET body = replace(body, '7 7', '8 7') WHERE position = 8",
    );
    change(
        &place.path(),
        "UPDATE messages SET body = '{\"role\"' WHERE position = 9 AND conversation = 1",
    );
    let checks = look(&place);
    let found = check(&checks, "messages");
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
    assert_eq!(check(&checks, "database").health, CheckHealth::Ok);
}

#[tokio::test]
async fn a_missing_message_is_named_and_counters_are_put_right() {
    let place = filled().await;
    change(&place.path(), "DELETE FROM messages WHERE position = 20");
    let found = look(&place);
    let references = check(&found, "references");
    assert_eq!(references.health, CheckHealth::Damaged);
    assert_eq!(
        references.details,
        ["conversation `a` has 49 of 50 messages"]
    );

    let place = filled().await;
    change(
        &place.path(),
        "UPDATE conversations SET messages = 3 WHERE id = 'b'; DELETE FROM lineage WHERE conversation = 1;
         INSERT INTO current_conversations VALUES ('lost', 99)",
    );
    let found = look(&place);
    // SQLite itself detects the last of the three changes.
    assert_eq!(check(&found, "database").health, CheckHealth::Damaged);
    let references = check(&found, "references");
    assert_eq!(
        (references.health, references.details.len()),
        (CheckHealth::Repaired, 3),
        "{references:?}"
    );
    assert!(
        look(&place)
            .iter()
            .all(|check| check.health <= CheckHealth::Skipped),
        "{:?}",
        look(&place)
    );
    let store = place.open();
    assert_eq!(store.messages(&conversation("a")).await.unwrap().len(), 50);
    store
        .append(&conversation("b"), &user(101, "next"))
        .await
        .unwrap();
    assert_eq!(store.messages(&conversation("b")).await.unwrap().len(), 13);
}

#[tokio::test]
async fn an_index_that_does_not_fit_is_made_anew() {
    let place = filled().await;
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
    let found = look(&place);
    let database = check(&found, "database");
    assert_eq!(database.health, CheckHealth::Repaired, "{database:?}");
    assert!(
        database.details[0].contains("messages_by_id"),
        "{database:?}"
    );
    assert_eq!(check(&look(&place), "database").health, CheckHealth::Ok);
}

#[tokio::test]
async fn a_request_that_lost_a_text_is_named() {
    let place = filled().await;
    change(&place.path(), "DELETE FROM texts");
    let found = look(&place);
    let requests = check(&found, "requests");
    assert_eq!(requests.health, CheckHealth::Damaged);
    assert!(
        requests.details[0].starts_with("conversation `a`: text `"),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_damaged_index_goes_and_a_damaged_backup_is_told() {
    let place = filled().await;
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
    let found = look(&place);
    assert_eq!(check(&found, "search index").health, CheckHealth::Repaired);
    assert!(!index.exists());
    let backups = check(&found, "backups");
    assert_eq!(backups.health, CheckHealth::Warning);
    assert!(
        backups.details[0].starts_with("haft-000001-"),
        "{backups:?}"
    );
}

#[tokio::test]
async fn files_are_made_private_and_leftovers_go() {
    let place = filled().await;
    let patient = patient(&place);
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let left = [
        place.path().with_file_name("conversations.db.new"),
        patient.backups.join("unfinished"),
    ];
    for path in &left {
        fs::write(path, "half").unwrap();
    }
    let found = look(&place);
    let files = check(&found, "files");
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
async fn a_database_that_cannot_be_opened_is_damaged_and_a_newer_one_is_not() {
    let place = filled().await;
    change(&place.path(), "PRAGMA user_version = 99");
    let found = look(&place);
    let newer = check(&found, "database");
    assert_eq!(newer.health, CheckHealth::Warning);
    assert!(newer.message.contains("99"), "{newer:?}");
    let mut bytes = fs::read(place.path()).unwrap();
    bytes[..200].fill(0);
    fs::write(place.path(), bytes).unwrap();
    let found = look(&place);
    let damaged = check(&found, "database");
    assert_eq!(damaged.health, CheckHealth::Damaged);
    assert!(
        damaged.message.contains("is not a haft database"),
        "{damaged:?}"
    );
}

/// Returns a store as a killed process leaves it, with `damage` applied to its log.
async fn killed(damage: impl FnOnce(&mut Vec<u8>)) -> Place {
    let place = Place::new();
    let killed = Place::new();
    let store = place.open();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    for n in 0..20 {
        store
            .append(&conversation("a"), &user(n, &format!("{n} ").repeat(3_000)))
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
async fn a_log_that_is_damaged_in_the_middle_is_kept_before_it_is_forgotten() {
    let place = killed(|log| {
        let middle = log.len() / 2;
        log[middle] ^= 1;
    })
    .await;
    // SQLite reports no error and continues with the frames before the damage.
    let store = place.open();
    let left = store.messages(&conversation("a")).await.unwrap().len();
    assert!((5..15).contains(&left), "{left}");
    store
        .append(&conversation("a"), &user(100, "it goes on"))
        .await
        .unwrap();
    drop(store);
    drop(place.open());
    let copies = damaged_copies(&place.path());
    assert_eq!(copies.len(), 1, "{copies:?}");
    let checks = look(&place);
    let log = check(&checks, "log");
    assert_eq!(
        (log.health, &log.details),
        (CheckHealth::Damaged, &vec![copies[0].display().to_string()])
    );
    assert_eq!(
        check(&checks, "messages").health,
        CheckHealth::Ok,
        "the others are as they were"
    );
    let mut found = 0;
    salvage::<StoreError>(&copies[0], |one| {
        found += one.document.messages.len();
        Ok(())
    })
    .unwrap();
    assert!(found >= 19, "{found} of 20 were salvaged");
}

#[tokio::test]
async fn a_log_that_is_looked_at_twice_is_kept_once_and_the_end_of_one_is_no_damage() {
    let damaged = killed(|log| log[5_000] ^= 1).await;
    let log = fs::read(damaged.path().with_file_name("conversations.db-wal")).unwrap();
    for _ in 0..2 {
        assert_eq!(check(&look(&damaged), "log").health, CheckHealth::Damaged);
        assert_eq!(damaged_copies(&damaged.path()).len(), 1);
        // As if the process that examined the store had been killed.
        fs::write(damaged.path().with_file_name("conversations.db-wal"), &log).unwrap();
    }
    let cut = killed(|log| log.truncate(log.len() - 5_000)).await;
    assert!(cut.open().messages(&conversation("a")).await.unwrap().len() == 19);
    assert!(look(&cut).iter().all(|check| check.name != "log"));
}
