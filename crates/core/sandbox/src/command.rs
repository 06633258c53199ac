//! Commands to run and their results.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::visibility::CommandPaths;
use crate::{CapturedOutput, ConfinementSpec, HiddenPath};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program and its arguments. A program name without a slash is looked up in the `PATH` of
    /// [`CommandSpec::env`].
    pub argv: Vec<OsString>,
    /// The working folder of the command.
    pub cwd: PathBuf,
    /// The complete environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// The time limit after which the command is ended.
    pub timeout: Duration,
    pub stdin: Stdin,
    /// The confinement of the command; `None` runs it unconfined.
    pub confined: Option<Arc<ConfinementSpec>>,
}

impl CommandSpec {
    /// Creates a command that runs `line` in `/bin/sh`, with an empty environment and a timeout of
    /// two minutes.
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

    #[must_use]
    pub fn with_confinement(mut self, confined: Option<Arc<ConfinementSpec>>) -> Self {
        self.confined = confined;
        self
    }

    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    #[must_use]
    pub fn with_env(mut self, env: Vec<(String, String)>) -> Self {
        self.env = env;
        self
    }

    /// Returns the first path hidden by the sandbox that the command names or that `output`
    /// mentions.
    pub(crate) fn find_hidden_path(&self, output: &str) -> Option<HiddenPath> {
        let confined = self.confined.as_ref()?;
        let texts: Vec<_> = self
            .argv
            .iter()
            .map(|text| text.to_string_lossy().into_owned())
            .collect();
        confined.first_hidden_path(
            CommandPaths {
                texts: &texts,
                cwd: &self.cwd,
                env: &self.env,
            },
            output,
        )
    }
}

/// The standard input of a command that does not run at a terminal.
///
/// The command runs in a session of its own, so it cannot read from haft's terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// No input: the first read returns end of file, so a command that asks a question ends instead
    /// of waiting.
    #[default]
    Null,
    /// The given text, followed by the end of file. The text contains no NUL character.
    Text(String),
}

/// The end of a command: an exit status, a signal, or the reason why the supervisor ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    /// The command exited with this status.
    Code(i32),
    /// The command was killed by this signal, which the supervisor did not send.
    Signal(i32),
    /// The command reached its timeout and was ended.
    TimedOut,
    /// The caller canceled the command.
    Cancelled,
}

/// The result of a command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCommand {
    pub exit: CommandExit,
    /// The standard output of the command and its descendants.
    pub stdout: CapturedOutput,
    /// The standard error of the command and its descendants.
    pub stderr: CapturedOutput,
    /// The time from the call to the end of the last descendant.
    pub duration: Duration,
    pub aftermath: Aftermath,
    /// A hidden path that the command named or reported. Set only if a confined command failed.
    pub hidden: Option<HiddenPath>,
    /// The protected entries that the command created or replaced against its sandbox. The command
    /// was killed, and the entries are as they were before it, or removed.
    pub undone: Vec<PathBuf>,
}

/// The state of a command's processes when its result is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// The supervisor saw the last descendant end.
    AllGone,
    /// Some descendant could not be ended in time, for example one in an uninterruptible wait or
    /// owned by another user.
    StillDying,
}

/// Controls whether a command gets its own pid namespace and its own `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PidNamespace {
    /// Creates a pid namespace only as root, because other users need a user namespace for it.
    #[default]
    Privileged,
    Never,
}
