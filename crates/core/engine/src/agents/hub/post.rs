//! Gives an agent's tools access to the hub.

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{AgentMessenger, DeliveryError, GroupDelivery};

use super::{AgentMessage, Hub};

/// Sends messages through the hub in the name of one agent.
pub(crate) struct HubPost {
    hub: Arc<Hub>,
    sender: String,
}

impl HubPost {
    pub(crate) fn new(hub: Arc<Hub>, sender: &str) -> Self {
        Self {
            hub,
            sender: sender.to_owned(),
        }
    }
}

#[async_trait]
impl AgentMessenger for HubPost {
    async fn send(&self, to: &str, text: &str) -> Result<(), DeliveryError> {
        let message = AgentMessage {
            from: self.sender.clone(),
            to: to.to_owned(),
            group: None,
            text: text.to_owned(),
        };
        self.hub.send(message).await.map_err(|why| match why {
            DeliveryError::NotRunning { name, running }
                if name != self.sender && self.hub.has_run(&name) =>
            {
                DeliveryError::Ended { name, running }
            }
            other => other,
        })
    }

    async fn send_to_group(&self, group: &str, text: &str) -> Result<GroupDelivery, DeliveryError> {
        self.hub.send_to_group(&self.sender, group, text).await
    }
}
