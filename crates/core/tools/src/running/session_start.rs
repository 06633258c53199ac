//! `session_start`: runs a command in a terminal of its own, into which the model types with
//! `session_interactive`.

mod pty_report;

use std::sync::Arc;

use haft_sandbox::{TerminalSize, WaitEnd};

use crate::prelude::*;
use crate::running::shell::{self, CommandLine, RunLocation};
use crate::running::{PtySession, Running};

pub(crate) use pty_report::PtyReport;

pub(crate) const NAME: &str = "session_start";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Running)
};
/// The default time in seconds that a call waits for output.
pub(crate) const DEFAULT_WAIT: u64 = 10;
pub(crate) const MAX_WAIT: u64 = 600;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionStartParameters {
    /// The command line, such as `python3 -i`, `gdb ./app`, or `bash` for a shell in which `cd`
    /// and variables last.
    command: String,
    /// The folder to run in; default the working directory.
    cwd: Option<String>,
    /// Seconds to wait for its first output; default 10. The program itself has no limit.
    #[schemars(range(min = 0, max = MAX_WAIT))]
    timeout: Option<u64>,
    /// Lines of its terminal; default 40.
    #[schemars(range(min = 1, max = 1000))]
    rows: Option<u16>,
    /// Characters a line of its terminal; default 160.
    #[schemars(range(min = 1, max = 1000))]
    columns: Option<u16>,
    /// `outside` leaves the sandbox and always asks the user.
    sandbox: Option<RunLocation>,
}

/// Defines the tool `session_start`, whose sessions belong to `running`.
pub(crate) fn define_tool(running: Arc<Running>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("session_start/prompt"),
        &MANUAL,
        Access::Execute,
        Intent::for_command,
    )
    .with_function(move |context, parameters| {
        Box::pin(start_session(Arc::clone(&running), context, parameters))
    })
}

async fn start_session(
    running: Arc<Running>,
    context: &ToolContext,
    SessionStartParameters {
        command,
        cwd,
        timeout,
        rows,
        columns,
        sandbox,
    }: SessionStartParameters,
) -> CallResult {
    let wait = shell::parse_timeout(timeout, DEFAULT_WAIT, 0, MAX_WAIT)?;
    let size = TerminalSize {
        rows: check_dimension("rows", rows, TerminalSize::default().rows)?,
        columns: check_dimension("columns", columns, TerminalSize::default().columns)?,
    };
    let line = CommandLine::from_arguments(context, &running, command, cwd.as_deref(), sandbox)?;
    let Running {
        supervisor,
        limits,
        sessions,
        ..
    } = running.as_ref();
    let session = sessions.open_session(supervisor, limits, context, line, size)?;
    interact_with_session(&running, context, &session, &[], wait).await
}

fn check_dimension(name: &str, given: Option<u16>, default: u16) -> Result<u16, ToolFailure> {
    match given.unwrap_or(default) {
        fits @ 1..=1000 => Ok(fits),
        given => Err(ToolFailure::new(
            "invalid_arguments",
            format!("`{name}` is {given}; it must be from 1 to 1000"),
        )),
    }
}

/// Types bytes into a session, waits for its output, and reports the output. Closes the session if
/// its command has ended.
pub(crate) async fn interact_with_session(
    running: &Running,
    context: &ToolContext,
    session: &PtySession,
    typed: &[u8],
    wait: std::time::Duration,
) -> CallResult {
    let pause = tokio::select! {
        pause = session.terminal.type_and_wait(typed, wait) => pause?,
        () = context.cancel.cancelled() => WaitEnd::Busy,
    };
    let spoken = PtyReport::new(session, pause, wait);
    let envelope = spoken.build_envelope(context.limits.into())?;
    if let Some(how) = spoken.describe_ending() {
        running.sessions.close_session(session, &how);
    }
    Ok(envelope.into())
}

#[cfg(test)]
mod tests;
