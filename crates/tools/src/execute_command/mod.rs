//! `execute_command`: a command line under the supervisor.
//!
//! A command that ends with another status than 0 has run: the result is an error to the model, with the output whole, but no
//! failure of the tool (SPEC 10.1).

mod report;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_sandbox::{Capture, Command, SandboxError, Stdin, Supervisor};
use haft_text::Limits;
use haft_tool::{Access, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::failure::{Coded, Failure, settle};
use crate::manual::{Alias, Arguments, Group, Manual, forget};
use crate::{paths, spec_of};

use report::Ran;

const NAME: &str = "execute_command";

static MANUAL: Manual = Manual {
    example_of: "Running the tests of one module",
    example: r#"{"command": "cargo test -p parser limits", "requires_approval": false, "timeout": 300}"#,
    aliases: &[Alias { name: "Bash", translate: classic }],
    ..Manual::of(Group::Running)
};
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 3600;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The command line.
    command: String,
    /// Whether the user must agree first.
    #[expect(dead_code, reason = "permission is decided before the call, from the arguments themselves")]
    requires_approval: bool,
    /// The folder to run in.
    cwd: Option<String>,
    /// Seconds after which it is ended; default 120.
    #[schemars(range(min = 1, max = MAX_TIMEOUT))]
    timeout: Option<u64>,
}

/// The tool.
pub(crate) struct ExecuteCommand {
    spec: ToolSpec,
    supervisor: Arc<Supervisor>,
    shell: &'static str,
}

impl ExecuteCommand {
    pub(crate) fn new(supervisor: Arc<Supervisor>) -> Self {
        let shell = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|bash| Path::new(bash).exists());
        Self {
            spec: spec_of::<Parameters>(NAME, include_str!("prompt.md")),
            supervisor,
            shell: shell.unwrap_or("/bin/sh"),
        }
    }

    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
        let parameters: Parameters = parse_arguments(NAME, arguments)?;
        let (cwd, timeout) = check(context, &parameters)?;
        let command = Command {
            argv: vec![self.shell.into(), "-c".into(), parameters.command.clone().into()],
            cwd: cwd.clone(),
            env: context.environment.as_ref().clone(),
            timeout,
            stdin: Stdin::Null,
        };
        let limits = Limits { lines: context.limits.lines, bytes: context.limits.bytes };
        // Whatever is not kept below is removed again.
        let folder = spill_folder(&context.workspace.spill).ok();
        let finished = self.supervisor.run(&command, &capture(limits, folder.as_ref()), &context.cancel).await?;
        let ran = Ran { finished, command: parameters.command, cwd: paths::shown(&context.workspace, &cwd), timeout };
        let report = ran.report(limits);
        if let (true, Some(folder)) = (report.names_files, folder) {
            let _ = folder.keep();
        }
        Ok(report.envelope.into())
    }
}

#[async_trait]
impl Tool for ExecuteCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Execute
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(self.run(context, arguments).await)
    }
}

/// A call that makes no sense, found before anything runs.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("`command` is empty; give the command line to run")]
    Empty,
    #[error("`timeout` is {given} seconds; it must be from 1 to {MAX_TIMEOUT}")]
    Timeout { given: u64 },
    #[error("`cwd` is `{name}`, which is not an existing folder")]
    Folder { name: String },
}

impl Coded for CommandError {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty | Self::Timeout { .. } => "invalid_arguments",
            Self::Folder { .. } => "not_a_folder",
        }
    }
}

impl Coded for SandboxError {
    fn code(&self) -> &'static str {
        "cannot_run"
    }
}

fn check(context: &ToolContext, parameters: &Parameters) -> Result<(PathBuf, Duration), Failure> {
    if parameters.command.trim().is_empty() {
        return Err(CommandError::Empty.into());
    }
    let seconds = parameters.timeout.unwrap_or(DEFAULT_TIMEOUT);
    if !(1..=MAX_TIMEOUT).contains(&seconds) {
        return Err(CommandError::Timeout { given: seconds }.into());
    }
    let cwd = match &parameters.cwd {
        Some(given) => paths::resolve(&context.workspace, given)?,
        None => context.workspace.cwd.clone(),
    };
    if !cwd.is_dir() {
        return Err(CommandError::Folder { name: paths::shown(&context.workspace, &cwd) }.into());
    }
    Ok((cwd, Duration::from_secs(seconds)))
}

/// A private folder of an unpredictable name for the whole output of one command.
fn spill_folder(spill: &Path) -> io::Result<TempDir> {
    DirBuilder::new().recursive(true).mode(0o700).create(spill)?;
    tempfile::Builder::new().prefix("command-").tempdir_in(spill)
}

/// Each stream is kept in memory and spilled as if it got half the room: together they may exceed it when neither does, and
/// then the whole must be in a file too. Head and tail of half the room each are still enough for a stream that gets it all.
fn capture(limits: Limits, folder: Option<&TempDir>) -> Capture {
    let half = Limits { lines: limits.lines / 2, bytes: limits.bytes.div_ceil(2) };
    match folder {
        Some(folder) => Capture::spilling_to(half, folder.path().join("output")),
        None => Capture { limits: half, ..Capture::default() },
    }
}

/// `timeout` in milliseconds, and a description for people. Whether to ask is decided by the rules.
fn classic(mut arguments: Arguments) -> Arguments {
    forget(&mut arguments, &["description"]);
    arguments.entry("requires_approval").or_insert(Value::Bool(false));
    if let Some(timeout) = arguments.get_mut("timeout")
        && let Some(milliseconds) = timeout.as_u64()
    {
        *timeout = milliseconds.div_ceil(1_000).clamp(1, MAX_TIMEOUT).into();
    }
    arguments
}

#[cfg(test)]
mod tests;
