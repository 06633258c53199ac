//! How a person is asked: before a call runs, and by servers in the middle of one.

use async_trait::async_trait;
use haft_permission::PartVerdict;
use haft_types::{Filled, Form};
use serde_json::Value;

/// A call that waits for a yes or no.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The agent that calls: `main`, or a sub-agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Exactly what would run or be written, whole. It comes from the model: clean it before a
    /// terminal shows it.
    pub subject: String,
    /// Why it is asked, every reason.
    pub reason: String,
    /// Whether it would run outside the sandbox there is.
    pub leaves_sandbox: bool,
    /// What each part of it came to.
    pub parts: Vec<PartVerdict>,
    /// The rules that "always" would write; none where no rule can allow it.
    pub remember: Vec<String>,
}

/// What the person said.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalReply {
    /// This once.
    Once,
    /// This once, with these arguments instead. What a rule denies stays denied.
    Changed {
        /// The arguments.
        arguments: Value,
    },
    /// From now on, by the rules of the approval.
    Always,
    /// From now on, by rules of the person's own.
    AlwaysBy {
        /// The rules.
        rules: Vec<String>,
    },
    /// By the rules of the approval until the session ends; nothing is written.
    Session,
    /// No.
    No {
        /// What the model reads; may be empty.
        reason: String,
    },
}

/// Who is asked. Without one, asking means no, and forms are declined.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Shows the approval and waits for the answer. It is dropped when the run is cancelled.
    async fn ask(&self, approval: &Approval) -> ApprovalReply;

    /// Shows a form that an MCP server sends in the middle of a call, and waits for the answers. It
    /// is dropped when the call is. Whoever cannot show one declines.
    async fn fill(&self, _form: &Form) -> Filled {
        Filled::Declined
    }

    /// Writes rules that allow where the user can read them.
    async fn remember(&self, rules: &[String]) -> Result<(), String>;
}
