//! Runs one task in a fresh workspace, and reports its end to the queue.

use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "otel")]
use std::time::Instant;

use haft_agent::RandomIds;
use haft_postgres::{QueuedTask, ReleaseReason, TaskEnd, TaskState, TaskTakenOver};
use haft_store::StoreError;
use haft_types::{IdSource as _, Outcome};
use serde_json::{Value, json};

use crate::slot::{Slot, TaskRun, TaskStop};
#[cfg(feature = "otel")]
use crate::task_runner::TaskRunner;
use crate::worker_loop::{Worker, WorkerState};
use crate::workspace::{TaskWorkspace, WorkspaceError};

/// The number of claims in a row without progress after which a task that cannot begin, or whose
/// changes cannot be delivered, fails for good.
const MAX_FRUITLESS_CLAIMS: i64 = 3;
/// The time between two attempts to report that a task has ended.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

/// The way in which a run ended: with a result, or with a permanent or temporary failure.
#[derive(Debug)]
pub enum RunEnd {
    /// The run ended with this result, as JSON.
    Result(Value),
    /// The task itself is not valid, so it would not start on any other worker. The value is the
    /// reason.
    Refused(String),
    /// The run failed before the model was asked, because of the host or of the task. The value is
    /// the reason.
    Unprepared(String),
    /// The server or the store failed, so another attempt may succeed. The value is the reason.
    Trouble(String),
}

impl From<WorkspaceError> for RunEnd {
    fn from(error: WorkspaceError) -> Self {
        let end = if error.is_transient() {
            Self::Trouble
        } else {
            Self::Unprepared
        };
        end(error.to_string())
    }
}

/// The report of a worker to the queue.
enum Report {
    Finish(TaskEnd),
    Release(ReleaseReason, String),
}

impl Worker {
    /// Runs one task and reports its result to the queue.
    pub(crate) fn run_and_report_task(
        &self,
        task: &QueuedTask,
        slot: &Arc<Slot>,
        state: &WorkerState,
    ) {
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
        let report = self.build_report(task, slot, state, end, workspace.as_ref());
        let reported = report.map_or(Ok(()), |report| self.send_report(task, slot, report));
        if let Err(error) = reported {
            tracing::warn!(task = slot.lease.task, %error, "the end of a task could not be noted");
        }
        if let Some(workspace) = workspace {
            self.runner.revoke_trust(&workspace.folder);
            self.workspaces.remove_workspace(workspace);
        }
    }

    /// Returns the report about a run, or `None` if the task belongs to another worker.
    fn build_report(
        &self,
        task: &QueuedTask,
        slot: &Slot,
        state: &WorkerState,
        end: RunEnd,
        workspace: Option<&TaskWorkspace>,
    ) -> Option<Report> {
        match (slot.stop_reason(), end) {
            (Some(TaskStop::Lost), _) => None,
            (Some(TaskStop::HandOver), _) => {
                Some(Report::Release(ReleaseReason::HandedOver, String::new()))
            }
            (Some(TaskStop::Cancelled), end) => {
                let result = match end {
                    RunEnd::Result(result) => result,
                    RunEnd::Refused(why) | RunEnd::Unprepared(why) | RunEnd::Trouble(why) => {
                        json!({"outcome": "aborted", "code": "cancelled", "message": why})
                    }
                };
                Some(Report::Finish(self.build_cancelled_end(workspace, result)))
            }
            (None, RunEnd::Trouble(why)) => {
                let why = self.explain_host(state, why);
                Some(match why {
                    Ok(why) => {
                        if workspace.is_none() {
                            state.health.record_failure(&why);
                        }
                        Report::Release(ReleaseReason::ExternalFailure, why)
                    }
                    Err(sick) => *sick,
                })
            }
            (None, RunEnd::Refused(why)) => Some(Report::Finish(refused_task_end(&why))),
            (None, RunEnd::Unprepared(why)) => Some(match self.explain_host(state, why) {
                Ok(why) if task.failures >= MAX_FRUITLESS_CLAIMS => {
                    Report::Finish(refused_task_end(&why))
                }
                Ok(why) => {
                    state.health.record_failure(&why);
                    Report::Release(ReleaseReason::ExternalFailure, why)
                }
                Err(sick) => *sick,
            }),
            (None, RunEnd::Result(result)) => {
                state.health.record_start();
                Some(self.build_end(task, state, workspace, result))
            }
        }
    }

    /// Checks the host after a failure. If the host is sick, returns the report that gives the task
    /// back without blaming it; otherwise, returns the reason for the failure.
    fn explain_host(&self, state: &WorkerState, why: String) -> Result<String, Box<Report>> {
        let Err(problem) = self.workspaces.check_host() else {
            return Ok(why);
        };
        let problem = problem.to_string();
        tracing::warn!(%problem, "this host cannot run tasks");
        state.health.record_sickness(problem.clone());
        state.pulse.signal();
        let why = format!("{why}; the worker's host cannot run tasks: {problem}");
        Err(Box::new(Report::Release(ReleaseReason::SickHost, why)))
    }

    fn send_report(
        &self,
        task: &QueuedTask,
        slot: &Slot,
        report: Report,
    ) -> Result<(), StoreError> {
        match report {
            Report::Finish(end) => {
                self.write_log(slot);
                let retry_as = RandomIds.new_uuid().to_string();
                let retry_as = Some(retry_as.as_str()).filter(|_| task.retried < task.retries);
                repeat_until_reported(slot, || {
                    self.queue.finish_task(slot.lease, &end, retry_as).map(drop)
                })
            }
            Report::Release(reason, why) => {
                if !why.is_empty() {
                    slot.add_log_line(json!({"type": "worker", "message": why}).to_string());
                }
                self.write_log(slot);
                repeat_until_reported(slot, || self.queue.release_task(slot.lease, reason))
            }
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
        if let Err(end) = self.fill_workspace(&workspace, task, slot) {
            self.runner.revoke_trust(&workspace.folder);
            self.workspaces.remove_workspace(workspace);
            return Err(end);
        }
        Ok(workspace)
    }

    fn fill_workspace(
        &self,
        workspace: &TaskWorkspace,
        task: &QueuedTask,
        slot: &Slot,
    ) -> Result<(), RunEnd> {
        let trouble = |error: StoreError| RunEnd::Trouble(error.to_string());
        if task.base.is_none() {
            self.queue
                .set_base_commit(slot.lease, &workspace.base)
                .map_err(trouble)?;
        }
        self.runner.trust_clone(task, &workspace.folder)?;
        // Nothing was changed before the first run.
        if slot.lease.epoch > 1 {
            workspace.restore_files(&self.queue.read_files(task.id).map_err(trouble)?)?;
        }
        Ok(())
    }

    /// Returns the report about a run that ended by itself: with its patch, which is also pushed if
    /// the task names a branch. If that fails, the task is tried again, and fails after several
    /// claims.
    fn build_end(
        &self,
        task: &QueuedTask,
        state: &WorkerState,
        workspace: Option<&TaskWorkspace>,
        mut result: Value,
    ) -> Report {
        let mut patch = None;
        let mut branch = None;
        let mut keeps_files = false;
        if let Some(workspace) = workspace {
            match self.workspaces.create_patch(workspace) {
                Ok(change) => patch = Some(change).filter(|change| !change.is_empty()),
                Err(error) => {
                    let again = self.plan_another_claim(task, state, &error);
                    if let Some(again) = again {
                        return again;
                    }
                    keeps_files = true;
                    mark_undelivered(&mut result, "patch", &error.to_string());
                }
            }
            if let (Some(name), Some(change)) = (task.request.push.as_deref(), &patch) {
                match self.workspaces.push_patch(task, workspace, change, name) {
                    Ok(()) => branch = Some(name.to_owned()),
                    Err(error) => {
                        let again = self.plan_another_claim(task, state, &error);
                        if let Some(again) = again.filter(|_| !error.is_refused_push()) {
                            return again;
                        }
                        mark_undelivered(&mut result, "push", &error.to_string());
                    }
                }
            }
        }
        Report::Finish(TaskEnd {
            state: TaskState::Ended,
            result,
            patch,
            branch,
            keeps_files,
        })
    }

    /// Returns the report that gives a task back because its changes could not be delivered, or
    /// `None` if that was tried often enough.
    fn plan_another_claim(
        &self,
        task: &QueuedTask,
        state: &WorkerState,
        error: &WorkspaceError,
    ) -> Option<Report> {
        match self.explain_host(state, error.to_string()) {
            Err(sick) => Some(*sick),
            Ok(_) if task.failures >= MAX_FRUITLESS_CLAIMS => None,
            Ok(why) => Some(Report::Release(ReleaseReason::ExternalFailure, why)),
        }
    }

    fn build_cancelled_end(&self, workspace: Option<&TaskWorkspace>, mut result: Value) -> TaskEnd {
        let mut patch = None;
        if let Some(workspace) = workspace {
            match self.workspaces.create_patch(workspace) {
                Ok(change) => patch = Some(change).filter(|change| !change.is_empty()),
                Err(error) => result["patch_error"] = json!(error.to_string()),
            }
        }
        TaskEnd {
            state: TaskState::Cancelled,
            result,
            patch,
            branch: None,
            keeps_files: false,
        }
    }
}

/// Records in a result that the changes of the run could not be delivered. A completed run has
/// failed then.
fn mark_undelivered(result: &mut Value, what: &str, error: &str) {
    result[format!("{what}_error")] = json!(error);
    if result["outcome"] == Outcome::Completed.name() {
        result["outcome"] = json!(Outcome::Failed.name());
        result["code"] = json!(format!("{what}_failed"));
        result["message"] = json!(error);
    }
}

/// Repeats `job` until it succeeds or the task belongs to another worker.
fn repeat_until_reported(
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
                std::thread::sleep(REPORT_INTERVAL);
            }
            settled => return settled,
        }
    }
}

fn refused_task_end(why: &str) -> TaskEnd {
    let result = json!({"outcome": "failed", "code": "refused", "message": why});
    TaskEnd {
        state: TaskState::Failed,
        result,
        patch: None,
        branch: None,
        keeps_files: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_undelivered_fails_only_completed_runs() {
        let mut result = json!({"outcome": "completed", "code": "end", "text": "Done."});
        mark_undelivered(&mut result, "push", "refused");
        assert_eq!(
            result,
            json!({"outcome": "failed", "code": "push_failed", "message": "refused", "push_error": "refused", "text": "Done."})
        );
        let mut result = json!({"outcome": "exhausted", "code": "budget"});
        mark_undelivered(&mut result, "patch", "no space");
        assert_eq!(
            result,
            json!({"outcome": "exhausted", "code": "budget", "patch_error": "no space"})
        );
    }
}
