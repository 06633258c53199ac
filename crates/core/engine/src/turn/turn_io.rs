//! The output of a turn: numbers its events, masks and logs them, and passes them to the event
//! sink. Also contains the turn's cancellation token.

use std::collections::{HashMap, HashSet};
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

/// Receives the events of a run, in order. The methods must return quickly, because the turn waits
/// for them to return.
pub trait EventSink: Send {
    /// Handles one event.
    fn event(&mut self, event: &Event);

    /// Called when the input with which the turn began has been added to the conversation.
    fn input_stored(&mut self, _input: &str) {}

    /// Called when input that the user typed during the turn has been added to the conversation.
    fn input_joined(&mut self, _input: &str) {}

    /// Like [`Self::input_joined`], for input that the user typed in a further front end of the
    /// session.
    fn attached_input_joined(&mut self, _input: &str) {}

    /// Returns the input that the user has typed since the last call, or since the turn began,
    /// oldest first. The input becomes part of the turn. Called before every request except the
    /// first.
    fn take_input(&mut self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(&Event) + Send> EventSink for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// A cancellation token that is also canceled when the turn's time limit is reached.
pub(crate) struct TimedCancel {
    pub(crate) token: CancellationToken,
    timer: Option<JoinHandle<()>>,
}

impl TimedCancel {
    /// Creates a token that is canceled when `cancel` is canceled or after `time`.
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

/// Emits the events of one agent's turn, adding the conversation's id, the agent's name and the
/// event's number. Also contains the turn's cancellation token.
pub(crate) struct TurnIo<'a> {
    sink: &'a mut dyn EventSink,
    pub(crate) cancel: &'a CancellationToken,
    conversation_id: ConversationId,
    masker: Masker,
    agent: String,
    /// The number of the last emitted event.
    seq: u64,
    /// The tool names of the calls in the arriving reply, by call id.
    calls: HashMap<String, String>,
    /// The number of equal failures of a call in this turn, by fingerprint of the call and its
    /// result.
    failures: HashMap<ContentHash, u32>,
    /// The calls of this turn that succeeded, by fingerprint of the call without its result.
    succeeded: HashSet<ContentHash>,
    /// Details of the execution of calls whose results are not emitted yet, by call id.
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
            succeeded: HashSet::new(),
            runs: HashMap::new(),
        }
    }

    /// Continues the numbering after event number `seq`.
    pub(crate) fn numbered_after(self, seq: u64) -> Self {
        Self { seq, ..self }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn emit(&mut self, mut body: EventBody) {
        mask_event(&self.masker, &mut body);
        self.log_event(&body);
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

    /// Logs an event of this agent. Sub-agents log their own events. Only the start and the end of
    /// a sub-agent are also logged here.
    fn log_event(&mut self, body: &EventBody) {
        let run = match body {
            EventBody::ToolResult { id, .. } => self.runs.remove(id),
            _ => None,
        };
        event_log::log_event(&self.conversation_id, &self.agent, body, run.as_ref());
    }

    /// Stores the details of a call's execution for the log line of its result.
    pub(crate) fn record_run(&mut self, call: &ToolCall, run: CallRun) {
        self.runs.insert(call.id.clone(), run);
    }

    /// Informs the event sink that the conversation now contains the input that began the turn.
    pub(crate) fn notify_input_stored(&mut self, input: &str) {
        self.sink.input_stored(input);
    }

    /// Informs the event sink that the conversation now contains input that was typed during the
    /// turn.
    pub(crate) fn notify_input_joined(&mut self, input: &str) {
        self.sink.input_joined(input);
    }

    /// Returns the input that the user has typed since the last call of this method.
    pub(crate) fn take_input(&mut self) -> Vec<String> {
        self.sink.take_input()
    }

    /// Emits an event of a sub-agent under the next event number of this turn.
    pub(crate) fn relay_event(&mut self, mut event: Event) {
        mask_event(&self.masker, &mut event.body);
        if matches!(event.body, EventBody::Subagent { .. }) {
            self.log_event(&event.body);
        }
        self.seq += 1;
        self.sink.event(&Event {
            seq: self.seq,
            ..event
        });
    }

    /// Emits a piece of a reply that is still arriving.
    pub(crate) fn emit_delta(&mut self, delta: Delta) {
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
            // Emitted once the whole reply is stored, with the call's arguments.
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
            Delta::FieldOmitted { field, reason } => EventBody::Notice {
                code: "field_omitted".into(),
                message: format!(
                    "the provider does not support `{field}` ({reason}); requests are sent without it"
                ),
            },
        };
        self.emit(body);
    }

    /// Counts a failure of a call. Returns the number of equal failures so far, including this one.
    pub(crate) fn count_failure(&mut self, failure: ContentHash) -> u32 {
        let times = self.failures.entry(failure).or_default();
        *times += 1;
        *times
    }

    /// Records the success of a call, by its fingerprint without its result.
    pub(crate) fn record_success(&mut self, call: ContentHash) {
        self.succeeded.insert(call);
    }

    /// True if a call with this fingerprint succeeded earlier in this turn.
    pub(crate) fn has_succeeded(&self, call: ContentHash) -> bool {
        self.succeeded.contains(&call)
    }

    pub(crate) fn emit_error(&mut self, code: &str, message: impl Into<String>) {
        self.emit(EventBody::Error {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Emits a notice to the user that is not an error.
    pub(crate) fn emit_notice(&mut self, code: &str, message: impl Into<String>) {
        self.emit(EventBody::Notice {
            code: code.into(),
            message: message.into(),
        });
    }

    /// Emits a notice that was created before the turn began or by a callback.
    pub(crate) fn emit_stored_notice(
        &mut self,
        Notice {
            code,
            message,
            failed,
        }: Notice,
    ) {
        if failed {
            self.emit_error(code, message);
        } else {
            self.emit_notice(code, message);
        }
    }

    /// Informs the user that another model is used because the current model cannot answer.
    pub(crate) fn notify_model_switch(&mut self, from: &str, to: &str, error: &ModelError) {
        self.emit_notice(
            "model_switched",
            format!("`{from}` cannot answer now ({error}); asking `{to}`"),
        );
    }
}

pub(crate) fn call_finished_event(call: &ToolCall) -> EventBody {
    EventBody::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        phase: CallPhase::Finished,
        arguments: strict_json::parse_object(&call.arguments).ok(),
        raw: Some(call.arguments.clone()),
    }
}

pub(crate) fn call_running_event(call: &ToolCall) -> EventBody {
    EventBody::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        phase: CallPhase::Running,
        arguments: None,
        raw: None,
    }
}

pub(crate) fn call_result_event(call: &ToolCall, envelope: &Envelope) -> EventBody {
    EventBody::ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        status: envelope.status,
        text: envelope.text.clone(),
        error: envelope.error.clone(),
    }
}

/// Masks the secrets in an event. The match is exhaustive, so that a new kind of event does not
/// compile until its masked texts are chosen.
pub(crate) fn mask_event(masker: &Masker, body: &mut EventBody) {
    match body {
        // Servers may repeat an API key in an error, and commands may print anything.
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
        // Results are masked before they are stored and shown. The model's text is shown as it
        // arrives, in pieces, and only its stored copy is masked. The other events contain haft's
        // own numbers, names and paths.
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
    fn emit_masks_text_of_others_and_relayed_events() {
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
            io.relay_event(Event {
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
