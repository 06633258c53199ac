//! The context engine: from a conversation to the next request, and an account of it.
//!
//! Everything here is a pure function. This crate is not async and reads no clock, file, environment or network: what it
//! needs comes in with the [`Snapshot`], what it decides comes out with the [`Assembly`]. The same snapshot gives the same
//! request, byte for byte.
//!
//! Read first: [`assemble`] (the whole way), [`Snapshot`] (what goes in), [`Account`] (what comes out besides the request).

mod account;
mod assemble;
mod blocks;
mod boundaries;
mod budget;
mod compaction;
mod compress;
mod documents;
mod error;
mod hints;
mod integrity;
mod ladder;
mod layers;
mod marks;
mod memo;
mod placement;
mod policy;
mod prefix;
mod pricing;
mod prune;
mod reminders;
mod rounds;
mod safe_zone;
mod snapshot;
mod system;
mod transcript;
mod view;

#[cfg(test)]
mod testing;

pub use account::{Account, Assembly, Warning};
pub use assemble::assemble;
pub use blocks::{Blocks, Repair, interrupted, repair};
pub use budget::Budget;
pub use compaction::{CompactionPlan, compaction_due, plan_compaction, summary_message, summary_request};
pub use compress::{Compress, CompressLimits, compress};
pub use documents::{Document, DocumentKind, Documents, Need};
pub use error::ContextError;
pub use hints::{MessageIds, strip_hints};
pub use integrity::IntegrityError;
pub use ladder::LadderStep;
pub use marks::{MarkAction, MarkReport, Marks};
pub use memo::Memo;
pub use placement::{Place, UnknownPlace};
pub use policy::Policy;
pub use prefix::{Break, Cause, Prefix, Sent, SentSegment};
pub use prune::Cleared;
pub use reminders::{
    FolderNotes, ListOwner, MissingRole, Progress, Reminders, RoleParts, Todo, UsefulRange, check_subagent_role,
    folder_notes_text, todo_text, useful_text,
};
pub use safe_zone::{SafeZone, SafeZoneError};
pub use snapshot::Snapshot;
pub use system::{Environment, RoleText, SystemInput, render_system, system_entry};
pub use transcript::transcript;
pub use view::{ExecutionState, PlanStep, View};
