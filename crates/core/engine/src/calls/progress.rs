//! Relays the progress that calls report while they run.

use std::sync::Arc;

use haft_tool::CallProgress;
use haft_types::{EventBody, ToolCall};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::agents::relay::RelayedEvents;
use crate::turn::turn_io::TurnIo;

/// The maximum number of queued progress events. Further events are dropped.
const MAX_QUEUED_EVENTS: usize = 64;

/// Relays the progress of a group of calls to the event sink.
pub(crate) struct ProgressRelay {
    sender: Sender<EventBody>,
    receiver: Receiver<EventBody>,
}

impl ProgressRelay {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
        Self { sender, receiver }
    }

    /// Returns the function through which `call` reports its progress.
    pub(crate) fn call_progress(&self, call: &ToolCall) -> CallProgress {
        let id = call.id.clone();
        let name = call.name.clone();
        let sender = self.sender.clone();
        Arc::new(move |text| {
            let event = EventBody::ToolProgress {
                id: id.clone(),
                name: name.clone(),
                text,
            };
            // Progress is not part of the result, so it is dropped if the channel is full.
            drop(sender.try_send(event));
        })
    }

    /// Waits for `done`, emitting the progress of calls and the events of sub-agents meanwhile. No
    /// progress is emitted after the method returns.
    pub(crate) async fn relay_until<T>(
        &mut self,
        done: impl Future<Output = T>,
        relayed: &mut RelayedEvents,
        io: &mut TurnIo<'_>,
    ) -> T {
        let mut done = std::pin::pin!(done);
        let output = loop {
            tokio::select! {
                output = &mut done => break output,
                Some(event) = self.receiver.recv() => io.emit(event),
                event = relayed.next() => io.relay_event(event),
            }
        };
        while let Ok(event) = self.receiver.try_recv() {
            io.emit(event);
        }
        for event in relayed.take_arrived_events() {
            io.relay_event(event);
        }
        output
    }
}
