use std::sync::Arc;

use haft_store::{NewConversation, NewFork, Revision, SqliteStore, Store, StoreConfig};
use haft_types::{Clock, Message, MessageId, Part, Role};
use tempfile::TempDir;

use super::*;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_794_736_800).unwrap()
    }
}

fn id(n: u32) -> MessageId {
    format!("{n:08x}-0000-4000-8000-000000000000")
        .parse()
        .unwrap()
}

fn user(n: u32, length: usize) -> Message {
    Message::from_text(
        id(n),
        Role::User,
        format!("{n} 漢字 ").repeat(length / 10 + 1),
        Still.now(),
    )
}

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(
        &folder.path().join("conversations.db"),
        &StoreConfig::default(),
        Arc::new(Still),
    )
    .unwrap()
}

/// Creates conversations of every kind: small and large messages, revisions, forks of forks,
/// deleted ones.
async fn fill_store(store: &SqliteStore) -> Vec<ConversationDocument> {
    let mut names = Vec::new();
    for (name, count) in [("a", 40), ("b", 3), ("empty", 0)] {
        let mut new = NewConversation::new(ConversationId::new(name), format!("namespace {name}"));
        // Some need one overflow page, some many.
        new.messages = (0..count)
            .map(|n| user(n, (n as usize * 997) % 20_000))
            .collect();
        new.metadata.insert("k".into(), json!(name));
        store.create(new).await.unwrap();
        names.push(name);
    }
    let a = ConversationId::new("a");
    let revision = |text: &str| Revision {
        content: Some(vec![Part::from_text(text)]),
        ..Revision::default()
    };
    store
        .revise_message(&a, id(5), revision("revised before the fork"))
        .await
        .unwrap();
    let fork = NewFork {
        at: Some(id(30)),
        ..NewFork::new(ConversationId::new("fork"))
    };
    store.fork(&a, fork).await.unwrap();
    store
        .revise_message(&a, id(6), revision("revised in a only"))
        .await
        .unwrap();
    store
        .append_message(&ConversationId::new("fork"), &user(1_000, 5_000))
        .await
        .unwrap();
    store
        .revise_message(
            &ConversationId::new("fork"),
            id(7),
            revision("revised in the fork only"),
        )
        .await
        .unwrap();
    store
        .fork(
            &ConversationId::new("fork"),
            NewFork::new(ConversationId::new("fork of fork")),
        )
        .await
        .unwrap();
    let mut documents = Vec::new();
    for name in names.into_iter().chain(["fork", "fork of fork"]) {
        documents.push(
            store
                .export(&ConversationId::new(name))
                .await
                .unwrap()
                .unwrap(),
        );
    }
    documents
}

fn salvage_all(folder: &TempDir) -> Vec<Salvaged> {
    let mut all = Vec::new();
    salvage_conversations::<StoreError>(&folder.path().join("conversations.db"), |one| {
        all.push(one);
        Ok(())
    })
    .unwrap();
    all
}

fn salvaged_documents(folder: &TempDir) -> Vec<ConversationDocument> {
    salvage_all(folder)
        .into_iter()
        .map(|one| one.document)
        .collect()
}

#[tokio::test]
async fn salvage_returns_everything_from_a_sound_database() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let all = fill_store(&store).await;
    // While the database is open, most of its content is only in the log.
    assert!(
        folder
            .path()
            .join("conversations.db-wal")
            .metadata()
            .unwrap()
            .len()
            > 100_000
    );
    assert_eq!(salvaged_documents(&folder), all);
    drop(store);
    assert!(!folder.path().join("conversations.db-wal").exists());
    assert_eq!(salvaged_documents(&folder), all);
    let first = salvage_all(&folder).remove(0);
    assert_eq!((first.namespace.as_str(), first.lost), ("namespace a", 0));
}

#[tokio::test]
async fn salvage_works_without_header_and_schema() {
    let folder = tempfile::tempdir().unwrap();
    let all = fill_store(&open(&folder)).await;
    let path = folder.path().join("conversations.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..4_096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    assert!(SqliteStore::open(&path, &StoreConfig::default(), Arc::new(Still)).is_err());
    assert_eq!(salvaged_documents(&folder), all);
}

#[tokio::test]
async fn salvage_reports_lost_messages_and_returns_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let all = fill_store(&open(&folder)).await;
    let path = folder.path().join("conversations.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // Changes one word of a message: SQLite accepts the row, but it is not what was stored.
    let needle = all[0].messages[9].joined_text();
    let at = bytes
        .windows(20)
        .position(|window| window == &needle.as_bytes()[..20])
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let damaged = salvage_all(&folder);
    let a = damaged
        .iter()
        .find(|one| one.document.id.as_str() == "a")
        .unwrap();
    assert_eq!(a.lost, 1);
    assert_eq!(
        a.document.metadata["salvaged"],
        json!({"lost": 1, "missing": [10]})
    );
    let mut expected = all[0].messages.clone();
    expected.remove(9);
    assert_eq!(a.document.messages, expected);
    let b = damaged
        .iter()
        .find(|one| one.document.id.as_str() == "b")
        .unwrap();
    assert_eq!(b.document, all[1], "the others are as they were");
}

#[tokio::test]
async fn salvage_reads_the_log_behind_a_damaged_frame() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let all = fill_store(&store).await;
    let path = folder.path().join("conversations.db");
    let log = folder.path().join("conversations.db-wal");
    let killed = tempfile::tempdir().unwrap();
    std::fs::copy(&path, killed.path().join("conversations.db")).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    // In the header: SQLite reads no frame at all.
    bytes[9] ^= 1;
    std::fs::write(killed.path().join("conversations.db-wal"), bytes).unwrap();
    let salvaged = salvaged_documents(&killed);
    for document in &all {
        let found = salvaged.iter().find(|one| one.id == document.id).unwrap();
        assert_eq!(
            found.messages, document.messages,
            "long messages as well as short ones"
        );
    }
    assert!(
        all[0]
            .messages
            .iter()
            .any(|message| message.joined_text().len() > 10_000)
    );
}

#[test]
fn salvage_of_a_file_that_is_no_database_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.db");
    for content in [Vec::new(), b"text".repeat(10_000), vec![0x0d; 100_000]] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(salvaged_documents(&folder), []);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(
        salvage_conversations::<StoreError>(&path, |_| Ok(()))
            .unwrap_err()
            .to_string()
            .contains("conversations.db")
    );
}
