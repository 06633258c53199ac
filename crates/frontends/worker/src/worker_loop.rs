//! Runs the loop of a worker, which sends heartbeats, takes tasks while it has free slots, and
//! reports the ends of tasks.
//!
//! Invariant: however a run ends, its task is either finished once, returned to the queue, or owned
//! by another worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_postgres::{
    QueuedTask, ReleaseReason, TaskEnd, TaskQueue, TaskState, TaskTakenOver, WorkerProfile,
};
use haft_store::StoreError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::slot::{Slot, TaskRun, TaskStop};
use crate::task_runner::TaskRunner;
use crate::workspace::{TaskWorkspace, WorkspaceError, Workspaces};

/// The waiting time before the queue is polled again if it had no task for the worker.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The interval at which the worker checks for a free slot or a stop request.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// The settings with which a worker is started.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The worker's name in the queue.
    pub name: String,
    /// The maximum number of tasks that run at the same time.
    pub slots: u16,
    /// The time after a stop request in which running tasks may end before they are handed over to
    /// other workers.
    pub drain: Duration,
    /// True if the worker exits when the queue has no more tasks that it can take.
    pub until_empty: bool,
    /// The filter and the limits for the tasks that the worker takes. The worker replaces the id in
    /// this profile with its own.
    pub taker: WorkerProfile,
}

/// The way in which a run ended: with a result, or with a permanent or temporary failure.
#[derive(Debug)]
pub enum RunEnd {
    /// The run ended with this result, as JSON.
    Result(Value),
    /// The run could not start, and would not start on any other worker. The value is the reason.
    Refused(String),
    /// The server or the store failed, so another attempt may succeed. The value is the reason.
    Trouble(String),
}

impl From<WorkspaceError> for RunEnd {
    fn from(error: WorkspaceError) -> Self {
        let end = if error.is_transient() {
            Self::Trouble
        } else {
            Self::Refused
        };
        end(error.to_string())
    }
}

/// Takes tasks from a queue and runs them.
pub struct Worker {
    /// The connection to the queue through which tasks are taken and the data of running tasks is
    /// written.
    pub queue: Arc<TaskQueue>,
    /// A separate connection for heartbeats, so that heartbeats never wait for other queries.
    pub heartbeat_queue: TaskQueue,
    /// The manager of the folders in which tasks work.
    pub workspaces: Workspaces,
    /// Runs the tasks.
    pub runner: TaskRunner,
    /// The settings with which the worker was started.
    pub options: WorkerOptions,
}

/// The slots that are in use, by task id.
#[derive(Default)]
struct BusySlots(Mutex<HashMap<i64, Arc<Slot>>>);

impl BusySlots {
    fn lock_slots(&self) -> MutexGuard<'_, HashMap<i64, Arc<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_all(&self, why: TaskStop) {
        for slot in self.lock_slots().values() {
            slot.stop(why);
        }
    }
}

impl Worker {
    /// Takes and runs tasks until `stop` is canceled, then waits for the running tasks to end. If
    /// `at_once` is canceled, the running tasks are handed over immediately. Blocks until the last
    /// task has ended.
    pub fn run_until_stopped(
        &self,
        stop: &CancellationToken,
        at_once: &CancellationToken,
    ) -> Result<(), StoreError> {
        let WorkerOptions {
            name, slots, taker, ..
        } = &self.options;
        let id = self
            .heartbeat_queue
            .add_worker(name, i64::from(*slots), &taker.labels)?;
        let taker = WorkerProfile {
            worker: id,
            ..taker.clone()
        };
        let busy = BusySlots::default();
        let ended = CancellationToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| self.send_heartbeats(&taker, &busy, stop, &ended));
            while !stop.is_cancelled() {
                if busy.lock_slots().len() >= usize::from(*slots) {
                    std::thread::sleep(CHECK_INTERVAL);
                    continue;
                }
                match self.queue.take_task(&taker) {
                    Ok(Some((lease, task))) => {
                        let slot = Arc::new(Slot::new(lease));
                        busy.lock_slots().insert(lease.task, Arc::clone(&slot));
                        let busy = &busy;
                        scope.spawn(move || {
                            self.run_and_report_task(&task, &slot);
                            busy.lock_slots().remove(&slot.lease.task);
                        });
                    }
                    Ok(None) if self.options.until_empty && busy.lock_slots().is_empty() => break,
                    Ok(None) => std::thread::sleep(POLL_INTERVAL),
                    Err(error) => {
                        tracing::warn!(%error, "no task can be taken");
                        std::thread::sleep(POLL_INTERVAL * 4);
                    }
                }
            }
            self.drain_slots(&busy, at_once);
            ended.cancel();
        });
        self.heartbeat_queue.remove_worker(id)
    }

    /// Waits for the running tasks to end. Tasks that are still running after the drain time are
    /// handed over to other workers.
    fn drain_slots(&self, busy: &BusySlots, at_once: &CancellationToken) {
        let started = Instant::now();
        while !busy.lock_slots().is_empty() {
            if at_once.is_cancelled() || started.elapsed() >= self.options.drain {
                busy.stop_all(TaskStop::HandOver);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Sends heartbeats until `ended` is canceled, and writes the logs of running tasks to the
    /// queue. The queue answers each heartbeat with the tasks that the worker still holds and the
    /// tasks that were canceled.
    fn send_heartbeats(
        &self,
        taker: &WorkerProfile,
        busy: &BusySlots,
        stop: &CancellationToken,
        ended: &CancellationToken,
    ) {
        let mut last_success = Instant::now();
        while !ended.is_cancelled() {
            let slots: Vec<_> = busy.lock_slots().values().cloned().collect();
            match self
                .heartbeat_queue
                .record_heartbeat(taker.worker, stop.is_cancelled())
            {
                Ok(held) => {
                    last_success = Instant::now();
                    for slot in &slots {
                        match held.iter().find(|(lease, _)| *lease == slot.lease) {
                            None => slot.stop(TaskStop::Lost),
                            Some((_, true)) => slot.stop(TaskStop::Cancelled),
                            Some((_, false)) => self.write_log(slot),
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the queue does not hear this worker");
                    if last_success.elapsed() >= taker.lease {
                        // The leases of these tasks have expired, so other workers take the tasks.
                        // The queue would discard the results of this worker.
                        for slot in slots {
                            slot.stop(TaskStop::Lost);
                        }
                    }
                }
            }
            let next = Instant::now() + taker.lease / 4;
            while Instant::now() < next && !ended.is_cancelled() {
                std::thread::sleep(CHECK_INTERVAL);
            }
        }
    }

    fn write_log(&self, slot: &Slot) {
        let lines = slot.take_log_lines();
        if !lines.is_empty()
            && let Err(error) = self.heartbeat_queue.append_log(slot.lease, &lines)
        {
            tracing::warn!(task = slot.lease.task, %error, "lines of a task's log are lost");
        }
    }

    /// Runs one task and reports its result to the queue.
    fn run_and_report_task(&self, task: &QueuedTask, slot: &Arc<Slot>) {
        #[cfg(feature = "otel")]
        let started = Instant::now();
        let (end, workspace) = match self.prepare_workspace(task, slot) {
            Ok(workspace) => {
                let folder = workspace.folder.clone();
                let queue = Arc::clone(&self.queue);
                let run = TaskRun {
                    task: task.clone(),
                    folder,
                    queue,
                    slot: Arc::clone(slot),
                };
                (self.runner.run_task(&run), Some(workspace))
            }
            Err(end) => (end, None),
        };
        #[cfg(feature = "otel")]
        TaskRunner::record_trace(task, slot, started.elapsed(), &end);
        let reported = match (slot.stop_reason(), end) {
            (Some(TaskStop::Lost), _) => Ok(()),
            (Some(TaskStop::HandOver), _) => self.release_task(slot, ReleaseReason::HandedOver),
            (None, RunEnd::Trouble(why)) => {
                slot.add_log_line(json!({"type": "worker", "message": why}).to_string());
                self.write_log(slot);
                self.release_task(
                    slot,
                    ReleaseReason::ExternalFailure(Duration::from_secs(
                        (task.attempts * task.attempts).unsigned_abs(),
                    )),
                )
            }
            (None, RunEnd::Refused(why)) => {
                self.finish_task(slot, &failed_task_end("refused", &why))
            }
            (Some(TaskStop::Cancelled), end) => {
                let result = match end {
                    RunEnd::Result(result) => result,
                    RunEnd::Refused(why) | RunEnd::Trouble(why) => {
                        json!({"outcome": "aborted", "code": "cancelled", "message": why})
                    }
                };
                self.finish_task(
                    slot,
                    &TaskEnd {
                        state: TaskState::Cancelled,
                        ..self.build_task_end(workspace.as_ref(), None, result)
                    },
                )
            }
            (None, RunEnd::Result(result)) => self.finish_task(
                slot,
                &self.build_task_end(workspace.as_ref(), task.request.push.as_deref(), result),
            ),
        };
        if let Err(error) = reported {
            tracing::warn!(task = slot.lease.task, %error, "the end of a task could not be noted");
        }
        if let Some(workspace) = workspace {
            self.runner.revoke_trust(&workspace.folder);
            self.workspaces.remove_workspace(&workspace);
        }
    }

    /// Creates a fresh clone for a task, and restores the changes that earlier runs of the task
    /// made.
    fn prepare_workspace(&self, task: &QueuedTask, slot: &Slot) -> Result<TaskWorkspace, RunEnd> {
        let trouble = |error: StoreError| RunEnd::Trouble(error.to_string());
        let bundle = if task.has_bundle {
            self.queue.read_bundle(task.id).map_err(trouble)?
        } else {
            None
        };
        let workspace = self.workspaces.create_workspace(task, bundle.as_deref())?;
        self.queue
            .set_base_commit(slot.lease, &workspace.base)
            .map_err(trouble)?;
        self.runner.trust_clone(task, &workspace.folder)?;
        workspace.restore_files(&self.queue.read_files(task.id).map_err(trouble)?)?;
        Ok(workspace)
    }

    /// Returns the final report about a task, including its patch. If `push` names a branch, this
    /// method also pushes the changes to that branch.
    fn build_task_end(
        &self,
        workspace: Option<&TaskWorkspace>,
        push: Option<&str>,
        mut result: Value,
    ) -> TaskEnd {
        let mut patch = None;
        let mut branch = None;
        if let Some(workspace) = workspace {
            match self.workspaces.create_patch(workspace) {
                Ok(change) => patch = Some(change).filter(|change| !change.is_empty()),
                Err(error) => result["patch_error"] = json!(error.to_string()),
            }
            if let (Some(name), Some(change)) = (push, &patch) {
                match self.workspaces.push_patch(workspace, change, name) {
                    Ok(()) => branch = Some(name.to_owned()),
                    Err(error) => result["push_error"] = json!(error.to_string()),
                }
            }
        }
        TaskEnd {
            state: TaskState::Ended,
            result,
            patch,
            branch,
        }
    }

    fn finish_task(&self, slot: &Slot, end: &TaskEnd) -> Result<(), StoreError> {
        self.write_log(slot);
        retry_until_reported(slot, || self.queue.finish_task(slot.lease, end))
    }

    fn release_task(&self, slot: &Slot, why: ReleaseReason) -> Result<(), StoreError> {
        retry_until_reported(slot, || self.queue.release_task(slot.lease, why))
    }
}

/// Repeats `job` until it succeeds or the task belongs to another worker.
fn retry_until_reported(
    slot: &Slot,
    job: impl Fn() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        match job() {
            Err(error)
                if !TaskTakenOver::is_cause_of(&error)
                    && slot.stop_reason() != Some(TaskStop::Lost) =>
            {
                tracing::warn!(task = slot.lease.task, %error, "the end of a task is noted later");
                std::thread::sleep(POLL_INTERVAL * 2);
            }
            settled => return settled,
        }
    }
}

fn failed_task_end(code: &str, why: &str) -> TaskEnd {
    let result = json!({"outcome": "failed", "code": code, "message": why});
    TaskEnd {
        state: TaskState::Failed,
        result,
        patch: None,
        branch: None,
    }
}
