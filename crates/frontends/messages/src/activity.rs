//! Describes what a task in the background does at the moment.

use std::fmt::Display;

use crate::MessageFile;

macro_rules! text {
    ($($message:tt)+) => { crate::message!(&FILES, $($message)+) };
}

static FILES: [MessageFile; 1] = [MessageFile::new(
    "activity",
    include_str!("../messages/en/activity.ftl"),
    include_str!("../messages/zh-CN/activity.ftl"),
)];

/// The latest activity of a task. A `call` is the headline of a tool call in one line
/// ([`crate::CallHeadline::to_line`]).
pub enum TaskActivity<'a> {
    /// The task was started.
    Start,
    /// The main agent calls a tool.
    Call(&'a str),
    /// A sub-agent calls a tool.
    AgentCall {
        /// The name of the sub-agent.
        agent: &'a str,
        /// The headline of the call.
        call: &'a str,
    },
    /// A call succeeded.
    Done(&'a str),
    /// A call failed.
    Failed(&'a str),
    /// The model is asked again, for this reason.
    Retry(&'a str),
    /// A call waits for an approval.
    Approval(&'a str),
    /// The task ended with this outcome.
    End(&'a dyn Display),
}

impl TaskActivity<'_> {
    /// Returns the activity as one line in the current language.
    pub fn to_line(&self) -> String {
        match self {
            Self::Start => text!("activity-start").to_owned(),
            Self::Call(call) => (*call).to_owned(),
            Self::AgentCall { agent, call } => text!("activity-of-agent", agent, call),
            Self::Done(call) => text!("activity-done", call),
            Self::Failed(call) => text!("activity-failed", call),
            Self::Retry(reason) => text!("activity-retry", reason),
            Self::Approval(call) => text!("activity-approval", call),
            Self::End(outcome) => text!("activity-end", outcome),
        }
    }
}
