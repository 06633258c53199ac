//! Runs commands in a terminal of the editor, but only commands that would not be sandboxed here
//! either.
//!
//! The editor runs the command, so haft asks the editor to end it: at the timeout, when the turn is
//! canceled, and when the call is dropped.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest, SessionUpdate,
    TerminalExitStatus, TerminalId, TerminalOutputRequest, WaitForTerminalExitRequest,
};
use haft_agent::ToolContext;
use haft_text::{cut_lines, sanitize};
use haft_types::{Envelope, ToolError, ToolStatus};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::host::Host;
use crate::updates::{SharedCalls, UpdateSender};

/// The time limit for the editor's answer to a request that does not wait for a command to end.
const EDITOR_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of output bytes that the editor is asked to keep.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// Runs the commands of one session in terminals of the editor.
#[derive(Clone)]
pub(crate) struct EditorTerminals {
    pub(crate) sender: UpdateSender,
    pub(crate) calls: SharedCalls,
    pub(crate) host: Arc<Host>,
}

/// The way in which a command in a terminal ended.
enum TerminalEnd {
    Exited(TerminalExitStatus),
    TimedOut,
    Cancelled,
    Lost(String),
}

/// An open terminal in the editor. Dropping this value releases the terminal and kills its command
/// if that is still running.
struct OpenTerminal<'a> {
    sender: &'a UpdateSender,
    id: TerminalId,
}

impl Drop for OpenTerminal<'_> {
    fn drop(&mut self) {
        let release = ReleaseTerminalRequest::new(self.sender.session.clone(), self.id.clone());
        self.sender.editor.send_request(release).detach();
    }
}

impl EditorTerminals {
    /// Runs a command line in a new terminal. Returns `None` if the editor rejects the request, in
    /// which case nothing has run.
    pub(crate) async fn run_command(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
        limit: Duration,
    ) -> Option<Envelope> {
        let editor = &self.sender.editor;
        let session = &self.sender.session;
        let begun = Instant::now();
        let made = match timeout(
            EDITOR_TIMEOUT,
            editor
                .send_request(self.create_request(context, line, cwd))
                .block_task(),
        )
        .await
        {
            Ok(made) => made.ok()?,
            // The command may still be running in the editor. Running it here as well would run it
            // twice.
            Err(_) => {
                return Some(Envelope::failure(
                    "editor_terminal",
                    "the editor did not say whether it runs it",
                ));
            }
        };
        let terminal = OpenTerminal {
            sender: &self.sender,
            id: made.terminal_id,
        };
        let shown = self
            .calls
            .lock()
            .attach_terminal(&context.call_id, &terminal.id);
        if let Some(update) = shown {
            self.sender
                .send_update(SessionUpdate::ToolCallUpdate(update));
        }
        let exit = WaitForTerminalExitRequest::new(session.clone(), terminal.id.clone());
        let end = tokio::select! {
            ended = editor.send_request(exit).block_task() => match ended {
                Ok(ended) => TerminalEnd::Exited(ended.exit_status),
                Err(error) => TerminalEnd::Lost(error.to_string()),
            },
            () = tokio::time::sleep(limit) => TerminalEnd::TimedOut,
            () = context.cancel.cancelled() => TerminalEnd::Cancelled,
        };
        if matches!(end, TerminalEnd::TimedOut | TerminalEnd::Cancelled) {
            let kill = KillTerminalRequest::new(session.clone(), terminal.id.clone());
            // If the editor cannot kill the command, the release below ends it.
            drop(timeout(EDITOR_TIMEOUT, editor.send_request(kill).block_task()).await);
        }
        let output = TerminalOutputRequest::new(session.clone(), terminal.id.clone());
        let output = timeout(EDITOR_TIMEOUT, editor.send_request(output).block_task()).await;
        let (output, whole) = match output {
            Ok(Ok(output)) => (output.output, !output.truncated),
            _ => (String::new(), false),
        };
        let data = json!({
            "command": line, "cwd": context.workspace.display_path(cwd), "terminal": "editor",
            "duration_ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        Some(build_command_result(
            end, &output, whole, limit, context, data,
        ))
    }

    /// Builds the request to the editor for running a command line in a terminal. Variables that
    /// haft withholds from its own commands are unset with `env -u`.
    fn create_request(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
    ) -> CreateTerminalRequest {
        let withheld = self.host.withheld_variables(&context.environment);
        let mut argv: Vec<String> = Vec::new();
        if !withheld.is_empty() {
            argv.push("/usr/bin/env".to_owned());
            argv.extend(
                withheld
                    .into_iter()
                    .flat_map(|name| ["-u".to_owned(), name]),
            );
        }
        argv.extend([
            haft_tools::shell_path().to_owned(),
            "-c".to_owned(),
            line.to_owned(),
        ]);
        let environment = context
            .environment
            .iter()
            .map(|(name, value)| EnvVariable::new(name, value));
        CreateTerminalRequest::new(self.sender.session.clone(), argv.remove(0))
            .args(argv)
            .env(environment.collect())
            .cwd(cwd.to_owned())
            .output_byte_limit(OUTPUT_LIMIT)
    }
}

/// Builds the tool result of a command that ran in a terminal.
fn build_command_result(
    end: TerminalEnd,
    output: &str,
    whole: bool,
    limit: Duration,
    context: &ToolContext,
    mut data: Value,
) -> Envelope {
    let (headline, error) = match end {
        TerminalEnd::Exited(TerminalExitStatus {
            exit_code: Some(0), ..
        }) => {
            data["exit_code"] = 0.into();
            ("Exit code 0.".to_owned(), None)
        }
        TerminalEnd::Exited(TerminalExitStatus {
            exit_code: Some(code),
            ..
        }) => {
            data["exit_code"] = code.into();
            (
                format!("Exit code {code}."),
                Some(("exit_status", format!("exit status {code}"))),
            )
        }
        TerminalEnd::Exited(status) => {
            let signal = status.signal.unwrap_or_else(|| "a signal".to_owned());
            data["signal"] = signal.as_str().into();
            (
                format!("Ended by {signal}."),
                Some(("signal", format!("ended by {signal}"))),
            )
        }
        TerminalEnd::TimedOut => {
            data["timed_out"] = true.into();
            let seconds = limit.as_secs();
            let message =
                format!("timed out after {seconds} s; raise `timeout` if it needs longer");
            (
                format!("Timed out after {seconds} s; it was ended."),
                Some(("timed_out", message)),
            )
        }
        TerminalEnd::Cancelled => {
            data["cancelled"] = true.into();
            (
                "Cancelled; it was ended.".to_owned(),
                Some(("cancelled", "cancelled by the user".to_owned())),
            )
        }
        TerminalEnd::Lost(why) => {
            let message = format!("the editor lost the terminal it ran at: {why}");
            (
                format!("How it ended is not known: {message}."),
                Some(("editor_terminal", message)),
            )
        }
    };
    let output = sanitize(output).replace('\r', "");
    let cut = cut_lines(output.trim_end(), context.limits.into());
    let mut text = headline;
    if cut.text.is_empty() {
        text.push_str(" No output.");
    } else {
        text.push_str("\n--- output ---\n");
        text.push_str(&cut.text);
    }
    if cut.is_cut() || !whole {
        data["truncated"] = true.into();
        text.push_str(
            "\n[It is not the whole output; run it again with less, or with its output in a file.]",
        );
    }
    data["stdout"] = cut.text.into();
    let mut envelope = Envelope::success(text).with_data(data);
    if let Some((code, message)) = error {
        envelope.status = ToolStatus::Error;
        envelope.error = Some(ToolError {
            code: code.to_owned(),
            message,
        });
    }
    envelope
}
