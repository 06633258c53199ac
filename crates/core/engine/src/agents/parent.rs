//! The values that sub-agents inherit from the session that starts them.

use std::sync::Arc;

use futures::future::BoxFuture;
use haft_store::Store;
use haft_tool::{AgentReport, ChangeRecords, ChangeWatch};
use haft_tools::{ProjectCopies, Running};
use haft_types::{Clock, ConversationId, Event, IdSource, TokenCounter};
use tokio::sync::mpsc::UnboundedSender;

use super::child_start::ChildStart;
use super::hub::{Hub, Mailbox};
use crate::budget::shared_budget::SharedBudget;
use crate::calls::permit::Permit;
use crate::ports::{Children, Reads, SharedKnowledge, StoredTodo};
use crate::session::config::SessionConfig;
use crate::session::model_opener::ModelOpener;

/// Distinguishes the main session from the sessions of sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The session that the user talks to.
    Main,
    /// A session that another session started.
    Sub,
}

/// The type of the function that opens and runs one sub-agent.
pub(crate) type RunChild = fn(Arc<ParentSession>, ChildStart) -> BoxFuture<'static, AgentReport>;

/// Everything that sub-agents inherit from the session that starts them.
pub(crate) struct ParentSession {
    /// Runs a sub-agent. A function pointer, so that the roster, which is part of a session,
    /// doesn't depend on the code that opens sessions.
    pub(crate) run_child: RunChild,
    pub(crate) config: SessionConfig,
    pub(crate) conversation: ConversationId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) changes: Arc<dyn ChangeRecords>,
    pub(crate) copies: Option<Arc<dyn ProjectCopies>>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) models: ModelOpener,
    pub(crate) hub: Arc<Hub>,
    /// Used to create the sub-agent's own set of running programs.
    pub(crate) running: Arc<Running>,
    pub(crate) todo: Arc<StoredTodo>,
    /// Files that the session has read. Sub-agents get the notes on those files' folders.
    pub(crate) reads: Arc<Reads>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) children: Arc<Children>,
    pub(crate) permit: Arc<Permit>,
    pub(crate) recorded: Arc<dyn ChangeWatch>,
    pub(crate) budget: SharedBudget,
    pub(crate) events: UnboundedSender<Event>,
    /// Held while a sub-agent's copy of the project is created or merged.
    pub(crate) merging: tokio::sync::Mutex<()>,
}

/// The values that one sub-agent inherits besides its configuration and services.
pub(crate) struct ParentLink {
    pub(crate) todo: Arc<StoredTodo>,
    pub(crate) reads: Arc<Reads>,
    pub(crate) knowledge: SharedKnowledge,
    pub(crate) permit: Arc<Permit>,
    /// Records file changes for the parent; `None` if the sub-agent works in a copy of the project.
    pub(crate) recorded: Option<Arc<dyn ChangeWatch>>,
    pub(crate) budget: SharedBudget,
    pub(crate) mailbox: Mailbox,
    /// The agent that waits for the sub-agent, and therefore reads no messages meanwhile.
    pub(crate) waiting: Option<String>,
}

/// Returns the namespace of sub-agents' conversations. Keeping it separate from the project's
/// namespace prevents a sub-agent's conversation from becoming the current one.
pub(crate) fn child_namespace(namespace: &str) -> String {
    format!("{namespace}#agents")
}
