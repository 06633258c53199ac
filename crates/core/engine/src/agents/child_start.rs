//! The values needed to start a sub-agent.

use std::sync::Arc;
use std::time::Duration;

use haft_project::agents::AgentDefinition;
use haft_tool::{AgentReport, Assignment, FileHistory};
use haft_types::{ConversationId, Outcome, Usage};
use tokio_util::sync::CancellationToken;

use super::hub::{Company, Mailbox};
use crate::prompt::prompt_copy::PromptCopy;

/// A sub-agent that is about to start.
pub(crate) struct ChildStart {
    pub(super) agent: AgentDefinition,
    pub(super) assignment: Assignment,
    /// The agent's name in events and approvals.
    pub(super) running_as: String,
    /// The agent's mailbox, if the agent was registered in advance.
    pub(super) mailbox: Option<Mailbox>,
    pub(super) conversation: ConversationId,
    pub(super) call_id: String,
    /// The agent that waits for the new agent to end; `None` for a background agent.
    pub(super) waiting: Option<String>,
    pub(super) company: Company,
    /// The prompt that a fork copies; `None` for other agents.
    pub(super) prompt: Option<Arc<PromptCopy>>,
    /// The model of the session that starts the agent.
    pub(super) model: String,
    /// The maximum number of replies by the model.
    pub(super) turns: Option<u32>,
    pub(super) time: Duration,
    /// Saves the content of files before they change, on behalf of the call that started the agent.
    pub(super) history: Arc<dyn FileHistory>,
    pub(super) cancel: CancellationToken,
}

/// Returns the report of a sub-agent that failed before it had a conversation.
pub(super) fn failure_report(name: &str, code: &str, why: &str) -> AgentReport {
    AgentReport {
        name: name.to_owned(),
        outcome: Outcome::Failed,
        code: code.to_owned(),
        message: why.to_owned(),
        answer: String::new(),
        conversation: None,
        evidence: Vec::new(),
        merged: String::new(),
        changes: Vec::new(),
        turns: 0,
        usage: Usage::default(),
        cost: None,
    }
}
