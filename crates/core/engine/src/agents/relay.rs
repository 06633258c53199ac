//! Relays the events of sub-agents to the event sink of the session that started them.
//!
//! Invariant: a sub-agent's `conversation` and `result` events are relayed as `subagent` events, so
//! that a turn has one first and one last event.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft_types::{
    ConversationId, Cost, Event, EventBody, Outcome, SubagentPhase, TurnResult, Usage,
};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::turn::turn_io::EventSink;

/// The event sink of one sub-agent. Passes its events to the session that started the sub-agent.
pub(super) struct Relay {
    pub(super) events: UnboundedSender<Event>,
    pub(super) name: String,
    pub(super) parent: ConversationId,
    pub(super) call_id: String,
    pub(super) model: String,
    pub(super) task: String,
    /// The sub-agent's time limit, set once the limit is exceeded.
    pub(super) out_of_time: Arc<OnceLock<Duration>>,
}

impl EventSink for Relay {
    fn event(&mut self, event: &Event) {
        let phase_event = |phase, result| EventBody::Subagent {
            phase,
            name: self.name.clone(),
            parent: self.parent.clone(),
            call_id: self.call_id.clone(),
            model: self.model.clone(),
            task: self.task.clone(),
            result,
        };
        let body = match &event.body {
            EventBody::Conversation { .. } => phase_event(SubagentPhase::Started, None),
            EventBody::Result(result) => {
                let result = mark_timeout(result.clone(), self.out_of_time.get().copied());
                phase_event(SubagentPhase::Finished, Some(Box::new(result)))
            }
            other => other.clone(),
        };
        // Fails only if the session is gone.
        drop(self.events.send(Event {
            body,
            ..event.clone()
        }));
    }
}

/// Returns the sub-agent's result with the outcome `Exhausted` instead of `Aborted` if its time
/// limit stopped it.
pub(super) fn mark_timeout(result: TurnResult, out_of_time: Option<Duration>) -> TurnResult {
    match (result.outcome, out_of_time) {
        (Outcome::Aborted, Some(limit)) => {
            let message = format!("Stopped after {} s.", limit.as_secs());
            TurnResult {
                outcome: Outcome::Exhausted,
                code: "timeout".to_owned(),
                message,
                ..result
            }
        }
        _ => result,
    }
}

/// Receives the events of sub-agents and adds up their usage.
pub(crate) struct RelayedEvents {
    /// The receiving end of the channel that every sub-agent sends to.
    receiver: UnboundedReceiver<Event>,
    /// The tokens used since the last [`Self::take_usage`].
    usage: Usage,
    costs: Vec<Option<Cost>>,
}

impl RelayedEvents {
    pub(crate) fn new() -> (UnboundedSender<Event>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (
            sender,
            Self {
                receiver,
                usage: Usage::default(),
                costs: Vec::new(),
            },
        )
    }

    /// Returns the next event. Waits forever if all senders are gone.
    pub(crate) async fn next(&mut self) -> Event {
        match self.receiver.recv().await {
            Some(event) => self.count_usage(event),
            None => std::future::pending().await,
        }
    }

    /// Returns the events that have arrived so far, without waiting.
    pub(crate) fn take_arrived_events(&mut self) -> Vec<Event> {
        let mut rest = Vec::new();
        while let Ok(event) = self.receiver.try_recv() {
            rest.push(self.count_usage(event));
        }
        rest
    }

    fn count_usage(&mut self, event: Event) -> Event {
        if let EventBody::Usage { usage, cost, .. } = &event.body {
            self.usage += *usage;
            self.costs.push(*cost);
        }
        event
    }

    /// Takes the tokens used since the last call, and the cost of each request.
    pub(crate) fn take_usage(&mut self) -> (Usage, Vec<Option<Cost>>) {
        (
            std::mem::take(&mut self.usage),
            std::mem::take(&mut self.costs),
        )
    }
}
