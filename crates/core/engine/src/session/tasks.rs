//! The background tasks and terminal sessions of a conversation. Each ended task is announced to
//! the model once, changes are emitted as events, and the tasks are ended with the run unless the
//! configuration keeps them.
//!
//! Invariant: an announcement is a message of the stored history and lists its tasks in its
//! metadata, so that a resumed conversation can distinguish announced tasks from lost tasks.

use std::sync::{Arc, Weak};

use haft_context::add_reminder_tag;
use haft_text::Masker;
use haft_tools::{Running, TaskProgress, TaskReport, format_announcement};
use haft_types::{Entry, EventBody, Message, Metadata, Origin, Role, TaskPhase};
use serde_json::Value;

use super::Session;
use super::config::Leftovers;
use super::secrets::mask_text;
use crate::error::EngineError;
use crate::names::ANNOUNCED_TASKS_KEY;
use crate::stored_state::{EndedTasks, StoredState};
use crate::turn::turn_io::{TurnIo, mask_event};

/// The maximum number of tasks in one announcement.
const MAX_ANNOUNCED_TASKS: usize = 64;

/// Observes the background tasks of a session, also while no turn runs. Ends no task and keeps none
/// alive: once the session is closed, there are no tasks.
pub struct TaskWatch {
    running: Weak<Running>,
    masker: Masker,
}

impl TaskWatch {
    /// Returns the progress of the running tasks, oldest first, with secrets masked. `None` if the
    /// session was closed.
    pub fn list_progress(&self) -> Option<Vec<TaskProgress>> {
        let mut tasks = self.running.upgrade()?.list_progress();
        for task in &mut tasks {
            mask_text(&self.masker, &mut task.command);
            mask_text(&self.masker, &mut task.last_lines);
        }
        Some(tasks)
    }

    /// Returns events for the tasks that have started or ended. Each start and each end is reported
    /// once: here or among the events of a turn.
    pub fn take_events(&self) -> Vec<EventBody> {
        let Some(running) = self.running.upgrade() else {
            return Vec::new();
        };
        running
            .take_changes()
            .into_iter()
            .map(task_event)
            .map(|mut body| {
                mask_event(&self.masker, &mut body);
                body
            })
            .collect()
    }
}

impl Session {
    /// Returns an observer of this session's background tasks.
    pub fn watch_tasks(&self) -> TaskWatch {
        TaskWatch {
            running: Arc::downgrade(&self.services.running),
            masker: self.config.safety.masker.clone(),
        }
    }

    /// Appends one message that informs the model about the tasks that have ended.
    pub(crate) async fn announce_tasks(&mut self, io: &mut TurnIo<'_>) -> Result<(), EngineError> {
        self.emit_task_events(io);
        let ended = self.services.running.take_ended(MAX_ANNOUNCED_TASKS);
        if ended.is_empty() {
            return Ok(());
        }
        let ids = ended
            .iter()
            .map(|report| Value::from(report.id.as_str()))
            .collect();
        let now = self.services.shared.clock.now();
        let message = Message::from_text(
            self.transcript.fresh_id(),
            Role::User,
            add_reminder_tag(&format_announcement(&ended)),
            now,
        );
        let metadata = Metadata::from_iter([(ANNOUNCED_TASKS_KEY.to_owned(), Value::Array(ids))]);
        self.transcript
            .append(
                Message {
                    metadata,
                    ..message
                }
                .with_origin(Origin::Engine),
            )
            .await?;
        // The other tasks were reported when they ended.
        for report in ended
            .into_iter()
            .filter(|report| report.phase == TaskPhase::Lost)
        {
            io.emit(task_event(report));
        }
        Ok(())
    }

    /// Emits events for the tasks that have started or ended since the last call of this method.
    pub(crate) fn emit_task_events(&self, io: &mut TurnIo<'_>) {
        for report in self.services.running.take_changes() {
            io.emit(task_event(report));
        }
    }

    /// Ends the tasks that are still running after a turn and stores their reports, unless the
    /// configuration keeps the tasks.
    pub(crate) async fn end_leftover_tasks(&self, io: &mut TurnIo<'_>) {
        self.emit_task_events(io);
        match self.config.task.leftovers {
            Leftovers::Keep => return,
            Leftovers::End => {}
        }
        let ended = self.services.running.end_all().await;
        self.emit_task_events(io);
        if ended.is_empty() || !self.transcript.is_stored() {
            return;
        }
        if let Err(error) = self.transcript.store_masked_state(&EndedTasks(ended)).await {
            io.emit_error("store", error.to_string());
        }
    }
}

/// Restores the tasks of a resumed conversation from its history and stored state.
pub(crate) fn restore_tasks(running: &Running, history: &[Arc<Entry>], state: &mut StoredState) {
    for entry in history {
        for result in entry.message.tool_results() {
            running.restore_result(&result.name, &result.envelope);
        }
        let announced = entry
            .message
            .metadata
            .get(ANNOUNCED_TASKS_KEY)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        announced
            .filter_map(Value::as_str)
            .for_each(|id| running.restore_announced(id));
    }
    let EndedTasks(ended) = state.take().unwrap_or_default();
    running.restore_ended(ended);
}

fn task_event(report: TaskReport) -> EventBody {
    EventBody::BackgroundTask {
        message: report.to_sentence(),
        id: report.id,
        phase: report.phase,
        command: report.command,
        exit_code: report.exit_code,
        output: report.output.map(|output| output.display().to_string()),
    }
}
