//! The building blocks of a store: the parts that all implementations of [`Store`](crate::Store) on
//! a database share.
//!
//! Using a store requires nothing from this module. Each implementation has its own statements,
//! connections and locks. Shared are the encoding of values in columns, the conditions of scopes,
//! the differences between logged requests, the extraction of search terms, and the threads that
//! own connections, so that all stores interpret rows in one way. The checks that every
//! implementation must pass are in `conformance`.

pub use crate::cache::MessageCache;
pub use crate::config::hide_password;
pub use crate::conversation::{OwnedScope, check_name, namespace_name};
pub use crate::encoding::{
    DamagedRow, LISTED_COLUMNS, ListedRow, MessageRow, decode, decode_count, decode_message_id,
    decode_time, encode, encode_short_id, encode_time,
};
pub use crate::message::MessageSpan;
pub use crate::request_log::delta::{RequestDelta, SegmentRef, SegmentSource, kept};
pub use crate::request_log::rows::{LastRequests, LoggedRow, OutlineReader, apply, replay};
pub use crate::search::query::SearchItem;
pub use crate::search::{INDEX_DELAY, name_snippet, parse_query, terms, terms_of_body};
pub use crate::statistics::Counters;
pub use crate::worker::{Explain, Idle, IdleWork, WorkerThread};
