//! Sends the events of a session as updates of the protocol.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentChunk, Cost, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionId, SessionNotification, SessionUpdate,
    UsageUpdate,
};
use haft_agent::{EventSink, MAIN_AGENT};
use haft_messages::translate_error;
use haft_types::{CallPhase, CompactionPhase, CostSum, Event, EventBody, ToolStatus};
use serde_json::Value;

use crate::tool_calls::{self, OpenCalls};

/// The optional protocol features that the editor supports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EditorFeatures {
    /// True if the editor shows notices that are not part of the conversation.
    pub(crate) notices: bool,
    /// True if the editor shows updates about compactions.
    pub(crate) compaction: bool,
    /// True if the editor can show the forms of MCP servers.
    pub(crate) forms: bool,
}

#[derive(Clone)]
pub(crate) struct UpdateSender {
    pub(crate) editor: ConnectionTo<Client>,
    pub(crate) session: SessionId,
    pub(crate) features: EditorFeatures,
}

impl UpdateSender {
    /// Sends one update of the session to the editor. Errors are ignored, because they mean that
    /// the editor has disconnected, which is handled elsewhere.
    pub(crate) fn send_update(&self, update: SessionUpdate) {
        drop(
            self.editor
                .send_notification(SessionNotification::new(self.session.clone(), update)),
        );
    }

    /// Shows a message to the user. An editor without notices gets errors as the agent's text and
    /// other messages as its thoughts.
    pub(crate) fn send_notice(&self, severity: NoticeSeverity, text: &str) {
        let text = translate_error(text).into_owned();
        self.send_update(if self.features.notices {
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

/// The running calls of a session, which event conversion, approvals and terminals share.
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

/// Converts the events of a turn to updates, and sends these to the editor.
pub(crate) struct TurnUpdates {
    sender: UpdateSender,
    calls: SharedCalls,
    /// The cost of the conversation since it was opened.
    cost: CostSum,
    /// The number of tokens in the last request, and the size of the model's context window in
    /// tokens.
    window_usage: (u64, u64),
    compactions: u32,
    /// True if the message so far has text, so that the next paragraph needs a blank line.
    has_text: bool,
}

impl TurnUpdates {
    pub(crate) fn new(sender: UpdateSender, calls: SharedCalls, cost: CostSum) -> Self {
        Self {
            sender,
            calls,
            cost,
            window_usage: (0, 0),
            compactions: 0,
            has_text: false,
        }
    }

    /// Reports all calls that have not ended as failed, and returns the cost of the conversation.
    pub(crate) fn finish(self) -> CostSum {
        let abandoned = self.calls.lock().fail_open_calls();
        for update in abandoned {
            self.sender
                .send_update(SessionUpdate::ToolCallUpdate(update));
        }
        self.cost
    }

    fn send_text(&mut self, text: &str) {
        self.has_text = true;
        self.sender
            .send_update(SessionUpdate::AgentMessageChunk(ContentChunk::new(
                text.to_owned().into(),
            )));
    }

    /// Sends text as a paragraph of its own.
    fn send_paragraph(&mut self, text: &str) {
        let text = if self.has_text {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        };
        self.send_text(&text);
    }

    fn send_call(
        &mut self,
        agent: &str,
        id: &str,
        name: &str,
        phase: CallPhase,
        arguments: Option<&Value>,
    ) {
        if tool_calls::is_dialog_tool(name) {
            if let (MAIN_AGENT, Some(plan)) = (agent, arguments.and_then(parse_plan)) {
                self.sender.send_update(SessionUpdate::Plan(plan));
            }
            return;
        }
        let update = match phase {
            CallPhase::Started => Some(SessionUpdate::ToolCall(
                self.calls.lock().begin_call(agent, id, name),
            )),
            CallPhase::Arguments => None,
            CallPhase::Finished => {
                let arguments = arguments.cloned().unwrap_or_default();
                self.calls
                    .lock()
                    .set_arguments(agent, id, &arguments)
                    .map(SessionUpdate::ToolCallUpdate)
            }
            CallPhase::Running => self
                .calls
                .lock()
                .start_call(agent, id)
                .map(SessionUpdate::ToolCallUpdate),
        };
        if let Some(update) = update {
            self.sender.send_update(update);
        }
    }

    fn send_result(&mut self, agent: &str, id: &str, status: ToolStatus, text: &str) {
        let update = self.calls.lock().end_call(agent, id, status, text);
        if let Some(update) = update {
            // The next text belongs to another message.
            self.has_text = false;
            self.sender
                .send_update(SessionUpdate::ToolCallUpdate(update));
        }
    }

    fn send_compaction(&mut self, phase: CompactionPhase, message: &str) {
        if !self.sender.features.compaction {
            return self.sender.send_notice(NoticeSeverity::Info, message);
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
            update.error(translate_error(message).into_owned())
        } else {
            update
        };
        self.sender
            .send_update(SessionUpdate::CompactionUpdate(update));
    }

    fn send_usage(&mut self) {
        let (tokens, window) = self.window_usage;
        let cost = self.cost.total().map(|cost| Cost::new(cost.total, "USD"));
        self.sender.send_update(SessionUpdate::UsageUpdate(
            UsageUpdate::new(tokens, window).cost(cost),
        ));
    }
}

impl EventSink for TurnUpdates {
    fn attached_input_joined(&mut self, input: &str) {
        self.sender
            .send_update(SessionUpdate::UserMessageChunk(ContentChunk::new(
                input.to_owned().into(),
            )));
    }

    fn event(&mut self, event: &Event) {
        let agent = event.agent.as_str();
        let main = event.agent == MAIN_AGENT;
        match &event.body {
            EventBody::Text { text } if main => self.send_text(text),
            EventBody::Thinking { text } if main => {
                self.sender
                    .send_update(SessionUpdate::AgentThoughtChunk(ContentChunk::new(
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
                self.send_call(agent, id, name, *phase, arguments.as_ref());
            }
            EventBody::ToolProgress { id, text, .. } => {
                let update = self.calls.lock().append_output(agent, id, text);
                if let Some(update) = update {
                    self.sender
                        .send_update(SessionUpdate::ToolCallUpdate(update));
                }
            }
            EventBody::ToolResult {
                id, status, text, ..
            } => self.send_result(agent, id, *status, text),
            EventBody::Question { question, options } if main => {
                let listed = std::iter::once(question.as_str())
                    .chain(options.iter().map(String::as_str))
                    .collect::<Vec<_>>();
                self.send_paragraph(&listed.join("\n- "));
            }
            EventBody::Plan { response, .. } if main => self.send_paragraph(response),
            EventBody::Completion { result, command } if main => {
                let command = command
                    .as_ref()
                    .map(|command| format!("\n\n`{command}`"))
                    .unwrap_or_default();
                self.send_paragraph(&format!("{result}{command}"));
            }
            EventBody::Window { tokens, window, .. } if main => {
                self.window_usage = (*tokens, *window);
            }
            EventBody::Usage { usage, cost, .. } => {
                self.cost.add(*cost);
                if main {
                    self.window_usage.0 =
                        usage.input + usage.cached_input + usage.cache_write + usage.output;
                }
                self.send_usage();
            }
            EventBody::Compaction { phase, message, .. } if main => {
                self.send_compaction(*phase, message);
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
                self.sender.send_notice(NoticeSeverity::Warning, &text);
            }
            EventBody::Notice { message, .. } | EventBody::BackgroundTask { message, .. } => {
                self.sender.send_notice(NoticeSeverity::Info, message);
            }
            // The main agent's error is the response to the prompt.
            EventBody::Error { message, .. } if !main => {
                self.sender.send_notice(NoticeSeverity::Warning, message);
            }
            _ => {}
        }
    }

    fn input_joined(&mut self, _input: &str) {}
}

/// Converts the TODO list in a call's arguments to a plan.
pub(crate) fn parse_plan(arguments: &Value) -> Option<Plan> {
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
