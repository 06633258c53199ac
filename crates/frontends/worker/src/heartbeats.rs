//! Keeps a worker's leases: sends heartbeats, stops runs whose lease has expired, and listens for
//! changes of the queue.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_postgres::{
    QueueListener, QueueSignal, ReleaseReason, TaskLease, WorkerProfile, WorkerStatus,
};
use haft_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::slot::{Slot, TaskStop};
use crate::worker_loop::{Worker, WorkerState};

/// The longest pause after a heartbeat that failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The pause before the listener connects again.
const LISTEN_INTERVAL: Duration = Duration::from_secs(2);
/// The interval at which the age of the last heartbeat is checked.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// The time at which the newest successful heartbeat was sent.
pub(crate) struct LastHeartbeat(Mutex<Instant>);

impl LastHeartbeat {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn record(&self, sent: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sent;
    }

    fn age(&self) -> Duration {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }
}

impl Worker {
    /// Sends heartbeats until `ended` is canceled, and writes the logs of running tasks to the
    /// queue. The queue answers each heartbeat with the tasks that the worker still holds and the
    /// tasks that were canceled.
    pub(crate) fn send_heartbeats(
        &self,
        taker: &WorkerProfile,
        state: &WorkerState,
        stop: &CancellationToken,
        ended: &CancellationToken,
    ) {
        let mut orphans: HashMap<i64, (TaskLease, Instant)> = HashMap::new();
        while !ended.is_cancelled() {
            let status = WorkerStatus {
                draining: stop.is_cancelled(),
                problem: state.health.problem(),
            };
            let sent = Instant::now();
            let slots = state.busy.slots();
            let is_taking = state.busy.is_taking();
            let wait = match self.heartbeat_queue.record_heartbeat(taker, &status) {
                Ok(answer) => {
                    state.last_heartbeat.record(sent);
                    for slot in &slots {
                        match answer.held.iter().find(|(lease, _)| *lease == slot.lease) {
                            None => slot.stop(TaskStop::Lost),
                            Some((_, true)) => slot.stop(TaskStop::Cancelled),
                            Some((_, false)) => self.write_log(slot),
                        }
                    }
                    let held = answer.held.iter().map(|(lease, _)| *lease);
                    let left = held.filter(|lease| slots.iter().all(|slot| slot.lease != *lease));
                    if is_taking {
                        orphans.clear();
                    } else {
                        self.release_orphans(&mut orphans, left, taker.lease);
                    }
                    let next = taker.lease / 4;
                    answer.next_due.map_or(next, |due| next.min(due))
                }
                Err(error @ StoreError::NewerFormat { .. }) => {
                    // Another haft has upgraded the tables. Its workers take the tasks.
                    state.refuse_format(error, stop);
                    taker.lease / 4
                }
                Err(error) => {
                    tracing::warn!(%error, "the queue does not hear this worker");
                    RETRY_INTERVAL.min(taker.lease / 4)
                }
            };
            state.pulse.wait(wait, ended);
        }
    }

    /// Returns tasks to the queue that this worker holds without running them: their runs were
    /// stopped while the queue could not be reached.
    fn release_orphans(
        &self,
        orphans: &mut HashMap<i64, (TaskLease, Instant)>,
        left: impl Iterator<Item = TaskLease>,
        lease: Duration,
    ) {
        let mut seen = HashMap::new();
        for one in left {
            let first = orphans.get(&one.task).filter(|(known, _)| *known == one);
            let first = first.map_or_else(Instant::now, |(_, first)| *first);
            if first.elapsed() < lease / 4 {
                seen.insert(one.task, (one, first));
                continue;
            }
            let released = self
                .heartbeat_queue
                .release_task(one, ReleaseReason::ExternalFailure);
            if let Err(error) = released {
                tracing::warn!(task = one.task, %error, "a task without a run is returned later");
            }
        }
        *orphans = seen;
    }

    /// Stops all runs once the newest heartbeat is older than the lease: other workers take these
    /// tasks, and the queue would discard the results of this worker. A heartbeat that waits for a
    /// dead connection does not delay this.
    pub(crate) fn watch_lease(lease: Duration, state: &WorkerState, ended: &CancellationToken) {
        while !ended.is_cancelled() {
            if state.last_heartbeat.age() >= lease {
                state.busy.stop_all(TaskStop::Lost);
            }
            std::thread::sleep(WATCH_INTERVAL.min(lease / 4));
        }
    }

    /// Wakes the other threads of the worker when the queue changes, until `ended` is canceled.
    pub(crate) fn listen_for_changes(
        mut listener: QueueListener,
        state: &WorkerState,
        ended: &CancellationToken,
    ) {
        while !ended.is_cancelled() {
            match listener.wait(ended) {
                Ok(QueueSignal::Task) => state.wakeup.signal(),
                Ok(QueueSignal::Cancel) => state.pulse.signal(),
                Ok(QueueSignal::Nothing) => {}
                Err(error) => {
                    tracing::debug!(%error, "the queue's announcements are not heard");
                    crate::wakeup::Wakeup::default().wait(LISTEN_INTERVAL, ended);
                }
            }
        }
    }

    pub(crate) fn write_log(&self, slot: &Slot) {
        let lines = slot.take_log_lines();
        if let Err(error) = self.heartbeat_queue.append_log(slot.lease, &lines) {
            tracing::warn!(task = slot.lease.task, %error, "lines of a task's log are lost");
        }
    }
}
