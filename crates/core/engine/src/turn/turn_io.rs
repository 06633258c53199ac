//! How a turn is watched and stopped: numbers events and hands them to whoever listens, who may
//! cancel.

use std::collections::HashMap;
use std::time::Duration;

use haft_model::{Delta, ModelError};
use haft_text::Masker;
use haft_types::{CallPhase, ContentHash, ConversationId, Envelope, Event, EventBody, ToolCall};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::event_log::{self, CallRun};
use crate::calls::strict_json;
use crate::error::Notice;
use crate::session::secrets::mask_text;

/// Takes the events of a run, in order. It must not block for long: the turn waits for it.
pub trait EventSink: Send {
    /// One event.
    fn event(&mut self, event: &Event);

    /// What the user wrote while the turn ran have become part of it.
    fn joined(&mut self, _input: &str) {}

    /// Gives what the user has written since the turn began, oldest first: it becomes part of the
    /// turn. Asked before every request but the first.
    fn take_input(&mut self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(&Event) + Send> EventSink for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// A cancellation that also comes when the time of a turn is over.
pub(crate) struct TimedCancel {
    pub(crate) token: CancellationToken,
    timer: Option<JoinHandle<()>>,
}

impl TimedCancel {
    /// Cancelled with the other, or once so much time has passed.
    pub(crate) fn new(cancel: &CancellationToken, time: Option<Duration>) -> Self {
        let token = cancel.child_token();
        let timer = time.map(|time| {
            let token = token.clone();
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                token.cancel();
            })
        });
        Self { token, timer }
    }
}

impl Drop for TimedCancel {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

/// Stamps events with conversation, agent and number, and knows whether the turn is cancelled.
pub(crate) struct TurnIo<'a> {
    sink: &'a mut dyn EventSink,
    pub(crate) cancel: &'a CancellationToken,
    conversation_id: ConversationId,
    masker: Masker,
    agent: String,
    /// The number of the last event.
    seq: u64,
    /// The tools that calls of the reply now arriving name, by the calls' ids.
    calls: HashMap<String, String>,
    /// How often each call has failed in the same way.
    failures: HashMap<ContentHash, u32>,
    /// How calls ran whose results are not told yet, by their ids.
    runs: HashMap<String, CallRun>,
}

impl<'a> TurnIo<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn EventSink,
        cancel: &'a CancellationToken,
        conversation_id: ConversationId,
        masker: Masker,
        agent: String,
    ) -> Self {
        Self {
            sink,
            cancel,
            conversation_id,
            masker,
            agent,
            seq: 0,
            calls: HashMap::new(),
            failures: HashMap::new(),
            runs: HashMap::new(),
        }
    }

    /// The same, going on after the event of this number.
    pub(crate) fn after(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn emit(&mut self, mut body: EventBody) {
        mask_body(&self.masker, &mut body);
        self.log(&body);
        self.seq += 1;
        let conversation_id = self.conversation_id.clone();
        let agent = self.agent.clone();
        self.sink.event(&Event {
            body,
            conversation_id,
            seq: self.seq,
            agent,
        });
    }

    /// Logs an event of this agent. Sub-agents log theirs themselves; only their start and end are
    /// logged here, too.
    fn log(&mut self, body: &EventBody) {
        let run = match body {
            EventBody::ToolResult { id, .. } => self.runs.remove(id),
            _ => None,
        };
        event_log::log(&self.conversation_id, &self.agent, body, run.as_ref());
    }

    /// Notes how a call ran, for the log line of its result.
    pub(crate) fn note_run(&mut self, call: &ToolCall, run: CallRun) {
        self.runs.insert(call.id.clone(), run);
    }

    /// What the user wrote while the turn ran are stored as part of it.
    pub(crate) fn joined(&mut self, input: &str) {
        self.sink.joined(input);
    }

    /// What the user has written since, for whoever stores it.
    pub(crate) fn take_input(&mut self) -> Vec<String> {
        self.sink.take_input()
    }

    /// An event of a sub-agent: its own in everything but its number.
    pub(crate) fn relay(&mut self, mut event: Event) {
        mask_body(&self.masker, &mut event.body);
        if matches!(event.body, EventBody::Subagent { .. }) {
            self.log(&event.body);
        }
        self.seq += 1;
        self.sink.event(&Event {
            seq: self.seq,
            ..event
        });
    }

    /// A piece of a reply that is still arriving.
    pub(crate) fn delta(&mut self, delta: Delta) {
        let body = match delta {
            Delta::Text(text) => EventBody::Text { text },
            Delta::Thinking(text) => EventBody::Thinking { text },
            Delta::CallStarted { id, name } => {
                self.calls.insert(id.clone(), name.clone());
                EventBody::ToolCall {
                    id,
                    name,
                    phase: CallPhase::Started,
                    arguments: None,
                    raw: None,
                }
            }
            Delta::CallArguments { id, piece } => EventBody::ToolCall {
                name: self.calls.get(&id).cloned().unwrap_or_default(),
                id,
                phase: CallPhase::Arguments,
                arguments: None,
                raw: Some(piece),
            },
            // Shown once the whole reply is stored, with its arguments.
            Delta::CallFinished { .. } => return,
            Delta::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
                billed: _,
            } => EventBody::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
            },
        };
        self.emit(body);
    }

    /// Notes that a call failed, and says how often it has failed so.
    pub(crate) fn note_failure(&mut self, failure: ContentHash) -> u32 {
        let times = self.failures.entry(failure).or_default();
        *times += 1;
        *times
    }

    pub(crate) fn error(&mut self, code: &str, message: impl Into<String>) {
        self.emit(EventBody::Error {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Says something that is no failure.
    pub(crate) fn notice(&mut self, code: &str, message: impl Into<String>) {
        self.emit(EventBody::Notice {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Says what was found before the turn began, or what a callback has to say.
    pub(crate) fn tell(
        &mut self,
        Notice {
            code,
            message,
            failed,
        }: Notice,
    ) {
        if failed {
            self.error(code, message);
        } else {
            self.notice(code, message);
        }
    }

    /// Another model is asked, because this one cannot answer now.
    pub(crate) fn switched(&mut self, from: &str, to: &str, error: &ModelError) {
        self.notice(
            "model_switched",
            format!("`{from}` cannot answer now ({error}); asking `{to}`"),
        );
    }
}

pub(crate) fn call_finished(call: &ToolCall) -> EventBody {
    EventBody::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        phase: CallPhase::Finished,
        arguments: strict_json::object(&call.arguments).ok(),
        raw: Some(call.arguments.clone()),
    }
}

pub(crate) fn call_result(call: &ToolCall, envelope: &Envelope) -> EventBody {
    EventBody::ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        status: envelope.status,
        text: envelope.text.clone(),
        error: envelope.error.clone(),
    }
}

/// Takes secrets out of an event. Every kind of event is named, so that a new one is not shown
/// before somebody decided what of it is masked.
fn mask_body(masker: &Masker, body: &mut EventBody) {
    match body {
        // What servers say of a failure may repeat the key they were given; what commands write may
        // be anything.
        EventBody::Error { message: text, .. }
        | EventBody::Notice { message: text, .. }
        | EventBody::Retry { reason: text, .. }
        | EventBody::Compaction { message: text, .. }
        | EventBody::ToolProgress { text, .. } => mask_text(masker, text),
        EventBody::BackgroundTask {
            command, message, ..
        } => {
            mask_text(masker, command);
            mask_text(masker, message);
        }
        EventBody::Subagent { task, result, .. } => {
            mask_text(masker, task);
            if let Some(result) = result {
                mask_text(masker, &mut result.message);
            }
        }
        EventBody::Result(result) => mask_text(masker, &mut result.message),
        // A result is masked as a whole before it is stored and shown. What the model says is shown
        // as it comes, in pieces; what is kept of it is masked. The rest are haft's own
        // figures, names and paths.
        EventBody::ToolResult { .. }
        | EventBody::Text { .. }
        | EventBody::Thinking { .. }
        | EventBody::ToolCall { .. }
        | EventBody::Question { .. }
        | EventBody::Plan { .. }
        | EventBody::Completion { .. }
        | EventBody::Conversation { .. }
        | EventBody::Usage { .. }
        | EventBody::Window { .. }
        | EventBody::Budget { .. }
        | EventBody::Reminders { .. }
        | EventBody::PrefixBreak { .. }
        | EventBody::Pruning { .. }
        | EventBody::FileChanged { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{CompactionPhase, Cost, Outcome, SubagentPhase, TaskPhase, TurnResult, Usage};

    use super::*;

    const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

    fn result() -> TurnResult {
        TurnResult {
            outcome: Outcome::Failed,
            code: "c".into(),
            message: KEY.into(),
            text: String::new(),
            turns: 0,
            duration_ms: 0,
            usage: Usage::default(),
            cost: None::<Cost>,
            structured_output: None,
            nothing_changed: false,
        }
    }

    #[test]
    fn what_others_say_is_masked_and_relayed_events_are_too() {
        let id = ConversationId::new("c");
        let bodies = || {
            [
                EventBody::Error {
                    code: "c".into(),
                    message: KEY.into(),
                },
                EventBody::Retry {
                    attempt: 1,
                    limit: None,
                    delay_ms: 1,
                    reason: KEY.into(),
                },
                EventBody::Compaction {
                    phase: CompactionPhase::Failed,
                    rounds: 1,
                    message: KEY.into(),
                },
                EventBody::ToolProgress {
                    id: "i".into(),
                    name: "n".into(),
                    text: KEY.into(),
                },
                EventBody::BackgroundTask {
                    id: "i".into(),
                    phase: TaskPhase::Failed,
                    command: KEY.into(),
                    exit_code: None,
                    output: None,
                    message: KEY.into(),
                },
                EventBody::Subagent {
                    phase: SubagentPhase::Finished,
                    name: "n".into(),
                    parent: ConversationId::new("p"),
                    call_id: "c".into(),
                    model: "m".into(),
                    task: KEY.into(),
                    result: Some(Box::new(result())),
                },
                EventBody::Result(result()),
            ]
        };
        let mut seen = Vec::new();
        let cancel = CancellationToken::new();
        let mut sink = |event: &Event| seen.push(serde_json::to_string(event).unwrap());
        let mut io = TurnIo::new(
            &mut sink,
            &cancel,
            id.clone(),
            Masker::default(),
            "main".into(),
        );
        for body in bodies() {
            io.emit(body);
        }
        for body in bodies() {
            io.relay(Event {
                body,
                conversation_id: id.clone(),
                seq: 9,
                agent: "a".into(),
            });
        }
        assert_eq!((io.seq(), seen.len()), (14, 14));
        for event in seen {
            assert!(
                !event.contains(KEY) && event.contains("[masked: "),
                "{event}"
            );
        }
    }
}
