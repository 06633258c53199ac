//! Builds a session's requests: assembles, compacts and edits them, continues replies that were cut
//! off, and keeps the state that later requests depend on.

pub(crate) mod assembly;
pub(crate) mod cache_lifetime;
pub(crate) mod compact;
pub(crate) mod continuation;
pub(crate) mod edit;
pub(crate) mod keep_alive;
pub(crate) mod quotes;
pub(crate) mod sent_state;
pub(crate) mod vision;
