//! A session's requests: assembled, compacted, edited, continued if the reply was cut off, and
//! remembered for the next one.

pub(crate) mod assembly;
pub(crate) mod compact;
pub(crate) mod cut;
pub(crate) mod edit;
pub(crate) mod quoted;
pub(crate) mod sent_state;
pub(crate) mod vision;
