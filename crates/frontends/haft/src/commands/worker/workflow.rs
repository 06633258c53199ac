//! Runs a task that is a workflow, as `haft workflows run` does. The record of the run lies next to
//! the files of the task.
//!
//! Invariant: the queue stores which steps are done, and the conversation of a step that has begun,
//! before the run goes on. Another worker repeats no step that is done, and continues the
//! conversations of the other steps.

use std::io;
use std::sync::Arc;

use haft_agent::{RandomIds, WallClock};
use haft_engine::turn::TurnLimits;
use haft_files::Durability;
use haft_postgres::{KeptFile, KeptKind, TASK_RECORD_PATH};
use haft_types::{PermissionMode, TurnResult};
use haft_worker::{RunEnd, TaskRun};
use haft_workflows::{HeldRun, Workflow, WorkflowReport, WorkflowRun, WorkflowRuns};
use serde_json::json;
use tokio::task::LocalSet;

use super::host::RunningHost;
use super::meter::TaskMeter;
use crate::cli::options::RunArgs;
use crate::commands::workflows::{self, report};
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::{output, wiring};

impl RunningHost {
    pub(super) fn run_workflow(
        &self,
        run: &TaskRun,
        args: RunArgs,
        settings: Settings,
        name: &str,
    ) -> anyhow::Result<RunEnd> {
        if args
            .permission_mode
            .unwrap_or(settings.config.permissions.mode)
            == PermissionMode::Yolo
        {
            return Err(usage_error(text!("queue-yolo")));
        }
        let project = self.haft.project(Some(&run.folder))?;
        let model = args.model;
        let (workflow, agents) = haft_workflows::select_workflow(
            &settings.places,
            &settings.config,
            &project,
            name,
            model.as_deref(),
        )
        .map_err(workflows::report_select_error)?;
        // Such workflows are rejected: the changes of a step in a copy exist nowhere else until
        // they are merged.
        if workflow.steps.iter().any(|step| step.uses_copy(&agents)) {
            return Err(usage_error(text!("worker-workflow-copies", name)));
        }
        let named = workflow
            .steps
            .iter()
            .filter_map(|step| step.choose_model(&agents, model.as_deref()));
        let named = named.chain(haft_agent::configured_model(&settings.config));
        let prices = named
            .filter_map(|name| settings.resolve_model(&name).ok()?.spec.price)
            .collect();
        let held = resume_or_begin_run(run, &workflow)?;
        let steps = WorkflowRun {
            agent: settings.build_agent_for_client(self.client_parts(run)),
            places: settings.places,
            config: settings.config,
            project,
            workflow: workflow.clone(),
            agents,
            model,
            mode: args.permission_mode,
            limits: TurnLimits {
                turns: args.max_turns,
                tokens: args.max_total_tokens,
                budget_usd: args.max_budget_usd,
                wall_time: args.max_wall_time,
            },
            approver: None,
            cancel: run.slot.cancel.clone(),
        };
        let work = steps.run(held, Box::new(TaskMeter::new(run.clone(), prices)));
        let report = wiring::build_runtime()?.block_on(LocalSet::new().run_until(work))?;
        let WorkflowReport {
            mut result,
            record,
            completed,
            ..
        } = report;
        // The result in the queue is read on other machines, too, so its message is in English.
        result.message =
            haft_messages::run_in_english(|| report::result_message(&workflow, &record, completed));
        if record
            .steps
            .values()
            .filter_map(|step| step.result.as_ref())
            .any(TurnResult::is_store_failure)
        {
            return Ok(RunEnd::Trouble(result.message));
        }
        Ok(RunEnd::Result(
            record.add_to_result(json!(result), &workflow),
        ))
    }
}

/// Resumes the workflow run that an earlier worker began for this task, or begins a new run.
fn resume_or_begin_run(run: &TaskRun, workflow: &Workflow) -> anyhow::Result<HeldRun> {
    const TASK: &str = "task";
    let kept = run.queue.read_record(run.task.id)?;
    // The folder lies next to the clone and is removed with it.
    let folder = run.folder.with_file_name("run");
    let keeper = run.clone();
    let runs = WorkflowRuns::new(folder.clone()).with_listener(Arc::new(move |bytes| {
        let path = TASK_RECORD_PATH.into();
        let content = bytes.to_vec();
        keeper
            .keep_files(&[KeptFile {
                path,
                kind: KeptKind::File,
                mode: 0o600,
                content,
            }])
            .map_err(io::Error::other)
    }));
    let Some(kept) = kept else {
        let inputs = workflow
            .fill_inputs(&run.task.request.inputs)
            .map_err(|error| usage_error(output::localize_text(error)))?;
        return Ok(runs.begin_run(workflow, TASK, inputs, &WallClock, &RandomIds)?);
    };
    haft_files::replace_file(&folder.join("kept.json"), &kept, Durability::Process)?;
    Ok(runs.resume_newest(workflow, TASK)?)
}
