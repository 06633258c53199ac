//! Declares the documents that are stored with a conversation besides its messages: their keys and
//! shapes.
//!
//! Keys and shapes are a contract with conversations stored by earlier versions: renaming code
//! never renames them. The tests pin each of them byte for byte. No other file of this crate
//! contains a key.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use haft_context::{Carried, Cleared, Edits, LifetimeEvidence, Marks, PendingWork, StatedPlace};
use haft_store::{Store, StoreError};
use haft_text::Masker;
use haft_tools::{KeptDocument, TaskReport, TodoItems, UsefulRanges};
use haft_types::{ContentHash, ConversationId, Cost, Message, Timestamp, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Notice;

/// A document that is stored with a conversation under a fixed key.
pub(crate) trait StateDocument: Serialize + DeserializeOwned {
    /// The key under which the store holds the document.
    const KEY: &'static str;
}

/// Implements [`StateDocument`] for each document of a conversation, and lists all keys.
macro_rules! conversation_documents {
    ($($document:ty => $key:expr),* $(,)?) => {
        $(impl StateDocument for $document {
            const KEY: &'static str = $key;
        })*
        /// The keys of all documents of a conversation.
        const CONVERSATION_KEYS: &[&str] = &[$($key),*];
    };
}

conversation_documents! {
    // Decisions of one request that apply to the next.
    Cleared => "cleared",
    Carried => "carried",
    SentPolicy => "policy",
    SentEdits => "edited",
    SentDescriptions => "active_context",
    ToolDescriptions => "steady_tools",
    SentPlace => "place",
    TokenizerFactors => "tokenizer_factors",
    PlanModeNotice => "plan_told",
    // The provider's cache over time.
    KeepAliveLog => "keep_alives",
    CacheLifetimes => "cache_lifetimes",
    BoughtLifetime => "bought_lifetime",
    // The state of summaries.
    FailedSummaries => "failed_summaries",
    SummaryStandIn => "stand_in",
    // Descriptions of images.
    ImageDescriptions => "image_descriptions",
    // Notes of the user and the model.
    Edits => "edits",
    Marks => "marks",
    TodoItems => TodoItems::KEY,
    UsefulRanges => UsefulRanges::KEY,
    // Agents and tasks that were started.
    ChildConversations => "subagents",
    EndedTasks => "background_tasks",
}

/// The hash of the policy that the last request was built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentPolicy(pub(crate) ContentHash);

/// The hash of the edits applied to the last request; `None` if there were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentEdits(pub(crate) Option<ContentHash>);

/// The descriptions of the project's folders in the last request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentDescriptions(pub(crate) Option<String>);

/// The part of the conversation's requests that states the working folder. Missing in
/// conversations of earlier versions, whose system message states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SentPlace(pub(crate) StatedPlace);

/// The description under which each declared tool was first sent to the model, by tool name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ToolDescriptions(pub(crate) BTreeMap<String, ToolDescription>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolDescription {
    /// The declaration from which the description was created. If the declaration changes, the
    /// description is discarded.
    pub(crate) declared_by: String,
    pub(crate) description: String,
}

/// The ratio of a model's own token count to the local count, by model, learned from replies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct TokenizerFactors(pub(crate) BTreeMap<String, f64>);

/// True if the model was last informed that plan mode is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PlanModeNotice(pub(crate) bool);

/// The newest keep-alive requests, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KeepAliveLog {
    pub(crate) requests: Vec<KeepAliveRecord>,
}

impl KeepAliveLog {
    /// The maximum number of requests that are kept.
    const MAX_REQUESTS: usize = 500;

    /// Adds a request, and removes the oldest one if there are too many.
    pub(crate) fn push(&mut self, request: KeepAliveRecord) {
        if self.requests.len() >= Self::MAX_REQUESTS {
            self.requests.remove(0);
        }
        self.requests.push(request);
    }
}

/// A keep-alive request that was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepAliveRecord {
    pub sent_at: Timestamp,
    /// The work that the pause waited for.
    pub pending: PendingWork,
    pub usage: Usage,
    /// The cost, if the price of the model is known.
    pub cost: Option<Cost>,
}

/// Reads the keep-alive requests of a conversation, oldest first. Returns none if the stored list
/// is not readable.
pub async fn read_keep_alives(
    store: &dyn Store,
    id: &ConversationId,
) -> Result<Vec<KeepAliveRecord>, StoreError> {
    let log = read_document::<KeepAliveLog>(store, id).await?;
    Ok(log.and_then(Result::ok).unwrap_or_default().requests)
}

/// The billed reads that confirm or contradict the declared lifetimes of cache entries, by model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CacheLifetimes(pub(crate) BTreeMap<String, LifetimeEvidence>);

/// The lifetime of the cache entries that the last request wrote, such as `1h`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct BoughtLifetime(pub(crate) String);

/// The number of consecutive summaries that failed or were rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FailedSummaries(pub(crate) u32);

/// The message that is sent in place of a summary that could not be created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SummaryStandIn(pub(crate) Option<Message>);

/// Descriptions of images, by the hash of their data, for models that accept no images.
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
    /// The agent's name in its definition.
    pub(crate) agent: String,
    /// The call that started the agent.
    pub(crate) call_id: String,
}

/// Reports of background tasks that ended too late to be announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EndedTasks(pub(crate) Vec<TaskReport>);

/// The documents of a conversation as they were when it was opened. Each document is taken once, by
/// the part of the session that owns the document afterwards.
#[derive(Debug, Default)]
pub(crate) struct StoredState {
    documents: BTreeMap<String, Value>,
    /// Notices to the user about documents that cannot be parsed.
    notices: Vec<Notice>,
}

impl StoredState {
    /// Reads all documents of a conversation at once.
    pub(crate) async fn read(store: &dyn Store, id: &ConversationId) -> Result<Self, StoreError> {
        let documents = store.states(id, CONVERSATION_KEYS).await?;
        Ok(Self {
            documents,
            notices: Vec::new(),
        })
    }

    /// Removes a document from this state and returns its JSON, or `None` if it is missing.
    fn take_json<T: StateDocument>(&mut self) -> Option<Value> {
        self.documents.remove(T::KEY)
    }

    /// Takes a document. Returns `None` if the document is missing or cannot be parsed. An
    /// unreadable document is not an error, because it only records how an earlier request was
    /// built; the user gets a notice.
    pub(crate) fn take<T: StateDocument>(&mut self) -> Option<T> {
        let value = self.take_json::<T>()?;
        serde_json::from_value(value)
            .map_err(|error| self.note_unreadable(T::KEY, &error))
            .ok()
    }

    /// Takes a document that stays in memory and whose changes are written to `store`. A document
    /// that cannot be parsed is empty in memory, and the user gets a notice.
    pub(crate) fn take_kept_document<T: StateDocument + Clone + Default>(
        &mut self,
        store: &Arc<dyn Store>,
        id: &ConversationId,
    ) -> KeptDocument<T> {
        let stored = self.take_json::<T>();
        let store = Arc::clone(store);
        let (document, error) = KeptDocument::from_stored(store, id.clone(), T::KEY, stored);
        if let Some(error) = error {
            self.note_unreadable(T::KEY, &error);
        }
        document
    }

    /// Logs that a document is ignored, and adds a notice for the user.
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

    /// Removes and returns the notices for the user.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

/// The key of the project's document that is stored once the user has been informed that new
/// conversations have [`SentPlace`].
const PLACE_NOTICE_KEY: &str = "place_notice";

/// Returns true if the project's current conversation was sent by a version that stated the working
/// folder in the system message, and the user has not been informed yet that new conversations
/// differ. Later calls for the project return false.
pub(crate) async fn begin_place_notice(
    store: &dyn Store,
    namespace: &str,
) -> Result<bool, StoreError> {
    let Some(current) = store.current_conversation(namespace).await? else {
        return Ok(false);
    };
    let sent = store
        .states(&current, &[SentPolicy::KEY, SentPlace::KEY])
        .await?;
    let place = sent.get(SentPlace::KEY).cloned();
    let place = place.and_then(|place| serde_json::from_value(place).ok());
    let is_earlier = sent.contains_key(SentPolicy::KEY)
        && match place {
            Some(SentPlace(StatedPlace::AfterDocuments)) => false,
            Some(SentPlace(StatedPlace::System)) | None => true,
        };
    if !is_earlier
        || store
            .project_state(namespace, PLACE_NOTICE_KEY)
            .await?
            .is_some()
    {
        return Ok(false);
    }
    store
        .set_project_state(namespace, PLACE_NOTICE_KEY, Value::Bool(true))
        .await?;
    Ok(true)
}

/// A sub-agent that a conversation has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildAgent {
    /// The agent's name in its definition.
    pub name: String,
    pub conversation: ConversationId,
}

/// Returns the sub-agents that a conversation has started, oldest first. A stored list that cannot
/// be parsed is empty.
pub async fn list_child_agents(
    store: &dyn Store,
    id: &ConversationId,
) -> Result<Vec<ChildAgent>, StoreError> {
    let stored = read_document::<ChildConversations>(store, id).await?;
    let ChildConversations(children) = stored.and_then(Result::ok).unwrap_or_default();
    let agent = |child: ChildConversation| ChildAgent {
        name: child.agent,
        conversation: child.conversation,
    };
    Ok(children.into_iter().map(agent).collect())
}

/// Reads the current version of a document from the store, or returns `None` if it is not stored.
pub(crate) async fn read_document<T: StateDocument>(
    store: &dyn Store,
    id: &ConversationId,
) -> Result<Option<Result<T, serde_json::Error>>, StoreError> {
    Ok(store.state(id, T::KEY).await?.map(serde_json::from_value))
}

/// Stores a document with the conversation, replacing the previous version.
pub(crate) async fn write_document<T: StateDocument>(
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

/// Like [`write_document`], but masks secrets in the document first.
pub(crate) async fn write_masked_document<T: StateDocument>(
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
