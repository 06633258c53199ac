//! Tools that run programs, and the processes of a conversation that outlive a tool call: terminal
//! sessions and background tasks.
//!
//! Invariant: no process outlives the [`Running`] value to which it belongs. Each conversation has
//! one such value.

pub(crate) mod background_task;
pub(crate) mod execute_command;
pub(crate) mod phrases;
pub(crate) mod session_interactive;
pub(crate) mod session_start;
pub(crate) mod session_stop;
mod sessions;
pub(crate) mod shell;
mod task_report;
mod tasks;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use haft_sandbox::{Sandbox, Supervisor};
use haft_types::{Envelope, ToolStatus};

use crate::limits::LimitsConfig;
use crate::readers::Readers;

pub(crate) use sessions::{PtySession, Sessions};
pub use shell::shell_path;
pub use task_report::{TaskReport, format_announcement};
pub use tasks::TaskProgress;
pub(crate) use tasks::{Task, Tasks};

/// The running processes of a conversation. Dropping this value ends all of them.
pub struct Running {
    pub(crate) supervisor: Arc<Supervisor>,
    sandbox: Sandbox,
    /// The sandbox in which commands also read the outputs of the conversation, once the
    /// conversation is known.
    opened: OnceLock<Sandbox>,
    pub(crate) limits: LimitsConfig,
    readers: Readers,
    pub(crate) sessions: Sessions,
    pub(crate) tasks: Tasks,
}

impl Running {
    /// Creates an instance without processes, whose commands run under `supervisor`.
    pub fn new(supervisor: Arc<Supervisor>, limits: LimitsConfig) -> Self {
        let sandbox = Sandbox::disabled("none was set up");
        let readers = Readers::default();
        Self {
            supervisor,
            sandbox,
            opened: OnceLock::new(),
            limits,
            readers,
            sessions: Sessions::default(),
            tasks: Tasks::default(),
        }
    }

    /// Sets the file readers of extensions.
    #[must_use]
    pub fn with_readers(mut self, readers: Readers) -> Self {
        self.readers = readers;
        self
    }

    /// Returns the file readers of extensions.
    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Sets the sandbox for commands.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Creates an instance without processes for another conversation, with this instance's sandbox
    /// and readers.
    #[must_use]
    pub fn for_conversation(&self) -> Self {
        Self::new(Arc::clone(&self.supervisor), self.limits)
            .with_sandbox(self.sandbox().clone())
            .with_readers(self.readers.clone())
    }

    /// Creates an instance without processes for another conversation, whose commands work in
    /// `folders` instead of the project.
    #[must_use]
    pub fn for_conversation_in(&self, folders: Vec<PathBuf>) -> Self {
        Self::new(Arc::clone(&self.supervisor), self.limits)
            .with_sandbox(self.sandbox().with_projects(folders))
            .with_readers(self.readers.clone())
    }

    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub fn sandbox(&self) -> &Sandbox {
        self.opened.get().unwrap_or(&self.sandbox)
    }

    /// Lets commands read a folder that is otherwise hidden: that of the conversation's outputs.
    /// Only the first call has an effect, because a conversation has one such folder.
    pub fn show_folder(&self, folder: PathBuf) {
        self.opened
            .get_or_init(|| self.sandbox.with_readable(folder));
    }

    /// Returns the limits on processes and their output.
    pub fn limits(&self) -> &LimitsConfig {
        &self.limits
    }

    /// Restores ids and tasks from a tool result of a resumed conversation. No id is then used
    /// twice, and a task without a reported end counts as lost. Results must be passed in order.
    pub fn restore_result(&self, tool: &str, envelope: &Envelope) {
        let data = &envelope.data;
        let text = |key: &str| data.get(key).and_then(|value| value.as_str());
        if envelope.status == ToolStatus::Error {
            return;
        }
        if tool == session_start::NAME {
            self.sessions
                .reserve_id(text("session_id").unwrap_or_default());
        }
        if tool != background_task::NAME {
            return;
        }
        match (text("action"), text("task_id")) {
            (Some("start"), Some(id)) => {
                self.tasks.restore_lost(
                    id,
                    text("command").unwrap_or_default(),
                    text("output").map(PathBuf::from),
                );
            }
            (Some("kill"), Some(id)) => self.tasks.mark_announced(id),
            (Some("cleanup"), _) => {
                let removed = data
                    .get("removed")
                    .and_then(|ids| ids.as_array())
                    .into_iter()
                    .flatten();
                removed
                    .filter_map(|id| id.as_str())
                    .for_each(|id| self.tasks.mark_announced(id));
            }
            _ => {}
        }
    }

    /// Records that the end of the task `id` was already announced to the model.
    pub fn restore_announced(&self, id: &str) {
        self.tasks.mark_announced(id);
    }

    /// Restores the reports that [`Running::end_all`] returned when an earlier haft process ended.
    pub fn restore_ended(&self, reports: Vec<TaskReport>) {
        self.tasks.restore_ended(reports);
    }

    /// Returns the ids of the running processes, each with a title of its command.
    pub fn running_names(&self) -> Vec<String> {
        let tasks = self
            .tasks
            .list()
            .into_iter()
            .filter(|task| task.ending().is_none());
        let tasks =
            tasks.map(|task| format!("{} ({})", task.id, phrases::command_title(&task.line.text)));
        tasks.chain(self.sessions.running_names()).collect()
    }

    /// Describes the processes of this conversation by kind, id, command and state.
    pub fn describe_processes(&self) -> Vec<String> {
        let tasks = self.tasks.list().into_iter().map(|task| {
            let report = task.report();
            format!(
                "background task {} ({}): {}",
                report.id,
                phrases::command_title(&report.command),
                phrases::phase_name(report.phase)
            )
        });
        let sessions = self
            .sessions
            .running_names()
            .into_iter()
            .map(|session| format!("session {session}: running"));
        tasks.chain(sessions).collect()
    }

    /// Returns the progress of the running background tasks, oldest first.
    pub fn list_progress(&self) -> Vec<TaskProgress> {
        self.tasks.list_progress()
    }

    /// Returns the background tasks that have started or ended since the last call of this method.
    pub fn take_changes(&self) -> Vec<TaskReport> {
        self.tasks.take_changes()
    }

    /// Returns up to `most` background tasks whose end was not announced to the model, oldest
    /// first, and marks them as announced.
    pub fn take_ended(&self, most: usize) -> Vec<TaskReport> {
        self.tasks.take_ended(most)
    }

    /// Ends all processes, waits for their exit, and returns the tasks whose end was not announced
    /// to the model.
    pub async fn end_all(&self) -> Vec<TaskReport> {
        self.sessions.end_all().await;
        self.tasks.end_all().await
    }
}
