//! Code shared by all tools that run a command line: it checks the line, finds its folder and
//! sandbox policy, and creates a folder for its output.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{CommandSpec, ConfinementSpec, SandboxError, Stdin, commit_environment};
use haft_tool::ToolContext;
use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::TempDir;

use crate::failure::{Coded, ToolFailure};
use crate::paths;
use crate::running::Running;

/// A command line that was checked, with the folder and the sandbox policy for running it.
pub(crate) struct CommandLine {
    /// The command line as the model wrote it.
    pub(crate) text: String,
    pub(crate) cwd: PathBuf,
    /// The restrictions of the command; `None` if it runs unconfined.
    pub(crate) confined: Option<Arc<ConfinementSpec>>,
    /// True if the sandbox allows the command to write to the project's repository.
    commits: bool,
}

/// Where a command runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunLocation {
    /// In the sandbox.
    #[default]
    Inside,
    /// Where the user works.
    Outside,
}

/// The error for an invalid argument, found before the command runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("`command` is empty; give the command line to run")]
    Empty,
    #[error("`cwd` is `{name}`, which is not an existing folder")]
    Folder { name: String },
    #[error("`timeout` is {given} seconds; it must be from {least} to {most}")]
    Timeout { given: u64, least: u64, most: u64 },
}

impl Coded for LineError {
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

impl CommandLine {
    /// Checks the arguments of a tool call, and builds the command line to run.
    pub(crate) fn from_arguments(
        context: &ToolContext,
        running: &Running,
        command: String,
        cwd: Option<&str>,
        place: Option<RunLocation>,
    ) -> Result<Self, ToolFailure> {
        if command.trim().is_empty() {
            return Err(LineError::Empty.into());
        }
        let cwd = match cwd {
            Some(given) => paths::resolve_path(&context.workspace, given)?,
            None => context.workspace.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(LineError::Folder {
                name: paths::display_path(&context.workspace, &cwd),
            }
            .into());
        }
        let inside = place.unwrap_or_default() == RunLocation::Inside;
        let for_commit = if inside && context.can_commit {
            running
                .sandbox()
                .confinement_for_commit(&context.workspace.root)
        } else {
            None
        };
        let commits = for_commit.is_some();
        let confined = if inside {
            for_commit.or_else(|| running.sandbox().confinement())
        } else {
            None
        };
        Ok(Self {
            text: command,
            cwd,
            confined,
            commits,
        })
    }

    /// Returns the command that runs this line in a shell.
    pub(crate) fn to_command_spec(&self, context: &ToolContext, timeout: Duration) -> CommandSpec {
        CommandSpec {
            argv: vec![shell_path().into(), "-c".into(), self.text.clone().into()],
            cwd: self.cwd.clone(),
            env: match &self.confined {
                Some(confined) if self.commits => {
                    let policy = &confined.policy;
                    let writable = [policy.projects.as_slice(), &policy.writable].concat();
                    commit_environment(&context.environment, &writable)
                }
                Some(_) | None => context.environment.as_ref().clone(),
            },
            timeout,
            stdin: Stdin::Null,
            confined: self.confined.clone(),
        }
    }

    /// Returns the working directory as it is shown to the model.
    pub(crate) fn display_cwd(&self, context: &ToolContext) -> String {
        paths::display_path(&context.workspace, &self.cwd)
    }
}

/// Converts a number of seconds that the model wrote, and checks that it is from `least` to `most`.
pub(crate) fn parse_timeout(
    given: Option<u64>,
    default: u64,
    least: u64,
    most: u64,
) -> Result<Duration, LineError> {
    let given = given.unwrap_or(default);
    if (least..=most).contains(&given) {
        Ok(Duration::from_secs(given))
    } else {
        Err(LineError::Timeout { given, least, most })
    }
}

/// Creates a private folder for the complete output of one command, with an unpredictable name.
pub(crate) fn create_output_folder(context: &ToolContext, prefix: &str) -> io::Result<TempDir> {
    haft_files::create_temporary_folder(&context.workspace.spill, prefix)
}

/// Returns the path of the shell that runs command lines: bash if it exists, else `/bin/sh`.
pub fn shell_path() -> &'static str {
    let bash = ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|bash| Path::new(bash).exists());
    bash.unwrap_or("/bin/sh")
}
