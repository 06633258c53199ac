//! `execute_command`: runs a command line under the supervisor.
//!
//! For a command that exits with a status other than 0, the envelope reports an error and contains
//! the complete output, but the function behind the tool does not fail.

mod command_report;
mod progress;
mod sandbox_refusal;

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use haft_sandbox::{Capture, LiveCommand};
use haft_text::CutLimits;
use tempfile::TempDir;

use crate::prelude::*;
use crate::running::Running;
use crate::running::shell::{self, CommandLine, RunLocation};

use command_report::CommandRun;
use progress::{POLL_INTERVAL, PROGRESS_LIMITS, ProgressWatcher};
use sandbox_refusal::CommandSandbox;

const NAME: &str = "execute_command";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Bash",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Running)
};
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 3600;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecuteCommandParameters {
    /// The command line; pipes, `&&` and redirections work.
    command: String,
    /// True asks the user: for what is hard to undo or reaches beyond the project, such as
    /// deleting data, installing packages, using the network. False, for building, testing and
    /// looking, loosens no rule.
    #[expect(
        dead_code,
        reason = "permission is decided before the call, from the arguments themselves"
    )]
    requires_approval: Option<bool>,
    /// The folder to run in; default the working directory.
    cwd: Option<String>,
    /// Seconds after which it is ended; default 120. Raise it for long builds.
    #[schemars(range(min = 1, max = MAX_TIMEOUT))]
    timeout: Option<u64>,
    /// `outside` leaves the sandbox and always asks the user: only for what it refused, such as
    /// `git commit` or a download.
    sandbox: Option<RunLocation>,
}

/// Defines the tool `execute_command`, whose processes belong to `running`.
pub(crate) fn define_tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("execute_command/prompt"),
        &MANUAL,
        Access::Execute,
        Intent::for_command,
    )
    .with_function(move |context, parameters| {
        Box::pin(execute_command(Arc::clone(&running), context, parameters))
    })
}

async fn execute_command(
    running: Arc<Running>,
    context: &ToolContext,
    ExecuteCommandParameters {
        command,
        requires_approval: _,
        cwd,
        timeout,
        sandbox,
    }: ExecuteCommandParameters,
) -> CallResult {
    let timeout = shell::parse_timeout(timeout, DEFAULT_TIMEOUT, 1, MAX_TIMEOUT)?;
    let line = CommandLine::from_arguments(context, &running, command, cwd.as_deref(), sandbox)?;
    // An unconfined command may run in the user's editor. A confined one always runs under the
    // supervisor.
    if let (None, Some(editor)) = (&line.confined, &context.buffers)
        && let Some(envelope) = editor
            .run_in_terminal(context, &line.text, &line.cwd, timeout)
            .await
    {
        return Ok(envelope.into());
    }
    let limits = context.limits.into();
    // The folder is removed unless the report names its files.
    let folder = shell::create_output_folder(context, "command-").ok();
    let capture = build_capture(&running, limits, folder.as_ref());
    let command = line.to_command_spec(context, timeout);
    let live = LiveCommand::with_unread_limits(PROGRESS_LIMITS);
    let started = Instant::now();
    let mut watcher = ProgressWatcher::new();
    let mut run = pin!(
        running
            .supervisor
            .run_watched(&command, &capture, &context.cancel, &live)
    );
    let finished = loop {
        tokio::select! {
            finished = &mut run => break finished?,
            () = tokio::time::sleep(POLL_INTERVAL) => watcher.poll_output(&live, &context.progress),
        }
    };
    let cwd = line.display_cwd(context);
    let sandbox = line.confined.as_deref().map(|confined| {
        CommandSandbox::new(confined, running.sandbox().refused_hosts_since(started))
    });
    let awaited = watcher.awaits;
    let tools = context.tools.clone();
    let run = CommandRun {
        finished,
        command: line.text,
        cwd,
        folder: line.cwd,
        timeout,
        awaited,
        sandbox,
        tools,
    };
    let report = run.build_report(limits);
    if let (true, Some(folder)) = (report.names_files, folder) {
        let _ = folder.keep();
    }
    Ok(report.envelope.into())
}

/// Returns the settings for capturing the output. Each stream is kept in memory and spilled as if
/// it had half of the limits: together, the streams may exceed the limits even if neither stream
/// does alone, and the complete output must then be in a file too. A head and a tail of half the
/// limits each are still sufficient for a stream that gets the whole limits.
fn build_capture(running: &Running, limits: CutLimits, folder: Option<&TempDir>) -> Capture {
    let half = CutLimits {
        lines: limits.lines / 2,
        bytes: limits.bytes.div_ceil(2),
    };
    let spill = folder.map(|folder| folder.path().join("output"));
    Capture {
        limits: half,
        spill,
        max_spill_bytes: running.limits.spill_bytes,
        ..Capture::default()
    }
}

/// Converts `timeout` from milliseconds to seconds and removes `description`. `requires_approval`
/// is set to false by default, because the permission rules decide.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    remove_arguments(&mut arguments, &["description"]);
    arguments
        .entry("requires_approval")
        .or_insert(Value::Bool(false));
    if let Some(timeout) = arguments.get_mut("timeout")
        && let Some(milliseconds) = timeout.as_u64()
    {
        *timeout = milliseconds.div_ceil(1_000).clamp(1, MAX_TIMEOUT).into();
    }
    arguments
}

#[cfg(test)]
mod tests;
