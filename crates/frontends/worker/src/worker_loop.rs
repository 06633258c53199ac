//! Runs the loop of a worker, which takes tasks while it has free slots, and waits for the running
//! ones at its end.
//!
//! Invariant: however a run ends, its task is either finished once, returned to the queue, or owned
//! by another worker.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use haft_postgres::{QueueListener, TaskLease, TaskQueue, WorkerProfile, WorkerStatus};
use haft_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::heartbeats::LastHeartbeat;
use crate::host_health::{HostHealth, Readiness};
use crate::slot::{Slot, TaskStop};
use crate::task_runner::TaskRunner;
use crate::wakeup::Wakeup;
use crate::webhook::Webhook;
use crate::workspace::Workspaces;

/// The interval between polls of an idle worker. New tasks are announced; polls find the tasks
/// whose announcement was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The interval between polls while the worker waits for a particular state of the queue.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval at which a worker that ends checks its running tasks.
const DRAIN_INTERVAL: Duration = Duration::from_millis(25);
/// The interval at which old tasks are removed.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
/// The time after the drain time in which tasks must be handed over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings with which a worker is started.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The maximum number of tasks that run at the same time.
    pub slots: u16,
    /// The time after a stop request in which running tasks may end before they are handed over to
    /// other workers.
    pub drain: Duration,
    /// True if the worker exits when the queue has no more tasks that it can take.
    pub until_empty: bool,
    /// True if the worker takes a single task and exits at its end.
    pub takes_one: bool,
    /// The name, the filter and the limits of the worker. It replaces the id in this profile with
    /// its own.
    pub taker: WorkerProfile,
}

/// The requests to end a worker, and its answer.
#[derive(Clone, Default)]
pub struct WorkerStop {
    /// Canceled if the worker is to take no more tasks.
    pub stop: CancellationToken,
    /// Canceled if the worker is to hand over its running tasks immediately.
    pub at_once: CancellationToken,
    /// Canceled by the worker if tasks cannot be handed over in time, because the database is
    /// unreachable. The process should exit then.
    pub abandoned: CancellationToken,
}

/// Takes tasks from a queue and runs them.
pub struct Worker {
    /// The connection to the queue through which tasks are taken and the data of running tasks is
    /// written.
    pub queue: Arc<TaskQueue>,
    /// A separate connection for heartbeats, so that heartbeats never wait for other queries.
    pub heartbeat_queue: TaskQueue,
    /// The address of the queue's server, for the connection on which changes are announced.
    pub server: String,
    /// The manager of the folders in which tasks work.
    pub workspaces: Workspaces,
    /// Runs the tasks.
    pub runner: TaskRunner,
    /// The address that is called at the end of each task.
    pub webhook: Option<Webhook>,
    /// The time after which ended tasks are removed from the queue.
    pub keep: Option<Duration>,
    /// The settings with which the worker was started.
    pub options: WorkerOptions,
}

/// The state that the threads of a worker share.
pub(crate) struct WorkerState {
    pub(crate) busy: BusySlots,
    pub(crate) health: HostHealth,
    pub(crate) last_heartbeat: LastHeartbeat,
    /// Wakes the thread that takes tasks.
    pub(crate) wakeup: Wakeup,
    /// Wakes the thread that sends heartbeats.
    pub(crate) pulse: Wakeup,
    /// The error because of which the worker ends.
    failure: Mutex<Option<StoreError>>,
    /// The task that a worker for a single task has taken.
    only: Mutex<Option<i64>>,
}

/// The slots that are in use. A task that was lost and taken again can have two.
#[derive(Default)]
pub(crate) struct BusySlots {
    slots: Mutex<HashMap<(i64, i64), Arc<Slot>>>,
    is_taking: AtomicBool,
}

impl BusySlots {
    fn lock_slots(&self) -> MutexGuard<'_, HashMap<(i64, i64), Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.lock_slots().values().cloned().collect()
    }

    /// True while a task is being taken that has no slot yet.
    pub(crate) fn is_taking(&self) -> bool {
        self.is_taking.load(Ordering::SeqCst)
    }

    pub(crate) fn stop_all(&self, why: TaskStop) {
        for slot in self.lock_slots().values() {
            slot.stop(why);
        }
    }

    fn count(&self) -> usize {
        self.lock_slots().len()
    }

    fn tasks(&self) -> Vec<i64> {
        self.lock_slots().keys().map(|(task, _)| *task).collect()
    }

    fn remove(&self, lease: TaskLease) {
        self.lock_slots().remove(&(lease.task, lease.epoch));
    }
}

impl WorkerState {
    fn new() -> Self {
        Self {
            busy: BusySlots::default(),
            health: HostHealth::default(),
            last_heartbeat: LastHeartbeat::new(),
            wakeup: Wakeup::default(),
            pulse: Wakeup::default(),
            failure: Mutex::default(),
            only: Mutex::default(),
        }
    }

    /// Ends the worker, because a newer haft has upgraded the queue's tables.
    pub(crate) fn refuse_format(&self, error: StoreError, stop: &CancellationToken) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        stop.cancel();
        self.busy.stop_all(TaskStop::HandOver);
    }
}

impl Worker {
    /// Takes and runs tasks until `requests.stop` is canceled, then waits for the running tasks to
    /// end. Blocks until the last task has ended. A worker for a single task returns the task that
    /// it took, if there was one.
    pub fn run_until_stopped(&self, requests: &WorkerStop) -> Result<Option<i64>, StoreError> {
        let id = self.heartbeat_queue.add_worker(&self.options.taker)?;
        let taker = WorkerProfile {
            worker: id,
            ..self.options.taker.clone()
        };
        // Scheduled tasks become available, and lost ones are queued again, before the worker looks for
        // a task: one that is to end when there is none would miss them.
        self.heartbeat_queue
            .record_heartbeat(&taker, &WorkerStatus::default())?;
        for folder in self.workspaces.remove_abandoned() {
            self.runner.revoke_trust(&folder);
        }
        let listener = QueueListener::new(&self.server)?;
        let state = WorkerState::new();
        let ended = CancellationToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| self.send_heartbeats(&taker, &state, &requests.stop, &ended));
            scope.spawn(|| Self::watch_lease(taker.lease, &state, &ended));
            scope.spawn(|| Self::listen_for_changes(listener, &state, &ended));
            if let Some(webhook) = &self.webhook {
                scope.spawn(|| webhook.announce_ends(&self.queue, &ended));
            }
            if let Some(keep) = self.keep {
                let ended = &ended;
                scope.spawn(move || self.remove_old_tasks(keep, ended));
            }
            self.take_tasks(scope, &taker, &state, &requests.stop);
            self.drain_slots(&state, requests);
            ended.cancel();
        });
        let removed = self.heartbeat_queue.remove_worker(id);
        let failure = state.failure.into_inner();
        match failure.unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => removed.map(|()| {
                state
                    .only
                    .into_inner()
                    .unwrap_or_else(PoisonError::into_inner)
            }),
        }
    }

    /// Takes tasks while there are free slots, and starts a thread for each.
    fn take_tasks<'scope, 'env: 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        taker: &WorkerProfile,
        state: &'scope WorkerState,
        stop: &CancellationToken,
    ) {
        let mut taker = taker.clone();
        while !stop.is_cancelled() {
            if state.busy.count() >= usize::from(self.options.slots) {
                state.wakeup.wait(POLL_INTERVAL, stop);
                continue;
            }
            match state.health.readiness() {
                Readiness::Ready => {}
                // The scheduler that started this worker finds another host.
                Readiness::Paused(_) | Readiness::NeedsCheck if self.options.takes_one => return,
                Readiness::Paused(left) => {
                    state.wakeup.wait(left, stop);
                    continue;
                }
                Readiness::NeedsCheck => {
                    self.check_host(state);
                    continue;
                }
            }
            state.busy.is_taking.store(true, Ordering::SeqCst);
            let taken = self.queue.take_task(&WorkerProfile {
                holding: state.busy.tasks(),
                ..taker.clone()
            });
            let slot = match &taken {
                Ok(Some((lease, _))) => {
                    let slot = Arc::new(Slot::new(*lease));
                    let mut slots = state.busy.lock_slots();
                    slots.insert((lease.task, lease.epoch), Arc::clone(&slot));
                    Some(slot)
                }
                Ok(None) | Err(_) => None,
            };
            state.busy.is_taking.store(false, Ordering::SeqCst);
            match (taken, slot) {
                (Ok(Some((_, task))), Some(slot)) => {
                    if self.options.takes_one {
                        taker.only = Some(task.id);
                        *state.only.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.id);
                    }
                    scope.spawn(move || {
                        self.run_and_report_task(&task, &slot, state);
                        state.busy.remove(slot.lease);
                        state.wakeup.signal();
                    });
                }
                (Ok(_), _) => {
                    if self.is_done(&taker, state) {
                        return;
                    }
                    state.wakeup.wait(self.poll_interval(), stop);
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "no task can be taken");
                    state.wakeup.wait(CLOSE_POLL_INTERVAL * 2, stop);
                }
            }
        }
    }

    fn poll_interval(&self) -> Duration {
        if self.options.until_empty || self.options.takes_one {
            CLOSE_POLL_INTERVAL
        } else {
            POLL_INTERVAL
        }
    }

    /// True if the worker was started for a single task that is over, or until the queue is empty,
    /// and nothing is left that it could take later, such as a task of a lost worker.
    fn is_done(&self, taker: &WorkerProfile, state: &WorkerState) -> bool {
        if state.busy.count() > 0 {
            return false;
        }
        let is_left = match taker.only {
            Some(id) => self
                .queue
                .get_task(id)
                .map(|task| task.is_some_and(|task| !task.state.is_over())),
            None if self.options.takes_one => return true,
            None if self.options.until_empty => self.queue.has_tasks_to_come(taker),
            None => return false,
        };
        is_left.is_ok_and(|is_left| !is_left)
    }

    /// Checks the host before the next task, after a check that failed.
    fn check_host(&self, state: &WorkerState) {
        match self.workspaces.check_host() {
            Ok(()) => state.health.record_recovery(),
            Err(error) => state.health.record_sickness(error.to_string()),
        }
        state.pulse.signal();
    }

    /// Waits for the running tasks to end. Tasks that are still running after the drain time are
    /// handed over to other workers. Tasks that cannot be handed over are abandoned; other workers
    /// take them when the lease expires.
    fn drain_slots(&self, state: &WorkerState, requests: &WorkerStop) {
        let started = Instant::now();
        let mut handed_over = None;
        while state.busy.count() > 0 {
            if handed_over.is_none()
                && (requests.at_once.is_cancelled() || started.elapsed() >= self.options.drain)
            {
                state.busy.stop_all(TaskStop::HandOver);
                handed_over = Some(Instant::now());
            }
            if handed_over.is_some_and(|since| since.elapsed() >= HAND_OVER_TIMEOUT) {
                state.busy.stop_all(TaskStop::Lost);
                requests.abandoned.cancel();
            }
            std::thread::sleep(DRAIN_INTERVAL);
        }
    }

    /// Removes tasks that ended longer than `keep` ago, once an hour.
    fn remove_old_tasks(&self, keep: Duration, ended: &CancellationToken) {
        let pause = Wakeup::default();
        while !ended.is_cancelled() {
            if let Err(error) = self.queue.prune(keep) {
                tracing::warn!(%error, "old tasks stay in the queue");
            }
            pause.wait(PRUNE_INTERVAL, ended);
        }
    }
}
