//! The trait every place for conversations implements.

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

/// What came of [`Store::swap_project_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The new document is kept.
    Done,
    /// Someone else changed the document first: read it again.
    Overtaken,
}

/// What came of [`Store::import`].
#[derive(Clone, Debug, PartialEq)]
pub enum Imported {
    /// It was not there before.
    New(Conversation),
    /// All its messages were there already; nothing was written.
    Same(Conversation),
    /// It was there, and these newest messages were not.
    Grown {
        /// The conversation as it is now.
        conversation: Conversation,
        /// How many messages were appended.
        added: u64,
    },
}

/// Keeps conversations.
///
/// What a write acknowledged is durable: it survives a kill and a power cut. Writes take effect in
/// the order they were asked for, and go through even when the future is dropped. Reading an
/// unknown conversation is no error, writing to one is [`StoreError::UnknownConversation`]; one in
/// the trash is unknown to all but [`restore`](Self::restore) and [`ConversationScope::Trash`]. The
/// empty namespace is [`DEFAULT_NAMESPACE`](crate::DEFAULT_NAMESPACE).
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a conversation with its first messages: all of it or nothing.
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError>;

    /// The conversation with exactly this id.
    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// The conversation a person means by `text`: an exact id anywhere, else an id that begins so
    /// or an exact name within the scope.
    async fn find(
        &self,
        text: &str,
        scope: ConversationScope<'_>,
    ) -> Result<ConversationMatch, StoreError>;

    /// The conversations of a scope, last used first.
    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError>;

    /// Takes the right to write to a conversation, which may not exist yet. While somebody else has
    /// it, this waits, and so do single writes of those who have not; after the lock timeout it
    /// is [`StoreError::LockTimeout`], which names the holder.
    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError>;

    /// The same, hardly waiting for whoever has it.
    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError>;

    /// Appends a message. On [`StoreError::MessageIdTaken`] nothing was stored and another id is to
    /// be drawn.
    async fn append(&self, id: &ConversationId, message: &Message) -> Result<(), StoreError>;

    /// Changes a stored message by a new revision, and gives it as it is now.
    async fn update(
        &self,
        id: &ConversationId,
        message: MessageId,
        revision: Revision,
    ) -> Result<Message, StoreError>;

    /// The messages of a conversation, in order, each in its newest revision.
    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError>;

    /// The same for whoever keeps them in memory, as a session does: they are not kept by the store
    /// a second time.
    async fn stored_messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError>;

    /// At most so many messages up to `end`: a long conversation is read from its tail, and what
    /// lies before on demand.
    async fn page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError>;

    /// The same as stored, past all memory.
    async fn stored_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError>;

    /// Gives a conversation another name.
    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError>;

    /// Puts a conversation into the trash. Its forks keep what they share with it.
    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError>;

    /// Takes a conversation out of the trash.
    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError>;

    /// Makes a conversation that begins with the messages of another one, in the same namespace.
    /// They are shared, not copied: what it costs does not depend on how many there are. From
    /// then on neither notices what becomes of the other.
    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError>;

    /// The messages that hold all these words, best first; before them the conversations whose name
    /// or description do.
    async fn search(&self, query: SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError>;

    /// Notes something learnt about a stored message.
    async fn note(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError>;

    /// What was noted, in order.
    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError>;

    /// The document kept under `key`, such as the TODO list.
    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError>;

    /// The documents kept under these keys, as one reading of the store finds them. A key without a
    /// document is left out.
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

    /// Keeps a document under `key`, in place of the one before.
    async fn set_state(
        &self,
        id: &ConversationId,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError>;

    /// The document a namespace keeps under `key` for all its conversations, such as the folder
    /// notes of a project.
    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError>;

    /// Keeps a document for a namespace, in place of the one before.
    async fn set_project_state(
        &self,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError>;

    /// Keeps a document for a namespace if the one there is still `before`; otherwise nothing is
    /// written. Several processes share a namespace, and an edit must not undo another's.
    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError>;

    /// Logs a request and gives its number, from 1. The log holds the difference to the
    /// conversation's request before; finding it is not the caller's work and does not delay
    /// the caller. Queued when this returns: awaiting is optional.
    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64>;

    /// The logged requests of a conversation, in order.
    async fn requests(&self, id: &ConversationId) -> Result<Vec<RequestSummary>, StoreError>;

    /// The logged requests of a conversation with the outline of every message, in order. One pass
    /// over the log; no message is read.
    async fn request_outlines(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestOutline>, StoreError>;

    /// A logged request with every message it held.
    async fn request(
        &self,
        id: &ConversationId,
        number: u64,
    ) -> Result<Option<LoggedRequest>, StoreError>;

    /// The conversation last made current in a namespace.
    async fn current(&self, namespace: &str) -> Result<Option<ConversationId>, StoreError>;

    /// Makes a conversation the current one of a namespace.
    async fn set_current(&self, namespace: &str, id: &ConversationId) -> Result<(), StoreError>;

    /// Every namespace that has a conversation or a current one, by name.
    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError>;

    /// The whole conversation as one document, as it was at one moment.
    async fn export(&self, id: &ConversationId)
    -> Result<Option<ConversationDocument>, StoreError>;

    /// Takes a document in as a conversation with its id and times. Where the conversation is there
    /// already, messages that follow those it has are appended; one that went another way is
    /// [`StoreError::IdTaken`].
    async fn import(
        &self,
        document: ConversationDocument,
        namespace: &str,
    ) -> Result<Imported, StoreError> {
        let id = document.id.clone();
        // Most imports are new ones; the copy of the others is small beside writing them.
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
            self.append(&id, message).await?;
        }
        match (new.len() as u64, self.get(&id).await?) {
            (0, _) | (_, None) => Ok(Imported::Same(before)),
            (added, Some(conversation)) => Ok(Imported::Grown {
                conversation,
                added,
            }),
        }
    }

    /// What this store has done since it was opened.
    fn statistics(&self) -> StoreStatistics;

    /// What the store holds.
    async fn totals(&self) -> Result<Totals, StoreError>;

    /// Waits for all writes asked for so far; tells what went wrong with those nobody waited for.
    async fn flush(&self) -> Result<(), StoreError>;
}
