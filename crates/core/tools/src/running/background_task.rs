//! `background_task`: runs commands while the model continues.

mod task_envelopes;

use std::sync::Arc;
use std::time::Duration;

use crate::prelude::*;
use crate::running::shell::{self, CommandLine, RunLocation};
use crate::running::{Running, Task};

pub(crate) const NAME: &str = "background_task";

static MANUAL: Manual = Manual::for_group(Group::Running);
const MAX_WAIT: u64 = 600;
const DEFAULT_LINES: usize = 50;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskAction {
    /// Runs a command.
    Start,
    /// Lists the tasks.
    List,
    /// Shows how a task stands.
    Monitor,
    /// Ends a task.
    Kill,
    /// Forgets the tasks that have ended.
    Cleanup,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BackgroundTaskParameters {
    /// What to do.
    action: TaskAction,
    /// `start`: the command line.
    command: Option<String>,
    /// `start`: the folder to run in; default the working directory.
    cwd: Option<String>,
    /// `monitor`, `kill`: the task, such as `t1`.
    task_id: Option<String>,
    /// `start`: seconds after which it is ended; no limit by default. `monitor`: seconds to wait
    /// for its end, at most 600; default 0.
    #[schemars(range(min = 0))]
    timeout: Option<u64>,
    /// `monitor`: how many of its last lines to show; default 50.
    #[schemars(range(min = 1))]
    lines: Option<usize>,
    /// `start`: `outside` leaves the sandbox and always asks the user.
    sandbox: Option<RunLocation>,
}

/// Defines the tool `background_task`, whose tasks belong to `running`.
pub(crate) fn define_tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("background_task/prompt"),
        &MANUAL,
        Access::Execute,
        derive_intent,
    )
    .with_function(move |context, parameters| {
        Box::pin(run_action(Arc::clone(&running), context, parameters))
    })
}

async fn run_action(
    running: Arc<Running>,
    context: &ToolContext,
    parameters: BackgroundTaskParameters,
) -> CallResult {
    let envelope = match parameters.action {
        TaskAction::Start => start_task(&running, context, parameters)?,
        TaskAction::List => task_envelopes::build_list_envelope(&running.tasks.list()),
        TaskAction::Monitor => monitor_task(&running, context, &parameters).await?,
        TaskAction::Kill => {
            let task = find_task(&running, &parameters)?;
            running.tasks.kill(&task).await;
            task_envelopes::build_killed_envelope(&task)
        }
        TaskAction::Cleanup => {
            task_envelopes::build_cleanup_envelope(&running.tasks.remove_ended())
        }
    };
    Ok(envelope.into())
}

fn start_task(
    running: &Running,
    context: &ToolContext,
    parameters: BackgroundTaskParameters,
) -> Result<Envelope, ToolFailure> {
    let missing = || {
        ToolFailure::new(
            "invalid_arguments",
            "the action `start` needs `command`, the command line to run",
        )
    };
    let command = parameters.command.ok_or_else(missing)?;
    let line = CommandLine::from_arguments(
        context,
        running,
        command,
        parameters.cwd.as_deref(),
        parameters.sandbox,
    )?;
    let timeout = match parameters.timeout {
        None => Duration::MAX,
        given => shell::parse_timeout(given, 0, 1, u64::from(u32::MAX))?,
    };
    let Running {
        supervisor,
        limits,
        tasks,
        ..
    } = running;
    let task = tasks.start_task(supervisor, limits, context, line, timeout)?;
    Ok(task_envelopes::build_started_envelope(&task))
}

async fn monitor_task(
    running: &Running,
    context: &ToolContext,
    parameters: &BackgroundTaskParameters,
) -> Result<Envelope, ToolFailure> {
    let task = find_task(running, parameters)?;
    let wait = shell::parse_timeout(parameters.timeout, 0, 0, MAX_WAIT)?;
    tokio::select! {
        _ = task.wait_for_end() => {}
        () = tokio::time::sleep(wait) => {}
        () = context.cancel.cancelled() => {}
    }
    let lines = parameters
        .lines
        .unwrap_or(DEFAULT_LINES)
        .min(context.limits.lines);
    Ok(task_envelopes::build_monitor_envelope(
        &task,
        lines,
        context.limits.bytes,
    ))
}

fn find_task(
    running: &Running,
    parameters: &BackgroundTaskParameters,
) -> Result<Arc<Task>, ToolFailure> {
    let Some(id) = &parameters.task_id else {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "this action needs `task_id`; the action `list` gives them",
        ));
    };
    running.tasks.find(id).ok_or_else(|| {
        let message = format!(
            "there is no task `{id}`; the action `list` gives those there are (a task ends with the haft that started it)"
        );
        ToolFailure::new("not_found", message)
    })
}

fn derive_intent(arguments: &Value) -> Intent {
    Intent::from_parameters(arguments, |parameters| match parameters {
        BackgroundTaskParameters {
            action: TaskAction::Start,
            command: Some(line),
            cwd,
            ..
        } => Intent::Command { line, cwd },
        BackgroundTaskParameters { .. } => Intent::Nothing,
    })
}

#[cfg(test)]
mod tests;
