//! The trait every place for conversations implements.

use async_trait::async_trait;
use haft_types::{ConversationId, Message};
use serde_json::Value;

use crate::conversation::{Conversation, Found, Listed, NewConversation, Scope};
use crate::document::ConversationDocument;
use crate::error::StoreError;
use crate::fact::Fact;
use crate::pending::Pending;
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};

/// What came of [`Store::swap_project_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The new document is kept.
    Done,
    /// Someone else changed the document first: read it again.
    Overtaken,
}

/// Keeps conversations.
///
/// What a write acknowledged is durable: it survives a kill and a power cut. Writes take effect in the order they were asked
/// for, and go through even when the future is dropped. Reading an unknown conversation is no error, writing to one is
/// [`StoreError::UnknownConversation`]. The empty namespace is [`DEFAULT_NAMESPACE`](crate::DEFAULT_NAMESPACE).
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a conversation with its first messages: all of it or nothing.
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError>;

    /// The conversation with exactly this id.
    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError>;

    /// The conversation a person means by `text`: an exact id anywhere, else an id that begins so or an exact name within the scope.
    async fn find(&self, text: &str, scope: Scope<'_>) -> Result<Found, StoreError>;

    /// The conversations of a scope, last used first.
    async fn list(&self, scope: Scope<'_>) -> Result<Vec<Listed>, StoreError>;

    /// Appends a message. On [`StoreError::MessageIdTaken`] nothing was stored and another id is to be drawn.
    async fn append(&self, id: &ConversationId, message: &Message) -> Result<(), StoreError>;

    /// The messages of a conversation, in order.
    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError>;

    /// Notes something learnt about a stored message.
    async fn note(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError>;

    /// What was noted, in order.
    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError>;

    /// The document kept under `key`, such as the TODO list.
    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError>;

    /// Keeps a document under `key`, in place of the one before.
    async fn set_state(&self, id: &ConversationId, key: &str, value: Value) -> Result<(), StoreError>;

    /// The document a namespace keeps under `key` for all its conversations, such as the folder notes of a project.
    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError>;

    /// Keeps a document for a namespace, in place of the one before.
    async fn set_project_state(&self, namespace: &str, key: &str, value: Value) -> Result<(), StoreError>;

    /// Keeps a document for a namespace if the one there is still `before`; otherwise nothing is written. Several processes
    /// share a namespace, and an edit must not undo another's.
    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError>;

    /// Logs a request and gives its number, from 1. The log holds the difference to the conversation's request before;
    /// finding it is not the caller's work and does not delay the caller. Queued when this returns: awaiting is optional.
    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> Pending<u64>;

    /// The logged requests of a conversation, in order.
    async fn requests(&self, id: &ConversationId) -> Result<Vec<RequestSummary>, StoreError>;

    /// The logged requests of a conversation with the outline of every message, in order. One pass over the log; no message
    /// is read.
    async fn request_outlines(&self, id: &ConversationId) -> Result<Vec<RequestOutline>, StoreError>;

    /// A logged request with every message it held.
    async fn request(&self, id: &ConversationId, number: u64) -> Result<Option<LoggedRequest>, StoreError>;

    /// The conversation last made current in a namespace.
    async fn current(&self, namespace: &str) -> Result<Option<ConversationId>, StoreError>;

    /// Makes a conversation the current one of a namespace.
    async fn set_current(&self, namespace: &str, id: &ConversationId) -> Result<(), StoreError>;

    /// The whole conversation as one document, as it was at one moment.
    async fn export(&self, id: &ConversationId) -> Result<Option<ConversationDocument>, StoreError>;

    /// Waits for all writes asked for so far; tells what went wrong with those nobody waited for.
    async fn flush(&self) -> Result<(), StoreError>;
}
