//! Sub-agents that work for the agent that calls a tool.

use async_trait::async_trait;
use haft_types::{Cost, Outcome, Usage};

use crate::{FileChange, ToolContext};

/// The order in which several sub-agents run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkOrder {
    /// All sub-agents run at once, and the calling agent waits for them.
    #[default]
    Parallel,
    /// The sub-agents run one after another, in the order of their assignments.
    Serial,
    /// All sub-agents run at once, while the calling agent continues.
    Background,
}

/// An agent that was started in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedAgent {
    /// The name by which other agents send messages to the agent.
    pub name: String,
    pub conversation: String,
}

/// A task for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the agent, as in its file.
    pub name: String,
    /// The instructions for the agent.
    pub task: String,
    /// The conversation of an earlier run, which the agent continues. `None` starts a new
    /// conversation.
    pub conversation: Option<String>,
    /// The place where the agent changes files. `None` selects the place given in the agent's file.
    pub place: Option<WorkPlace>,
}

/// The place where a sub-agent makes its changes to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPlace {
    /// The sub-agent changes files in the project folder.
    Project,
    /// The sub-agent changes files in a git worktree of its own. The changes are merged into the
    /// project when the sub-agent ends.
    Worktree,
}

/// A message of a sub-agent's conversation that contains a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The short id of the message, which `recall` accepts.
    pub id: String,
    /// A short description of the finding.
    pub what: String,
}

/// The result that an agent reports for its assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReport {
    /// The name of the agent, as in its assignment.
    pub name: String,
    pub outcome: Outcome,
    /// A stable name for the reason of the outcome, for programs.
    pub code: String,
    /// The reason for the outcome, for people.
    pub message: String,
    /// The agent's last text: an answer, a report or a question.
    pub answer: String,
    /// The conversation of the agent; `None` if the agent never started.
    pub conversation: Option<String>,
    /// The messages that support the answer.
    pub evidence: Vec<Evidence>,
    /// The result of merging the agent's worktree, for the model; empty if the agent worked in the
    /// project folder.
    pub merged: String,
    /// The files of the project that the merge changed.
    pub changes: Vec<FileChange>,
    /// The number of replies by the agent's model.
    pub turns: u32,
    /// The tokens of all requests by the agent.
    pub usage: Usage,
    /// The cost of all requests by the agent; `None` without prices.
    pub cost: Option<Cost>,
}

/// The error for a name that belongs to no agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`; nothing was started. There are: {}", .names.join(", "))]
pub struct UnknownAgent {
    /// The name that belongs to no agent.
    pub name: String,
    /// The names of all agents.
    pub names: Vec<String>,
}

/// Starts sub-agents.
#[async_trait]
pub trait SubAgents: Send + Sync {
    /// Returns the names of the agents that can be started, in order.
    fn agent_names(&self) -> Vec<String>;

    /// Starts the agents and waits for all of them. Returns one report per assignment, in the order
    /// of `work`; if an agent fails, the others continue. If a name is unknown, no agent is
    /// started. Canceling the call cancels all agents.
    async fn run_assignments(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent>;

    /// Starts the agents without waiting for them. Each result later becomes a message of the
    /// conversation. If a name is unknown, no agent is started.
    async fn start_assignments(
        &self,
        context: &ToolContext,
        work: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent>;
}
