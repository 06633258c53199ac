//! Agents that work for the one a tool is called by.

use async_trait::async_trait;
use haft_types::{Cost, Outcome, Usage};

use crate::{FileChange, ToolContext};

/// Whether sub-agents work at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkOrder {
    /// All at once.
    #[default]
    Parallel,
    /// One after another, in the order given.
    Serial,
    /// All at once, while whoever starts them goes on.
    Background,
}

/// An agent that works while whoever started it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedAgent {
    /// The name it is written to by.
    pub name: String,
    /// Its conversation.
    pub conversation: String,
}

/// A task for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Which agent.
    pub name: String,
    /// What it is to do.
    pub task: String,
    /// The conversation of an earlier run it goes on with; a new one when absent.
    pub conversation: Option<String>,
    /// Where it changes files; as its own file says when absent.
    pub place: Option<WorkPlace>,
}

/// Where a sub-agent changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPlace {
    /// In the project itself.
    Project,
    /// In a git worktree of its own; what it changed is merged into the project when it is done.
    Worktree,
}

/// A message of a sub-agent that holds what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The short id, which `recall` takes.
    pub id: String,
    /// What it is, in a few words.
    pub what: String,
}

/// What came of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentReport {
    /// The agent, as it was named in the assignment.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// A stable name for the reason.
    pub code: String,
    /// The reason for people.
    pub message: String,
    /// Its answer, report or question.
    pub answer: String,
    /// Its conversation; none when it never began.
    pub conversation: Option<String>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What became of files it changed elsewhere, for the model; empty when it worked in the
    /// project itself.
    pub merged: String,
    /// Files of the project that were changed by merging.
    pub changes: Vec<FileChange>,
    /// Replies of its model.
    pub turns: u32,
    /// Tokens of all its requests.
    pub usage: Usage,
    /// Money of all its requests; none without prices.
    pub cost: Option<Cost>,
}

/// Not the name of an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`; nothing was started. There are: {}", .names.join(", "))]
pub struct UnknownAgent {
    /// What was given.
    pub name: String,
    /// The names there are.
    pub names: Vec<String>,
}

/// Who can be given work.
#[async_trait]
pub trait SubAgents: Send + Sync {
    /// The names of the agents, in order.
    fn names(&self) -> Vec<String>;

    /// Gives out work and waits for all of it. One report for each assignment, in the order given:
    /// whoever fails does not keep the others from working. On an unknown name nothing starts.
    /// Cancelling the call cancels all of them.
    async fn run(
        &self,
        context: &ToolContext,
        order: WorkOrder,
        work: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent>;

    /// Gives out work and waits for none of it: what comes of each is a message of the conversation
    /// later. On an unknown name nothing starts.
    async fn start(
        &self,
        context: &ToolContext,
        work: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent>;
}
