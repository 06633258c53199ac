//! The traits through which tools reach what the engine keeps and what extensions can do, one file
//! each.

mod agents;
mod buffers;
mod catalogue;
mod changes;
mod documents;
mod history;
mod post;
mod skills;
mod undo;

pub use agents::{
    AgentReport, Assignment, Evidence, StartedAgent, SubAgents, UnknownAgent, WorkOrder, WorkPlace,
};
pub use buffers::EditorBuffers;
pub use catalogue::{Patience, ToolCatalogue};
pub use changes::{CallName, ChangeRecords, ChangeWatch, RecordedCall, Unrecorded};
pub use documents::{DocumentError, DocumentFormat, DocumentReader, DocumentSource, DocumentText};
pub use history::FileHistory;
pub use post::{GroupDelivery, NotDelivered, Post};
pub use skills::{OpenedSkill, SkillShelf};
pub use undo::{ChangeUndo, UndoOutcome, UndoReport, UndoTarget, UndoneFile};

/// Why something kept could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Nothing has this id.
    #[error("there is no {what} `{id}`")]
    Unknown {
        /// What was looked for, such as `note`.
        what: &'static str,
        /// The id that was given.
        id: String,
    },
    /// It could not be read from or written to where it is kept; nothing was changed.
    #[error("{0}")]
    Store(String),
}
