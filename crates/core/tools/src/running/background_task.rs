//! `background_task`: commands that run while the model goes on.

mod report;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Failure, settle};
use crate::manual::{Group, Manual};
use crate::running::shell::{self, Line, Place};
use crate::running::{Running, Task};
use crate::spec_of;

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

/// The tool.
pub(crate) struct BackgroundTask {
    spec: ToolSpec,
    running: Arc<Running>,
}

impl BackgroundTask {
    pub(crate) fn new(running: Arc<Running>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("background_task/prompt.md")), running }
    }

    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
        let parameters: Parameters = parse_arguments(NAME, arguments)?;
        let envelope = match parameters.action {
            Action::Start => self.start(context, parameters)?,
            Action::List => report::list(&self.running.tasks.list()),
            Action::Monitor => self.monitor(context, &parameters).await?,
            Action::Kill => {
                let task = self.task(&parameters)?;
                self.running.tasks.kill(&task).await;
                report::killed(&task)
            }
            Action::Cleanup => report::cleaned(&self.running.tasks.clean_up()),
        };
        Ok(envelope.into())
    }

    fn start(&self, context: &ToolContext, parameters: Parameters) -> Result<haft_types::Envelope, Failure> {
        let missing =
            || Failure::new("invalid_arguments", "the action `start` needs `command`, the command line to run");
        let command = parameters.command.ok_or_else(missing)?;
        let line = Line::check(context, &self.running, command, parameters.cwd.as_deref(), parameters.sandbox)?;
        let timeout = match parameters.timeout {
            None => Duration::MAX,
            given => shell::seconds(given, 0, 1, u64::from(u32::MAX))?,
        };
        let Running { supervisor, limits, tasks, .. } = self.running.as_ref();
        let task = tasks.start(supervisor, limits, context, line, timeout)?;
        Ok(report::started(&task))
    }

    async fn monitor(&self, context: &ToolContext, parameters: &Parameters) -> Result<haft_types::Envelope, Failure> {
        let task = self.task(parameters)?;
        let wait = shell::seconds(parameters.timeout, 0, 0, MAX_WAIT)?;
        tokio::select! {
            _ = task.ended() => {}
            () = tokio::time::sleep(wait) => {}
            () = context.cancel.cancelled() => {}
        }
        let lines = parameters.lines.unwrap_or(DEFAULT_LINES).min(context.limits.lines);
        Ok(report::shown(&task, lines, context.limits.bytes))
    }

    fn task(&self, parameters: &Parameters) -> Result<Arc<Task>, Failure> {
        let Some(id) = &parameters.task_id else {
            return Err(Failure::new("invalid_arguments", "this action needs `task_id`; the action `list` gives them"));
        };
        self.running.tasks.find(id).ok_or_else(|| {
            let message = format!(
                "there is no task `{id}`; the action `list` gives those there are (a task ends with the haft that started it)"
            );
            Failure::new("not_found", message)
        })
    }
}

#[async_trait]
impl Tool for BackgroundTask {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Execute
    }

    fn intent(&self, arguments: &Value) -> Intent {
        match parse_arguments::<Parameters>(NAME, arguments.clone()) {
            Ok(Parameters { action: Action::Start, command: Some(line), cwd, .. }) => Intent::Command { line, cwd },
            Ok(_) | Err(_) => Intent::Nothing,
        }
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(self.run(context, arguments).await)
    }
}

#[cfg(test)]
mod tests;
