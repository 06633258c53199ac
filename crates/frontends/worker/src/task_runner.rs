//! Runs a task like `haft run`: with a plan and a session, in the clone that the worker made.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, TryFromFloatSecsError};

use haft_agent::config::Config;
use haft_agent::{
    Agent, ConversationChoice, ExplicitChoices, FolderError, HostEnvironment, OpenError, Places,
    Project, RunPlan, RunReport, SetupError, TrustError, TrustList, TurnLimits, WallClock,
};
use haft_changes::FileChanges;
use haft_changes::versions::SqliteVersions;
use haft_files::LockFile;
use haft_postgres::{PostgresExtension, QueuedTask, TaskLease};
use haft_store::{Store, StoreError};
use haft_types::{Clock as _, ConversationId, PermissionMode};
#[cfg(feature = "workflows")]
use haft_workflows::{RunRecord, Workflow, WorkflowError};
use serde_json::{Value, json};

use crate::config::WorkerConfig;
use crate::slot::TaskRun;
#[cfg(feature = "otel")]
use crate::slot::{Slot, TaskStop};
use crate::task_meter::TaskMeter;
use crate::task_report::RunEnd;

/// Builds an agent with the extensions of this program, which stores everything under a lease.
pub type BuildAgent = Box<dyn Fn(Config, TaskLease) -> Agent + Send + Sync>;

/// Runs tasks with this user's configuration: keys, providers and rules are the worker's own.
pub struct TaskRunner {
    pub places: Places,
    pub config: Config,
    /// The model of tasks that name none, as `provider/model`.
    pub model: Option<String>,
    pub worker: WorkerConfig,
    pub build_agent: BuildAgent,
    /// Returns a message if a permission rule is not valid or names a tool that no extension of
    /// this program has.
    pub check_rule: fn(&HostEnvironment, &str) -> Result<(), String>,
    /// Describes which steps of a workflow are done, and why the others are not.
    #[cfg(feature = "workflows")]
    pub describe_workflow: fn(&Workflow, &RunRecord, usize) -> String,
    /// Reports a problem to the person who started the worker.
    #[cfg(feature = "workflows")]
    pub report_problem: fn(&str),
}

/// The reason why a task could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskRunError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Seconds(#[from] TryFromFloatSecsError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[cfg(feature = "workflows")]
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
}

impl TaskRunError {
    pub(crate) fn refuse(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// True if the store failed, so that another attempt may succeed.
    fn is_store_error(&self) -> bool {
        matches!(
            self,
            Self::Store(_)
                | Self::Setup(SetupError::Store(_) | SetupError::Open(OpenError::Store(_)))
        )
    }

    /// Returns the message with its causes.
    fn to_text(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.extend([": ", &error.to_string()]);
            cause = error.source();
        }
        text
    }
}

/// The settings of a task: the worker's configuration with the task's rules, and the task's
/// choices.
pub(crate) struct TaskPlan {
    pub(crate) config: Config,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<PermissionMode>,
    /// The remainder of the task's limits.
    pub(crate) limits: TurnLimits,
}

/// Returns the refusal of tasks without a sandbox: they are not this user's own input.
pub fn yolo_refusal() -> &'static str {
    text!("task-yolo")
}

impl TaskRunner {
    /// Runs a task in its workspace, or resumes a run that another worker left unfinished.
    pub(crate) fn run_task(&self, run: &TaskRun) -> RunEnd {
        let ended = self.try_task(run);
        ended.unwrap_or_else(|error| {
            // Stored in the queue for any reader, so it is not translated to this worker's
            // language.
            let why = error.to_text();
            if error.is_store_error() {
                RunEnd::Trouble(why)
            } else if matches!(error, TaskRunError::Refused(_)) {
                RunEnd::Refused(why)
            } else {
                RunEnd::Unprepared(why)
            }
        })
    }

    /// Trusts the clone of a trusted repository, before the changes of earlier runs are restored. A
    /// bundle was uploaded with its task, so it is never trusted.
    pub(crate) fn trust_clone(&self, task: &QueuedTask, folder: &Path) -> Result<(), RunEnd> {
        let source = task
            .request
            .repository
            .as_deref()
            .filter(|_| !task.has_bundle);
        if !source.is_some_and(|source| self.worker.trusts_repository(source)) {
            return Ok(());
        }
        let trusted = self
            .lock_trust_list()
            .and_then(|(_lock, list)| Ok(list.trust_folder(folder, WallClock.now())?));
        trusted
            .map(drop)
            .map_err(|error| RunEnd::Trouble(error.to_text()))
    }

    /// Revokes the trust in a clone, which is about to be removed.
    pub(crate) fn revoke_trust(&self, folder: &Path) {
        let revoked = self
            .lock_trust_list()
            .and_then(|(_lock, list)| Ok(list.revoke_trust(folder)?));
        if let Err(error) = revoked {
            tracing::warn!(%error, "the trust in a clone stays on the list");
        }
    }

    /// Locks the list of trusted folders, so that no other slot and no other worker of this user
    /// changes it meanwhile.
    fn lock_trust_list(&self) -> Result<(LockFile, TrustList), TaskRunError> {
        let file = self.places.trust_file();
        let lock = LockFile::acquire(&file.with_extension("lock"))?;
        Ok((lock, TrustList::at_path(file)))
    }

    fn try_task(&self, run: &TaskRun) -> Result<RunEnd, TaskRunError> {
        let mut plan = self.plan_task(&run.task)?;
        if let Some(exhausted) = exhausted_result(&plan.limits) {
            return Ok(RunEnd::Result(exhausted));
        }
        self.add_rules(run, &mut plan.config)?;
        if let Some(name) = &run.task.request.workflow {
            return self.run_workflow(run, name, plan);
        }
        let id = ConversationId::new(run.task.conversation.as_str());
        block_on(async {
            let store = self.open_store(&plan.config)?;
            let begun = store.get(&id).await?.is_some();
            drop(store);
            let agent = self.build_agent(plan.config.clone(), run);
            let plan = self.plan_run(run, plan, id, begun)?;
            self.places.log_configuration();
            haft_changes::clean_up_killed_merges(&self.places.worktrees_folder());
            let mut session = Box::pin(agent.open(plan)).await?;
            let mut meter =
                TaskMeter::new(run.clone(), session.model().price.into_iter().collect());
            let prompt = (!begun).then(|| run.task.request.prompt.clone());
            let report = session.run(prompt, &mut meter, &run.slot.cancel).await;
            for message in session.close().await {
                meter.log_hook_message(&message);
            }
            Ok(end_from_report(&report))
        })?
    }

    #[cfg(not(feature = "workflows"))]
    fn run_workflow(&self, _: &TaskRun, _: &str, _: TaskPlan) -> Result<RunEnd, TaskRunError> {
        Err(TaskRunError::refuse(text!("task-no-workflows")))
    }

    /// Opens the team's store, without the lease of a task.
    fn open_store(&self, config: &Config) -> Result<Arc<dyn Store>, SetupError> {
        haft_agent::open_store(
            &self.places,
            config,
            &[Arc::new(PostgresExtension::new(None))],
        )
    }

    /// Checks what the task asks for, such as its mode and model, and computes how much of its limits
    /// is left.
    fn plan_task(&self, task: &QueuedTask) -> Result<TaskPlan, TaskRunError> {
        let request = &task.request;
        let mode = request
            .mode
            .as_deref()
            .map(str::parse::<PermissionMode>)
            .transpose();
        let mode = mode.map_err(|error| TaskRunError::refuse(error.to_string()))?;
        if mode == Some(PermissionMode::Yolo) {
            return Err(TaskRunError::refuse(yolo_refusal()));
        }
        let seconds = request
            .max_seconds
            .map(Duration::try_from_secs_f64)
            .transpose()?;
        Ok(TaskPlan {
            config: self.config.clone(),
            model: request.model.clone().or_else(|| self.model.clone()),
            mode,
            limits: TurnLimits {
                turns: request.max_turns,
                tokens: task
                    .token_limit
                    .map(|limit| (limit - task.spent_tokens).max(0).unsigned_abs()),
                budget_usd: task.usd_limit.map(|limit| limit - task.spent_usd),
                wall_time: seconds,
            },
        })
    }

    /// Adds the rules of a task to those of the worker.
    fn add_rules(&self, run: &TaskRun, config: &mut Config) -> Result<(), TaskRunError> {
        let request = &run.task.request;
        for rule in request.allow.iter().chain(&request.deny) {
            (self.check_rule)(&self.places.environment, rule).map_err(TaskRunError::Refused)?;
        }
        let permissions = &mut config.permissions;
        permissions.allow.extend(request.allow.iter().cloned());
        permissions.deny.extend(request.deny.iter().cloned());
        Ok(())
    }

    /// Builds the plan of the run that begins a task, or that continues one.
    fn plan_run(
        &self,
        run: &TaskRun,
        plan: TaskPlan,
        id: ConversationId,
        begun: bool,
    ) -> Result<RunPlan, TaskRunError> {
        let TaskPlan {
            config,
            model: chosen,
            mode,
            limits,
        } = plan;
        let request = &run.task.request;
        let project = Project::find(&self.places.environment, Some(&run.folder))?;
        let which = if begun {
            ConversationChoice::Named(id.to_string())
        } else {
            ConversationChoice::NewAs {
                title: request.prompt.clone(),
                id,
            }
        };
        let model = chosen
            .clone()
            .or_else(|| haft_agent::configured_model(&config))
            .ok_or_else(|| TaskRunError::refuse(text!("task-no-model")))?;
        let mut plan = RunPlan::from_config(&config, model, project, which);
        plan.prompt.roles = config.roles.read()?;
        plan.mode = mode.unwrap_or(plan.mode);
        plan.task.limits = limits;
        if let Some(name) = &request.agent {
            let choices = ExplicitChoices {
                model: chosen.is_some(),
                tools: false,
            };
            plan.apply_agent_role(&self.places, name, choices)?;
        }
        if plan.mode == PermissionMode::Yolo {
            return Err(TaskRunError::refuse(yolo_refusal()));
        }
        Ok(plan)
    }

    /// Builds the agent of a task. Files that it changes are kept for undo on this machine, and for
    /// other workers.
    pub(crate) fn build_agent(&self, config: Config, run: &TaskRun) -> Agent {
        let keeper = run.clone();
        let versions = SqliteVersions::new(
            &self.places.versions_folder(),
            &config.store,
            Arc::new(WallClock),
        )
        .with_change_listener(Arc::new(move |paths| keeper.keep_changed_files(paths)));
        (self.build_agent)(config, run.slot.lease)
            .with_change_records(Arc::new(FileChanges::new(Arc::new(versions))))
    }

    /// Exports the span of a run that has ended, before its end is reported to the queue.
    #[cfg(feature = "otel")]
    pub(crate) fn record_trace(task: &QueuedTask, slot: &Slot, lasted: Duration, end: &RunEnd) {
        let none = Value::Null;
        let (outcome, error, cost) = match (slot.stop_reason(), end) {
            (Some(TaskStop::Lost), _) => ("lost", Some("lost"), &none),
            (Some(TaskStop::HandOver), _) => ("handed_over", None, &none),
            (_, RunEnd::Refused(_)) => ("failed", Some("refused"), &none),
            (_, RunEnd::Unprepared(_)) => ("given_back", Some("unprepared"), &none),
            (_, RunEnd::Trouble(_)) => ("given_back", Some("trouble"), &none),
            (_, RunEnd::Result(result)) => {
                let outcome = result["outcome"].as_str().unwrap_or_default();
                let failed = result["code"]
                    .as_str()
                    .filter(|_| matches!(outcome, "failed" | "exhausted"));
                (outcome, failed, &result["cost"]["total"])
            }
        };
        let attempt = haft_traces::TaskAttempt {
            task: task.id,
            // The task was read when it was claimed, before this attempt was counted.
            attempt: task.attempts + 1,
            labels: &task.labels,
            outcome,
            error,
            cost_usd: cost.as_f64(),
        };
        let ids = haft_traces::task_span_ids(&task.conversation, task.epoch);
        haft_traces::record_task(ids, lasted, &attempt);
    }
}

/// Runs `work` to its end on this thread, then shuts its runtime down without waiting for other
/// tasks: a host name lookup of the system cannot be canceled, and must not delay the task's end.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// Returns the result of a run whose limits were used up by earlier runs, or `None` if something is
/// left.
fn exhausted_result(limits: &TurnLimits) -> Option<Value> {
    let money = limits.budget_usd.is_some_and(|left| left <= 0.0);
    let used_up = money || limits.tokens == Some(0);
    let code = if money { "budget" } else { "tokens" };
    used_up.then(|| json!({"outcome": "exhausted", "code": code, "message": text!("task-used-up")}))
}

/// Converts the report of a run to the outcome that the queue stores. After a failure of the store,
/// the conversation is continued from the stored messages.
fn end_from_report(report: &RunReport) -> RunEnd {
    if report.result.is_store_failure() {
        return RunEnd::Trouble(report.result.message.clone());
    }
    RunEnd::Result(json!(report.result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_store_error_is_false_for_tasks_that_cannot_run() {
        let opening = |error| TaskRunError::from(SetupError::Open(error));
        assert!(TaskRunError::from(StoreError::Closed).is_store_error());
        assert!(TaskRunError::from(SetupError::Store(StoreError::Closed)).is_store_error());
        assert!(opening(OpenError::Store(StoreError::Closed)).is_store_error());
        assert!(!opening(OpenError::NothingToContinue).is_store_error());
        assert!(!TaskRunError::refuse("no such model").is_store_error());
    }
}
