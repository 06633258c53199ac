//! The trait that every store of conversations implements.

use std::collections::BTreeMap;

use async_trait::async_trait;
use haft_types::{ConversationId, Message, MessageId};
use serde_json::Value;

use crate::conversation::{
    Conversation, ConversationMatch, ConversationRow, ConversationScope, Namespace,
    NewConversation, NewFork,
};
use crate::document::ConversationDocument;
use crate::error::StoreError;
use crate::fact::Fact;
use crate::lock::WriteLock;
use crate::message::{MessagePage, PageEnd, Revision};
use crate::pending::PendingWrite;
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};
use crate::search::{SearchHit, SearchQuery};
use crate::statistics::{StoreStatistics, Totals};

/// The result of [`Store::swap_project_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The new document is stored.
    Done,
    /// Another writer changed the document first. The caller must read the document again.
    Overtaken,
}

/// The result of [`Store::import`], with the conversation after the import.
#[derive(Clone, Debug, PartialEq)]
pub enum Imported {
    /// The conversation did not exist before.
    New(Conversation),
    /// The store already contained every message of the document; nothing was written.
    Same(Conversation),
    /// The conversation existed, and messages were appended to it.
    Grown {
        /// The conversation after the import.
        conversation: Conversation,
        /// The number of messages that were appended.
        added: u64,
    },
}

/// A store of conversations, with their messages, states and logged requests.
///
/// A write that has returned is durable: it survives a kill and a power cut. Writes take effect in
/// the order in which they were requested, and are carried out even if the future is dropped.
/// Reading an unknown conversation returns nothing; writing to an unknown conversation fails with
/// [`StoreError::UnknownConversation`]. A conversation in the trash is unknown to all methods
/// except [`restore`](Self::restore) and queries with [`ConversationScope::Trash`]. The empty
/// namespace is [`DEFAULT_NAMESPACE`](crate::DEFAULT_NAMESPACE).
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a conversation with its first messages. If the operation fails, nothing is stored.
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError>;

    /// Returns the conversation with exactly this id; `None` if it does not exist or is in the
    /// trash.
    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// Finds a conversation by a text that a user typed. The text may be an exact id in any
    /// namespace; otherwise, it is matched with the beginnings of ids and with exact names within
    /// the scope.
    async fn find_conversation(
        &self,
        text: &str,
        scope: ConversationScope<'_>,
    ) -> Result<ConversationMatch, StoreError>;

    /// Returns the conversations of a scope, most recently used first.
    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError>;

    /// Takes the write lock of a conversation, which need not exist yet. Waits while another
    /// process holds the lock, as does every write that is made without the lock. After the lock
    /// timeout, fails with [`StoreError::LockTimeout`], which names the holder.
    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError>;

    /// Like [`Self::lock`], but waits at most a fraction of a second if another process holds the
    /// lock.
    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError>;

    /// Appends a message. If this fails with [`StoreError::MessageIdTaken`], nothing was stored,
    /// and the caller can retry with another id.
    async fn append_message(
        &self,
        id: &ConversationId,
        message: &Message,
    ) -> Result<(), StoreError>;

    /// Stores a new revision of a message and returns the revised message.
    async fn revise_message(
        &self,
        id: &ConversationId,
        message: MessageId,
        revision: Revision,
    ) -> Result<Message, StoreError>;

    /// Returns the messages of a conversation, in order, each in its newest revision.
    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError>;

    /// Like [`Self::messages`], but bypasses the cache, for callers that keep the messages in
    /// memory themselves.
    async fn uncached_messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError>;

    /// Returns at most `most` messages, ending at `end`. Callers can read the newest messages of a
    /// long conversation first, and earlier messages on demand.
    async fn message_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError>;

    /// Like [`Self::message_page`], but bypasses the cache.
    async fn uncached_message_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError>;

    /// Changes the name of a conversation.
    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError>;

    /// Moves a conversation to the trash. Forks of the conversation keep the messages that they
    /// share with it.
    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError>;

    /// Moves a conversation from the trash back to its namespace.
    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError>;

    /// Creates a conversation in the namespace of another conversation and with the beginning of
    /// its messages. The messages are shared rather than copied, so the cost does not depend on
    /// their number. Later changes to either conversation don't affect the other.
    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError>;

    /// Returns the best matches for a query. Conversations whose name or description contains all
    /// words come first, followed by messages that contain all words.
    async fn search(&self, query: SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError>;

    /// Records a fact about a stored message.
    async fn add_fact(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError>;

    /// Returns the facts about the messages of a conversation, in the order in which they were
    /// recorded.
    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError>;

    /// Returns the JSON document that the conversation stores under `key`, such as the TODO list.
    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError>;

    /// Returns the JSON documents that the conversation stores under `keys`, in a consistent
    /// snapshot. Keys without a document are omitted.
    async fn states(
        &self,
        id: &ConversationId,
        keys: &[&str],
    ) -> Result<BTreeMap<String, Value>, StoreError> {
        let mut found = BTreeMap::new();
        for key in keys {
            if let Some(value) = self.state(id, key).await? {
                found.insert((*key).to_owned(), value);
            }
        }
        Ok(found)
    }

    /// Stores a JSON document of the conversation under `key`, replacing the previous document.
    async fn set_state(
        &self,
        id: &ConversationId,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError>;

    /// Returns the JSON document that a namespace stores under `key` for all its conversations,
    /// such as the notes on a project's folders.
    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError>;

    /// Stores a JSON document of a namespace under `key`, replacing the previous document.
    async fn set_project_state(
        &self,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError>;

    /// Stores a JSON document of a namespace under `key`, but only if the currently stored document
    /// equals `before`. Several processes share a namespace, and an edit by one process must not
    /// undo that of another.
    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError>;

    /// Logs a request and returns its number, counted from 1. The log stores only the difference
    /// from the previous request of the conversation. The writer thread computes the difference, so
    /// the caller is not delayed. The write is queued before this function returns; awaiting the
    /// result is optional.
    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64>;

    /// Returns the logged requests of a conversation, in order.
    async fn logged_requests(&self, id: &ConversationId)
    -> Result<Vec<RequestSummary>, StoreError>;

    /// Returns the number of logged requests of a conversation. Unlike [`Self::logged_requests`],
    /// it doesn't read the log.
    async fn count_requests(&self, id: &ConversationId) -> Result<u64, StoreError>;

    /// Returns the logged requests of a conversation, in order, with the outline of every message.
    /// Reads the log in one pass, without the content of messages.
    async fn request_outlines(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestOutline>, StoreError>;

    /// Returns a logged request with all its messages.
    async fn logged_request(
        &self,
        id: &ConversationId,
        number: u64,
    ) -> Result<Option<LoggedRequest>, StoreError>;

    /// Returns the id of a namespace's current conversation.
    async fn current_conversation(
        &self,
        namespace: &str,
    ) -> Result<Option<ConversationId>, StoreError>;

    /// Makes a conversation the current one of a namespace.
    async fn set_current_conversation(
        &self,
        namespace: &str,
        id: &ConversationId,
    ) -> Result<(), StoreError>;

    /// Returns every namespace that contains a conversation or has a current conversation, sorted
    /// by name.
    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError>;

    /// Returns the whole conversation as one document, read in a consistent snapshot.
    async fn export(&self, id: &ConversationId)
    -> Result<Option<ConversationDocument>, StoreError>;

    /// Stores a document as a conversation with the document's id and times. If the store already
    /// has the conversation, the document must begin with the stored messages, and its further
    /// messages are appended. If a stored message differs, the import fails with
    /// [`StoreError::IdTaken`].
    ///
    /// Messages with tool calls are marked as imported, so that calls without a result never run.
    async fn import(
        &self,
        document: ConversationDocument,
        namespace: &str,
    ) -> Result<Imported, StoreError> {
        let document = document.with_marked_calls();
        let id = document.id.clone();
        // Most imported conversations are new. Copying the document costs little compared with
        // writing it.
        let taken = match self
            .create(NewConversation::from_document(document.clone(), namespace))
            .await
        {
            Ok(conversation) => return Ok(Imported::New(conversation)),
            Err(taken @ StoreError::IdTaken { .. }) => taken,
            Err(other) => return Err(other),
        };
        let _lock = self.lock(&id).await?;
        let stored = self.messages(&id).await?;
        let is = |(one, other): (&Message, &Message)| {
            one.message_id == other.message_id && one.content_hash() == other.content_hash()
        };
        let Some(before) = self
            .get(&id)
            .await?
            .filter(|_| stored.iter().zip(&document.messages).all(is))
        else {
            return Err(taken);
        };
        let new = document.messages.get(stored.len()..).unwrap_or_default();
        for message in new {
            self.append_message(&id, message).await?;
        }
        match (new.len() as u64, self.get(&id).await?) {
            (0, _) | (_, None) => Ok(Imported::Same(before)),
            (added, Some(conversation)) => Ok(Imported::Grown {
                conversation,
                added,
            }),
        }
    }

    /// Returns the counts of operations since the store was opened.
    fn statistics(&self) -> StoreStatistics;

    /// Returns the number of items of each kind in the store.
    async fn totals(&self) -> Result<Totals, StoreError>;

    /// Waits for all writes requested so far. Returns the first failure of a write whose result was
    /// never awaited.
    async fn flush(&self) -> Result<(), StoreError>;
}
