//! `background_task`: commands that run while the model goes on.

mod report;

use std::sync::Arc;
use std::time::Duration;

use haft_tool::{Access, Intent, Tool, ToolContext, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::manual::{Group, Manual};
use crate::running::shell::{self, Line, Place};
use crate::running::{Running, Task};

pub(crate) const NAME: &str = "background_task";

static MANUAL: Manual = Manual {
    example_of: "Running a long test while working on",
    example: r#"{"action": "start", "command": "cargo test --workspace"}"#,
    ..Manual::of(Group::Running)
};
const MAX_WAIT: u64 = 600;
const DEFAULT_LINES: usize = 50;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
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
struct Parameters {
    /// What to do.
    action: Action,
    /// `start`: the command line.
    command: Option<String>,
    /// `start`: the folder to run in.
    cwd: Option<String>,
    /// `monitor`, `kill`: the task, such as `t1`.
    task_id: Option<String>,
    /// `start`: seconds after which it is ended; no limit by default. `monitor`: seconds to wait for its end; default 0.
    #[schemars(range(min = 0))]
    timeout: Option<u64>,
    /// `monitor`: how many of its last lines to show; default 50.
    #[schemars(range(min = 1))]
    lines: Option<usize>,
    /// `start`: `outside` to leave the sandbox, which asks the user; default `inside`.
    sandbox: Option<Place>,
}

/// The tool. What it starts belongs to `running`.
pub(crate) fn tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(NAME, include_str!("background_task/prompt.md"), &MANUAL, Access::Execute, intent)
        .runs(move |context, parameters| Box::pin(run(Arc::clone(&running), context, parameters)))
}

async fn run(running: Arc<Running>, context: &ToolContext, parameters: Parameters) -> Result<ToolOutput, Failure> {
    let envelope = match parameters.action {
        Action::Start => start(&running, context, parameters)?,
        Action::List => report::list(&running.tasks.list()),
        Action::Monitor => monitor(&running, context, &parameters).await?,
        Action::Kill => {
            let task = find_task(&running, &parameters)?;
            running.tasks.kill(&task).await;
            report::killed(&task)
        }
        Action::Cleanup => report::cleaned(&running.tasks.clean_up()),
    };
    Ok(envelope.into())
}

fn start(running: &Running, context: &ToolContext, parameters: Parameters) -> Result<haft_types::Envelope, Failure> {
    let missing = || Failure::new("invalid_arguments", "the action `start` needs `command`, the command line to run");
    let command = parameters.command.ok_or_else(missing)?;
    let line = Line::check(context, running, command, parameters.cwd.as_deref(), parameters.sandbox)?;
    let timeout = match parameters.timeout {
        None => Duration::MAX,
        given => shell::seconds(given, 0, 1, u64::from(u32::MAX))?,
    };
    let Running { supervisor, limits, tasks, .. } = running;
    let task = tasks.start(supervisor, limits, context, line, timeout)?;
    Ok(report::started(&task))
}

async fn monitor(
    running: &Running,
    context: &ToolContext,
    parameters: &Parameters,
) -> Result<haft_types::Envelope, Failure> {
    let task = find_task(running, parameters)?;
    let wait = shell::seconds(parameters.timeout, 0, 0, MAX_WAIT)?;
    tokio::select! {
        _ = task.ended() => {}
        () = tokio::time::sleep(wait) => {}
        () = context.cancel.cancelled() => {}
    }
    let lines = parameters.lines.unwrap_or(DEFAULT_LINES).min(context.limits.lines);
    Ok(report::shown(&task, lines, context.limits.bytes))
}

fn find_task(running: &Running, parameters: &Parameters) -> Result<Arc<Task>, Failure> {
    let Some(id) = &parameters.task_id else {
        return Err(Failure::new("invalid_arguments", "this action needs `task_id`; the action `list` gives them"));
    };
    running.tasks.find(id).ok_or_else(|| {
        let message = format!(
            "there is no task `{id}`; the action `list` gives those there are (a task ends with the haft that started it)"
        );
        Failure::new("not_found", message)
    })
}

fn intent(arguments: &Value) -> Intent {
    Intent::parsed(arguments, |parameters| match parameters {
        Parameters { action: Action::Start, command: Some(line), cwd, .. } => Intent::Command { line, cwd },
        Parameters { .. } => Intent::Nothing,
    })
}

#[cfg(test)]
mod tests;
