//! One task under way: how it is stopped, what it logs and what it spends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_postgres::{KeptFile, QueuedTask, TaskLease, TaskQueue, TaskSpending, TaskTakenOver};
use haft_store::StoreError;
use tokio_util::sync::CancellationToken;

/// Longer lines of the log are cut.
const LONGEST_LINE: usize = 4_096;
/// More lines are not kept between two heartbeats.
const MOST_LINES: usize = 10_000;
/// How long it takes until what failed is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// Why a task is stopped before its end. A later reason does not replace an earlier one, but for
/// the loss of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStop {
    /// Somebody took it out of the queue.
    Cancelled,
    /// The worker ends: another one goes on.
    HandOver,
    /// It is another worker's by now.
    Lost,
}

/// A task under way, as the worker sees it.
pub struct Slot {
    /// In whose name everything is written.
    pub lease: TaskLease,
    /// Ends the run.
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

    /// Ends the run for this reason.
    pub fn stop(&self, why: TaskStop) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_none() || why == TaskStop::Lost {
            *reason = Some(why);
        }
        self.cancel.cancel();
    }

    /// Why it was stopped, if it was.
    pub fn reason(&self) -> Option<TaskStop> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the log, which is written with the next heartbeat.
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

    /// Does something that must be done before the run goes on, and waits for the server where it
    /// has to. Only the word that the task is another worker's ends it: from then on nothing
    /// more of this run is stored. Must not be called from within a runtime.
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

/// What the host is given to run.
#[derive(Clone)]
pub struct TaskRun {
    /// The task as it was taken.
    pub task: QueuedTask,
    /// Where it works: a clone with what earlier runs changed.
    pub folder: PathBuf,
    /// The queue, for what must be written on the way.
    pub queue: Arc<TaskQueue>,
    /// How it is stopped, and what it logs.
    pub slot: Arc<Slot>,
}

impl TaskRun {
    /// Notes what the task has spent. Blocks, wherever it is called.
    pub fn spend(&self, spent: TaskSpending) {
        if let Err(error) = self.insist(|| self.queue.spend(self.slot.lease, spent)) {
            tracing::warn!(task = self.task.id, %error, "what a task spends could not be noted");
        }
    }

    /// Keeps files with the task, for whoever goes on with it. Blocks, wherever it is called.
    pub fn keep(&self, files: &[KeptFile]) -> Result<(), StoreError> {
        self.insist(|| self.queue.keep(self.slot.lease, files))
    }

    fn insist(&self, job: impl Fn() -> Result<(), StoreError> + Send) -> Result<(), StoreError> {
        // A caller within a runtime must not wait for another one.
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
