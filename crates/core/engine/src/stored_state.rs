//! What is kept with a conversation besides its messages: every document, its key and its shape.
//!
//! Keys and shapes are a contract with conversations that were stored by earlier versions: renaming
//! code never renames them. The tests pin each byte for byte. No other file of this crate names a
//! key.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use haft_context::{Carried, Cleared, Edits, Marks};
use haft_store::{Store, StoreError};
use haft_text::Masker;
use haft_tools::{KeptDocument, TaskReport, TodoItems, UsefulRanges};
use haft_types::{ContentHash, ConversationId, Message};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Notice;

/// A document that is kept under one key.
pub(crate) trait StateDocument: Serialize + DeserializeOwned {
    /// Under which the store keeps it.
    const KEY: &'static str;
}

/// Declares the key of each document of a conversation, and the list of all of them.
macro_rules! conversation_documents {
    ($($document:ty => $key:expr),* $(,)?) => {
        $(impl StateDocument for $document {
            const KEY: &'static str = $key;
        })*
        /// The key of every document of a conversation.
        const CONVERSATION_KEYS: &[&str] = &[$($key),*];
    };
}

conversation_documents! {
    // What one request decides for the next.
    Cleared => "cleared",
    Carried => "carried",
    SentPolicy => "policy",
    SentEdits => "edited",
    SentDescriptions => "active_context",
    ToolDescriptions => "steady_tools",
    TokenizerFactors => "tokenizer_factors",
    PlanModeNotice => "plan_told",
    // What became of summaries.
    FailedSummaries => "failed_summaries",
    SummaryStandIn => "stand_in",
    // What pictures show.
    ImageDescriptions => "image_descriptions",
    // What people and the model note.
    Edits => "edits",
    Marks => "marks",
    TodoItems => TodoItems::KEY,
    UsefulRanges => UsefulRanges::KEY,
    // What was started.
    ChildConversations => "subagents",
    EndedTasks => "background_tasks",
}

/// The hash of the policy the last request was built by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentPolicy(pub(crate) ContentHash);

/// The hash of the edits that applied to the last request, if any did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentEdits(pub(crate) Option<ContentHash>);

/// The descriptions of the project's folders as they were last sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentDescriptions(pub(crate) Option<String>);

/// How declared tools were first described to the model, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ToolDescriptions(pub(crate) BTreeMap<String, ToolDescription>);

/// How one declared tool was described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolDescription {
    /// The declaration it came from; another one makes the description void.
    pub(crate) declared_by: String,
    pub(crate) description: String,
}

/// How many tokens of a model a counted token is, by model, as replies have taught it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct TokenizerFactors(pub(crate) BTreeMap<String, f64>);

/// Whether the model last read that plan mode is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PlanModeNotice(pub(crate) bool);

/// How many summaries in a row have failed or were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FailedSummaries(pub(crate) u32);

/// What is sent in place of a summary that could not be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SummaryStandIn(pub(crate) Option<Message>);

/// What pictures show, by the hash of their data, for a model that takes none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ImageDescriptions(pub(crate) BTreeMap<String, String>);

/// The conversations of the sub-agents that were started, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ChildConversations(pub(crate) Vec<ChildConversation>);

/// The conversation of one sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildConversation {
    pub(crate) conversation: ConversationId,
    /// The agent's name in its file.
    pub(crate) agent: String,
    /// The call that started it.
    pub(crate) call_id: String,
}

/// What became of background tasks that could not be announced any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EndedTasks(pub(crate) Vec<TaskReport>);

/// The documents of a conversation as they were when it was opened. Each is taken once, by whoever
/// keeps it from then on.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    documents: BTreeMap<String, Value>,
    /// What the user must see of those that cannot be understood.
    notices: Vec<Notice>,
}

impl StoredState {
    /// Reads all documents at once.
    pub(crate) async fn read(store: &dyn Store, id: &ConversationId) -> Result<Self, StoreError> {
        let documents = store.states(id, CONVERSATION_KEYS).await?;
        Ok(Self {
            documents,
            notices: Vec::new(),
        })
    }

    /// A document as it is stored.
    fn take_json<T: StateDocument>(&mut self) -> Option<Value> {
        self.documents.remove(T::KEY)
    }

    /// A document, if it is there and can be understood. One that can not is as good as none: it
    /// says how an earlier request was built, and a request can be built without it. The user
    /// is notified.
    pub(crate) fn take<T: StateDocument>(&mut self) -> Option<T> {
        let value = self.take_json::<T>()?;
        serde_json::from_value(value)
            .map_err(|error| self.note_unreadable(T::KEY, &error))
            .ok()
    }

    /// Returns a document with a copy in memory. One that cannot be understood is empty in memory,
    /// and the user is notified.
    pub(crate) fn keep<T: StateDocument + Clone + Default>(
        &mut self,
        store: &Arc<dyn Store>,
        id: &ConversationId,
    ) -> KeptDocument<T> {
        let stored = self.take_json::<T>();
        let store = Arc::clone(store);
        let (document, error) = KeptDocument::restored(store, id.clone(), T::KEY, stored);
        if let Some(error) = error {
            self.note_unreadable(T::KEY, &error);
        }
        document
    }

    /// Notes for the log and for the user that a document is ignored.
    fn note_unreadable(&mut self, key: &str, error: &dyn Display) {
        tracing::warn!(key, %error, "a stored document is ignored");
        let message = format!(
            "what was stored of this conversation under `{key}` cannot be read and is ignored: {error}"
        );
        self.notices.push(Notice {
            code: "stored_state",
            message,
            failed: true,
        });
    }

    /// What the user must see, once.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

/// A document as it is stored now; `None` where there is none.
pub(crate) async fn read<T: StateDocument>(
    store: &dyn Store,
    id: &ConversationId,
) -> Result<Option<Result<T, serde_json::Error>>, StoreError> {
    Ok(store.state(id, T::KEY).await?.map(serde_json::from_value))
}

/// Keeps a document with the conversation, in place of the one before.
pub(crate) async fn write<T: StateDocument>(
    store: &dyn Store,
    id: &ConversationId,
    document: &T,
) -> Result<(), StoreError> {
    store
        .set_state(
            id,
            T::KEY,
            serde_json::to_value(document).unwrap_or_default(),
        )
        .await
}

/// The same for a document that may hold secrets.
pub(crate) async fn write_masked<T: StateDocument>(
    store: &dyn Store,
    id: &ConversationId,
    document: &T,
    masker: &Masker,
) -> Result<(), StoreError> {
    let mut value = serde_json::to_value(document).unwrap_or_default();
    masker.mask_json(&mut value);
    store.set_state(id, T::KEY, value).await
}

#[cfg(test)]
mod tests;
