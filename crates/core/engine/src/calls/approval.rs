//! The interface for asking the user: for approval before a call runs, and for forms that servers
//! send during a call.

use async_trait::async_trait;
use haft_permission::PartVerdict;
use haft_types::{Form, FormOutcome};
use serde_json::Value;

/// A call that waits for the user's approval.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The calling agent: `main`, or a sub-agent's name.
    pub agent: String,
    pub tool: String,
    pub arguments: Value,
    /// The complete text of the command or of the content to be written. The text comes from the
    /// model: sanitize it before printing it to a terminal.
    pub subject: String,
    /// All reasons why the call needs approval.
    pub reason: String,
    /// True if the call would run outside the available sandbox.
    pub leaves_sandbox: bool,
    /// The permission decision on each part of a command line.
    pub parts: Vec<PartVerdict>,
    /// The rules that the answer "always" would add; empty if no rule can allow the call.
    pub remember: Vec<String>,
}

/// The user's answer to an [`Approval`].
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalReply {
    /// Allows this call only.
    Once,
    /// Allows this call only, with other arguments. Deny rules still apply.
    Changed { arguments: Value },
    /// Allows the call from now on, by saving the rules in [`Approval::remember`].
    Always,
    /// Allows the call from now on, by saving rules that the user wrote.
    AlwaysBy { rules: Vec<String> },
    /// Allows the call until the session ends, by the rules in [`Approval::remember`]. Nothing is
    /// written to a file.
    Session,
    /// Denies the call.
    No {
        /// The explanation for the model; may be empty.
        reason: String,
    },
}

/// A front end that can ask the user. Without an approver, calls that need approval are denied and
/// forms are declined.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Shows the approval and waits for the answer. The future is dropped if the run is canceled.
    async fn ask(&self, approval: &Approval) -> ApprovalReply;

    /// Shows a form that an MCP server sends during a call, and waits for the answers. The future
    /// is dropped if the call is dropped. The default implementation declines.
    async fn fill_form(&self, _form: &Form) -> FormOutcome {
        FormOutcome::Declined
    }

    /// Writes allow rules to the user's configuration.
    async fn save_rules(&self, rules: &[String]) -> Result<(), String>;
}
