//! What calls show while they run.

use std::sync::Arc;

use haft_tool::CallProgress;
use haft_types::{EventBody, ToolCall};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::subagents::Relayed;
use crate::turn_io::TurnIo;

/// How much may wait to be shown; a listener that is slower misses some.
const ROOM: usize = 64;

/// The way from the calls of a group to whoever watches.
pub(crate) struct ProgressRelay {
    sender: Sender<EventBody>,
    receiver: Receiver<EventBody>,
}

struct RelayedProgress {
    id: String,
    name: String,
    sender: Sender<EventBody>,
}

impl CallProgress for RelayedProgress {
    fn show(&self, text: String) {
        let event = EventBody::ToolProgress {
            id: self.id.clone(),
            name: self.name.clone(),
            text,
        };
        // What nobody takes in time is dropped: it is no part of the result.
        drop(self.sender.try_send(event));
    }
}

impl ProgressRelay {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(ROOM);
        Self { sender, receiver }
    }

    /// Where one call shows what it does.
    pub(crate) fn of(&self, call: &ToolCall) -> Arc<dyn CallProgress> {
        Arc::new(RelayedProgress {
            id: call.id.clone(),
            name: call.name.clone(),
            sender: self.sender.clone(),
        })
    }

    /// Waits for a call, and tells meanwhile what it and those beside it show. Nothing of it comes
    /// after its result.
    pub(crate) async fn until<T>(
        &mut self,
        done: impl Future<Output = T>,
        relayed: &mut Relayed,
        io: &mut TurnIo<'_>,
    ) -> T {
        let mut done = std::pin::pin!(done);
        let output = loop {
            tokio::select! {
                output = &mut done => break output,
                Some(event) = self.receiver.recv() => io.emit(event),
                event = relayed.next() => io.relay(event),
            }
        };
        while let Ok(event) = self.receiver.try_recv() {
            io.emit(event);
        }
        for event in relayed.rest() {
            io.relay(event);
        }
        output
    }
}
