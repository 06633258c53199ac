//! Tools that run programs, and what a conversation has running beside its calls: sessions at
//! terminals, and background tasks.
//!
//! Invariant: none of it outlives the [`Running`] it belongs to, which is made once for each
//! conversation.

pub(crate) mod background_task;
pub(crate) mod execute_command;
pub(crate) mod phrases;
mod report;
pub(crate) mod session_interactive;
pub(crate) mod session_start;
pub(crate) mod session_stop;
mod sessions;
pub(crate) mod shell;
mod tasks;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use haft_sandbox::{Sandbox, Supervisor};
use haft_types::{Envelope, ToolStatus};

use crate::limits::LimitsConfig;
use crate::readers::Readers;

pub use report::{TaskReport, announcement};
pub(crate) use sessions::{PtySession, Sessions};
pub use shell::shell;
pub(crate) use tasks::{Task, Tasks};

/// What a conversation has running. Dropping it ends all of it.
pub struct Running {
    pub(crate) supervisor: Arc<Supervisor>,
    sandbox: Sandbox,
    pub(crate) limits: LimitsConfig,
    readers: Readers,
    pub(crate) sessions: Sessions,
    pub(crate) tasks: Tasks,
}

impl Running {
    /// Nothing runs yet; commands will run under this supervisor.
    pub fn new(supervisor: Arc<Supervisor>, limits: LimitsConfig) -> Self {
        let sandbox = Sandbox::off("none was set up");
        let readers = Readers::default();
        Self {
            supervisor,
            sandbox,
            limits,
            readers,
            sessions: Sessions::default(),
            tasks: Tasks::default(),
        }
    }

    /// The same with what extensions read of files.
    #[must_use]
    pub fn with_readers(mut self, readers: Readers) -> Self {
        self.readers = readers;
        self
    }

    /// What extensions read of files.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The same with commands held in by this sandbox.
    #[must_use]
    pub fn held_in(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// For another conversation: nothing runs yet, and commands will be held in as these are.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::new(Arc::clone(&self.supervisor), self.limits)
            .held_in(self.sandbox.clone())
            .with_readers(self.readers.clone())
    }

    /// For another conversation, whose commands work in these folders and not in the project.
    #[must_use]
    pub fn anew_in(&self, folders: Vec<PathBuf>) -> Self {
        Self::new(Arc::clone(&self.supervisor), self.limits)
            .held_in(self.sandbox.for_work_in(folders))
            .with_readers(self.readers.clone())
    }

    /// What runs them.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// What holds commands in.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// How much may run, and how much of it is shown and kept.
    pub fn limits(&self) -> &LimitsConfig {
        &self.limits
    }

    /// Takes note of a result in the history of a resumed conversation: no id is used twice, and a
    /// task that was started and never said to have ended is a lost one. Results must come in
    /// order.
    pub fn remember(&self, tool: &str, envelope: &Envelope) {
        let data = &envelope.data;
        let text = |key: &str| data.get(key).and_then(|value| value.as_str());
        if envelope.status == ToolStatus::Error {
            return;
        }
        if tool == session_start::NAME {
            self.sessions
                .remember(text("session_id").unwrap_or_default());
        }
        if tool != background_task::NAME {
            return;
        }
        match (text("action"), text("task_id")) {
            (Some("start"), Some(id)) => {
                self.tasks.remember(
                    id,
                    text("command").unwrap_or_default(),
                    text("output").map(PathBuf::from),
                );
            }
            (Some("kill"), Some(id)) => self.tasks.settle(id),
            (Some("cleanup"), _) => {
                let removed = data
                    .get("removed")
                    .and_then(|ids| ids.as_array())
                    .into_iter()
                    .flatten();
                removed
                    .filter_map(|id| id.as_str())
                    .for_each(|id| self.tasks.settle(id));
            }
            _ => {}
        }
    }

    /// Takes note that the model knows of the end of this task.
    pub fn remember_announced(&self, id: &str) {
        self.tasks.settle(id);
    }

    /// Takes note of what [`Running::end_all`] gave when an earlier haft ended.
    pub fn remember_ended(&self, reports: Vec<TaskReport>) {
        self.tasks.remember_ended(reports);
    }

    /// What runs now, each by its id and what it runs.
    pub fn names(&self) -> Vec<String> {
        let tasks = self
            .tasks
            .list()
            .into_iter()
            .filter(|task| task.ending().is_none());
        let tasks = tasks.map(|task| format!("{} ({})", task.id, phrases::title(&task.line.text)));
        tasks.chain(self.sessions.running()).collect()
    }

    /// What was started in this conversation, each by its class, id, command and state.
    pub fn states(&self) -> Vec<String> {
        let tasks = self.tasks.list().into_iter().map(|task| {
            let report = task.report();
            format!(
                "background task {} ({}): {}",
                report.id,
                phrases::title(&report.command),
                phrases::state(report.phase)
            )
        });
        let sessions = self
            .sessions
            .running()
            .into_iter()
            .map(|session| format!("session {session}: running"));
        tasks.chain(sessions).collect()
    }

    /// Background tasks that were started or have ended since this was last called.
    pub fn changes(&self) -> Vec<TaskReport> {
        self.tasks.changes()
    }

    /// Background tasks whose end the model does not know of, oldest first, at most this many. They
    /// count as announced from now on.
    pub fn take_ended(&self, most: usize) -> Vec<TaskReport> {
        self.tasks.take_ended(most)
    }

    /// Ends everything, waits until nothing of it is left, and gives the tasks whose end the model
    /// does not know of.
    pub async fn end_all(&self) -> Vec<TaskReport> {
        self.sessions.end_all().await;
        self.tasks.end_all().await
    }
}
