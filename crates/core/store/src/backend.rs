//! What a store is built from: the parts that every implementation of [`Store`](crate::Store) on a
//! database shares.
//!
//! Nothing here is needed to use a store. An implementation owns its statements, its connections
//! and its locks; how values stand in columns, what a scope means, how logged requests are
//! differences, how text becomes search terms and how a thread owns a connection is the same for
//! all of them, so that one store's rows read like another's. The checks every implementation must
//! pass are in `conformance`.

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
