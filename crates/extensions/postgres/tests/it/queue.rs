//! Tests the queue on a real server: who gets which task, what a late worker can still do, and what
//! remains of a day's spending limit.

use std::time::Duration;

use haft_postgres::{
    KeptFile, KeptKind, NewTask, PostgresStore, ReleaseReason, SpendingLimit, TaskEnd, TaskFilter,
    TaskLease, TaskQueue, TaskSpending, TaskState, WorkerProfile, WorkerStatus,
};
use haft_store::conformance::{TickingClock, conversation, user};
use haft_store::{NewConversation, Store, StoreConfig};
use serde_json::json;

use crate::server::Server;

pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// Runs blocking code on its own thread: the runtime of these tests is for the server.
pub(crate) fn blocking<T: Send>(job: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(job).join().unwrap())
}

pub(crate) fn connect_queue(server: &Server) -> TaskQueue {
    TaskQueue::connect(&server.url(), Duration::from_secs(5)).unwrap()
}

pub(crate) fn new_task(prompt: &str) -> NewTask {
    let mut new = NewTask {
        conversation: prompt.to_owned(),
        max_attempts: 3,
        ..NewTask::default()
    };
    prompt.clone_into(&mut new.request.prompt);
    new
}

pub(crate) fn new_taker(worker: i64) -> WorkerProfile {
    WorkerProfile {
        worker,
        name: "w".to_owned(),
        slots: 1,
        lease: LEASE,
        ..WorkerProfile::default()
    }
}

pub(crate) fn with_status(status: &str) -> TaskFilter {
    TaskFilter {
        status: Some(status.to_owned()),
        label: None,
    }
}

/// Registers a worker and returns its id.
pub(crate) fn add_worker(queue: &TaskQueue) -> i64 {
    queue.add_worker(&new_taker(0)).unwrap()
}

/// Sends a heartbeat, which also queues the tasks of lost workers again.
pub(crate) fn send_heartbeat(queue: &TaskQueue, worker: i64) {
    queue
        .record_heartbeat(&new_taker(worker), &WorkerStatus::default())
        .unwrap();
}

pub(crate) fn task_end() -> TaskEnd {
    TaskEnd {
        state: TaskState::Ended,
        result: json!({"outcome": "completed"}),
        patch: None,
        branch: None,
        keeps_files: false,
    }
}

pub(crate) async fn expire_worker(server: &Server, worker: i64) {
    server
        .change(&format!(
            "UPDATE queue_workers SET seen = now() - interval '1 hour' WHERE id = {worker}"
        ))
        .await;
}

/// Sends a heartbeat, and takes the next task.
pub(crate) fn take_task(queue: &TaskQueue, taker: &WorkerProfile) -> Option<(TaskLease, String)> {
    queue
        .record_heartbeat(taker, &WorkerStatus::default())
        .unwrap();
    queue
        .take_task(taker)
        .unwrap()
        .map(|(lease, task)| (lease, task.request.prompt))
}

#[tokio::test]
async fn postgres_queue_orders_tasks_by_priority_time_label_and_key() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        let later = NewTask {
            not_before: Some(i64::MAX),
            ..new_task("later")
        };
        let labelled = NewTask {
            labels: vec!["gpu".to_owned()],
            ..new_task("labelled")
        };
        let urgent = NewTask {
            priority: 5,
            ..new_task("urgent")
        };
        for new in [new_task("first"), later, labelled, urgent] {
            assert!(queue.add_task(&new).unwrap().is_new);
        }
        let keyed = NewTask {
            unique_key: Some("k".to_owned()),
            ..new_task("keyed")
        };
        let added = queue.add_task(&keyed).unwrap();
        let again = queue.add_task(&keyed).unwrap();
        assert_eq!((again.id, again.is_new), (added.id, false));
        let plain = WorkerProfile {
            except: vec!["gpu".to_owned()],
            ..new_taker(worker)
        };
        let order: Vec<_> =
            std::iter::from_fn(|| take_task(&queue, &plain).map(|(_, prompt)| prompt)).collect();
        assert_eq!(order, ["urgent", "first", "keyed"]);
        let only = WorkerProfile {
            labels: vec!["gpu".to_owned()],
            ..new_taker(worker)
        };
        assert_eq!(take_task(&queue, &only).unwrap().1, "labelled");
        assert_eq!(
            take_task(&queue, &new_taker(worker)),
            None,
            "the last one is not due"
        );
        let listed = queue.list_tasks(&with_status("queued"), 10).unwrap();
        assert_eq!(listed.len(), 1);
        assert!(queue.cancel(listed[0].id).unwrap() && !queue.cancel(listed[0].id).unwrap());
        assert!(
            queue.retry(listed[0].id, "anew").unwrap()
                && !queue.retry(listed[0].id, "anew").unwrap()
        );
        assert_eq!(
            take_task(&queue, &new_taker(worker)).unwrap().1,
            "later",
            "who tries again does not wait"
        );
    });
    server.end().await;
}

/// Several threads, each with its own connection, take all tasks: each task once.
#[tokio::test]
async fn postgres_queue_gives_each_task_to_one_worker() {
    let Some(server) = Server::new().await else {
        return;
    };
    let all = blocking(|| {
        let first = connect_queue(&server);
        for n in 0..60 {
            first.add_task(&new_task(&format!("t{n}"))).unwrap();
        }
        std::thread::scope(|scope| {
            let take_all = |_| {
                scope.spawn(|| {
                    let queue = connect_queue(&server);
                    let worker = add_worker(&queue);
                    let mut all = Vec::new();
                    while let Some((lease, prompt)) = take_task(&queue, &new_taker(worker)) {
                        queue.finish_task(lease, &task_end(), None).unwrap();
                        all.push(prompt);
                    }
                    all
                })
            };
            let threads: Vec<_> = (0..6).map(take_all).collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect::<Vec<_>>()
        })
    });
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (60, 60));
    server.end().await;
}

/// The worker returns after its task was taken over and tries every kind of write, while the other
/// one works as well as after.
#[tokio::test]
async fn postgres_queue_always_refuses_a_late_worker() {
    let Some(server) = Server::new().await else {
        return;
    };
    let (late, next) = blocking(|| {
        let queue = connect_queue(&server);
        (add_worker(&queue), add_worker(&queue))
    });
    let queue = blocking(|| connect_queue(&server));
    let url = server.url();
    let config = StoreConfig::default();
    let store_of = |lease| {
        PostgresStore::connect_with_lease(&url, &config, TickingClock::new(), Some(lease)).unwrap()
    };
    let mut refused = 0;
    for n in 0..100_u32 {
        let id = conversation(&format!("c{n}"));
        let old = blocking(|| {
            send_heartbeat(&queue, late);
            queue.add_task(&new_task(&format!("t{n}"))).unwrap();
            take_task(&queue, &new_taker(late)).unwrap().0
        });
        let before = store_of(old);
        before
            .create(NewConversation::new(id.clone(), "p"))
            .await
            .unwrap();
        let kept = before.lock(&id).await.unwrap();
        before
            .append_message(&id, &user(1, "in time"))
            .await
            .unwrap();
        expire_worker(&server, late).await;
        let new = blocking(|| {
            send_heartbeat(&queue, next);
            take_task(&queue, &new_taker(next)).unwrap().0
        });
        assert_eq!((new.task, new.epoch), (old.task, old.epoch + 1));
        let after = store_of(new);
        let lock = after.lock(&id).await.unwrap();
        after
            .append_message(&id, &user(2, "its own"))
            .await
            .unwrap();
        // The first attempt may fail only because its connection is gone.
        let mut writes = vec![before.append_message(&id, &user(3, "late")).await.is_err()];
        if n % 2 == 0 {
            drop(lock);
            blocking(|| queue.finish_task(new, &task_end(), None).unwrap());
        }
        writes.push(before.append_message(&id, &user(4, "late")).await.is_err());
        writes.push(before.set_state(&id, "k", json!(1)).await.is_err());
        writes.push(
            before
                .create(NewConversation::new(
                    conversation(&format!("late {n}")),
                    "p",
                ))
                .await
                .is_err(),
        );
        writes.extend(blocking(|| {
            let file = KeptFile {
                path: "f".into(),
                kind: KeptKind::File,
                mode: 0o644,
                content: b"late".to_vec(),
            };
            [
                queue.finish_task(old, &task_end(), None).is_err(),
                queue.release_task(old, ReleaseReason::HandedOver).is_err(),
                queue.record_spending(old, TaskSpending::default()).is_err(),
                queue.save_files(old, &[file]).is_err(),
                queue.append_log(old, &["late".to_owned()]).is_err(),
            ]
        }));
        let written = after.messages(&id).await.unwrap().len();
        if n % 2 == 1 {
            blocking(|| queue.finish_task(new, &task_end(), None).unwrap());
        }
        refused += u32::from(writes.iter().all(|refused| *refused) && written == 2);
        drop((before, kept));
    }
    assert_eq!(refused, 100);
    server.end().await;
}

/// A worker that was cut off takes its own task again: its first run can no longer end the task.
#[tokio::test]
async fn postgres_queue_distinguishes_two_leases_of_one_worker() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let worker = blocking(|| add_worker(&queue));
    let other = blocking(|| add_worker(&queue));
    for n in 0..100 {
        let first = blocking(|| {
            send_heartbeat(&queue, worker);
            queue.add_task(&new_task(&format!("t{n}"))).unwrap();
            take_task(&queue, &new_taker(worker)).unwrap().0
        });
        expire_worker(&server, worker).await;
        blocking(|| {
            send_heartbeat(&queue, other);
            let second = take_task(&queue, &new_taker(worker)).unwrap().0;
            assert_eq!(
                second,
                TaskLease {
                    epoch: first.epoch + 1,
                    ..first
                }
            );
            assert!(queue.finish_task(first, &task_end(), None).is_err(), "{n}");
            queue.finish_task(second, &task_end(), None).unwrap();
            assert!(
                queue.finish_task(second, &task_end(), None).is_err()
                    && queue.finish_task(first, &task_end(), None).is_err(),
                "{n}"
            );
        });
    }
    server.end().await;
}

/// A worker that hangs in the middle of a transaction holds the row of its task; the server ends
/// its connection.
#[tokio::test]
async fn postgres_queue_takes_over_from_a_hanging_worker() {
    let Some(server) = Server::with_database().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    let (hung, next) = blocking(|| (add_worker(&queue), add_worker(&queue)));
    let lease = blocking(|| {
        queue.add_task(&new_task("t")).unwrap();
        take_task(&queue, &new_taker(hung)).unwrap().0
    });
    let store = PostgresStore::connect_with_lease(
        &server.url(),
        &StoreConfig::default(),
        TickingClock::new(),
        Some(lease),
    )
    .unwrap();
    let id = conversation("c");
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let _right = store.lock(&id).await.unwrap();
    let holding =
        server.hold("SET idle_in_transaction_session_timeout = 300; BEGIN; SELECT 1 FROM queue_tasks FOR SHARE").await;
    expire_worker(&server, hung).await;
    assert_eq!(
        blocking(|| take_task(&queue, &new_taker(next))),
        None,
        "its row is locked"
    );
    let over = blocking(|| {
        (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            take_task(&queue, &new_taker(next))
        })
    });
    let (lease, _) = over.expect("the server ends what is idle in a transaction");
    let other = PostgresStore::connect_with_lease(
        &server.url(),
        &StoreConfig::default(),
        TickingClock::new(),
        Some(lease),
    )
    .unwrap();
    let _its_own = other
        .try_lock(&id)
        .await
        .expect("the right of the one that hangs is gone");
    drop((store, other, holding));
    server.end().await;
}

/// Two schemas of one database have tasks with equal numbers: taking over one leaves the
/// connections of the other alone.
#[tokio::test]
async fn postgres_queue_leaves_tasks_of_another_schema_alone() {
    let (Some(here), Some(there)) = (Server::new().await, Server::new().await) else {
        return;
    };
    let config = StoreConfig::default();
    let begin = |server: &Server| {
        blocking(|| {
            let queue = connect_queue(server);
            queue.add_task(&new_task("t")).unwrap();
            let worker = add_worker(&queue);
            (take_task(&queue, &new_taker(worker)).unwrap().0, worker)
        })
    };
    let (first, lost) = begin(&here);
    let (other, _) = begin(&there);
    assert_eq!(first, other, "the same number");
    let store =
        PostgresStore::connect_with_lease(&there.url(), &config, TickingClock::new(), Some(other))
            .unwrap();
    let id = conversation("c");
    store
        .create(NewConversation::new(id.clone(), "p"))
        .await
        .unwrap();
    let _kept = store.lock(&id).await.unwrap();
    expire_worker(&here, lost).await;
    blocking(|| {
        let queue = connect_queue(&here);
        let next = add_worker(&queue);
        assert_eq!(take_task(&queue, &new_taker(next)).unwrap().0.epoch, 2);
    });
    store
        .append_message(&id, &user(1, "undisturbed"))
        .await
        .unwrap();
    drop(store);
    here.end().await;
    there.end().await;
}

#[tokio::test]
async fn postgres_queue_keeps_the_files_of_a_task_for_the_next_worker() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        queue.add_task(&new_task("t")).unwrap();
        let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
        let file = |path: &str, content: &[u8]| KeptFile {
            path: path.into(),
            kind: KeptKind::File,
            mode: 0o755,
            content: content.to_vec(),
        };
        let odd = file("a/\u{fc} '\"\n", &[0, 255, 10]);
        queue
            .save_files(lease, &[file("a/b", b"one"), odd.clone()])
            .unwrap();
        let gone = KeptFile {
            path: "a/b".into(),
            kind: KeptKind::Absent,
            mode: 0,
            content: Vec::new(),
        };
        queue
            .save_files(lease, std::slice::from_ref(&gone))
            .unwrap();
        assert_eq!(queue.read_files(lease.task).unwrap(), [gone, odd]);
        queue
            .release_task(lease, ReleaseReason::HandedOver)
            .unwrap();
        let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
        assert_eq!(
            queue.read_files(lease.task).unwrap().len(),
            2,
            "they outlive a taking"
        );
        queue.finish_task(lease, &task_end(), None).unwrap();
        assert!(queue.read_files(lease.task).unwrap().is_empty());
    });
    server.end().await;
}

#[tokio::test]
async fn postgres_queue_gives_up_a_task_that_loses_every_worker() {
    let Some(server) = Server::new().await else {
        return;
    };
    let queue = blocking(|| connect_queue(&server));
    blocking(|| queue.add_task(&new_task("t")).unwrap());
    let url = server.url();
    for n in 0..3_u32 {
        let (worker, lease) = blocking(|| {
            let worker = add_worker(&queue);
            let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
            (worker, lease)
        });
        let store = PostgresStore::connect_with_lease(
            &url,
            &StoreConfig::default(),
            TickingClock::new(),
            Some(lease),
        )
        .unwrap();
        let id = conversation(&format!("c{n}"));
        store
            .create(NewConversation::new(id.clone(), "p"))
            .await
            .unwrap();
        store.append_message(&id, &user(1, "begun")).await.unwrap();
        drop(store);
        expire_worker(&server, worker).await;
        blocking(|| {
            let next = add_worker(&queue);
            send_heartbeat(&queue, next);
        });
        // The pauses between attempts are not waited for.
        server
            .change("UPDATE queue_tasks SET not_before = now() WHERE state = 'queued'")
            .await;
    }
    blocking(|| {
        let worker = add_worker(&queue);
        assert!(take_task(&queue, &new_taker(worker)).is_none());
        let task = queue
            .list_tasks(&TaskFilter::default(), 1)
            .unwrap()
            .pop()
            .unwrap();
        assert_eq!(
            (task.state, task.result.unwrap()["code"].as_str()),
            (TaskState::Failed, Some("given_up"))
        );
    });
    server.end().await;
}

/// No label and no day exceeds its limit, in any order of adding, taking, spending, losing and
/// ending.
#[tokio::test]
async fn postgres_queue_reserves_spending_before_a_task_starts() {
    let Some(server) = Server::new().await else {
        return;
    };
    let worker = blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        let limit = |label: &str, usd| SpendingLimit {
            label: label.to_owned(),
            usd: Some(usd),
            tokens: None,
        };
        let limits = vec![limit("", 10.0), limit("night", 4.0)];
        let taker = WorkerProfile {
            limits,
            usd_limit: Some(1.0),
            ..new_taker(worker)
        };
        for n in 0..4 {
            let labels = vec!["night".to_owned()];
            queue
                .add_task(&NewTask {
                    labels,
                    usd_limit: Some(1.5),
                    ..new_task(&format!("night {n}"))
                })
                .unwrap();
        }
        for n in 0..20 {
            queue.add_task(&new_task(&format!("day {n}"))).unwrap();
        }
        let all: Vec<_> = std::iter::from_fn(|| take_task(&queue, &taker)).collect();
        let night: Vec<_> = all
            .iter()
            .filter(|(_, prompt)| prompt.starts_with("night"))
            .collect();
        assert_eq!(
            (night.len(), all.len()),
            (2, 9),
            "two of 1.5 within 4, and seven of 1 in what is left of 10"
        );
        // A task that used less than reserved leaves room for others.
        let (lease, _) = night[0];
        queue
            .record_spending(
                *lease,
                TaskSpending {
                    usd: 0.25,
                    ..TaskSpending::default()
                },
            )
            .unwrap();
        queue.finish_task(*lease, &task_end(), None).unwrap();
        assert!(
            take_task(&queue, &taker).unwrap().1.starts_with("day"),
            "9.75 of 10, where 1.5 are too much"
        );
        assert_eq!(take_task(&queue, &taker), None, "10 are spent or reserved");
        // Pending spending of a lost worker counts.
        let (lease, _) = all[8];
        let spent = TaskSpending {
            usd: 0.5,
            flying_usd: 0.25,
            tokens: 7,
            flying_tokens: 3,
        };
        queue.record_spending(lease, spent).unwrap();
        worker
    });
    expire_worker(&server, worker).await;
    blocking(|| {
        let queue = connect_queue(&server);
        let next = add_worker(&queue);
        send_heartbeat(&queue, next);
        let all: Vec<_> =
            std::iter::from_fn(|| queue.take_task(&new_taker(next)).unwrap()).collect();
        assert!(
            all.iter()
                .any(|(_, task)| (task.spent_usd - 0.75).abs() < 1e-9 && task.spent_tokens == 10)
        );
    });
    server.end().await;
}

/// Measures the time to store a file in the queue, compared with writing it to a folder and syncing
/// it. Not a test.
#[tokio::test]
#[ignore = "a measurement, run by hand"]
async fn measure_kept_files() {
    let Some(server) = Server::new().await else {
        return;
    };
    blocking(|| {
        let queue = connect_queue(&server);
        let worker = add_worker(&queue);
        queue.add_task(&new_task("t")).unwrap();
        let (lease, _) = take_task(&queue, &new_taker(worker)).unwrap();
        let at = std::env::temp_dir().join(format!("kept-{}", std::process::id()));
        for (bytes, rounds) in [(1_000, 100), (100_000, 50), (10_000_000, 5)] {
            // Source files contain repetitions; this content does not.
            let content: Vec<u8> = (0..bytes)
                .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            let file = KeptFile {
                path: "f".into(),
                kind: KeptKind::File,
                mode: 0o644,
                content,
            };
            let started = std::time::Instant::now();
            (0..rounds).for_each(|_| {
                queue
                    .save_files(lease, std::slice::from_ref(&file))
                    .unwrap();
            });
            let in_queue = started.elapsed() / rounds;
            let started = std::time::Instant::now();
            for _ in 0..rounds {
                std::fs::write(&at, &file.content).unwrap();
                std::fs::File::open(&at).unwrap().sync_all().unwrap();
            }
            println!(
                "{bytes} bytes: {in_queue:?} in the queue, {:?} in a folder",
                started.elapsed() / rounds
            );
        }
        std::fs::remove_file(at).unwrap();
    });
    server.end().await;
}
