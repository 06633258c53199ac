//! Gives an agent's tools access to the hub.

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{GroupDelivery, NotDelivered, Post};

use super::{AgentMessage, Hub};

/// Sends messages under one agent's name.
pub(crate) struct HubPost {
    hub: Arc<Hub>,
    own: String,
}

impl HubPost {
    pub(crate) fn new(hub: Arc<Hub>, own: &str) -> Self {
        Self {
            hub,
            own: own.to_owned(),
        }
    }
}

#[async_trait]
impl Post for HubPost {
    async fn send(&self, to: &str, text: &str) -> Result<(), NotDelivered> {
        let message = AgentMessage {
            from: self.own.clone(),
            to: to.to_owned(),
            group: None,
            text: text.to_owned(),
        };
        self.hub.send(message).await.map_err(|why| match why {
            NotDelivered::NobodyThere { name, running }
                if name != self.own && self.hub.has_run(&name) =>
            {
                NotDelivered::Ended { name, running }
            }
            other => other,
        })
    }

    async fn send_to_group(&self, group: &str, text: &str) -> Result<GroupDelivery, NotDelivered> {
        self.hub.send_to_group(&self.own, group, text).await
    }
}
