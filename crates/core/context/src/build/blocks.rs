//! Blocks: an assistant message with tool calls, together with all its results.
//!
//! [`repair_blocks`] brings stored messages into a form that every API accepts, in one pass.
//! Afterwards every block is complete and contiguous, every result follows its call, and all other
//! messages keep their stored order. Messages that need no repair are shared, not copied.

use std::mem;
use std::sync::Arc;

use haft_types::{
    ContentHash, Entry, Envelope, Hasher, Message, MessageId, Part, Role, TokenCounter, ToolCall,
};
use haft_types::{Metadata, ToolResult};

/// The messages of a conversation in an order that every API accepts, with the positions of their
/// blocks.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    pub entries: Vec<Arc<Entry>>,
    /// The differences from the stored messages, in message order.
    pub repairs: Vec<Repair>,
    /// For each message, the index of the first message of its block, or its own index outside a
    /// block.
    pub(crate) starts: Vec<u32>,
    /// For each message, true for a result that was stored after the newest assistant message: the
    /// model has not seen it. The order of `entries` does not show this, because an answer that was
    /// stored inside a block is sent after it.
    pub(crate) unseen: Vec<bool>,
}

/// A difference between the stored messages and the messages that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A call of this message had no result, so an [`interrupted_result`] was added.
    Interrupted {
        /// The assistant message with the call.
        message: MessageId,
    },
    /// Some or all results in this message match no open call and are not sent.
    OrphanResult {
        /// The tool message with the results.
        message: MessageId,
    },
    /// This message was stored inside a block and is sent after that block.
    MovedBehindBlock { message: MessageId },
    /// This stored system message is not sent, because the system layer replaces it.
    StoredSystem {
        /// The stored system message.
        message: MessageId,
    },
}

impl Blocks {
    /// Returns the last position at or before `index` where a message can be inserted without
    /// splitting a block. This is `index` itself, or the start of the block that contains `index`.
    pub fn block_start(&self, index: usize) -> usize {
        self.starts
            .get(index)
            .map_or(index, |start| *start as usize)
    }

    fn push(&mut self, entry: Arc<Entry>) {
        self.push_in_block(self.entries.len(), entry, false);
    }

    fn push_in_block(&mut self, start: usize, entry: Arc<Entry>, unseen: bool) {
        self.starts.push(start as u32);
        self.unseen.push(unseen);
        self.entries.push(entry);
    }
}

/// Finds the blocks and repairs broken ones.
///
/// A block ends with its last matching result, even if there are other messages between its
/// results; a result that matches no open call and the next assistant message with calls end the
/// block early. Messages stored inside a block are sent directly after it. A call without a result
/// gets an [`interrupted_result`]. Results without a call and stored system messages are left out.
pub fn repair_blocks(history: &[Arc<Entry>], counter: &dyn TokenCounter) -> Blocks {
    let mut pass = RepairPass {
        out: Blocks {
            entries: Vec::with_capacity(history.len()),
            starts: Vec::with_capacity(history.len()),
            unseen: Vec::with_capacity(history.len()),
            ..Blocks::default()
        },
        seen: 0,
        open: None,
        counter,
        spare: Vec::new(),
        keep: Vec::new(),
    };
    for entry in history {
        pass.push_entry(entry);
    }
    pass.close_block();
    pass.out
}

struct RepairPass<'a> {
    out: Blocks,
    /// The number of messages in `out` that the newest assistant message has seen.
    seen: usize,
    open: Option<OpenBlock<'a>>,
    counter: &'a dyn TokenCounter,
    // Buffers that are reused, so that a long history does not allocate for every block.
    spare: Vec<&'a ToolCall>,
    keep: Vec<bool>,
}

/// A block whose results are still being collected.
struct OpenBlock<'a> {
    start: usize,
    caller: &'a Message,
    waiting: Vec<&'a ToolCall>,
    caught: Vec<&'a Arc<Entry>>,
    /// The number of messages in `caught` that were stored before the last matching result.
    inside: usize,
}

impl<'a> RepairPass<'a> {
    fn push_entry(&mut self, entry: &'a Arc<Entry>) {
        let message = &entry.message;
        match message.role {
            Role::System => self.out.repairs.push(Repair::StoredSystem {
                message: message.message_id,
            }),
            Role::Tool => self.push_result(entry),
            Role::Assistant if message.tool_calls().next().is_some() => {
                self.close_block();
                self.mark_seen();
                let start = self.out.entries.len();
                self.out.push(Arc::clone(entry));
                let mut waiting = mem::take(&mut self.spare);
                waiting.extend(message.tool_calls());
                self.open = Some(OpenBlock {
                    start,
                    caller: message,
                    waiting,
                    caught: Vec::new(),
                    inside: 0,
                });
            }
            Role::User | Role::Assistant | Role::Summary => {
                if message.role == Role::Assistant {
                    self.mark_seen();
                }
                match &mut self.open {
                    Some(open) => open.caught.push(entry),
                    None => self.out.push(Arc::clone(entry)),
                }
            }
        }
    }

    /// Records that the model has seen all results so far.
    fn mark_seen(&mut self) {
        self.out.unseen[self.seen..].fill(false);
        self.seen = self.out.entries.len();
    }

    /// Adds a tool message to the open block, without the results that match no open call.
    fn push_result(&mut self, entry: &'a Arc<Entry>) {
        let id = entry.message.message_id;
        let Some(open) = &mut self.open else {
            self.out.repairs.push(Repair::OrphanResult { message: id });
            return;
        };
        let before = open.waiting.len();
        let total = entry.message.tool_results().count();
        let keep = &mut self.keep;
        keep.clear();
        for result in entry.message.tool_results() {
            let call = open
                .waiting
                .iter()
                .position(|call| call.id == result.tool_call_id);
            keep.push(call.is_some());
            if let Some(call) = call {
                open.waiting.remove(call);
            }
        }
        let matched = before - open.waiting.len();
        if matched < total || total == 0 {
            self.out.repairs.push(Repair::OrphanResult { message: id });
        }
        if matched == 0 {
            // A foreign result ends the block.
            self.close_block();
            return;
        }
        open.inside = open.caught.len();
        let entry = if matched == total {
            Arc::clone(entry)
        } else {
            Entry::new(filter_results(&entry.message, keep), self.counter)
        };
        let start = open.start;
        self.out.push_in_block(start, entry, true);
        if open.waiting.is_empty() {
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        // An answer inside the block has seen that the result is missing.
        let is_answered = open
            .caught
            .iter()
            .any(|entry| entry.message.role == Role::Assistant);
        for call in open.waiting.drain(..) {
            self.out.repairs.push(Repair::Interrupted {
                message: open.caller.message_id,
            });
            let result = Entry::new(interrupted_result(open.caller, call), self.counter);
            self.out.push_in_block(open.start, result, !is_answered);
        }
        for (position, entry) in open.caught.into_iter().enumerate() {
            if position < open.inside {
                self.out.repairs.push(Repair::MovedBehindBlock {
                    message: entry.message.message_id,
                });
            }
            self.out.push(Arc::clone(entry));
        }
        self.spare = open.waiting;
    }
}

/// Returns the message with only the results that `keep` selects, each followed by its images.
fn filter_results(message: &Message, keep: &[bool]) -> Message {
    let mut keep = keep.iter();
    let mut kept = true;
    let mut copy = message.clone();
    copy.content.retain(|part| match part {
        Part::ToolResult(_) => {
            kept = keep.next().copied().unwrap_or(false);
            kept
        }
        Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => kept,
    });
    copy
}

const INTERRUPTED_TEXT: &str = "Interrupted: no result of this call is known. It may have run in part or whole; \
                           check its effects before calling it again.";

/// Builds a result for a call whose own result is missing. The message depends only on the call, so
/// a result that is sent now has the id and the bytes of one that is stored when the conversation
/// is resumed.
pub fn interrupted_result(caller: &Message, call: &ToolCall) -> Message {
    let result = ToolResult {
        tool_call_id: call.id.clone(),
        name: call.name.clone(),
        envelope: Envelope::failure("interrupted", INTERRUPTED_TEXT),
    };
    Message {
        message_id: MessageId::from_hash(hash_interrupted_call(caller, call)),
        role: Role::Tool,
        content: vec![Part::ToolResult(Box::new(result))],
        created_at: caller.created_at,
        metadata: Metadata::new(),
        llm_metadata: None,
    }
}

fn hash_interrupted_call(caller: &Message, call: &ToolCall) -> ContentHash {
    let mut hasher = Hasher::default();
    hasher
        .update(b"interrupted")
        .update(caller.message_id.to_string().as_bytes())
        .update(call.id.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests;
