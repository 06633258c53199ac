//! Caches messages derived from other messages, so that none is built, counted or hashed twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_types::{
    ContentHash, Entry, Hasher, Message, MessageId, Origin, Role, Timestamp, TokenCounter, ToolSet,
};

use crate::policy::Compression;

/// The form of a derived message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MessageForm {
    /// A text written by haft, such as a reminder.
    Made,
    /// A compressed tool result.
    Compressed(Compression),
    /// A message whose results, or arguments longer than `argument_chars`, were cleared.
    Cleared {
        argument_chars: u32,
        recall: RecallTool,
    },
    /// A message of which every result longer than `bytes` was cut to its head and tail.
    Excerpt { bytes: u32 },
    /// A result with a note about its call, in which arguments longer than `argument_chars` were
    /// cut.
    Noted {
        argument_chars: u32,
        recall: RecallTool,
    },
    /// A tool result shown as its whole envelope in JSON.
    Envelope,
    /// A masked message, whose content is replaced by its id.
    Masked,
    /// The ledger: the facts kept from the messages before the one with this id, which are left
    /// out.
    Ledger,
    /// A message whose last line is a hint with the message's id.
    Hinted,
}

/// The availability of the `recall` tool, which returns a message by its id. Notices name the tool
/// only if the model has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecallTool {
    Offered,
    Missing,
}

impl RecallTool {
    /// Determines the availability of `recall` from the tools of the request.
    pub(crate) fn from_tools(tools: &ToolSet) -> Self {
        if tools.specs.iter().any(|tool| tool.name == "recall") {
            Self::Offered
        } else {
            Self::Missing
        }
    }
}

/// Caches the messages that [`assemble`](crate::assemble()) derives, from one request to the next.
///
/// A memo does not change results: requests built with it and without it are equal. Keep one as
/// long as a conversation is open.
#[derive(Debug, Default)]
pub struct Memo {
    entries: Mutex<HashMap<(MessageId, ContentHash, MessageForm), Arc<Entry>>>,
}

/// Creates entries, reusing those in the memo if there is one.
#[derive(Clone, Copy)]
pub(crate) struct EntryMaker<'a> {
    pub(crate) counter: &'a dyn TokenCounter,
    pub(crate) memo: Option<&'a Memo>,
    pub(crate) recall: RecallTool,
}

impl EntryMaker<'_> {
    /// Returns the message derived from `id` and `hash` in the given form. `make` runs only if the
    /// memo does not contain it.
    pub(crate) fn derived_entry(
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
    /// Returns a message written by haft; equal texts of one owner give equal messages.
    pub(crate) fn engine_entry(self, owner: &str, role: Role, text: &str) -> Arc<Entry> {
        let mut hasher = Hasher::default();
        let hash = hasher
            .update(owner.as_bytes())
            .update(text.as_bytes())
            .finish();
        let id = MessageId::from_hash(hash);
        self.derived_entry(id, hash, MessageForm::Made, || {
            Message::from_text(id, role, text, Timestamp::UNIX_EPOCH).with_origin(Origin::Engine)
        })
    }
}
