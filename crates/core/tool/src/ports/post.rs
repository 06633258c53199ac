//! Messages between agents that run at the same time.

use async_trait::async_trait;

/// Why a message did not reach somebody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDelivered {
    /// Nobody of this name runs.
    #[error("no agent `{name}` is running{}", others(.running))]
    NobodyThere {
        /// The name that was given.
        name: String,
        /// Who runs, without the sender.
        running: Vec<String>,
    },
    /// It ran, and has ended.
    #[error("the agent `{name}` has ended and reads nothing more{}", others(.running))]
    Ended {
        /// The agent.
        name: String,
        /// Who runs, without the sender.
        running: Vec<String>,
    },
    /// There is no such group.
    #[error("there is no group `{name}`; there are: {}", .groups.join(", "))]
    NoGroup {
        /// The name that was given.
        name: String,
        /// The groups there are.
        groups: Vec<String>,
    },
    /// So many messages wait for it that it takes no more.
    #[error("`{name}` has {waiting} messages it has not read and takes no more now")]
    Full {
        /// The agent.
        name: String,
        /// How many wait.
        waiting: usize,
    },
}

fn others(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("; running are: {}", names.join(", "))
    }
}

/// What came of a message to a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupDelivery {
    /// Whom it reached, in the order of the group.
    pub reached: Vec<String>,
    /// Whom it did not reach, and why.
    pub failed: Vec<(String, NotDelivered)>,
}

/// Carries messages from one agent to the others.
#[async_trait]
pub trait Post: Send + Sync {
    /// Gives a message to one agent. It reads it before its next request.
    async fn send(&self, to: &str, text: &str) -> Result<(), NotDelivered>;

    /// Gives a message to every member of a group but the sender.
    async fn send_to_group(&self, group: &str, text: &str) -> Result<GroupDelivery, NotDelivered>;
}
