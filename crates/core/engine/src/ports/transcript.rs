//! The messages of a conversation as tools access them, with the marks that determine which
//! messages are sent.

use std::sync::Arc;

use haft_context::list_messages;
use haft_store::Store;
use haft_tools::StoredTranscript;
use haft_types::{ConversationId, Entry, Message, TokenCounter};

use super::children::Children;
use super::marks::StoredMarks;

/// Returns the messages of a stored conversation and of its sub-agents' conversations, `children`.
pub(super) fn stored_transcript(
    store: Arc<dyn Store>,
    conversation: ConversationId,
    counter: Arc<dyn TokenCounter>,
    marks: Arc<StoredMarks>,
    children: Arc<Children>,
) -> StoredTranscript {
    let current = Arc::clone(&marks);
    StoredTranscript {
        store,
        conversation,
        children: Box::new(move || {
            let children = children.all().into_iter();
            children.map(|child| child.conversation).collect()
        }),
        describe: Box::new(move |messages| {
            list_messages(&to_entries(messages, counter.as_ref()), &current.current())
        }),
        edit_marks: Box::new(move |action, ids, messages| {
            let marks = Arc::clone(&marks);
            Box::pin(async move {
                let history = to_entries(messages, &ZeroCounter);
                marks.edit_deleted(action, &ids, &history).await
            })
        }),
    }
}

fn to_entries(messages: Vec<Message>, counter: &dyn TokenCounter) -> Vec<Arc<Entry>> {
    messages
        .into_iter()
        .map(|message| Entry::new(message, counter))
        .collect()
}

/// Counts every text as zero tokens. Used where only ids and roles matter, because counting the
/// tokens of a long conversation is slow.
struct ZeroCounter;

impl TokenCounter for ZeroCounter {
    fn count_text(&self, _text: &str) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests;
