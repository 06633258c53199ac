//! Implements the ports through which tools access the conversation. Each file contains one port.
//!
//! All data of these ports is stored, with a copy in memory, so that building a request reads no
//! database.

mod children;
mod knowledge;
mod marks;
mod skills;
mod transcript;

pub(crate) use children::Children;
pub(crate) use knowledge::{Knowledge, SharedKnowledge};
pub use marks::StoredMarks;
pub(crate) use skills::{FoundSkills, SkillWatch};
