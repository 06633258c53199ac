//! Messages between agents that run at the same time.

use async_trait::async_trait;

/// The reason why a message was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// No running agent has this name.
    #[error("no agent `{name}` is running{}", format_running(.running))]
    NotRunning {
        /// The name that belongs to no running agent.
        name: String,
        /// The names of the running agents, except the sender.
        running: Vec<String>,
    },
    /// The agent has ended.
    #[error("the agent `{name}` has ended and reads nothing more{}", format_running(.running))]
    Ended {
        name: String,
        /// The names of the running agents, except the sender.
        running: Vec<String>,
    },
    /// The group does not exist.
    #[error("there is no group `{name}`; there are: {}", .groups.join(", "))]
    NoGroup {
        /// The name that belongs to no group.
        name: String,
        /// The names of the existing groups.
        groups: Vec<String>,
    },
    /// The queue of the receiving agent is full.
    #[error("`{name}` has {waiting} messages it has not read and takes no more now")]
    Full {
        name: String,
        /// The number of messages in the queue.
        waiting: usize,
    },
}

fn format_running(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!("; running are: {}", names.join(", "))
    }
}

/// The outcome of sending a message to a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupDelivery {
    /// The members that received the message, in the order of the group.
    pub reached: Vec<String>,
    /// The members that did not receive the message, with the reasons.
    pub failed: Vec<(String, DeliveryError)>,
}

/// Delivers messages between agents.
#[async_trait]
pub trait AgentMessenger: Send + Sync {
    /// Queues a message for an agent, which reads it before its next request.
    async fn send(&self, to: &str, text: &str) -> Result<(), DeliveryError>;

    /// Queues a message for every member of a group except the sender.
    async fn send_to_group(&self, group: &str, text: &str) -> Result<GroupDelivery, DeliveryError>;
}
