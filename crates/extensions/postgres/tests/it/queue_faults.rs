//! Tests what ordinary operations do to the queue: outages, lost and hanging workers, retries,
//! cancellations, roles, and tables of another version.

use std::time::Duration;

use haft_postgres::{
    KeptFile, KeptKind, LeaseMismatch, NewTask, PostgresStore, ReleaseReason, SpendingLimit,
    TaskEnd, TaskFilter, TaskLease, TaskQueue, TaskSpending, TaskState, WorkerProfile,
    WorkerStatus,
};
use haft_store::conformance::{TickingClock, conversation, user};
use haft_store::{NewConversation, Store, StoreConfig, StoreError};
use serde_json::json;

use crate::queue::{
    LEASE, add_worker, blocking, connect_queue, expire_worker, new_taker, new_task, send_heartbeat,
    take_task, task_end, with_status,
};
use crate::server::Server;

async fn expire_all_workers(server: &Server) {
    server
        .change("UPDATE queue_workers SET seen = now() - interval '1 hour'")
        .await;
}

/// Keeps a worker's lease for the rest of a test.
async fn keep_worker(server: &Server, worker: i64) {
    server
        .change(&format!(
            "UPDATE queue_workers SET seen = now() + interval '1 hour' WHERE id = {worker}"
        ))
        .await;
}

/// Makes the tasks whose pause is not over available.
async fn skip_pauses(server: &Server) {
    server
        .change("UPDATE queue_tasks SET not_before = now() WHERE state = 'queued'")
        .await;
}

fn count_tasks(queue: &TaskQueue, status: &str) -> usize {
    queue.list_tasks(&with_status(status), 1_000).unwrap().len()
}

fn connect_store(server: &Server, lease: TaskLease) -> PostgresStore {
    let config = StoreConfig::default();
    PostgresStore::connect_with_lease(&server.url(), &config, TickingClock::new(), Some(lease))
        .unwrap()
}

/// Stores the first message of a run.
async fn begin_run(server: &Server, lease: TaskLease) {
    let store = connect_store(server, lease);
    let id = conversation(&format!("c{}-{}", lease.task, lease.epoch));
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    store.append_message(&id, &user(1, "begun")).await.unwrap();
}

/// After an outage that is longer than the lease, every worker is stale. Tasks that never ran are
/// not given up, however often that happens.
#[tokio::test]
async fn postgres_queue_outage_gives_up_no_task() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let workers = blocking(|| {
        for n in 0..20 {
            queue.add_task(&new_task(&format!("t{n}"))).unwrap();
        }
        [add_worker(&queue), add_worker(&queue), add_worker(&queue)]
    });
    for _ in 0..12 {
        blocking(|| {
            for worker in workers {
                while take_task(&queue, &new_taker(worker)).is_some() {}
            }
        });
        expire_all_workers(&server).await;
        blocking(|| send_heartbeat(&queue, workers[0]));
        // The workers are back, and return the tasks that they no longer run.
        expire_all_workers(&server).await;
        blocking(|| send_heartbeat(&queue, workers[1]));
        skip_pauses(&server).await;
    }
    blocking(|| {
        assert_eq!(count_tasks(&queue, "failed"), 0);
        for task in queue.list_tasks(&with_status("queued"), 100).unwrap() {
            assert_eq!((task.epoch, task.attempts), (12, 0), "taken in each round");
        }
        // The outages are over: all tasks run.
        let ended = std::iter::from_fn(|| take_task(&queue, &new_taker(workers[2])));
        let ended = ended.map(|(lease, _)| queue.finish_task(lease, &task_end(), None).unwrap());
        assert_eq!(ended.count(), 20);
    });
    server.end().await;
}

/// Claims that store no message are separated by growing pauses, and are given up only after more
/// than half an hour.
#[tokio::test]
async fn postgres_queue_fruitless_claims_are_given_up_over_time() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let id = blocking(|| queue.add_task(&new_task("t")).unwrap().id);
    let mut pauses = Vec::new();
    loop {
        let worker = blocking(|| add_worker(&queue));
        blocking(|| take_task(&queue, &new_taker(worker)).unwrap());
        blocking(|| queue.remove_worker(worker).unwrap());
        blocking(|| send_heartbeat(&queue, -1));
        let task = blocking(|| queue.get_task(id).unwrap().unwrap());
        if task.state == TaskState::Failed {
            break;
        }
        pauses.push(
            server
                .count(format!(
                    "SELECT round(extract(epoch FROM not_before - now()))::bigint FROM queue_tasks WHERE id = {id}"
                ))
                .await,
        );
        skip_pauses(&server).await;
    }
    assert!(
        pauses.windows(2).all(|pair| pair[0] <= pair[1] + 2),
        "{pauses:?}"
    );
    assert!(pauses.iter().sum::<i64>() > 1_800, "{pauses:?}");
    assert!(pauses.len() < 100, "{pauses:?}");
    server.end().await;
}

/// A worker that was silent for longer than its lease does not take its own task a second time.
#[tokio::test]
async fn postgres_queue_worker_never_takes_a_task_that_it_holds() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let worker = blocking(|| {
        queue.add_task(&new_task("t")).unwrap();
        let worker = add_worker(&queue);
        take_task(&queue, &new_taker(worker)).unwrap();
        worker
    });
    expire_worker(&server, worker).await;
    blocking(|| {
        assert_eq!(queue.take_task(&new_taker(worker)).unwrap(), None);
        assert_eq!(take_task(&queue, &new_taker(worker)), None);
        let held = queue
            .record_heartbeat(&new_taker(worker), &WorkerStatus::default())
            .unwrap()
            .held;
        assert_eq!(held.len(), 1, "the lease is renewed instead");
    });
    server.end().await;
}

/// A task that this process still shuts down is left to others.
#[tokio::test]
async fn postgres_queue_leaves_out_tasks_that_still_run_here() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let id = queue.add_task(&new_task("t")).unwrap().id;
        let worker = add_worker(&queue);
        let holding = WorkerProfile {
            holding: vec![id],
            ..new_taker(worker)
        };
        assert_eq!(take_task(&queue, &holding), None);
        assert!(take_task(&queue, &new_taker(worker)).is_some());
    });
    server.end().await;
}

/// An attempt counts once its first message is stored, and lost attempts are separated by pauses.
#[tokio::test]
async fn postgres_queue_attempts_count_from_the_first_message() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let id = blocking(|| queue.add_task(&new_task("t")).unwrap().id);
    let take = || {
        blocking(|| {
            let worker = add_worker(&queue);
            (worker, take_task(&queue, &new_taker(worker)).unwrap().0)
        })
    };
    let (worker, _) = take();
    expire_worker(&server, worker).await;
    let (worker, lease) = take();
    begin_run(&server, lease).await;
    let task = blocking(|| queue.get_task(id).unwrap().unwrap());
    assert_eq!((task.attempts, task.failures, task.epoch), (1, 0, 2));
    expire_worker(&server, worker).await;
    let (worker, lease) = take();
    begin_run(&server, lease).await;
    expire_worker(&server, worker).await;
    blocking(|| {
        let next = add_worker(&queue);
        assert_eq!(take_task(&queue, &new_taker(next)), None, "after a pause");
        let task = queue.get_task(id).unwrap().unwrap();
        assert_eq!((task.attempts, task.state), (2, TaskState::Queued));
    });
    // What a worker hands over does not count.
    skip_pauses(&server).await;
    let (_, lease) = take();
    begin_run(&server, lease).await;
    blocking(|| {
        queue
            .release_task(lease, ReleaseReason::HandedOver)
            .unwrap();
        let task = queue.get_task(id).unwrap().unwrap();
        assert_eq!((task.attempts, task.state), (2, TaskState::Queued));
    });
    server.end().await;
}

/// A run writes to its conversation, its files and its costs from several connections at once.
#[tokio::test]
async fn postgres_queue_concurrent_writes_of_a_run_do_not_deadlock() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let lease = blocking(|| {
        queue.add_task(&new_task("t")).unwrap();
        let worker = add_worker(&queue);
        take_task(&queue, &new_taker(worker)).unwrap().0
    });
    let store = connect_store(&server, lease);
    let id = conversation("c");
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let _lock = store.lock(&id).await.unwrap();
    let url = server.url();
    let spending = std::thread::spawn(move || {
        let queue = TaskQueue::connect(&url, LEASE).unwrap();
        for n in 0..100 {
            let spent = TaskSpending {
                tokens: n,
                ..TaskSpending::default()
            };
            queue.record_spending(lease, spent).unwrap();
        }
    });
    for n in 0..100 {
        store
            .append_message(&id, &user(n + 1, "text"))
            .await
            .unwrap();
    }
    spending.join().unwrap();
    assert_eq!(store.messages(&id).await.unwrap().len(), 100);
    drop(store);
    server.end().await;
}

/// A canceled task whose worker is lost ends instead of being run again, and so does one that a
/// worker gives back.
#[tokio::test]
async fn postgres_queue_cancelled_task_is_not_run_again() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let worker = blocking(|| {
        let worker = add_worker(&queue);
        for prompt in ["lost", "given back"] {
            let id = queue.add_task(&new_task(prompt)).unwrap().id;
            let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
            assert!(queue.cancel(id).unwrap());
            if prompt == "given back" {
                queue
                    .release_task(lease, ReleaseReason::ExternalFailure)
                    .unwrap();
            }
        }
        worker
    });
    expire_worker(&server, worker).await;
    blocking(|| {
        let next = add_worker(&queue);
        assert_eq!(take_task(&queue, &new_taker(next)), None);
        assert_eq!(count_tasks(&queue, "cancelled"), 2);
    });
    server.end().await;
}

/// Money that was spent before a retry still counts for the limit of the day, for labels and for
/// the total.
#[tokio::test]
async fn postgres_queue_retry_keeps_what_was_spent() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        let limit = SpendingLimit {
            label: String::new(),
            usd: Some(1.0),
            tokens: None,
        };
        let taker = WorkerProfile {
            limits: vec![limit],
            ..new_taker(worker)
        };
        let new = NewTask {
            usd_limit: Some(0.4),
            labels: vec!["l".to_owned()],
            ..new_task("t")
        };
        let id = queue.add_task(&new).unwrap().id;
        let mut rounds = 0;
        while let Some((lease, _)) = take_task(&queue, &taker) {
            let spent = TaskSpending {
                usd: 0.3,
                tokens: 10,
                ..TaskSpending::default()
            };
            queue.record_spending(lease, spent).unwrap();
            queue.finish_task(lease, &task_end(), None).unwrap();
            rounds += 1;
            assert!(queue.retry(id, &format!("again {rounds}")).unwrap());
        }
        // 0.3 + 0.3 + 0.4 fit into 1; after three rounds, 0.9 are spent.
        assert_eq!(rounds, 3);
        let task = queue.get_task(id).unwrap().unwrap();
        assert!((task.earlier_usd - 0.9).abs() < 1e-9 && task.earlier_tokens == 30);
        let label = queue.statistics().unwrap().labels.pop().unwrap();
        assert!((label.usd - 0.9).abs() < 1e-9 && (label.usd_today - 0.9).abs() < 1e-9);
        assert_eq!(label.tokens, 30);
    });
    server.end().await;
}

/// A task with `retries` is queued again when its run fails, in a new conversation and after a
/// pause, and then ends.
#[tokio::test]
async fn postgres_queue_retries_failed_runs_by_policy() {
    let Some(server) = Server::new().await else {
        return;
    };
    let failed = || TaskEnd {
        result: json!({"outcome": "failed", "code": "loop"}),
        ..task_end()
    };
    let queue = blocking(|| connect_queue(&server));
    let (id, worker) = blocking(|| {
        let new = NewTask {
            retries: 1,
            retry_after: Duration::from_mins(10),
            ..new_task("t")
        };
        let id = queue.add_task(&new).unwrap().id;
        let worker = add_worker(&queue);
        let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
        assert!(queue.finish_task(lease, &failed(), Some("second")).unwrap());
        let task = queue.get_task(id).unwrap().unwrap();
        assert_eq!((task.state, task.retried), (TaskState::Queued, 1));
        assert_eq!(task.conversation, "second");
        assert_eq!(take_task(&queue, &new_taker(worker)), None, "after a pause");
        (id, worker)
    });
    skip_pauses(&server).await;
    blocking(|| {
        let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
        assert!(!queue.finish_task(lease, &failed(), Some("third")).unwrap());
        let task = queue.get_task(id).unwrap().unwrap();
        assert_eq!(
            (task.state, task.status.as_str()),
            (TaskState::Ended, "failed")
        );
        let states = queue.statistics().unwrap().states;
        assert_eq!(
            states,
            [("failed".to_owned(), 1)].into(),
            "as the list says"
        );
    });
    server.end().await;
}

#[tokio::test]
async fn postgres_queue_refuses_another_lease() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let other = WorkerProfile {
        lease: LEASE * 12,
        ..new_taker(0)
    };
    blocking(|| {
        add_worker(&queue);
        let refused = queue.add_worker(&other).unwrap_err();
        let StoreError::Database { source, .. } = refused else {
            panic!("{refused:?}");
        };
        assert!(source.is::<LeaseMismatch>(), "{source}");
    });
    // Workers that are gone do not count, and their rows are removed.
    expire_all_workers(&server).await;
    blocking(|| {
        queue.add_worker(&other).unwrap();
        assert_eq!(queue.workers().unwrap().len(), 1);
    });
    let rows = server.texts("SELECT id::text FROM queue_workers").await;
    assert_eq!(rows.len(), 1);
    server.end().await;
}

/// A running worker takes nothing once a newer haft has upgraded the tables, and learns why.
#[tokio::test]
async fn postgres_queue_worker_stops_at_a_newer_format() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let worker = blocking(|| {
        queue.add_task(&new_task("t")).unwrap();
        add_worker(&queue)
    });
    server.change("UPDATE queue_format SET format = 99").await;
    blocking(|| {
        assert_eq!(queue.take_task(&new_taker(worker)).unwrap(), None);
        for error in [
            queue
                .record_heartbeat(&new_taker(worker), &WorkerStatus::default())
                .unwrap_err(),
            TaskQueue::connect(&server.url(), LEASE).err().unwrap(),
        ] {
            assert!(
                matches!(
                    error,
                    StoreError::NewerFormat {
                        found: 99,
                        known: 3,
                        ..
                    }
                ),
                "{error:?}"
            );
        }
    });
    server.end().await;
}

/// The tables of the first format are upgraded with their rows.
#[tokio::test]
async fn postgres_queue_upgrades_tables_of_the_first_format() {
    let Some(server) = Server::new().await else {
        return;
    };
    server
        .change(concat!(
            include_str!("../../src/migrations/queue_0001.sql"),
            "CREATE TABLE queue_format (format INTEGER NOT NULL); INSERT INTO queue_format VALUES (1);
             INSERT INTO queue_tasks (state, request, conversation, max_attempts, result, ended_at) VALUES
                 ('queued', '{\"prompt\":\"a\",\"repository\":\"https://me:secret@host/x\"}', 'a', 3, NULL, NULL),
                 ('ended', '{\"prompt\":\"b\",\"repository\":\"https://me:secret@host/x\"}', 'b', 3, '{\"outcome\":\"failed\"}', now()),
                 ('failed', '{\"prompt\":\"c\"}', 'c', 3, '{\"outcome\":\"failed\"}', now())"
        ))
        .await;
    blocking(|| {
        let queue = connect_queue(&server);
        let states = queue.statistics().unwrap().states;
        assert_eq!(
            states,
            [("failed".to_owned(), 2), ("queued".to_owned(), 1)].into()
        );
        let worker = add_worker(&queue);
        assert_eq!(take_task(&queue, &new_taker(worker)).unwrap().1, "a");
    });
    let stored = server
        .texts("SELECT request FROM queue_tasks WHERE state = 'ended'")
        .await;
    assert!(!stored[0].contains("secret"), "{stored:?}");
    server.end().await;
}

/// Each worker has a role of its own, which may neither create tables nor end the connections of
/// the others. A worker that hangs does not keep the next one from its conversation.
#[tokio::test]
async fn postgres_queue_works_with_a_role_for_each_worker() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let role = format!("haft_worker_{}", std::process::id());
    server
        .change(&format!(
            "CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"
        ))
        .await;
    let own = server.url_of_role(&role);
    blocking(|| {
        let error = TaskQueue::connect(&own, LEASE).err().unwrap().to_string();
        assert!(error.contains("haft queue migrate"), "{error}");
        haft_postgres::migrate_server(&server.url(), LEASE).unwrap();
        haft_postgres::grant_data_rights(&server.url(), LEASE, &role).unwrap();
    });
    let queue = blocking(|| connect_queue(&server));
    let id = conversation("c");
    let (hung, first) = blocking(|| {
        queue.add_task(&new_task("t")).unwrap();
        let hung = add_worker(&queue);
        (hung, take_task(&queue, &new_taker(hung)).unwrap().0)
    });
    let store = connect_store(&server, first);
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let _kept = store.lock(&id).await.unwrap();
    expire_worker(&server, hung).await;
    let lease = blocking(|| {
        let queue = TaskQueue::connect(&own, LEASE).unwrap();
        let next = add_worker(&queue);
        take_task(&queue, &new_taker(next)).unwrap().0
    });
    let config = StoreConfig::default();
    let next =
        PostgresStore::connect_with_lease(&own, &config, TickingClock::new(), Some(lease)).unwrap();
    let lock = next
        .try_lock(&id)
        .await
        .expect("its lease excludes the hung one");
    next.append_message(&id, &user(1, "next")).await.unwrap();
    let late = store.append_message(&id, &user(2, "late")).await;
    assert!(late.is_err());
    drop((lock, next, store));
    server
        .change(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    server.end().await;
}

#[tokio::test]
async fn postgres_queue_has_tasks_to_come_while_a_lost_worker_holds_one() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let lost = blocking(|| {
        let later = NewTask {
            not_before: Some(i64::MAX),
            ..new_task("later")
        };
        queue.add_task(&later).unwrap();
        queue.add_task(&new_task("t")).unwrap();
        let lost = add_worker(&queue);
        take_task(&queue, &new_taker(lost)).unwrap();
        lost
    });
    let next = blocking(|| add_worker(&queue));
    blocking(|| assert!(queue.has_tasks_to_come(&new_taker(next)).unwrap()));
    expire_worker(&server, lost).await;
    blocking(|| {
        let (lease, _) = take_task(&queue, &new_taker(next)).unwrap();
        queue
            .release_task(lease, ReleaseReason::ExternalFailure)
            .unwrap();
        assert!(queue.has_tasks_to_come(&new_taker(next)).unwrap());
    });
    skip_pauses(&server).await;
    blocking(|| {
        let (lease, _) = take_task(&queue, &new_taker(next)).unwrap();
        queue.finish_task(lease, &task_end(), None).unwrap();
        assert!(
            !queue.has_tasks_to_come(&new_taker(next)).unwrap(),
            "a scheduled task is not waited for"
        );
    });
    server.end().await;
}

#[tokio::test]
async fn postgres_queue_pauses_labels_and_limits_what_runs_at_once() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        let add = |prompt: &str, label: &str, repository: &str| {
            let mut new = new_task(prompt);
            new.labels = vec![label.to_owned()];
            new.request.repository = Some(repository.to_owned());
            queue.add_task(&new).unwrap();
        };
        for n in 0..3 {
            add(&format!("a{n}"), "a", "one");
            add(&format!("b{n}"), "b", "two");
        }
        assert!(queue.pause("").unwrap() && !queue.pause("").unwrap());
        assert_eq!(take_task(&queue, &new_taker(worker)), None);
        assert!(queue.resume("").unwrap() && !queue.resume("").unwrap());
        assert!(queue.pause("a").unwrap());
        let limited = WorkerProfile {
            per_repository: Some(2),
            per_label: vec![("a".to_owned(), 1)],
            ..new_taker(worker)
        };
        let take = || take_task(&queue, &limited).map(|(_, prompt)| prompt);
        assert_eq!(take().as_deref(), Some("b0"));
        assert_eq!(take().as_deref(), Some("b1"));
        assert_eq!(take(), None, "two of one repository");
        assert!(queue.resume("a").unwrap());
        assert_eq!(take().as_deref(), Some("a0"));
        assert_eq!(take(), None, "one with this label");
    });
    server.end().await;
}

/// The saved files of tasks that are given up are removed, and old tasks by age.
#[tokio::test]
async fn postgres_queue_prune_removes_what_is_old() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let worker = blocking(|| {
        let new = NewTask {
            max_attempts: 1,
            ..new_task("t")
        };
        queue.add_task(&new).unwrap();
        add_worker(&queue)
    });
    let lease = blocking(|| take_task(&queue, &new_taker(worker)).unwrap().0);
    begin_run(&server, lease).await;
    blocking(|| {
        let file = KeptFile {
            path: "f".into(),
            kind: KeptKind::File,
            mode: 0o644,
            content: b"text".to_vec(),
        };
        queue.save_files(lease, &[file]).unwrap();
    });
    expire_worker(&server, worker).await;
    blocking(|| {
        let next = add_worker(&queue);
        assert_eq!(take_task(&queue, &new_taker(next)), None);
        assert_eq!(count_tasks(&queue, "failed"), 1);
        assert!(queue.read_files(lease.task).unwrap().is_empty());
        assert_eq!(queue.prune(Duration::from_mins(1)).unwrap().tasks, 0);
    });
    server
        .change("UPDATE queue_tasks SET ended_at = now() - interval '2 days'")
        .await;
    blocking(|| {
        assert_eq!(queue.prune(Duration::from_hours(24)).unwrap().tasks, 1);
        assert_eq!(queue.get_task(lease.task).unwrap(), None);
    });
    server.end().await;
}

/// The query with which KEDA counts tasks, from the manifest.
fn read_scaler_query() -> String {
    let manifest = include_str!("../../../../../integrations/kubernetes/scaledjob.yaml");
    let line = manifest
        .lines()
        .find_map(|line| line.trim().strip_prefix("query: "));
    line.unwrap().trim_matches('"').to_owned()
}

/// Without a worker, nobody marks a scheduled task as due or returns a lost one. The number that a
/// scheduler reads contains them nevertheless, and exactly the tasks that a worker then takes.
#[tokio::test]
async fn postgres_queue_ready_tasks_are_those_that_a_new_worker_takes() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let count = async || {
        let counted = server.count(read_scaler_query()).await;
        let statistics = blocking(|| queue.statistics().unwrap());
        assert_eq!(counted, statistics.ready);
        counted
    };
    let add = |prompt: &str, not_before: Option<i64>, labels: &[&str]| {
        let new = NewTask {
            not_before,
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            ..new_task(prompt)
        };
        blocking(|| queue.add_task(&new).unwrap().id)
    };
    assert_eq!(count().await, 0);
    let scheduled = add("scheduled", Some(i64::MAX), &[]);
    add("later", Some(i64::MAX), &[]);
    assert_eq!(count().await, 0, "their time has not come");
    server
        .change(&format!(
            "UPDATE queue_tasks SET not_before = now() - interval '1 minute' WHERE id = {scheduled}"
        ))
        .await;
    assert_eq!(count().await, 1, "a scheduled task whose time has come");

    let take = |worker: i64| blocking(|| queue.take_task(&new_taker(worker)).unwrap().unwrap().0);
    let mut names = vec!["scheduled"];
    let mut lost = Vec::new();
    for prompt in [
        "lost",
        "removed",
        "cancelled",
        "waits for another attempt",
        "held",
    ] {
        let id = add(prompt, None, &[]);
        let worker = blocking(|| add_worker(&queue));
        let lease = take(worker);
        assert_eq!(lease.task, id);
        match prompt {
            "lost" => lost.push(worker),
            "removed" => blocking(|| queue.remove_worker(worker).unwrap()),
            "cancelled" => {
                blocking(|| assert!(queue.cancel(id).unwrap()));
                lost.push(worker);
            }
            "held" => keep_worker(&server, worker).await,
            _ => blocking(|| {
                queue
                    .release_task(lease, ReleaseReason::ExternalFailure)
                    .unwrap();
            }),
        }
    }
    assert_eq!(count().await, 2, "the removed worker's task");
    for worker in lost {
        expire_worker(&server, worker).await;
    }
    assert_eq!(count().await, 4, "the tasks of lost workers");
    server
        .change("UPDATE queue_tasks SET not_before = now() WHERE state = 'queued' AND failures > 0")
        .await;
    assert_eq!(count().await, 5, "another attempt whose pause is over");
    names.extend(["lost", "removed", "waits for another attempt"]);
    add("paused", None, &["p"]);
    add("plain", None, &["q"]);
    blocking(|| assert!(queue.pause("p").unwrap()));
    assert_eq!(count().await, 6, "all but the paused one");
    names.push("plain");
    let ready = with_status("ready");
    let listed = blocking(|| queue.list_tasks(&ready, 100).unwrap());
    let ids = blocking(|| queue.find_task_ids(&ready).unwrap());
    assert_eq!(listed.iter().map(|task| task.id).collect::<Vec<_>>(), ids);
    let of_label = TaskFilter {
        label: Some("q".to_owned()),
        ..ready
    };
    assert_eq!(
        blocking(|| queue.list_tasks(&of_label, 100).unwrap().len()),
        1
    );

    // One heartbeat of a worker ends the canceled task; the worker takes all others.
    let (worker, taken, left) = blocking(|| {
        let worker = add_worker(&queue);
        send_heartbeat(&queue, worker);
        let take = || queue.take_task(&new_taker(worker)).unwrap();
        let taken: Vec<_> =
            std::iter::from_fn(|| take().map(|(_, task)| task.request.prompt)).collect();
        (worker, taken, count_tasks(&queue, "cancelled"))
    });
    keep_worker(&server, worker).await;
    assert_eq!(taken, names);
    assert_eq!(left, 1);
    assert_eq!(count().await, 0);
    blocking(|| assert!(queue.pause("").unwrap() && queue.resume("p").unwrap()));
    assert_eq!(count().await, 0, "everything is paused");
    blocking(|| assert!(queue.resume("").unwrap()));
    assert_eq!(count().await, 1);
    server.end().await;
}

/// A role that may read the view of ready tasks, and nothing else, is enough for a scheduler.
#[tokio::test]
async fn postgres_queue_ready_tasks_can_be_counted_with_one_right() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let role = format!("haft_scaler_{}", std::process::id());
    blocking(|| {
        connect_queue(&server).add_task(&new_task("t")).unwrap();
    });
    server
        .change(&format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT ON queue_ready TO {role}"
        ))
        .await;
    let counted = server.count_as(&role, read_scaler_query()).await;
    assert_eq!(counted, 1);
    server
        .change(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    server.end().await;
}

/// Polls read neither 20,000 tasks that are scheduled for later nor, while the limit of the day
/// leaves no room, the 1,000 tasks of today once for each of 2,000 waiting tasks. The number of ready
/// tasks is read by index, too.
#[tokio::test]
async fn postgres_queue_poll_does_not_read_scheduled_tasks() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let worker = blocking(|| add_worker(&connect_queue(&server)));
    let poll = |taker: &WorkerProfile, polls: usize| {
        blocking(|| {
            let queue = connect_queue(&server);
            for _ in 0..polls {
                assert_eq!(take_task(&queue, taker), None);
            }
        });
    };
    server
        .change(
            "INSERT INTO queue_tasks (request, conversation, max_attempts, not_before)
             SELECT '{\"prompt\":\"x\"}', 'c' || n, 3, now() + interval '1 day' FROM generate_series(1, 20000) n;
             ANALYZE queue_tasks",
        )
        .await;
    reset_statistics(&server).await;
    poll(&new_taker(worker), 50);
    let polled = read_statistics(&server).await;
    // A heartbeat reads the next task that is scheduled.
    assert!(
        polled.scanned == 0 && polled.found <= 150,
        "{} rows without and {} with an index in 50 polls",
        polled.scanned,
        polled.found
    );
    assert!(polled.scans >= 100, "the polls were counted");
    assert_eq!(server.count(read_scaler_query()).await, 0);
    let read = read_statistics(&server).await;
    assert_eq!(
        (read.scanned, read.found),
        (0, polled.found),
        "the view uses indexes"
    );

    server
        .change(
            "INSERT INTO queue_tasks (request, conversation, max_attempts, state, outcome, day, spent_usd, usd_limit)
             SELECT '{\"prompt\":\"x\"}', 'd' || n, 3, 'ended', 'completed', (now() AT TIME ZONE 'UTC')::date, 1, 1 FROM generate_series(1, 1000) n;
             INSERT INTO queue_tasks (request, conversation, max_attempts, due, usd_limit)
             SELECT '{\"prompt\":\"x\"}', 'e' || n, 3, true, 1 FROM generate_series(1, 2000) n;
             ANALYZE queue_tasks",
        )
        .await;
    reset_statistics(&server).await;
    let with_limit = |usd: f64| WorkerProfile {
        limits: vec![SpendingLimit {
            label: String::new(),
            usd: Some(usd),
            tokens: None,
        }],
        ..new_taker(worker)
    };
    poll(&with_limit(1_000.5), 5);
    let read = read_statistics(&server).await;
    // Each poll reads the tasks of the day once for each kind of limit, and the waiting tasks once.
    let rows = read.scanned + read.found;
    assert!((15_000..21_000).contains(&rows), "{rows} rows in 5 polls");
    blocking(|| {
        let queue = connect_queue(&server);
        assert!(take_task(&queue, &with_limit(1_001.0)).is_some(), "it fits");
    });
    server.end().await;
}

/// What was read from the tasks' table since the statistics were reset.
struct ReadStatistics {
    /// The rows that were read without an index.
    scanned: i64,
    /// The rows that were read with an index.
    found: i64,
    /// The number of index scans.
    scans: i64,
}

/// Waits until all connections are closed: each adds its figures to the statistics at its end.
async fn wait_for_closed_connections(server: &Server) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while server.count(sql.to_owned()).await > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn reset_statistics(server: &Server) {
    wait_for_closed_connections(server).await;
    server.change("SELECT pg_stat_reset()").await;
}

async fn read_statistics(server: &Server) -> ReadStatistics {
    wait_for_closed_connections(server).await;
    let read = async |column: &str| {
        let sql = format!(
            "SELECT coalesce(sum({column}), 0)::bigint FROM pg_stat_user_tables WHERE relname = 'queue_tasks'"
        );
        server.count(sql).await
    };
    ReadStatistics {
        scanned: read("seq_tup_read").await,
        found: read("idx_tup_fetch").await,
        scans: read("idx_scan").await,
    }
}
