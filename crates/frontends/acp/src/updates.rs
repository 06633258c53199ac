//! What happens in a session, as updates of the protocol.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentChunk, Cost, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionId, SessionNotification, SessionUpdate,
    UsageUpdate,
};
use haft_agent::{EventSink, MAIN};
use haft_types::{CallPhase, CompactionPhase, CostSum, Event, EventBody, ToolStatus};
use serde_json::Value;

use crate::calls::{self, OpenCalls};

/// What an editor takes beside what all of them take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakenUpdates {
    /// Lines for people that are not part of the conversation.
    pub(crate) notices: bool,
    /// That older rounds are summarised.
    pub(crate) compaction: bool,
    /// Forms of MCP servers.
    pub(crate) forms: bool,
}

/// Sends the updates of one session.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    pub(crate) editor: ConnectionTo<Client>,
    pub(crate) session: SessionId,
    pub(crate) taken: TakenUpdates,
}

impl UpdateSender {
    /// Sends one; ignored when the editor is gone, which ends the session elsewhere.
    pub(crate) fn send(&self, update: SessionUpdate) {
        drop(
            self.editor
                .send_notification(SessionNotification::new(self.session.clone(), update)),
        );
    }

    /// Says something to people that is not part of the conversation.
    pub(crate) fn tell(&self, severity: NoticeSeverity, text: String) {
        self.send(if self.taken.notices {
            SessionUpdate::Notice(Notice::new(severity, text))
        } else if severity == NoticeSeverity::Error {
            SessionUpdate::AgentMessageChunk(ContentChunk::new(
                format!("\n\nhaft: {text}\n\n").into(),
            ))
        } else {
            SessionUpdate::AgentThoughtChunk(ContentChunk::new(format!("\nhaft: {text}\n").into()))
        });
    }
}

/// The calls that are under way, for those who ask about them too.
#[derive(Clone)]
pub(crate) struct SharedCalls(Arc<Mutex<OpenCalls>>);

impl SharedCalls {
    pub(crate) fn new(calls: OpenCalls) -> Self {
        Self(Arc::new(Mutex::new(calls)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, OpenCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the events of a turn.
pub(crate) struct TurnUpdates {
    sender: UpdateSender,
    calls: SharedCalls,
    /// What the conversation has cost since it was opened.
    cost: CostSum,
    /// The last request, and the window it went into.
    filled: (u64, u64),
    compactions: u32,
    /// Whether something was said that the next text must not run into.
    spoke: bool,
}

impl TurnUpdates {
    pub(crate) fn new(sender: UpdateSender, calls: SharedCalls, cost: CostSum) -> Self {
        Self {
            sender,
            calls,
            cost,
            filled: (0, 0),
            compactions: 0,
            spoke: false,
        }
    }

    /// What the conversation has cost now. Calls that never ended are shown as failed.
    pub(crate) fn over(self) -> CostSum {
        let abandoned = self.calls.lock().abandon();
        for update in abandoned {
            self.sender.send(SessionUpdate::ToolCallUpdate(update));
        }
        self.cost
    }

    fn speak(&mut self, text: &str) {
        self.spoke = true;
        self.sender
            .send(SessionUpdate::AgentMessageChunk(ContentChunk::new(
                text.to_owned().into(),
            )));
    }

    /// Says something that stands on its own.
    fn speak_apart(&mut self, text: &str) {
        let text = if self.spoke {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        };
        self.speak(&text);
    }

    fn call(
        &mut self,
        agent: &str,
        id: &str,
        name: &str,
        phase: CallPhase,
        arguments: Option<&Value>,
    ) {
        if calls::is_speech(name) {
            if let (MAIN, Some(plan)) = (agent, arguments.and_then(plan_of)) {
                self.sender.send(SessionUpdate::Plan(plan));
            }
            return;
        }
        let update = match phase {
            CallPhase::Started => Some(SessionUpdate::ToolCall(
                self.calls.lock().begin(agent, id, name),
            )),
            CallPhase::Arguments => None,
            CallPhase::Finished => {
                let arguments = arguments.cloned().unwrap_or_default();
                self.calls
                    .lock()
                    .whole(agent, id, &arguments)
                    .map(SessionUpdate::ToolCallUpdate)
            }
        };
        if let Some(update) = update {
            self.sender.send(update);
        }
    }

    fn result(&mut self, agent: &str, id: &str, status: ToolStatus, text: &str) {
        let update = self.calls.lock().end(agent, id, status, text);
        if let Some(update) = update {
            // The next text belongs to another message.
            self.spoke = false;
            self.sender.send(SessionUpdate::ToolCallUpdate(update));
        }
    }

    fn compaction(&mut self, phase: CompactionPhase, message: &str) {
        if !self.sender.taken.compaction {
            return self.sender.tell(NoticeSeverity::Info, message.to_owned());
        }
        let status = match phase {
            CompactionPhase::Started => {
                self.compactions += 1;
                CompactionStatus::InProgress
            }
            CompactionPhase::Finished => CompactionStatus::Completed,
            CompactionPhase::Failed => CompactionStatus::Failed,
        };
        let id = format!("compaction-{}", self.compactions);
        let update = CompactionUpdate::new(id, status);
        let update = if phase == CompactionPhase::Failed {
            update.error(message.to_owned())
        } else {
            update
        };
        self.sender.send(SessionUpdate::CompactionUpdate(update));
    }

    fn used(&mut self) {
        let (tokens, window) = self.filled;
        let cost = self.cost.total().map(|cost| Cost::new(cost.total, "USD"));
        self.sender.send(SessionUpdate::UsageUpdate(
            UsageUpdate::new(tokens, window).cost(cost),
        ));
    }
}

impl EventSink for TurnUpdates {
    fn event(&mut self, event: &Event) {
        let agent = event.agent.as_str();
        let main = event.agent == MAIN;
        match &event.body {
            EventBody::Text { text } if main => self.speak(text),
            EventBody::Thinking { text } if main => {
                self.sender
                    .send(SessionUpdate::AgentThoughtChunk(ContentChunk::new(
                        text.clone().into(),
                    )));
            }
            EventBody::ToolCall {
                id,
                name,
                phase,
                arguments,
                ..
            } => {
                self.call(agent, id, name, *phase, arguments.as_ref());
            }
            EventBody::ToolProgress { id, text, .. } => {
                let update = self.calls.lock().printed(agent, id, text);
                if let Some(update) = update {
                    self.sender.send(SessionUpdate::ToolCallUpdate(update));
                }
            }
            EventBody::ToolResult {
                id, status, text, ..
            } => self.result(agent, id, *status, text),
            EventBody::Question { question, options } if main => {
                let listed = std::iter::once(question.as_str())
                    .chain(options.iter().map(String::as_str))
                    .collect::<Vec<_>>();
                self.speak_apart(&listed.join("\n- "));
            }
            EventBody::Plan { response, .. } if main => self.speak_apart(response),
            EventBody::Completion { result, command } if main => {
                let command = command
                    .as_ref()
                    .map(|command| format!("\n\n`{command}`"))
                    .unwrap_or_default();
                self.speak_apart(&format!("{result}{command}"));
            }
            EventBody::Window { tokens, window, .. } if main => self.filled = (*tokens, *window),
            EventBody::Usage { usage, cost, .. } => {
                self.cost.add(*cost);
                if main {
                    self.filled.0 =
                        usage.input + usage.cached_input + usage.cache_write + usage.output;
                }
                self.used();
            }
            EventBody::Compaction { phase, message, .. } if main => {
                self.compaction(*phase, message);
            }
            EventBody::Retry {
                attempt,
                delay_ms,
                reason,
                ..
            } => {
                let text = format!(
                    "{reason}; trying again in {} s (attempt {attempt})",
                    delay_ms.div_ceil(1_000)
                );
                self.sender.tell(NoticeSeverity::Warning, text);
            }
            EventBody::Notice { message, .. } | EventBody::BackgroundTask { message, .. } => {
                self.sender.tell(NoticeSeverity::Info, message.clone());
            }
            // How the turn failed is the answer to the prompt.
            EventBody::Error { message, .. } if !main => {
                self.sender.tell(NoticeSeverity::Warning, message.clone());
            }
            _ => {}
        }
    }

    fn joined(&mut self, _input: &str) {}
}

/// The TODO list that a call writes, as a plan.
pub(crate) fn plan_of(arguments: &Value) -> Option<Plan> {
    let items = arguments.get("todos")?.as_array()?;
    let entry = |item: &Value| {
        let status = match item.get("status").and_then(Value::as_str) {
            Some("completed") => PlanEntryStatus::Completed,
            Some("in_progress") => PlanEntryStatus::InProgress,
            _ => PlanEntryStatus::Pending,
        };
        let content = item.get("content")?.as_str()?.to_owned();
        Some(PlanEntry::new(content, PlanEntryPriority::Medium, status))
    };
    Some(Plan::new(items.iter().filter_map(entry).collect()))
}
