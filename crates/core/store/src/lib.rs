//! Stores conversations durably: the [`Store`] trait and its implementation on embedded SQLite.
//!
//! A write that has returned survives a kill and a power cut. A message row is written once and
//! never changed; revisions and facts about it are separate rows. Appending the hundred-thousandth
//! message costs as much as appending the hundredth.
//!
//! This crate must not create ids or read the wall clock, the environment or the home folder: ids
//! arrive with the values, the time through [`haft_types::Clock`], the location as a path. It does
//! not know turns, tools or models beyond the values it stores.
//!
//! Read first: [`Store`] (the operations), [`NewConversation`], [`StoreError`], [`SqliteStore`].
//! [`backend`] has the parts for another implementation, and the feature `conformance` the checks
//! that it must pass.

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
mod message;
mod pending;
mod request_log;
mod search;
mod sqlite;
mod statistics;
mod store;
mod worker;
mod write_ahead_log;

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
pub use request_log::{
    ChunkMaximum, LoggedRequest, LoggedSegment, RequestOutline, RequestSummary, SegmentList,
    SentRequest, TokensByLayer,
};
pub use search::{HitMessage, SearchHit, SearchQuery, Snippet};
pub use sqlite::{Backups, SqliteStore, database, find_damaged_copies};
pub use statistics::{StoreStatistics, Totals};
pub use store::{Imported, Store, Swap};
