//! Tests that a conversation has one writer at a time, among stores and among processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haft_store::{Locked, NewConversation, NewFork, SqliteStore, Store, StoreConfig, StoreError};

use crate::support::{Place, TickingClock, conversation, user};

async fn place_with_a() -> Place {
    let place = Place::new();
    place
        .open()
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    place
}

#[track_caller]
fn assert_held_by(error: &StoreError, pid: u32) {
    let StoreError::LockTimeout {
        what,
        holder: Some(holder),
        waited,
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(*what, Locked::Conversation(conversation("a")));
    assert_eq!((holder.pid, *waited), (pid, Duration::from_millis(200)));
    let message = error.to_string();
    for part in [
        "conversation `a`",
        &format!("process {pid} on {}", holder.host),
        "since 2026-11-15T10:",
        "0.2 s",
    ] {
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[tokio::test]
async fn lock_excludes_all_other_writers() {
    let place = place_with_a().await;
    let one = place.open_impatient();
    let other = place.open_impatient();
    let a = conversation("a");
    let lock = one.lock(&a).await.unwrap();
    one.append_message(&a, &user(1, "its own")).await.unwrap();
    let us = std::process::id();
    assert_held_by(
        &other
            .append_message(&a, &user(2, "another's"))
            .await
            .unwrap_err(),
        us,
    );
    assert_held_by(&other.rename(&a, "name").await.unwrap_err(), us);
    assert_held_by(&other.lock(&a).await.unwrap_err(), us);
    assert_held_by(&one.lock(&a).await.unwrap_err(), us);
    // Reading, forking and writing to other conversations still work.
    assert_eq!(other.messages(&a).await.unwrap().len(), 1);
    other
        .fork(&a, NewFork::new(conversation("b")))
        .await
        .unwrap();
    other
        .append_message(&conversation("b"), &user(3, "elsewhere"))
        .await
        .unwrap();
    drop(lock);
    other.append_message(&a, &user(4, "now")).await.unwrap();
    let _lock = other.lock(&a).await.unwrap();
}

#[tokio::test]
async fn lock_is_granted_to_a_waiting_store_once_released() {
    let place = place_with_a().await;
    let config = StoreConfig::default();
    let open = || SqliteStore::open(&place.path(), &config, TickingClock::new()).unwrap();
    let one = open();
    let other = open();
    let a = conversation("a");
    let lock = one.lock(&a).await.unwrap();
    let waiting = tokio::spawn(async move {
        let _lock = other.lock(&conversation("a")).await.unwrap();
        other
            .append_message(&conversation("a"), &user(2, "second"))
            .await
            .unwrap();
    });
    one.append_message(&a, &user(1, "first")).await.unwrap();
    drop(lock);
    waiting.await.unwrap();
    let order: Vec<_> = one
        .messages(&a)
        .await
        .unwrap()
        .iter()
        .map(|message| message.message_id.short_id().0)
        .collect();
    assert_eq!(order, [1, 2]);
}

#[tokio::test]
async fn lock_leaves_no_file_after_its_release() {
    let place = place_with_a().await;
    let store = place.open();
    let lock = store.lock(&conversation("a")).await.unwrap();
    let locks = place.path().parent().unwrap().join("locks");
    let count = || fs::read_dir(&locks).unwrap().count();
    assert_eq!(
        count(),
        2,
        "that of the database and that of the conversation"
    );
    drop(lock);
    store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
    assert_eq!(count(), 1);
}

const PATH: &str = "LOCK_TEST_PATH";

/// A helper process, not a test: it takes the lock and keeps it until it is killed.
#[tokio::test]
#[ignore = "run by the test below as a process of its own"]
async fn child() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let store =
        SqliteStore::open(path.as_ref(), &StoreConfig::default(), TickingClock::new()).unwrap();
    let _lock = store.lock(&conversation("a")).await.unwrap();
    println!("\nlocked");
    std::thread::sleep(Duration::from_mins(10));
}

fn start_child(place: &Place) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locks::child", "--ignored", "--nocapture"])
        .env(PATH, place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"));
    child
}

#[tokio::test]
async fn lock_of_another_process_is_named_and_ends_with_it() {
    let place = place_with_a().await;
    let mut child = start_child(&place);
    let store = place.open_impatient();
    assert_held_by(
        &store
            .append_message(&conversation("a"), &user(1, "one"))
            .await
            .unwrap_err(),
        child.id(),
    );
    assert_held_by(
        &store.lock(&conversation("a")).await.unwrap_err(),
        child.id(),
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let store = place.open();
    let _lock = store.lock(&conversation("a")).await.unwrap();
    store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
}
