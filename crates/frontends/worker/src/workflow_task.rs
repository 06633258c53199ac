//! Runs a task that is a workflow, as `haft workflows run` does. The record of the run lies next to
//! the files of the task.
//!
//! Invariant: the queue stores which steps are done, and the conversation of a step that has begun,
//! before the run goes on. Another worker repeats no step that is done, and continues the
//! conversations of the other steps.

use std::io;
use std::sync::Arc;

use haft_agent::config::Config;
use haft_agent::{Project, RandomIds, WallClock};
use haft_files::Durability;
use haft_postgres::{KeptFile, KeptKind, TASK_RECORD_PATH};
use haft_types::{PermissionMode, Price, TurnResult};
use haft_workflows::{HeldRun, SelectError, Workflow, WorkflowReport, WorkflowRun, WorkflowRuns};
use serde_json::json;
use tokio::task::LocalSet;

use crate::localize_text;
use crate::slot::TaskRun;
use crate::task_meter::TaskMeter;
use crate::task_report::RunEnd;
use crate::task_runner::{TaskPlan, TaskRunError, TaskRunner, block_on, yolo_refusal};

impl TaskRunner {
    /// Runs the workflow `name` with the model, mode and limits of `plan`.
    pub(crate) fn run_workflow(
        &self,
        run: &TaskRun,
        name: &str,
        plan: TaskPlan,
    ) -> Result<RunEnd, TaskRunError> {
        let TaskPlan {
            config,
            model,
            mode,
            limits,
        } = plan;
        if mode.unwrap_or(config.permissions.mode) == PermissionMode::Yolo {
            return Err(TaskRunError::refuse(yolo_refusal()));
        }
        let project = Project::find(&self.places.environment, Some(&run.folder))?;
        let (workflow, agents) = haft_workflows::select_workflow(
            &self.places,
            &config,
            &project,
            name,
            model.as_deref(),
        )
        .map_err(|error| self.print_and_convert_error(error))?;
        // The changes of a step in a copy exist nowhere else until they are merged.
        if workflow.steps.iter().any(|step| step.uses_copy(&agents)) {
            return Err(TaskRunError::refuse(text!("task-workflow-copies", name)));
        }
        let named = workflow
            .steps
            .iter()
            .filter_map(|step| step.choose_model(&agents, model.as_deref()));
        let named = named.chain(haft_agent::configured_model(&config));
        let prices = named
            .filter_map(|name| self.find_price(&config, &name))
            .collect();
        let held = resume_or_begin_run(run, &workflow)?;
        let steps = WorkflowRun {
            agent: self.build_agent(config.clone(), run),
            places: self.places.clone(),
            config,
            project,
            workflow: workflow.clone(),
            agents,
            model,
            mode,
            limits,
            approver: None,
            cancel: run.slot.cancel.clone(),
        };
        let work = steps.run(held, Box::new(TaskMeter::new(run.clone(), prices)));
        let report = block_on(LocalSet::new().run_until(work))??;
        let WorkflowReport {
            mut result,
            record,
            completed,
            ..
        } = report;
        // What the queue stores is read on other machines, too.
        result.message = haft_messages::run_in_english(|| {
            (self.describe_workflow)(&workflow, &record, completed)
        });
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

    /// Reports the problems of the workflow's file, and returns the error for the queue.
    fn print_and_convert_error(&self, error: SelectError) -> TaskRunError {
        match error {
            SelectError::Setup(error) => return error.into(),
            SelectError::Invalid { ref problems, .. } => {
                for problem in problems {
                    (self.report_problem)(&localize_text(problem));
                }
            }
            SelectError::Unknown { .. }
            | SelectError::Untrusted { .. }
            | SelectError::Step { .. } => {}
        }
        TaskRunError::refuse(localize_text(error))
    }

    fn find_price(&self, config: &Config, model: &str) -> Option<Price> {
        haft_agent::resolve_model(&self.places.environment, config, model)
            .ok()?
            .spec
            .price
    }
}

/// Returns the run that an earlier worker has begun, or a new one.
fn resume_or_begin_run(run: &TaskRun, workflow: &Workflow) -> Result<HeldRun, TaskRunError> {
    const TASK: &str = "task";
    let kept = run.queue.read_record(run.task.id)?;
    // The folder lies next to the clone and is removed with it.
    let folder = run.folder.with_file_name("run");
    let keeper = run.clone();
    let runs = WorkflowRuns::new(folder.clone()).with_listener(Arc::new(move |bytes| {
        let path = TASK_RECORD_PATH.into();
        let content = bytes.to_vec();
        keeper
            .keep_files(vec![KeptFile {
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
            .map_err(|error| TaskRunError::refuse(localize_text(error)))?;
        return Ok(runs.begin_run(workflow, TASK, inputs, &WallClock, &RandomIds)?);
    };
    haft_files::replace_file(&folder.join("kept.json"), &kept, Durability::Process)?;
    Ok(runs.resume_newest(workflow, TASK)?)
}
