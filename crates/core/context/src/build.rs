//! Builds a request: chooses its parts, their order and their positions.
//!
//! ```text
//! stored messages ─► blocks ─► rounds (the timeline that every step edits) ─► layers ─► placement, or the execute view ─► integrity
//!                    system, documents, reminders, hints: texts that haft adds
//! ```

pub(crate) mod blocks;
pub(crate) mod copies;
pub(crate) mod documents;
pub(crate) mod execute_view;
pub(crate) mod folder_description;
pub(crate) mod hints;
pub(crate) mod integrity;
pub(crate) mod layers;
pub(crate) mod mentions;
pub(crate) mod placement;
pub(crate) mod reminders;
pub(crate) mod rounds;
pub(crate) mod system;
pub(crate) mod title;
pub(crate) mod transcript;
pub(crate) mod vision;
