//! How a request is built: what stands in it, in which order and where.
//!
//! ```text
//! stored messages ─► blocks ─► rounds (the line every step works on) ─► layers ─► placement, or the execute view ─► integrity
//!                    system, documents, reminders, hints: what is sent besides
//! ```

pub(crate) mod active;
pub(crate) mod blocks;
pub(crate) mod copies;
pub(crate) mod documents;
pub(crate) mod hints;
pub(crate) mod input;
pub(crate) mod integrity;
pub(crate) mod layers;
pub(crate) mod placement;
pub(crate) mod reminders;
pub(crate) mod rounds;
pub(crate) mod system;
pub(crate) mod transcript;
pub(crate) mod view;
pub(crate) mod vision;
