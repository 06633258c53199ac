//! The state of a running task: allows stopping the task, collects its log and records its
//! spending.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_postgres::{KeptFile, QueuedTask, TaskLease, TaskQueue, TaskSpending, TaskTakenOver};
use haft_store::StoreError;
use tokio_util::sync::CancellationToken;

/// The maximum length of a log line, in bytes. Longer lines are truncated.
const MAX_LINE_BYTES: usize = 4_096;
/// The maximum number of log lines that are collected between two heartbeats. Further lines are
/// dropped.
const MAX_BUFFERED_LINES: usize = 10_000;
/// The waiting time before a failed operation is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// The interval at which a blocked run checks whether its task is lost.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The reason for stopping a task early. The first reason is kept, except that [`Self::Lost`]
/// replaces any other reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStop {
    /// The task was canceled in the queue.
    Cancelled,
    /// This worker is shutting down, and another worker continues the task.
    HandOver,
    /// The lease has expired, so the task belongs to another worker.
    Lost,
}

/// The state of a task that a worker is running: its lease, its cancellation, and its log lines.
pub struct Slot {
    /// The lease of the task, which every write to the queue must name.
    pub lease: TaskLease,
    /// The token that cancels the run.
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

    /// Cancels the run and stores the reason.
    pub fn stop(&self, why: TaskStop) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_none() || why == TaskStop::Lost {
            *reason = Some(why);
        }
        self.cancel.cancel();
    }

    /// Returns the reason why the run was stopped early, or `None` if it was not.
    pub fn stop_reason(&self) -> Option<TaskStop> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the log of the task. The next heartbeat writes the line to the queue.
    pub fn add_log_line(&self, mut line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MAX_BUFFERED_LINES {
            line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
            lines.push(line);
        }
    }

    pub(crate) fn take_log_lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Repeats `job` until it succeeds. Used for operations that must have succeeded before the run
    /// continues. Returns an error only if the task no longer belongs to this worker; in that case,
    /// the run must end, because nothing it does will be stored. Must not be called from within a
    /// runtime.
    pub fn retry_until_done<T>(
        &self,
        mut job: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            match job() {
                Err(error) if TaskTakenOver::is_cause_of(&error) => {
                    self.stop(TaskStop::Lost);
                    return Err(error);
                }
                Err(error) if self.stop_reason() == Some(TaskStop::Lost) => return Err(error),
                Err(error) => {
                    tracing::warn!(task = self.lease.task, %error, "a run waits for the queue");
                    std::thread::sleep(RETRY_INTERVAL);
                }
                done => return done,
            }
        }
    }
}

/// A run of a task, with the folder, queue and slot that a [`TaskRunner`](crate::TaskRunner) needs
/// for it.
#[derive(Clone)]
pub struct TaskRun {
    /// The task, as it was taken from the queue.
    pub task: QueuedTask,
    /// The folder in which the task works: a clone that contains the changes of earlier runs.
    pub folder: PathBuf,
    /// The queue to which the data of the run is written.
    pub queue: Arc<TaskQueue>,
    /// The slot that stops the run and collects its log.
    pub slot: Arc<Slot>,
}

impl TaskRun {
    /// Records the tokens and the cost that the task has used so far. Blocks until they are stored,
    /// and may be called from within a runtime.
    pub fn record_spending(&self, spent: TaskSpending) {
        let lease = self.slot.lease;
        let recorded = self.retry_on_thread(move |queue| queue.record_spending(lease, spent));
        if let Err(error) = recorded {
            tracing::warn!(task = self.task.id, %error, "what a task spends could not be noted");
        }
    }

    /// Stores files in the queue, so that another worker can continue the task. Blocks until they
    /// are stored, and may be called from within a runtime.
    pub fn keep_files(&self, files: Vec<KeptFile>) -> Result<(), StoreError> {
        let lease = self.slot.lease;
        self.retry_on_thread(move |queue| queue.save_files(lease, &files))
    }

    /// Runs `job` on a thread of its own, because [`Slot::retry_until_done`] must not block a
    /// thread of a runtime. If the task is lost, the job is not waited for: it may hang on a dead
    /// connection, and the queue will refuse what it writes.
    fn retry_on_thread(
        &self,
        job: impl Fn(&TaskQueue) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let (done, result) = mpsc::channel();
        let queue = Arc::clone(&self.queue);
        let slot = Arc::clone(&self.slot);
        std::thread::spawn(move || {
            // The receiver is gone if the task was lost meanwhile.
            let _ = done.send(slot.retry_until_done(|| job(&queue)));
        });
        loop {
            match result.recv_timeout(CHECK_INTERVAL) {
                Ok(done) => return done,
                Err(RecvTimeoutError::Timeout)
                    if self.slot.stop_reason() != Some(TaskStop::Lost) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(StoreError::Closed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_keeps_the_first_reason_unless_the_task_is_lost() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        assert_eq!(slot.stop_reason(), None);
        slot.stop(TaskStop::Cancelled);
        slot.stop(TaskStop::HandOver);
        assert_eq!(
            (slot.stop_reason(), slot.cancel.is_cancelled()),
            (Some(TaskStop::Cancelled), true)
        );
        slot.stop(TaskStop::Lost);
        assert_eq!(slot.stop_reason(), Some(TaskStop::Lost));
    }

    #[test]
    fn add_log_line_cuts_long_lines_between_characters() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        slot.add_log_line("\u{fc}".repeat(5_000));
        assert_eq!(slot.take_log_lines(), ["\u{fc}".repeat(2_048)]);
        assert!(slot.take_log_lines().is_empty());
    }

    #[test]
    fn retry_until_done_ends_if_another_worker_has_the_task() {
        let slot = Slot::new(TaskLease { task: 1, epoch: 1 });
        let mut tries = 0;
        let refused = slot.retry_until_done(|| {
            tries += 1;
            let source = Box::new(TaskTakenOver(slot.lease));
            Err::<(), _>(StoreError::Database {
                path: "the queue".into(),
                source,
            })
        });
        assert!(refused.is_err() && tries == 1 && slot.stop_reason() == Some(TaskStop::Lost));
    }
}
