//! The engine's side of the ports through which tools reach the conversation, one file each.
//!
//! Everything here is kept in the store and has a copy in memory, so that building a request reads
//! no database.

mod children;
mod knowledge;
mod marks;
mod skills;
mod transcript;

pub(crate) use children::Children;
pub(crate) use knowledge::{Knowledge, SharedKnowledge};
pub use marks::StoredMarks;
pub(crate) use skills::{FoundSkills, SkillWatch};
