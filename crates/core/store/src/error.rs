//! What can go wrong in a store, by what the caller can do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use haft_types::{ConversationId, MessageId};

use crate::lock::{Holder, Locked};

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A conversation with this id exists.
    #[error("conversation id `{id}` is taken; choose another one")]
    IdTaken {
        /// The id.
        id: ConversationId,
    },

    /// The id could not be named on a command line.
    #[error("`{}` cannot be a conversation id: it must not be empty or hold control characters", .id.as_str().escape_debug())]
    InvalidId {
        /// The id.
        id: ConversationId,
    },

    /// No conversation has this id.
    #[error("there is no conversation `{id}`")]
    UnknownConversation {
        /// The id.
        id: ConversationId,
    },

    /// The conversation has no such message.
    #[error("conversation `{conversation}` has no message `{message}`")]
    UnknownMessage {
        /// The conversation.
        conversation: ConversationId,
        /// The message.
        message: MessageId,
    },

    /// A message of the conversation has the same id, or an id with the same first eight digits:
    /// draw another one.
    #[error(
        "message id `{message}` is taken in conversation `{conversation}` by `{taken_by}`; draw another one"
    )]
    MessageIdTaken {
        /// The conversation.
        conversation: ConversationId,
        /// The id that was to be stored.
        message: MessageId,
        /// The stored message; the same id if this very message is stored already.
        taken_by: MessageId,
    },

    /// Somebody else kept writing for too long.
    #[error("{what} stayed locked by {} for {} s; wait for it to finish, then try again", holder_name(.holder.as_ref()), .waited.as_secs_f64())]
    LockTimeout {
        /// What was locked.
        what: Locked,
        /// Who had it, where that is known.
        holder: Option<Holder>,
        /// How long was waited.
        waited: Duration,
    },

    /// Something can only be done while nobody else has the database open.
    #[error("{} is open in another process; end it, then try again", .path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },

    /// A conversation must be called something.
    #[error("`{}` cannot be the name of a conversation: it must not be empty or hold control characters", .name.escape_debug())]
    InvalidName {
        /// The name.
        name: String,
    },

    /// Nothing can be looked for.
    #[error("`{text}` holds no word to search for")]
    EmptySearch {
        /// What was given.
        text: String,
    },

    /// The address of a server cannot be read.
    #[error("`store.url` is `{address}`, which is no address of a server: {problem}")]
    BadAddress {
        /// The address, without its password.
        address: String,
        /// Why.
        problem: String,
    },

    /// The file belongs to something else.
    #[error("{} is not a haft database; move it away or choose another file", .path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },

    /// A newer haft wrote the database.
    #[error("{} has format {found}, this haft knows formats up to {known}; use a newer haft", .path.display())]
    NewerFormat {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },

    /// The database holds something that cannot be right.
    #[error("{} is damaged: {detail}; restore it from a backup", .path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },

    /// The file system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },

    /// The system gave no thread.
    #[error("cannot start the thread `{name}`: {source}")]
    Thread {
        /// What it was for.
        name: String,
        /// Why it failed.
        source: io::Error,
    },

    /// A value has no JSON form.
    #[error("cannot write {what} as JSON: {source}")]
    Encoding {
        /// Which value.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },

    /// The database refused for a reason that has no name here.
    #[error("the database {} failed: {source}", .path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The store has been shut down, or its thread died.
    #[error("the conversation store is closed; open it again")]
    Closed,
}

fn holder_name(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
}
