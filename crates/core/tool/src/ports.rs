//! The traits through which tools use the engine's data and the functions of extensions.

mod agent_messages;
mod agents;
mod buffers;
mod catalogue;
mod changes;
mod documents;
mod history;
mod skills;
mod undo;

pub use agent_messages::{AgentMessenger, DeliveryError, GroupDelivery};
pub use agents::{
    AgentReport, Assignment, Evidence, StartedAgent, SubAgents, UnknownAgent, WorkOrder, WorkPlace,
};
pub use buffers::EditorBuffers;
pub use catalogue::{SourceWait, ToolCatalogue};
pub use changes::{CallName, ChangeRecords, ChangeWatch, NoChangeRecords, RecordedCall};
pub use documents::{DocumentError, DocumentFormat, DocumentReader, DocumentSource, DocumentText};
pub use history::FileHistory;
pub use skills::{OpenedSkill, SkillSource};
pub use undo::{ChangeUndo, UndoOutcome, UndoReport, UndoTarget, UndoneFile};

/// The reason why stored data could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The id does not exist.
    #[error("there is no {what} `{id}`")]
    Unknown {
        /// The kind of object that the id stands for, such as `note`.
        what: &'static str,
        /// The id that does not exist.
        id: String,
    },
    /// The storage could not be read or written; nothing was changed.
    #[error("{0}")]
    Store(String),
}
