//! Runs a task of the queue like `haft run`, in the clone that the worker made.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_agent::{RunPlan, SetupError, WallClock};
use haft_changes::versions::SqliteVersions;
use haft_engine::{ConversationChoice, OpenError, RunReport};
use haft_files::LockFile;
use haft_postgres::QueuedTask;
use haft_project::TrustList;
use haft_store::StoreError;
use haft_types::{Clock as _, ConversationId, PermissionMode};
use haft_worker::{RunEnd, TaskHost, TaskRun, WorkerConfig};
#[cfg(feature = "otel")]
use haft_worker::{Slot, TaskStop};
use serde_json::{Value, json};

use super::meter::TaskMeter;
use crate::cli::options::RunArgs;
use crate::commands::{permissions, run};
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
#[cfg(feature = "otel")]
use crate::wiring::traces;
use crate::wiring::{self, ClientParts};

/// Runs tasks with this user's configuration: keys, providers and rules come from the worker, not
/// from the task.
pub(super) struct RunningHost {
    pub(super) haft: Haft,
    pub(super) settings: Settings,
    /// The model of tasks that name none.
    pub(super) model: Option<String>,
    pub(super) worker: WorkerConfig,
}

impl TaskHost for RunningHost {
    fn run_task(&self, run: &TaskRun) -> RunEnd {
        let ended = self.run_task(run);
        ended.unwrap_or_else(|error| {
            // The record of a workflow is a file, so an I/O error may be a failure of the disk.
            let mut causes = error.chain().map(<dyn Error>::is::<std::io::Error>);
            let is_disk_error = run.task.request.workflow.is_some() && causes.any(|is| is);
            // The reason is stored in the queue for readers on any machine, so it is not translated
            // to this worker's language.
            let why = format!("{error:#}");
            if is_disk_error || is_store_error(&error) {
                RunEnd::Trouble(why)
            } else {
                RunEnd::Refused(why)
            }
        })
    }

    /// Trusts the clone of a trusted repository. A bundle was uploaded with its task, so it is
    /// never trusted.
    fn after_clone(&self, task: &QueuedTask, folder: &Path) -> Result<(), RunEnd> {
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
            .map_err(|error| RunEnd::Trouble(format!("{error:#}")))
    }

    #[cfg(feature = "otel")]
    fn after_run(&self, task: &QueuedTask, slot: &Slot, lasted: Duration, end: &RunEnd) {
        use opentelemetry::{Array, KeyValue, StringValue};
        let none = Value::Null;
        let (outcome, error, cost) = match (slot.stop_reason(), end) {
            (Some(TaskStop::Lost), _) => ("lost", Some("lost"), &none),
            (Some(TaskStop::HandOver), _) => ("handed_over", None, &none),
            (_, RunEnd::Refused(_)) => ("failed", Some("refused"), &none),
            (_, RunEnd::Trouble(_)) => ("given_back", Some("trouble"), &none),
            (_, RunEnd::Result(result)) => {
                let outcome = result["outcome"].as_str().unwrap_or_default();
                let failed = result["code"]
                    .as_str()
                    .filter(|_| matches!(outcome, "failed" | "exhausted"));
                (outcome, failed, &result["cost"]["total"])
            }
        };
        let labels = task.labels.iter().cloned().map(StringValue::from).collect();
        let mut attributes = vec![
            KeyValue::new("haft.task.id", task.id),
            KeyValue::new("haft.task.attempt", task.attempts),
            KeyValue::new(
                "haft.task.labels",
                opentelemetry::Value::Array(Array::String(labels)),
            ),
            KeyValue::new("haft.outcome", outcome.to_owned()),
        ];
        attributes.extend(cost.as_f64().map(|usd| KeyValue::new("haft.cost_usd", usd)));
        traces::record_task(traces::task_span_ids(task), lasted, error, attributes);
    }

    fn before_removal(&self, folder: &Path) {
        let revoked = self
            .lock_trust_list()
            .and_then(|(_lock, list)| Ok(list.revoke_trust(folder)?));
        if let Err(error) = revoked {
            tracing::warn!(%error, "the trust in a clone stays on the list");
        }
    }
}

impl RunningHost {
    /// Locks the list of trusted folders, so that no other slot and no other worker of this user
    /// changes it meanwhile.
    fn lock_trust_list(&self) -> anyhow::Result<(LockFile, TrustList)> {
        let file = self.settings.places.trust_file();
        let lock = LockFile::acquire(&file.with_extension("lock"))?;
        Ok((lock, TrustList::at_path(file)))
    }

    fn run_task(&self, run: &TaskRun) -> anyhow::Result<RunEnd> {
        let args = self.build_run_args(run)?;
        if let Some(exhausted) = exhausted_result(&args) {
            return Ok(RunEnd::Result(exhausted));
        }
        let mut settings = self.settings.clone();
        permissions::add_run_rules(&mut settings, &args)?;
        if let Some(name) = &run.task.request.workflow {
            return self.run_workflow(run, args, settings, name);
        }
        let id = ConversationId::new(run.task.conversation.as_str());
        wiring::build_runtime()?.block_on(async {
            let store = settings.open_store()?;
            let begun = store.get(&id).await?.is_some();
            drop(store);
            let plan = self.build_plan(&args, &settings, id, begun)?;
            let session = settings
                .open_driven_session(plan, self.client_parts(run))
                .await;
            let mut session = session.map_err(anyhow::Error::from)?;
            let mut meter =
                TaskMeter::new(run.clone(), session.model().price.into_iter().collect());
            let prompt = (!begun).then(|| run.task.request.prompt.clone());
            let report = session.run(prompt, &mut meter, &run.slot.cancel).await;
            for message in session.close().await {
                meter.log_hook_message(&message);
            }
            Ok(end_from_report(&report))
        })
    }

    #[cfg(not(feature = "workflows"))]
    fn run_workflow(
        &self,
        _: &TaskRun,
        _: RunArgs,
        _: Settings,
        _: &str,
    ) -> anyhow::Result<RunEnd> {
        Err(usage_error(text!(
            "cli-not-in-build",
            command = "workflows",
            feature = "workflows"
        )))
    }

    /// Converts the task to arguments of `haft run`, with the remainder of its limits.
    fn build_run_args(&self, run: &TaskRun) -> anyhow::Result<RunArgs> {
        let task = &run.task;
        let request = &run.task.request;
        let mode = request
            .mode
            .as_deref()
            .map(str::parse::<PermissionMode>)
            .transpose();
        let mode = mode.map_err(|error| usage_error(error.to_string()))?;
        // The sandbox stays on, because tasks of the queue are not this user's own input.
        if mode == Some(PermissionMode::Yolo) {
            return Err(usage_error(text!("queue-yolo")));
        }
        let seconds = request
            .max_seconds
            .map(Duration::try_from_secs_f64)
            .transpose()?;
        Ok(RunArgs {
            prompt: Some(request.prompt.clone()),
            model: request.model.clone().or_else(|| self.model.clone()),
            agent: request.agent.clone(),
            permission_mode: mode,
            allow: request.allow.clone(),
            deny: request.deny.clone(),
            max_turns: request.max_turns,
            max_wall_time: seconds,
            max_budget_usd: task.usd_limit.map(|limit| limit - task.spent_usd),
            max_total_tokens: task
                .token_limit
                .map(|limit| (limit - task.spent_tokens).max(0).unsigned_abs()),
            cwd: Some(run.folder.clone()),
            ..RunArgs::default()
        })
    }

    fn build_plan(
        &self,
        args: &RunArgs,
        settings: &Settings,
        id: ConversationId,
        begun: bool,
    ) -> anyhow::Result<RunPlan> {
        let project = self.haft.project(args.cwd.as_deref())?;
        let mut plan = run::lower_args(args, settings, project, args.prompt.as_deref())?;
        run::apply_agent(&mut plan, args, &settings.places)?;
        if plan.mode == PermissionMode::Yolo {
            return Err(usage_error(text!("queue-yolo")));
        }
        plan.which = if begun {
            ConversationChoice::Named(id.to_string())
        } else {
            ConversationChoice::NewAs {
                title: args.prompt.clone().unwrap_or_default(),
                id,
            }
        };
        Ok(plan)
    }

    pub(super) fn client_parts(&self, run: &TaskRun) -> ClientParts {
        let keeper = run.clone();
        // The versions are stored on this machine, for undo; the changed files are also stored in
        // the queue, for other workers.
        let versions = SqliteVersions::new(
            &self.settings.places.versions_folder(),
            &self.settings.config.store,
            Arc::new(WallClock),
        );
        let versions =
            versions.with_change_listener(Arc::new(move |paths| keeper.keep_changed_files(paths)));
        ClientParts {
            versions: Some(Arc::new(versions)),
            lease: Some(run.slot.lease),
            ..ClientParts::default()
        }
    }
}

/// Returns true if the store failed, so that another attempt may succeed.
fn is_store_error(error: &anyhow::Error) -> bool {
    let opening = error.downcast_ref::<SetupError>();
    opening.is_some_and(|error| {
        matches!(
            error,
            SetupError::Store(_) | SetupError::Open(OpenError::Store(_))
        )
    }) || error.is::<StoreError>()
}

/// Returns the result of a run whose limits were used up by earlier runs, or `None` if no limit is
/// used up.
fn exhausted_result(args: &RunArgs) -> Option<Value> {
    let money = args.max_budget_usd.is_some_and(|left| left <= 0.0);
    let used_up = money || args.max_total_tokens == Some(0);
    let code = if money { "budget" } else { "tokens" };
    used_up
        .then(|| json!({"outcome": "exhausted", "code": code, "message": text!("worker-used-up")}))
}

/// Converts the report of a run to the outcome that the queue stores. After a failure of the store,
/// the next attempt continues the conversation from the stored messages.
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
        let opening = |error| anyhow::Error::from(SetupError::Open(error));
        assert!(is_store_error(&StoreError::Closed.into()));
        assert!(is_store_error(
            &SetupError::Store(StoreError::Closed).into()
        ));
        assert!(is_store_error(&opening(OpenError::Store(
            StoreError::Closed
        ))));
        assert!(!is_store_error(&opening(OpenError::NothingToContinue)));
        assert!(!is_store_error(&usage_error("no such model")));
    }
}
