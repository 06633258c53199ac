//! Numbers events and hands them to whoever listens.

use haft_model::ModelError;
use haft_text::Masker;
use haft_types::{ConversationId, Event, EventBody};

use crate::secrets::mask_text;

/// Takes the events of a run, in order. It must not block for long: the turn waits for it.
pub trait EventSink: Send {
    /// One event.
    fn event(&mut self, event: &Event);

    /// Words that the user wrote while the turn ran have become part of it.
    fn joined(&mut self, _words: &str) {}
}

impl<F: FnMut(&Event) + Send> EventSink for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// Stamps events with conversation, agent and number.
pub(crate) struct Emitter<'a> {
    sink: &'a mut dyn EventSink,
    conversation_id: ConversationId,
    masker: Masker,
    agent: String,
    /// The number of the last event.
    seq: u64,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn EventSink,
        conversation_id: ConversationId,
        masker: Masker,
        agent: String,
    ) -> Self {
        Self { sink, conversation_id, masker, agent, seq: 0 }
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
        // What servers say of a failure may repeat the key they were given; what commands write may be anything.
        match &mut body {
            EventBody::Error { message, .. } => mask_text(&self.masker, message),
            EventBody::Retry { reason, .. } => mask_text(&self.masker, reason),
            EventBody::ToolProgress { text, .. } => mask_text(&self.masker, text),
            EventBody::BackgroundTask { command, message, .. } => {
                mask_text(&self.masker, command);
                mask_text(&self.masker, message);
            }
            EventBody::Result(result) => mask_text(&self.masker, &mut result.message),
            _ => {}
        }
        self.seq += 1;
        let (conversation_id, agent) = (self.conversation_id.clone(), self.agent.clone());
        self.sink.event(&Event { body, conversation_id, seq: self.seq, agent });
    }

    /// Words that the user wrote while the turn ran are stored as part of it.
    pub(crate) fn joined(&mut self, words: &str) {
        self.sink.joined(words);
    }

    /// An event of a sub-agent: its own in everything but its number.
    pub(crate) fn relay(&mut self, mut event: Event) {
        if let EventBody::Subagent { task, .. } = &mut event.body {
            mask_text(&self.masker, task);
        }
        self.seq += 1;
        self.sink.event(&Event { seq: self.seq, ..event });
    }

    pub(crate) fn error(&mut self, code: &str, message: impl Into<String>) {
        self.emit(EventBody::Error { code: code.into(), message: message.into() });
    }

    /// Another model is asked, because this one cannot answer now.
    pub(crate) fn switched(&mut self, from: &str, to: &str, error: &ModelError) {
        self.error("model_switched", format!("`{from}` cannot answer now ({error}); asking `{to}`"));
    }
}
