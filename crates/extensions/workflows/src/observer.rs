//! Merges the events of all steps into one stream.
//!
//! Invariant: events are numbered without gaps, and none of them is a `result`. The result of a
//! step is part of its last `subagent` event; the front end sends the result of the run.

use std::sync::{Arc, Mutex, PoisonError};

use haft_engine::EventSink;
use haft_tools::MergeReport;
use haft_types::{ConversationId, Event, EventBody, SubagentPhase};

/// Receives the events of a workflow run.
pub trait WorkflowObserver: Send {
    /// Called for each event of a step. Events are numbered consecutively over the whole run.
    fn on_event(&mut self, event: &Event);

    /// Called with a message from a hook that ran while a step's session was being closed, when
    /// events could no longer be sent.
    fn on_closing_message(&mut self, message: &str);
}

/// Passes the events of all steps to one observer, numbered consecutively.
pub(crate) struct EventStream {
    observer: Box<dyn WorkflowObserver>,
    seq: u64,
}

/// The event stream of a run, shared by all steps of the run.
pub(crate) type SharedStream = Arc<Mutex<EventStream>>;

impl EventStream {
    pub(crate) fn new_shared(observer: Box<dyn WorkflowObserver>) -> SharedStream {
        Arc::new(Mutex::new(Self { observer, seq: 0 }))
    }

    fn send_event(&mut self, event: Event) {
        let seq = self.next_seq();
        self.observer.on_event(&Event { seq, ..event });
    }

    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(crate) fn send_closing_message(&mut self, message: &str) {
        self.observer.on_closing_message(message);
    }
}

/// Sends the events of one step to the event stream of the run.
pub(crate) struct StepEvents {
    pub(crate) stream: SharedStream,
    pub(crate) step: String,
    pub(crate) run: ConversationId,
    /// The name of the step's model. Empty before the first event.
    pub(crate) model: String,
    pub(crate) task: String,
}

impl StepEvents {
    /// Sends an event for each project file that was changed by merging the step's work.
    pub(crate) fn send_merged_changes(&self, merged: &MergeReport, conversation: &ConversationId) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        for change in &merged.changes {
            let body = EventBody::FileChanged {
                path: change.path.display().to_string(),
                change: change.kind,
            };
            stream.send_event(Event {
                body,
                conversation_id: conversation.clone(),
                seq: 0,
                agent: self.step.clone(),
            });
        }
    }
}

impl EventSink for StepEvents {
    fn event(&mut self, event: &Event) {
        if let EventBody::Conversation { model, .. } = &event.body {
            self.model.clone_from(model);
        }
        let subagent_event = |phase, result| EventBody::Subagent {
            phase,
            name: self.step.clone(),
            parent: self.run.clone(),
            call_id: self.step.clone(),
            model: self.model.clone(),
            task: self.task.clone(),
            result,
        };
        let body = match &event.body {
            EventBody::Conversation { .. } => subagent_event(SubagentPhase::Started, None),
            EventBody::Result(result) => {
                subagent_event(SubagentPhase::Finished, Some(Box::new(result.clone())))
            }
            other => other.clone(),
        };
        self.stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send_event(Event {
                body,
                ..event.clone()
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::failed_result;

    struct Seen(Arc<Mutex<Vec<Event>>>);

    impl WorkflowObserver for Seen {
        fn on_event(&mut self, event: &Event) {
            self.0.lock().unwrap().push(event.clone());
        }

        fn on_closing_message(&mut self, _: &str) {}
    }

    #[test]
    fn steps_share_one_numbering_and_emit_no_result_of_the_run() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stream = EventStream::new_shared(Box::new(Seen(Arc::clone(&seen))));
        for step in ["a", "b"] {
            let run = ConversationId::new("run");
            let task = "x".to_owned();
            let stream = Arc::clone(&stream);
            let mut events = StepEvents {
                stream,
                step: step.into(),
                run,
                model: String::new(),
                task,
            };
            let body = EventBody::Result(failed_result("code", "message"));
            events.event(&Event {
                body,
                conversation_id: ConversationId::new(step),
                seq: 7,
                agent: step.into(),
            });
        }
        let seen = seen.lock().unwrap();
        assert_eq!(
            seen.iter().map(|event| event.seq).collect::<Vec<_>>(),
            [1, 2]
        );
        let finished = |event: &Event| {
            matches!(
                &event.body,
                EventBody::Subagent {
                    result: Some(_),
                    ..
                }
            )
        };
        assert!(seen.iter().all(finished), "{seen:?}");
    }
}
