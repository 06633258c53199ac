//! Implements the ports through which tools access the conversation, one file each.
//!
//! All data here is stored, with a copy in memory, so that building a request reads no database.

mod children;
mod document;
mod knowledge;
mod marks;
mod notes;
mod reads;
mod skills;
mod todo;
mod tokens;
mod transcript;
mod useful;

pub(crate) use children::Children;
pub(crate) use knowledge::{Knowledge, KnowledgeServices, SharedKnowledge};
pub use marks::StoredMarks;
pub use notes::StoredNotes;
pub(crate) use reads::Reads;
pub(crate) use skills::{FoundSkills, SkillWatch};
pub(crate) use todo::StoredTodo;
pub(crate) use tokens::ModelTokens;
pub use useful::StoredUseful;
