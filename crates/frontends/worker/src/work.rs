//! The loop of a worker: it is seen, takes tasks while it has slots, and ends what it took.
//!
//! Invariant: whatever becomes of a run, its task is ended once, given back, or another worker's.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_postgres::{GivenBack, QueuedTask, Taker, TaskEnd, TaskQueue, TaskState, TaskTakenOver};
use haft_store::StoreError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::slot::{Slot, TaskRun, TaskStop};
use crate::workspace::{TaskWorkspace, WorkspaceError, Workspaces};

/// How long a worker without a task waits before it looks again.
const POLL: Duration = Duration::from_millis(250);
/// How long one with a free slot waits for another to end, or for the order to stop.
const PAUSE: Duration = Duration::from_millis(25);

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// What others know it by.
    pub name: String,
    /// How many tasks it runs at once.
    pub slots: u16,
    /// How long after its end is ordered tasks may go on before they are handed over.
    pub drain: Duration,
    /// Whether it ends once nothing is left to take.
    pub until_empty: bool,
    /// Which tasks it takes; the number of the worker is filled in.
    pub taker: Taker,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// With a result, as data.
    Result(Value),
    /// It could not begin, and no other worker would do better.
    Refused(String),
    /// The server or the store failed; another try may do better.
    Trouble(String),
}

impl From<WorkspaceError> for RunEnd {
    fn from(error: WorkspaceError) -> Self {
        let end = if error.may_pass() {
            Self::Trouble
        } else {
            Self::Refused
        };
        end(error.to_string())
    }
}

/// Runs tasks.
pub trait TaskHost: Send + Sync {
    /// Runs a task in its workspace, or goes on with a run that another worker left.
    fn run(&self, run: &TaskRun) -> RunEnd;

    /// A clone is there as its repository has it. What earlier runs changed comes into it
    /// afterwards.
    fn cloned(&self, _task: &QueuedTask, _folder: &Path) -> Result<(), RunEnd> {
        Ok(())
    }

    /// A run of a task is over after this time, and nothing of it is told to the queue yet.
    fn ended(&self, _task: &QueuedTask, _slot: &Slot, _lasted: Duration, _end: &RunEnd) {}

    /// A clone is about to be removed.
    fn removing(&self, _folder: &Path) {}
}

/// A worker.
pub struct Worker {
    /// For what tasks write on the way.
    pub queue: Arc<TaskQueue>,
    /// For signs of life alone, which must not wait behind anything else.
    pub heart: TaskQueue,
    /// Where tasks work.
    pub workspaces: Workspaces,
    /// Who runs them.
    pub host: Box<dyn TaskHost>,
    /// How it was started.
    pub options: WorkerOptions,
}

/// The slots in use, by task.
#[derive(Default)]
struct Busy(Mutex<HashMap<i64, Arc<Slot>>>);

impl Busy {
    fn all(&self) -> MutexGuard<'_, HashMap<i64, Arc<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, why: TaskStop) {
        for slot in self.all().values() {
            slot.stop(why);
        }
    }
}

impl Worker {
    /// Works until it is stopped; a second stop hands tasks over at once. Blocks.
    pub fn run(
        &self,
        stop: &CancellationToken,
        at_once: &CancellationToken,
    ) -> Result<(), StoreError> {
        let WorkerOptions {
            name, slots, taker, ..
        } = &self.options;
        let id = self.heart.enter(name, i64::from(*slots), &taker.labels)?;
        let taker = Taker {
            worker: id,
            ..taker.clone()
        };
        let busy = Busy::default();
        let ended = CancellationToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| self.beat(&taker, &busy, stop, &ended));
            while !stop.is_cancelled() {
                if busy.all().len() >= usize::from(*slots) {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                match self.queue.take(&taker) {
                    Ok(Some((lease, task))) => {
                        let slot = Arc::new(Slot::new(lease));
                        busy.all().insert(lease.task, Arc::clone(&slot));
                        let busy = &busy;
                        scope.spawn(move || {
                            self.work(&task, &slot);
                            busy.all().remove(&slot.lease.task);
                        });
                    }
                    Ok(None) if self.options.until_empty && busy.all().is_empty() => break,
                    Ok(None) => std::thread::sleep(POLL),
                    Err(error) => {
                        tracing::warn!(%error, "no task can be taken");
                        std::thread::sleep(POLL * 4);
                    }
                }
            }
            self.drain(&busy, at_once);
            ended.cancel();
        });
        self.heart.leave(id)
    }

    /// Lets tasks end for a while, then hands over what is left.
    fn drain(&self, busy: &Busy, at_once: &CancellationToken) {
        let started = Instant::now();
        while !busy.all().is_empty() {
            if at_once.is_cancelled() || started.elapsed() >= self.options.drain {
                busy.stop(TaskStop::HandOver);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Says that the worker lives, learns what it has lost and what it is to end, and writes what
    /// tasks logged.
    fn beat(
        &self,
        taker: &Taker,
        busy: &Busy,
        stop: &CancellationToken,
        ended: &CancellationToken,
    ) {
        let mut heard = Instant::now();
        while !ended.is_cancelled() {
            let slots: Vec<_> = busy.all().values().cloned().collect();
            match self.heart.beat(taker.worker, stop.is_cancelled()) {
                Ok(held) => {
                    heard = Instant::now();
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
                    if heard.elapsed() >= taker.lease {
                        // Others have its tasks by now, or will: what still runs here is of no use.
                        for slot in slots {
                            slot.stop(TaskStop::Lost);
                        }
                    }
                }
            }
            let next = Instant::now() + taker.lease / 4;
            while Instant::now() < next && !ended.is_cancelled() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn write_log(&self, slot: &Slot) {
        let lines = slot.take_lines();
        if !lines.is_empty()
            && let Err(error) = self.heart.append_log(slot.lease, &lines)
        {
            tracing::warn!(task = slot.lease.task, %error, "lines of a task's log are lost");
        }
    }

    /// Runs one task, and says what came of it.
    fn work(&self, task: &QueuedTask, slot: &Arc<Slot>) {
        let begun = Instant::now();
        let (end, workspace) = match self.prepare(task, slot) {
            Ok(workspace) => {
                let folder = workspace.folder.clone();
                let queue = Arc::clone(&self.queue);
                let run = TaskRun {
                    task: task.clone(),
                    folder,
                    queue,
                    slot: Arc::clone(slot),
                };
                (self.host.run(&run), Some(workspace))
            }
            Err(end) => (end, None),
        };
        self.host.ended(task, slot, begun.elapsed(), &end);
        let settled = match (slot.reason(), end) {
            (Some(TaskStop::Lost), _) => Ok(()),
            (Some(TaskStop::HandOver), _) => self.release(slot, GivenBack::HandedOver),
            (None, RunEnd::Trouble(why)) => {
                slot.log(json!({"type": "worker", "message": why}).to_string());
                self.write_log(slot);
                self.release(
                    slot,
                    GivenBack::Trouble(Duration::from_secs(
                        (task.attempts * task.attempts).unsigned_abs(),
                    )),
                )
            }
            (None, RunEnd::Refused(why)) => self.finish(slot, &failed("refused", &why)),
            (Some(TaskStop::Cancelled), end) => {
                let result = match end {
                    RunEnd::Result(result) => result,
                    RunEnd::Refused(why) | RunEnd::Trouble(why) => {
                        json!({"outcome": "aborted", "code": "cancelled", "message": why})
                    }
                };
                self.finish(
                    slot,
                    &TaskEnd {
                        state: TaskState::Cancelled,
                        ..self.ended(workspace.as_ref(), None, result)
                    },
                )
            }
            (None, RunEnd::Result(result)) => self.finish(
                slot,
                &self.ended(workspace.as_ref(), task.request.push.as_deref(), result),
            ),
        };
        if let Err(error) = settled {
            tracing::warn!(task = slot.lease.task, %error, "the end of a task could not be noted");
        }
        if let Some(workspace) = workspace {
            self.host.removing(&workspace.folder);
            self.workspaces.remove(&workspace);
        }
    }

    /// A fresh clone with what earlier runs changed.
    fn prepare(&self, task: &QueuedTask, slot: &Slot) -> Result<TaskWorkspace, RunEnd> {
        let trouble = |error: StoreError| RunEnd::Trouble(error.to_string());
        let bundle = if task.has_bundle {
            self.queue.bundle(task.id).map_err(trouble)?
        } else {
            None
        };
        let workspace = self.workspaces.prepare(task, bundle.as_deref())?;
        self.queue
            .begin(slot.lease, &workspace.base)
            .map_err(trouble)?;
        self.host.cloned(task, &workspace.folder)?;
        workspace.restore(&self.queue.kept(task.id).map_err(trouble)?)?;
        Ok(workspace)
    }

    /// The end of a task with what it changed, which is pushed where that was asked for.
    fn ended(
        &self,
        workspace: Option<&TaskWorkspace>,
        push: Option<&str>,
        mut result: Value,
    ) -> TaskEnd {
        let mut patch = None;
        let mut branch = None;
        if let Some(workspace) = workspace {
            match self.workspaces.patch(workspace) {
                Ok(change) => patch = Some(change).filter(|change| !change.is_empty()),
                Err(error) => result["patch_error"] = json!(error.to_string()),
            }
            if let (Some(name), Some(change)) = (push, &patch) {
                match self.workspaces.push(workspace, change, name) {
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

    fn finish(&self, slot: &Slot, end: &TaskEnd) -> Result<(), StoreError> {
        self.write_log(slot);
        settle(slot, || self.queue.finish(slot.lease, end))
    }

    fn release(&self, slot: &Slot, why: GivenBack) -> Result<(), StoreError> {
        settle(slot, || self.queue.release(slot.lease, why))
    }
}

/// What must be said of a task is said once the server can be reached, unless the task is another
/// worker's by then.
fn settle(slot: &Slot, job: impl Fn() -> Result<(), StoreError>) -> Result<(), StoreError> {
    loop {
        match job() {
            Err(error) if !TaskTakenOver::is(&error) && slot.reason() != Some(TaskStop::Lost) => {
                tracing::warn!(task = slot.lease.task, %error, "the end of a task is noted later");
                std::thread::sleep(POLL * 2);
            }
            settled => return settled,
        }
    }
}

fn failed(code: &str, why: &str) -> TaskEnd {
    let result = json!({"outcome": "failed", "code": code, "message": why});
    TaskEnd {
        state: TaskState::Failed,
        result,
        patch: None,
        branch: None,
    }
}
