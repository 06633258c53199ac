//! One run of haft as a process: started, killed or waited for, and always reaped.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use serde_json::Value;

use super::place::Place;
use super::poll_until;

/// How long a command that asks no model may take.
const QUIET_PATIENCE: Duration = Duration::from_mins(1);

/// A run under way. What it prints goes to files: they outlive it, and no reader can hold it up.
pub(crate) struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A run that is over.
pub(crate) struct Ended {
    /// Its exit code; none when it was killed.
    pub(crate) code: Option<i32>,
    /// What it told before it ended.
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(place: &Place, arguments: &[&str], number: usize) -> Result<Self, String> {
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

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&mut self) -> Result<bool, String> {
        self.status().map(|status| status.is_some())
    }

    /// Kills it with SIGKILL, it alone and not its children, and reaps it.
    pub(crate) fn kill(mut self) -> Result<Ended, String> {
        self.child
            .kill()
            .map_err(|error| format!("cannot kill haft: {error}"))?;
        let status = self
            .child
            .wait()
            .map_err(|error| format!("cannot reap haft: {error}"))?;
        self.ended(status)
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self, patience: Duration) -> Result<Ended, String> {
        if !poll_until(patience, || self.is_over())? {
            let told = self.kill()?;
            return Err(format!(
                "a run did not end within {patience:?}; its last event: {}",
                told.last_event()
            ));
        }
        let status = self.status()?.ok_or("a run that is over has no status")?;
        self.ended(status)
    }

    /// Waits for its end, whatever it prints, and gives its exit code.
    pub(crate) fn finish_quietly(mut self) -> Result<Option<i32>, String> {
        if !poll_until(QUIET_PATIENCE, || self.is_over())? {
            return Err(format!("a command did not end within {QUIET_PATIENCE:?}"));
        }
        Ok(self.status()?.and_then(|status| status.code()))
    }

    fn status(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child
            .try_wait()
            .map_err(|error| format!("cannot wait for haft: {error}"))
    }

    fn ended(&self, status: ExitStatus) -> Result<Ended, String> {
        let read = |path: &PathBuf| {
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let printed = read(&self.stdout)?;
        // What follows the last line break was cut by the kill and tells nobody anything.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        let parse = |line: &str| {
            serde_json::from_str(line).map_err(|error| format!("a line of events: {error}: {line}"))
        };
        Ok(Ended {
            code: status.code(),
            events: whole.lines().map(parse).collect::<Result<_, _>>()?,
            stderr: read(&self.stderr)?.trim().to_owned(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After an error; both do nothing to a process that was reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    pub(crate) fn last_event(&self) -> String {
        self.events
            .last()
            .map_or_else(|| "(no event)".to_owned(), Value::to_string)
    }
}
