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

/// The environment variable with the options of `env` that unset variables in a terminal.
const UNSET_VARIABLE: &str = "HAFT_UNSET";

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
    /// haft withholds from its own commands are unset there. Their names are in a variable of their
    /// own, because editors show the arguments.
    fn create_request(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
    ) -> CreateTerminalRequest {
        let withheld = self.host.withheld_variables(&context.environment);
        let mut environment: Vec<EnvVariable> = context
            .environment
            .iter()
            .map(|(name, value)| EnvVariable::new(name, value))
            .collect();
        let shell = haft_tools::shell_path();
        let mut command = shell;
        let mut arguments = vec!["-c".to_owned()];
        if !withheld.is_empty() {
            // Unlike bash under its own name, `/bin/sh` reads no file that a variable names.
            command = "/bin/sh";
            let (mut plain, odd): (Vec<_>, Vec<_>) =
                withheld.into_iter().partition(|name| is_plain_name(name));
            plain.push(UNSET_VARIABLE.to_owned());
            let unset = build_unset_options(plain).join(" ");
            environment.push(EnvVariable::new(UNSET_VARIABLE, unset));
            arguments.extend([
                format!("exec /usr/bin/env ${UNSET_VARIABLE} \"$@\""),
                "sh".to_owned(),
            ]);
            arguments.extend(build_unset_options(odd));
            arguments.extend([shell.to_owned(), "-c".to_owned()]);
        }
        arguments.push(line.to_owned());
        CreateTerminalRequest::new(self.sender.session.clone(), command)
            .args(arguments)
            .env(environment)
            .cwd(cwd.to_owned())
            .output_byte_limit(OUTPUT_LIMIT)
    }
}

fn build_unset_options(names: Vec<String>) -> Vec<String> {
    names
        .into_iter()
        .flat_map(|name| ["-u".to_owned(), name])
        .collect()
}

/// True if a shell leaves the name of a variable unchanged when it splits an expansion into words.
fn is_plain_name(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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
