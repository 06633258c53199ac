//! One run of haft as a process: started, killed or waited for, and always reaped.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use serde_json::Value;

use super::poll_until;
use super::workspace::Workspace;

/// The time limit for commands of haft that don't call a model.
const QUIET_TIMEOUT: Duration = Duration::from_mins(1);

/// A run of haft in progress. Its output goes to files, which outlive the run and can't block it.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A run that has ended.
pub(crate) struct EndedRun {
    /// The exit code; `None` if a signal ended the run.
    pub(crate) code: Option<i32>,
    /// The complete events that the run printed before it ended.
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(
        place: &Workspace,
        arguments: &[&str],
        number: usize,
    ) -> Result<Self, String> {
        let path = |name: &str| place.root().join(format!("{name}-{number}"));
        let create = |path: &PathBuf| {
            File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let stdout = path("stdout");
        let stderr = path("stderr");
        let mut command = place.command(arguments);
        command.stdout(create(&stdout)?).stderr(create(&stderr)?);
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start haft: {error}"))?;
        Ok(Self {
            child,
            stdout,
            stderr,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if the run has ended by itself.
    pub(crate) fn is_over(&mut self) -> Result<bool, String> {
        self.status().map(|status| status.is_some())
    }

    /// Kills the run with SIGKILL, like [`Self::kill`], and waits until it is dead.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map(drop)
            .map_err(|error| format!("cannot kill haft: {error}"))
    }

    /// Kills the run with SIGKILL, but not its child processes, and reaps it.
    pub(crate) fn kill(mut self) -> Result<EndedRun, String> {
        self.child
            .kill()
            .map_err(|error| format!("cannot kill haft: {error}"))?;
        let status = self
            .child
            .wait()
            .map_err(|error| format!("cannot reap haft: {error}"))?;
        self.collect_output(status)
    }

    /// Waits until the run ends. If this takes longer than `timeout`, kills the run and returns an
    /// error.
    pub(crate) fn finish(mut self, timeout: Duration) -> Result<EndedRun, String> {
        if !poll_until(timeout, || self.is_over())? {
            let told = self.kill()?;
            return Err(format!(
                "a run did not end within {timeout:?}; its last event: {}",
                told.last_event()
            ));
        }
        let status = self.status()?.ok_or("a run that is over has no status")?;
        self.collect_output(status)
    }

    /// Waits until the run ends and returns the exit code, without reading the output.
    pub(crate) fn wait_ignoring_output(mut self) -> Result<Option<i32>, String> {
        if !poll_until(QUIET_TIMEOUT, || self.is_over())? {
            return Err(format!("a command did not end within {QUIET_TIMEOUT:?}"));
        }
        Ok(self.status()?.and_then(|status| status.code()))
    }

    fn status(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child
            .try_wait()
            .map_err(|error| format!("cannot wait for haft: {error}"))
    }

    fn collect_output(&self, status: ExitStatus) -> Result<EndedRun, String> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let printed = read(&self.stdout)?;
        // A line without a line break was cut off by the kill.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        let parse = |line: &str| {
            serde_json::from_str(line).map_err(|error| format!("a line of events: {error}: {line}"))
        };
        Ok(EndedRun {
            code: status.code(),
            events: whole.lines().map(parse).collect::<Result<_, _>>()?,
            stderr: read(&self.stderr)?.trim().to_owned(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may still run after an error. Both calls do nothing if it was already reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl EndedRun {
    pub(crate) fn last_event(&self) -> String {
        self.events
            .last()
            .map_or_else(|| "(no event)".to_owned(), Value::to_string)
    }
}
