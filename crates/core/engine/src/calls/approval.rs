//! The interface for asking the user: for approval before a call runs, and for forms that servers
//! send during a call.

use async_trait::async_trait;
use haft_permission::PartVerdict;
use haft_text::{show_diff_exactly, show_exactly};
use haft_types::{Form, FormOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that waits for the user's approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The calling agent: `main`, or a sub-agent's name.
    pub agent: String,
    /// The id of the call; `None` for a command that no call of the model runs, such as a hook.
    pub call_id: Option<String>,
    pub tool: String,
    pub arguments: Value,
    /// The complete text of the command or of the content to be written, as the model wrote it.
    /// Users are shown [`Approval::shown_subject`] instead.
    pub subject: String,
    pub subject_kind: SubjectKind,
    /// All reasons why the call needs approval.
    pub reason: String,
    /// True if the call would run outside the available sandbox.
    pub leaves_sandbox: bool,
    /// The permission decision on each part of a command line.
    pub parts: Vec<PartVerdict>,
    /// The rules that the answer "always" would add; empty if no rule can allow the call.
    pub remember: Vec<String>,
}

/// The format of [`Approval::subject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A command line, or the arguments of a call.
    Text,
    /// The difference that the call would make to files, as a unified diff.
    Diff,
}

impl Approval {
    /// Returns the subject in the form in which every front end shows it: complete, with every
    /// character visible and no secret masked, because a mask would hide what runs.
    pub fn shown_subject(&self) -> String {
        let shown = match self.subject_kind {
            SubjectKind::Text => show_exactly(&self.subject),
            SubjectKind::Diff => show_diff_exactly(&self.subject),
        };
        shown.into_owned()
    }

    /// Returns the reasons, with every character visible: they can contain words of the command.
    pub fn shown_reason(&self) -> String {
        show_exactly(&self.reason).into_owned()
    }

    /// Returns the rules in [`Approval::remember`], with every character visible.
    pub fn shown_rules(&self) -> Vec<String> {
        self.remember
            .iter()
            .map(|rule| show_exactly(rule).into_owned())
            .collect()
    }
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

    /// Called after the user has answered an approval in another front end. The future of
    /// [`Self::ask`] was dropped before.
    fn answered_elsewhere(&self, _approval: &Approval, _reply: &ApprovalReply) {}

    /// Writes allow rules to the user's configuration.
    async fn save_rules(&self, rules: &[String]) -> Result<(), String>;
}
