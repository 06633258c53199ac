//! Tests of features specific to the PostgreSQL server: concurrent clients, lost connections, other
//! formats.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use haft_postgres::PostgresStore;
use haft_store::conformance::{TickingClock, conversation, user};
use haft_store::{
    ConversationScope, Locked, NewConversation, SearchQuery, Store, StoreConfig, StoreError,
};

use crate::server::Server;

#[tokio::test]
async fn tables_can_be_created_and_used_by_many_clients_at_once() {
    let Some(server) = Server::new().await else {
        return;
    };
    let url = server.url();
    let config = StoreConfig::default();
    std::thread::scope(|scope| {
        for who in 0..6_u32 {
            let url = &url;
            let config = &config;
            scope.spawn(move || {
                let store = PostgresStore::connect(url, config, TickingClock::new()).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
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
                });
            });
        }
    });
    let store = server.connect();
    assert_eq!(
        store.messages(&conversation("shared")).await.unwrap().len(),
        120
    );
    let found = store
        .search(SearchQuery {
            text: "own",
            scope: ConversationScope::Everywhere,
            limit: 1_000,
        })
        .await
        .unwrap();
    // Six conversations have this word in their names, too.
    assert_eq!(found.len(), 126);
    drop(store);
    server.end().await;
}

#[tokio::test]
async fn lock_excludes_all_other_writers() {
    let Some(server) = Server::new().await else {
        return;
    };
    let one = server.connect();
    let other = server.connect();
    let a = conversation("a");
    one.create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let lock = one.lock(&a).await.unwrap();
    one.append_message(&a, &user(1, "its own")).await.unwrap();
    for error in [
        other
            .append_message(&a, &user(2, "another's"))
            .await
            .unwrap_err(),
        other.lock(&a).await.unwrap_err(),
        one.lock(&a).await.unwrap_err(),
    ] {
        let StoreError::LockTimeout {
            what,
            holder: Some(holder),
            ..
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(
            (what, holder.pid),
            (&Locked::Conversation(a.clone()), std::process::id())
        );
        assert!(
            error
                .to_string()
                .contains(&format!("process {} on {}", holder.pid, holder.host)),
            "{error}"
        );
    }
    assert_eq!(
        other.messages(&a).await.unwrap().len(),
        1,
        "reading goes on"
    );
    drop(lock);
    other.append_message(&a, &user(4, "now")).await.unwrap();
    // A dropped store releases its locks, like a process that dies.
    let _kept = one.lock(&a).await.unwrap();
    drop(one);
    let _lock = other.lock(&a).await.unwrap();
    drop(other);
    server.end().await;
}

#[tokio::test]
async fn transactions_are_closed_after_success_and_failure() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let one = server.connect();
    let other = server.connect();
    let a = conversation("a");
    one.create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    one.append_message(&a, &user(1, "one")).await.unwrap();
    one.append_message(&a, &user(1, "one again"))
        .await
        .unwrap_err();
    one.append_message(&conversation("nobody"), &user(1, "lost"))
        .await
        .unwrap_err();
    one.messages(&a).await.unwrap();
    other
        .search(SearchQuery {
            text: "one",
            scope: ConversationScope::Everywhere,
            limit: 1,
        })
        .await
        .unwrap();
    assert_eq!(server.open_transactions().await, 0);
    // An open transaction of the failed write would keep the conversation locked.
    other.append_message(&a, &user(2, "two")).await.unwrap();
    drop((one, other));
    server.end().await;
}

#[tokio::test]
async fn lock_lost_with_its_connection_is_not_used() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let one = server.connect();
    let other = server.connect();
    let a = conversation("a");
    one.create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let lost = one.lock(&a).await.unwrap();
    let keepers = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    server.change(keepers).await;
    one.append_message(&a, &user(1, "nobody else has it"))
        .await
        .unwrap();
    let taken = other.lock(&a).await.unwrap();
    let error = one
        .append_message(&a, &user(2, "too late"))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::LockTimeout { .. }), "{error:?}");
    other.append_message(&a, &user(3, "its own")).await.unwrap();
    drop(lost);
    assert!(
        one.append_message(&a, &user(4, "still the other's"))
            .await
            .is_err(),
        "a lost right is not given back again"
    );
    drop(taken);
    one.append_message(&a, &user(5, "now")).await.unwrap();
    let said: Vec<_> = other
        .messages(&a)
        .await
        .unwrap()
        .iter()
        .map(|message| message.message_id.short_id().0)
        .collect();
    assert_eq!(said, [1, 3, 5]);
    drop((one, other));
    server.end().await;
}

/// Environment variable with the server's address for the child; only the parent test sets it.
const URL: &str = "STORE_TEST_URL";
const ACKNOWLEDGED: &str = "acknowledged ";

/// The process that is killed, not a test: it holds the lock and appends until it dies.
#[tokio::test]
#[ignore = "run by the test below as a process of its own"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let store = PostgresStore::connect(&url, &StoreConfig::default(), TickingClock::new()).unwrap();
    let id = conversation("a");
    let _lock = store.lock(&id).await.unwrap();
    let stored = store.messages(&id).await.unwrap().len() as u32;
    for n in stored.. {
        store
            .append_message(&id, &user(n, &"x".repeat(2_000)))
            .await
            .unwrap();
        let mut out = std::io::stdout();
        if writeln!(out, "\n{ACKNOWLEDGED}{n}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return;
        }
    }
}

#[tokio::test]
async fn append_survives_a_killed_client_and_its_lock_ends() {
    let Some(server) = Server::new().await else {
        return;
    };
    let store = server.connect();
    let a = conversation("a");
    store
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    let mut acknowledged = Vec::new();
    for enough in [1, 20, 3, 45, 8] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "postgres::child", "--ignored", "--nocapture"])
            .env(URL, server.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while text.matches(ACKNOWLEDGED).count() < enough {
            assert_ne!(
                out.read_line(&mut text).unwrap(),
                0,
                "the child ended by itself: {text}"
            );
        }
        let error = store.lock(&a).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("process {}", child.id())),
            "{error}"
        );
        child.kill().unwrap();
        out.read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        acknowledged.extend(
            whole
                .lines()
                .filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse::<u32>().ok()),
        );
        // The server ends the transactions and the lock of the dead client.
        let patient =
            PostgresStore::connect(&server.url(), &StoreConfig::default(), TickingClock::new())
                .unwrap();
        drop(patient.lock(&a).await.unwrap());
        let stored = store.messages(&a).await.unwrap();
        let stored: Vec<u32> = stored
            .iter()
            .map(|message| message.message_id.short_id().0)
            .collect();
        assert_eq!(
            stored,
            (0..stored.len() as u32).collect::<Vec<_>>(),
            "no gap, no double, in order"
        );
        assert!(
            acknowledged.iter().all(|n| stored.contains(n)),
            "acknowledged {acknowledged:?}, stored {stored:?}"
        );
    }
    drop(store);
    server.end().await;
}

#[tokio::test]
async fn connection_loss_causes_one_error() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let store = server.connect();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    store.messages(&conversation("a")).await.unwrap();
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    server.change(others).await;
    // Pending operations fail; later ones succeed.
    let _ = store
        .append_message(&conversation("a"), &user(1, "one"))
        .await;
    let _ = store.messages(&conversation("a")).await;
    store
        .append_message(&conversation("a"), &user(2, "two"))
        .await
        .unwrap();
    let stored = store.messages(&conversation("a")).await.unwrap();
    assert!(
        stored.iter().any(|message| message.joined_text() == "two"),
        "{stored:?}"
    );
    drop(store);
    server.end().await;
}

#[tokio::test]
async fn connect_refuses_a_newer_format() {
    let Some(server) = Server::new().await else {
        return;
    };
    let before = server.connect();
    let a = conversation("a");
    before
        .create(NewConversation::new(a.clone(), "p"))
        .await
        .unwrap();
    before.append_message(&a, &user(1, "one")).await.unwrap();
    server.change("UPDATE haft_format SET format = 99").await;
    for error in [
        server.try_connect().err().unwrap(),
        before
            .append_message(&a, &user(2, "two"))
            .await
            .unwrap_err(),
    ] {
        assert!(
            matches!(
                error,
                StoreError::NewerFormat {
                    found: 99,
                    known: 2,
                    ..
                }
            ),
            "{error:?}"
        );
    }
    assert_eq!(before.messages(&a).await.unwrap().len(), 1);
    drop(before);
    server.end().await;
}

/// The second format adds the terms of names, and a term for the namespace of each message.
#[tokio::test]
async fn search_finds_messages_indexed_before_an_upgrade() {
    let Some(server) = Server::new().await else {
        return;
    };
    let store = server.connect();
    let a = conversation("a");
    let new = NewConversation {
        name: Some("The login".to_owned()),
        ..NewConversation::new(a.clone(), "p")
    };
    store.create(new).await.unwrap();
    store
        .append_message(&a, &user(1, "a needle"))
        .await
        .unwrap();
    drop(store);
    server
        .change(
            "DROP TABLE names, unnamed; DROP INDEX conversations_by_use, conversations_by_name; DELETE FROM unindexed;
             INSERT INTO entries SELECT key, 'needle:2' FROM messages ON CONFLICT DO NOTHING;
             UPDATE haft_format SET format = 1",
        )
        .await;
    let store = server.connect();
    let hits = async |text: &str, scope: ConversationScope<'_>| {
        store
            .search(SearchQuery {
                text,
                scope,
                limit: 9,
            })
            .await
            .unwrap()
            .len()
    };
    assert_eq!(hits("needle", ConversationScope::Namespace("p")).await, 1);
    assert_eq!(
        hits("needle", ConversationScope::Namespace("other")).await,
        0
    );
    assert_eq!(hits("login", ConversationScope::Namespace("p")).await, 1);
    store.rename(&a, "The logout").await.unwrap();
    assert_eq!(hits("login", ConversationScope::Everywhere).await, 0);
    assert_eq!(hits("logout", ConversationScope::Everywhere).await, 1);
    drop(store);
    server.end().await;
}

#[test]
fn connect_to_a_missing_server_fails_without_the_password() {
    let url = "postgres://me:secret@127.0.0.1:9/db";
    let error = PostgresStore::connect(url, &StoreConfig::default(), TickingClock::new())
        .err()
        .unwrap();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    assert!(
        error.to_string().contains("me@127.0.0.1:9/db") && !error.to_string().contains("secret"),
        "{error}"
    );
}
