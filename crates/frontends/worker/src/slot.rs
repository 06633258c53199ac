//! A running task: stops it, collects its log and records its spending.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_postgres::{KeptFile, QueuedTask, TaskLease, TaskQueue, TaskSpending, TaskTakenOver};
use haft_store::StoreError;
use tokio_util::sync::CancellationToken;

/// The maximum length of a log line, in bytes. Longer lines are cut.
const LONGEST_LINE: usize = 4_096;
/// The maximum number of lines kept between two heartbeats. Further lines are dropped.
const MOST_LINES: usize = 10_000;
/// The time between two attempts of a failed operation.
const PAUSE: Duration = Duration::from_millis(250);

/// The reason for stopping a task early. The first reason wins, except that losing the lease
/// replaces any other reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStop {
    /// The task was canceled in the queue.
    Cancelled,
    /// This worker is shutting down, and another worker continues the task.
    HandOver,
    /// The lease has expired, and the task belongs to another worker.
    Lost,
}

/// A running task, as the worker sees it.
pub struct Slot {
    /// The lease under which everything about the task is written to the queue.
    pub lease: TaskLease,
    /// Cancels the run.
    pub cancel: CancellationToken,
    reason: Mutex<Option<TaskStop>>,
    lines: Mutex<Vec<String>>,
}

impl Slot {
    pub(crate) fn new(lease: TaskLease) -> Self {
        let cancel = CancellationToken::new();
        let reason = Mutex::default();
        let lines = Mutex::default();
        Self {
            lease,
            cancel,
            reason,
            lines,
        }
    }

    /// Cancels the run and records the reason.
    pub fn stop(&self, why: TaskStop) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_none() || why == TaskStop::Lost {
            *reason = Some(why);
        }
        self.cancel.cancel();
    }

    /// Returns the reason why the run was stopped, if it was.
    pub fn reason(&self) -> Option<TaskStop> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the log. It is written to the queue with the next heartbeat.
    pub fn log(&self, mut line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MOST_LINES {
            line.truncate(line.floor_char_boundary(LONGEST_LINE));
            lines.push(line);
        }
    }

    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Repeats `job` until it succeeds, for operations without which the run must not continue.
    /// Only losing the task to another worker ends the attempts with an error, and nothing of this
    /// run is stored from then on. Must not be called from within a runtime.
    pub fn insist<T>(
        &self,
        mut job: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            match job() {
                Err(error) if TaskTakenOver::is(&error) => {
                    self.stop(TaskStop::Lost);
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(task = self.lease.task, %error, "a run waits for the queue");
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }
}

/// The data a host needs to run a task.
#[derive(Clone)]
pub struct TaskRun {
    /// The task as it was taken from the queue.
    pub task: QueuedTask,
    /// The working folder: a clone that contains the changes of earlier runs.
    pub folder: PathBuf,
    /// The queue, for data that is written during the run.
    pub queue: Arc<TaskQueue>,
    /// Stops the task and collects its log.
    pub slot: Arc<Slot>,
}

impl TaskRun {
    /// Records what the task has spent. Blocks, and may be called from within a runtime.
    pub fn spend(&self, spent: TaskSpending) {
        if let Err(error) = self.insist(|| self.queue.spend(self.slot.lease, spent)) {
            tracing::warn!(task = self.task.id, %error, "what a task spends could not be noted");
        }
    }

    /// Stores files with the task, for a worker that continues it. Blocks, and may be called from
    /// within a runtime.
    pub fn keep(&self, files: &[KeptFile]) -> Result<(), StoreError> {
        self.insist(|| self.queue.keep(self.slot.lease, files))
    }

    fn insist(&self, job: impl Fn() -> Result<(), StoreError> + Send) -> Result<(), StoreError> {
        // `Slot::retry_until_done` must not block a thread of a runtime, so it runs on a thread of
        // its own.
        std::thread::scope(|scope| scope.spawn(|| self.slot.insist(job)).join())
            .unwrap_or(Err(StoreError::Closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_unless_the_task_is_lost() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        assert_eq!(slot.reason(), None);
        slot.stop(TaskStop::Cancelled);
        slot.stop(TaskStop::HandOver);
        assert_eq!(
            (slot.reason(), slot.cancel.is_cancelled()),
            (Some(TaskStop::Cancelled), true)
        );
        slot.stop(TaskStop::Lost);
        assert_eq!(slot.reason(), Some(TaskStop::Lost));
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        slot.log("\u{fc}".repeat(5_000));
        assert_eq!(slot.take_lines(), ["\u{fc}".repeat(2_048)]);
        assert!(slot.take_lines().is_empty());
    }

    #[test]
    fn what_another_worker_has_is_not_insisted_on() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        let mut tries = 0;
        let refused = slot.insist(|| {
            tries += 1;
            let source = Box::new(TaskTakenOver(slot.lease));
            Err::<(), _>(StoreError::Database {
                path: "the queue".into(),
                source,
            })
        });
        assert!(refused.is_err() && tries == 1 && slot.reason() == Some(TaskStop::Lost));
    }
}
