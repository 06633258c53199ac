//! Conversations that cannot be lost: the [`Store`] trait and its implementation on embedded
//! SQLite.
//!
//! When a write returns, it survives a kill and a power cut. A message row is written once and
//! never changed; what is learnt later is a row of its own. Appending costs the same at the
//! hundredth and at the hundred-thousandth message.
//!
//! This crate makes no ids and reads no wall clock, environment or home folder: ids come in with
//! the values, the time through [`haft_types::Clock`], the place as a path. It knows nothing of
//! turns, tools or models beyond the values it keeps.
//!
//! Read first: [`Store`] (what can be done), [`NewConversation`], [`StoreError`], [`SqliteStore`];
//! Who writes another store finds its parts in [`backend`], and with the feature `conformance` the
//! checks it must pass.

pub mod backend;
mod backup;
mod cache;
mod config;
#[cfg(feature = "conformance")]
#[path = "../tests/conformance/suite.rs"]
pub mod conformance;
mod conversation;
mod document;
mod encoding;
mod error;
mod fact;
mod lock;
mod log;
mod message;
mod pending;
mod request_log;
mod search;
mod sqlite;
mod statistics;
mod store;
mod worker;

pub use backup::Backup;
pub use config::StoreConfig;
pub use conversation::{
    Conversation, ConversationMatch, ConversationRow, ConversationScope, DEFAULT_NAMESPACE,
    Namespace, NewConversation, NewFork, Times,
};
pub use document::ConversationDocument;
pub use error::StoreError;
pub use fact::Fact;
pub use lock::{Holder, Locked, WriteLock};
pub use message::{MessagePage, PageEnd, Revision};
pub use pending::PendingWrite;
pub use request_log::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary, SentRequest};
pub use search::{HitMessage, SearchHit, SearchQuery, Snippet};
pub use sqlite::{Backups, SqliteStore, damaged_copies, database};
pub use statistics::{StoreStatistics, Totals};
pub use store::{Imported, Store, Swap};
