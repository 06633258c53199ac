//! What is to run, and what became of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::visibility::CommandPaths;
use crate::{CapturedOutput, ConfinementSpec, HiddenPath};

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// [`CommandSpec::env`].
    pub argv: Vec<OsString>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// Its complete environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// After this long it is ended.
    pub timeout: Duration,
    /// What it reads.
    pub stdin: Stdin,
    /// What holds it in; nothing when absent.
    pub confined: Option<Arc<ConfinementSpec>>,
}

impl CommandSpec {
    /// A line for `/bin/sh`, with an empty environment and two minutes.
    pub fn shell(line: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            argv: vec!["/bin/sh".into(), "-c".into(), line.into()],
            cwd: cwd.into(),
            env: Vec::new(),
            timeout: Duration::from_mins(2),
            stdin: Stdin::Null,
            confined: None,
        }
    }

    /// The same, held in.
    #[must_use]
    pub fn confined(mut self, confined: Option<Arc<ConfinementSpec>>) -> Self {
        self.confined = confined;
        self
    }

    /// The same with this time to run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same with this environment.
    #[must_use]
    pub fn env(mut self, env: Vec<(String, String)>) -> Self {
        self.env = env;
        self
    }

    /// Returns the path that the command names, or that `output` mentions, and that the sandbox
    /// hides from the command.
    pub(crate) fn hidden_path(&self, output: &str) -> Option<HiddenPath> {
        let confined = self.confined.as_ref()?;
        let texts: Vec<_> = self
            .argv
            .iter()
            .map(|text| text.to_string_lossy().into_owned())
            .collect();
        confined.hidden_in(
            CommandPaths {
                texts: &texts,
                cwd: &self.cwd,
                env: &self.env,
            },
            output,
        )
    }
}

/// What a command reads from its standard input, unless it is at a terminal. Otherwise there is
/// none: it has a session of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: the end of input comes at once, so that a command that asks a question ends instead
    /// of waiting.
    #[default]
    Null,
    /// This text, and then the end of input. It holds no NUL character.
    Text(String),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal, which the supervisor did not send.
    Signal(i32),
    /// It took longer than its timeout and was ended.
    TimedOut,
    /// It was cancelled and ended.
    Cancelled,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    /// How it ended.
    pub exit: CommandExit,
    /// What it and its descendants wrote to standard output.
    pub stdout: CapturedOutput,
    /// What it and its descendants wrote to standard error.
    pub stderr: CapturedOutput,
    /// From the call to the last descendant's end.
    pub duration: Duration,
    /// Whether all its descendants are gone.
    pub aftermath: Aftermath,
    /// For a confined command that failed: a path it named or complained about that only the
    /// sandbox hides.
    pub hidden: Option<HiddenPath>,
}

/// Whether anything of a command is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// The supervisor saw the last descendant end.
    AllGone,
    /// Some descendant could not be ended in time, such as one in an uninterruptible wait or of
    /// another user.
    StillDying,
}

/// Whether a command gets a pid namespace (and its own `/proc`) of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PidNamespace {
    /// Where that is allowed without a user namespace, which is to say as root.
    #[default]
    Privileged,
    /// Never.
    Never,
}
