//! The parts that all database implementations of [`Store`](crate::Store) share. Only
//! implementations need this module; users of a store do not.
//!
//! Each implementation has its own statements, connections and locks. Shared are the encoding of
//! values in columns, the conditions of scopes, the differences between logged requests, the
//! extraction of search terms, and the threads that own connections, so that every store interprets
//! rows alike. The checks that every implementation must pass are in `conformance`.

pub use crate::cache::MessageCache;
pub use crate::config::hide_password;
pub use crate::conversation::{OwnedScope, check_name, namespace_name};
pub use crate::encoding::{
    DamagedRow, LISTED_COLUMNS, ListedRow, MessageRow, decode_count, decode_json,
    decode_message_id, decode_time, encode_json, encode_short_id, encode_time,
};
pub use crate::message::MessageSpan;
pub use crate::request_log::delta::{RequestDelta, SegmentRef, SegmentSource, count_kept};
pub use crate::request_log::rows::{
    LastRequests, LoggedRow, OutlineReader, apply_delta, replay_rows,
};
pub use crate::search::query::SearchItem;
pub use crate::search::{
    INDEX_DELAY, extract_body_terms, extract_terms, name_snippet, parse_query,
};
pub use crate::statistics::Counters;
pub use crate::worker::{FailureConverter, Idle, IdleWork, WorkerThread};
