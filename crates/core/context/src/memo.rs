//! Messages made from other messages, kept so that nothing is made, counted or hashed twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_types::{
    ContentHash, Entry, Hasher, Message, MessageId, Origin, Role, Timestamp, TokenCounter, ToolSet,
};

use crate::policy::Compression;

/// What was made of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MessageForm {
    /// A text of the engine's own, such as a reminder.
    Made,
    /// A tool result, compressed.
    Compressed(Compression),
    /// A message whose results, or arguments longer than this, were cleared.
    Cleared {
        argument_chars: u32,
        recall: RecallTool,
    },
    /// A message whose results longer than this were reduced to head and tail.
    Excerpt { bytes: u32 },
    /// A tool result as its whole envelope in JSON.
    Envelope,
    /// A message of which only the name is left.
    Masked,
    /// What must be kept of the messages before this one.
    Ledger,
    /// A message with its id as a last line.
    Hinted,
}

/// Whether the model is offered `recall`, which brings a message back by its id. Notices name the
/// tool only then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecallTool {
    Offered,
    Missing,
}

impl RecallTool {
    /// Looks for the tool among those of a request.
    pub(crate) fn of(tools: &ToolSet) -> Self {
        if tools.specs.iter().any(|tool| tool.name == "recall") {
            Self::Offered
        } else {
            Self::Missing
        }
    }
}

/// Keeps what [`assemble`](crate::assemble) makes from one request to the next.
///
/// It holds nothing that could not be made again: a request built with it and one built without are
/// equal. Keep one for as long as a conversation is open.
#[derive(Debug, Default)]
pub struct Memo {
    entries: Mutex<HashMap<(MessageId, ContentHash, MessageForm), Arc<Entry>>>,
}

/// Makes entries, through a memo where the caller keeps one.
#[derive(Clone, Copy)]
pub(crate) struct EntryMaker<'a> {
    pub(crate) counter: &'a dyn TokenCounter,
    pub(crate) memo: Option<&'a Memo>,
    pub(crate) recall: RecallTool,
}

impl EntryMaker<'_> {
    /// The message made of `id` and `hash` in this form; `make` runs only when it is not known yet.
    pub(crate) fn entry(
        self,
        id: MessageId,
        hash: ContentHash,
        form: MessageForm,
        make: impl FnOnce() -> Message,
    ) -> Arc<Entry> {
        let Some(memo) = self.memo else {
            return Entry::new(make(), self.counter);
        };
        let key = (id, hash, form);
        // A thread that panicked while holding the lock cannot have left a wrong entry behind.
        let mut entries = memo.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            entries
                .entry(key)
                .or_insert_with(|| Entry::new(make(), self.counter)),
        )
    }
    /// A message of the engine's own; equal text of the same owner gives the equal message.
    pub(crate) fn made(self, owner: &str, role: Role, text: &str) -> Arc<Entry> {
        let mut hasher = Hasher::default();
        let hash = hasher
            .update(owner.as_bytes())
            .update(text.as_bytes())
            .finish();
        let id = MessageId::derived(hash);
        self.entry(id, hash, MessageForm::Made, || {
            Message::text(id, role, text, Timestamp::UNIX_EPOCH).from(Origin::Engine)
        })
    }
}
