//! Keeps the interface informed about the open session, also while no turn runs: about its
//! background tasks (their start and end, their time, and the last lines of their output), and about
//! the provider's cache.

use std::time::Duration;

use haft_engine::{CacheWatch, Session, TaskWatch};
use haft_tui::{CacheView, RunningTask, UiHandle, UiMessage};
use haft_types::{ConversationId, Event, EventBody};
use tokio::task::JoinHandle;

/// The interval between two looks at running tasks.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval between two looks while no task runs.
const IDLE_INTERVAL: Duration = Duration::from_secs(2);

/// A running observer of a session's tasks and cache. Dropping it ends the observation.
pub(super) struct TaskUpdates(JoinHandle<()>);

impl TaskUpdates {
    /// Starts to observe `session`.
    pub(super) fn start(session: &Session, ui: UiHandle) -> Self {
        let watch = session.watch_tasks();
        let cache = session.watch_cache();
        let conversation = session.conversation().id.clone();
        Self(tokio::spawn(send_updates(watch, cache, conversation, ui)))
    }
}

impl Drop for TaskUpdates {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn send_updates(
    watch: TaskWatch,
    cache: CacheWatch,
    conversation: ConversationId,
    ui: UiHandle,
) {
    let mut had_tasks = false;
    let mut shown = None;
    loop {
        let pause = if had_tasks {
            POLL_INTERVAL
        } else {
            IDLE_INTERVAL
        };
        tokio::time::sleep(pause).await;
        for body in watch.take_events() {
            ui.send_message(UiMessage::Event(Box::new(Event {
                body,
                conversation_id: conversation.clone(),
                seq: 0,
                agent: haft_agent::MAIN_AGENT.to_owned(),
            })));
        }
        for body in cache.take_events() {
            if let EventBody::Usage { usage, cost, .. } = body {
                ui.send_message(UiMessage::Spent { usage, cost });
            }
        }
        let view = cache.status().map(|status| CacheView {
            minutes: status.expires_in.as_secs().div_ceil(60),
            rebuild: status.rebuild,
        });
        if view != shown {
            ui.send_message(UiMessage::Cache(view));
            shown = view;
        }
        let Some(running) = watch.list_progress() else {
            return;
        };
        let has_tasks = !running.is_empty();
        if has_tasks || had_tasks {
            let tasks = running.into_iter().map(|task| RunningTask {
                id: task.id,
                command: task.command,
                elapsed: task.elapsed,
                output: task.last_lines,
            });
            ui.send_message(UiMessage::Tasks(tasks.collect()));
        }
        had_tasks = has_tasks;
    }
}
