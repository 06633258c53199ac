//! The failures of a store, distinguished by how the caller can react.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use haft_types::{ConversationId, MessageId};

use crate::lock::{Holder, Locked};

/// The reason why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another conversation already has this id.
    #[error("conversation id `{id}` is taken; choose another one")]
    IdTaken {
        /// The id that is taken.
        id: ConversationId,
    },

    /// The id is empty or contains control characters.
    #[error("`{}` cannot be a conversation id: it must not be empty or hold control characters", .id.as_str().escape_debug())]
    InvalidId {
        /// The rejected id.
        id: ConversationId,
    },

    /// No conversation has this id.
    #[error("there is no conversation `{id}`")]
    UnknownConversation {
        /// The unknown id.
        id: ConversationId,
    },

    /// The conversation has no message with this id.
    #[error("conversation `{conversation}` has no message `{message}`")]
    UnknownMessage {
        /// The id of the conversation.
        conversation: ConversationId,
        /// The id that was not found in the conversation.
        message: MessageId,
    },

    /// The conversation already contains a message with this id, or with an id that begins with the
    /// same eight digits. The caller can retry with another id.
    #[error(
        "message id `{message}` is taken in conversation `{conversation}` by `{taken_by}`; draw another one"
    )]
    MessageIdTaken {
        /// The id of the conversation.
        conversation: ConversationId,
        /// The id of the message that was not stored.
        message: MessageId,
        /// The id of the stored message; equal to `message` if that message is already stored.
        taken_by: MessageId,
    },

    /// Another process held a lock for longer than the lock timeout.
    #[error("{what} stayed locked by {} for {} s; wait for it to finish, then try again", holder_name(.holder.as_ref()), .waited.as_secs_f64())]
    LockTimeout {
        /// The conversation or database whose lock was held.
        what: Locked,
        /// The process that held the lock, if known.
        holder: Option<Holder>,
        /// The time that this process waited for the lock.
        waited: Duration,
    },

    /// The operation requires that no other process has the database open.
    #[error("{} is open in another process; end it, then try again", .path.display())]
    InUse {
        /// The path of the database.
        path: PathBuf,
    },

    /// The name is empty or contains control characters.
    #[error("`{}` cannot be the name of a conversation: it must not be empty or hold control characters", .name.escape_debug())]
    InvalidName {
        /// The rejected name.
        name: String,
    },

    /// The search query contains no word.
    #[error("`{text}` holds no word to search for")]
    EmptySearch {
        /// The rejected query.
        text: String,
    },

    /// The address of the server cannot be parsed.
    #[error("`store.url` is `{address}`, which is no address of a server: {problem}")]
    BadAddress {
        /// The address, without its password.
        address: String,
        /// The reason why the address cannot be parsed.
        problem: String,
    },

    /// The file is not a haft database.
    #[error("{} is not a haft database; move it away or choose another file", .path.display())]
    NotADatabase {
        /// The path of the file.
        path: PathBuf,
    },

    /// A newer version of haft wrote the database.
    #[error("{} has format {found}, this haft knows formats up to {known}; use a newer haft", .path.display())]
    NewerFormat {
        /// The path of the database.
        path: PathBuf,
        /// The format version of the database.
        found: u32,
        /// The newest format version that this version of haft supports.
        known: u32,
    },

    /// The content of the database is invalid.
    #[error("{} is damaged: {detail}; restore it from a backup", .path.display())]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// A description of the damage.
        detail: String,
    },

    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The failed operation, as an infinitive for the error message.
        action: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The operating system could not start a thread.
    #[error("cannot start the thread `{name}`: {source}")]
    Thread {
        /// The name of the thread.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },

    /// A value cannot be represented as JSON.
    #[error("cannot write {what} as JSON: {source}")]
    Encoding {
        /// A name for the value, used in the error message.
        what: &'static str,
        /// The error of the serializer.
        source: serde_json::Error,
    },

    /// Any other error of the database.
    #[error("the database {} failed: {source}", .path.display())]
    Database {
        /// The path of the database.
        path: PathBuf,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The store was shut down, or its thread ended.
    #[error("the conversation store is closed; open it again")]
    Closed,
}

fn holder_name(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
}
