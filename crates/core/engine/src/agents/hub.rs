//! Registers the agents that run in this process, and delivers messages between them.
//!
//! Invariant: a message is delivered to a recipient once or not at all, and its sender gets the
//! result.

mod post;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt as _;
use haft_tool::{CaseDocument, DeliveryError, GroupDelivery};
use serde::{Deserialize, Serialize};

pub(crate) use post::HubPost;

/// The sender name of messages from the user.
pub const USER: &str = "user";

/// The maximum number of unread messages in a mailbox. Further messages are rejected.
const MAX_QUEUED_MESSAGES: usize = 1_000;
/// The maximum number of delivered messages that the hub keeps, over all agents.
const MAX_HISTORY_MESSAGES: usize = 10_000;
/// The maximum length, in characters, of a role in the list for other agents. Longer roles are cut.
const MAX_ROLE_CHARS: usize = 100;

/// A group of agents: the `[groups.NAME]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupConfig {
    /// The names of the group's members.
    pub members: Vec<String>,
}

/// A message from one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// The name of the sender.
    pub from: String,
    /// The name of the recipient.
    pub to: String,
    /// The group the message was sent to; `None` for a direct message.
    pub group: Option<String>,
    pub text: String,
}

impl AgentMessage {
    /// Returns the text for the recipient's model. The text names the sender, unless the user sent
    /// the message.
    pub(crate) fn text_for_model(&self) -> String {
        let Self {
            from, group, text, ..
        } = self;
        match group {
            _ if from == USER => text.clone(),
            None => format!("Message from the agent `{from}`:\n\n{text}"),
            Some(group) => {
                format!("Message from the agent `{from}` to the group `{group}`:\n\n{text}")
            }
        }
    }
}

/// A receiver of messages. Agents in this process have a [`Mailbox`]; a program that embeds haft
/// may register receivers of its own.
#[async_trait]
pub trait Recipient: Send + Sync {
    /// Accepts a message, or returns the reason why it was not delivered.
    async fn deliver(&self, message: AgentMessage) -> Result<(), DeliveryError>;
}

/// The agents that run in a process. Sessions with a common hub can send messages to each other.
#[derive(Default)]
pub struct Hub {
    inner: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    agents: BTreeMap<String, RegisteredAgent>,
    /// The names of agents that have ended.
    ended: BTreeSet<String>,
    groups: BTreeMap<String, Vec<String>>,
    history: VecDeque<AgentMessage>,
    registrations: u64,
}

struct RegisteredAgent {
    /// The number of the registration, which changes if the name is registered again.
    number: u64,
    role: String,
    recipient: Arc<dyn Recipient>,
}

impl Hub {
    /// Creates a hub with `groups`.
    pub fn with_groups(groups: impl IntoIterator<Item = (String, GroupConfig)>) -> Self {
        let hub = Self::default();
        for (name, group) in groups {
            hub.set_group(name, group.members);
        }
        hub
    }

    fn lock_state(&self) -> MutexGuard<'_, HubState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a group, or replaces its members.
    pub fn set_group(&self, name: impl Into<String>, members: Vec<String>) {
        self.lock_state().groups.insert(name.into(), members);
    }

    /// Registers an agent under `name` until the mailbox is dropped. Replaces an agent that is
    /// registered under that name; the replaced agent receives no more messages.
    pub fn register(self: &Arc<Self>, name: &str, role: &str) -> Mailbox {
        let slot = Arc::new(MailboxQueue::default());
        let number = self.register_recipient(name, role, Arc::<MailboxQueue>::clone(&slot) as _);
        Mailbox {
            hub: Arc::clone(self),
            name: name.to_owned(),
            number,
            slot,
        }
    }

    /// Registers a recipient without a mailbox, and returns the number of the registration.
    pub fn register_recipient(&self, name: &str, role: &str, recipient: Arc<dyn Recipient>) -> u64 {
        let mut inner = self.lock_state();
        inner.registrations += 1;
        let number = inner.registrations;
        let role = role
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(MAX_ROLE_CHARS)
            .collect();
        inner.agents.insert(
            name.to_owned(),
            RegisteredAgent {
                number,
                role,
                recipient,
            },
        );
        number
    }

    /// Removes a registration, unless the name was registered again since.
    pub fn unregister(&self, name: &str, number: u64) {
        let mut inner = self.lock_state();
        if inner
            .agents
            .get(name)
            .is_some_and(|known| known.number == number)
        {
            inner.agents.remove(name);
            inner.ended.insert(name.to_owned());
        }
    }

    /// Returns the names of the running agents.
    pub fn agent_names(&self) -> Vec<String> {
        self.lock_state().agents.keys().cloned().collect()
    }

    /// Returns the newest delivered messages, oldest first.
    pub fn history(&self) -> Vec<AgentMessage> {
        self.lock_state().history.iter().cloned().collect()
    }

    /// Returns true if an agent with this name is running or has run.
    pub(crate) fn has_run(&self, name: &str) -> bool {
        let inner = self.lock_state();
        inner.ended.contains(name) || inner.agents.contains_key(name)
    }

    /// Delivers a message to the recipient that it names. An agent cannot send messages to itself.
    pub async fn send(&self, message: AgentMessage) -> Result<(), DeliveryError> {
        let recipient = {
            let inner = self.lock_state();
            let found = inner
                .agents
                .get(&message.to)
                .filter(|_| message.to != message.from);
            found
                .map(|known| Arc::clone(&known.recipient))
                .ok_or_else(|| DeliveryError::NotRunning {
                    name: message.to.clone(),
                    running: inner
                        .agents
                        .keys()
                        .filter(|name| **name != message.from)
                        .cloned()
                        .collect(),
                })?
        };
        recipient.deliver(message.clone()).await?;
        let mut inner = self.lock_state();
        inner.history.push_back(message);
        if inner.history.len() > MAX_HISTORY_MESSAGES {
            inner.history.pop_front();
        }
        Ok(())
    }

    /// Delivers `text` to every member of a group except the sender, several at a time.
    pub async fn send_to_group(
        &self,
        from: &str,
        group: &str,
        text: &str,
    ) -> Result<GroupDelivery, DeliveryError> {
        let members = {
            let inner = self.lock_state();
            inner
                .groups
                .get(group)
                .cloned()
                .ok_or_else(|| DeliveryError::NoGroup {
                    name: group.to_owned(),
                    groups: inner.groups.keys().cloned().collect(),
                })?
        };
        let mut to: Vec<String> = Vec::new();
        for member in members.into_iter().filter(|member| member != from) {
            if !to.contains(&member) {
                to.push(member);
            }
        }
        let message = |to: &String| AgentMessage {
            from: from.to_owned(),
            to: to.clone(),
            group: Some(group.to_owned()),
            text: text.to_owned(),
        };
        let messages: Vec<_> = to.iter().map(message).collect();
        let sent = futures::stream::iter(messages.into_iter().map(|message| self.send(message)));
        let sent: Vec<_> = sent.buffered(max_concurrency()).collect().await;
        let mut delivery = GroupDelivery::default();
        for (name, sent) in to.into_iter().zip(sent) {
            match sent {
                Ok(()) => delivery.reached.push(name),
                Err(why) => delivery.failed.push((name, why)),
            }
        }
        Ok(delivery)
    }

    /// Returns true if some group has a running member other than `own`.
    pub(crate) fn has_group_for(&self, own: &str) -> bool {
        let inner = self.lock_state();
        let there = |member: &String| member != own && inner.agents.contains_key(member);
        inner
            .groups
            .values()
            .any(|members| members.iter().any(there))
    }

    /// Returns two texts for the model: the list of running agents, and the list of groups. A text
    /// is `None` if its list is empty. Each text is sent only while the tool that uses it is
    /// offered.
    pub(crate) fn describe_peers(&self, own: &str) -> [Option<CaseDocument>; 2] {
        let inner = self.lock_state();
        let agent = |(name, known): (&String, &RegisteredAgent)| {
            let own = if name == own { " (you)" } else { "" };
            format!("- `{name}`{own}: {}", known.role)
        };
        let agents: Vec<_> = inner.agents.iter().map(agent).collect();
        let group = |(name, members): (&String, &Vec<String>)| {
            let noun = if members.len() == 1 {
                "member"
            } else {
                "members"
            };
            format!(
                "- `{name}`: {} {noun}: {}",
                members.len(),
                members.join(", ")
            )
        };
        let groups: Vec<_> = inner.groups.iter().map(group).collect();
        let case = |name: &str, tool: &str, lines: Vec<String>| {
            (!lines.is_empty()).then(|| CaseDocument {
                name: name.to_owned(),
                text: lines.join("\n"),
                tools: vec![tool.to_owned()],
            })
        };
        [
            case(crate::names::AVAILABLE_AGENTS, "talk_to", agents),
            case(crate::names::AVAILABLE_GROUPS, "talk_to_group", groups),
        ]
    }
}

/// The agents with which a sub-agent was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// The sub-agent was started on its own.
    Alone,
    /// The sub-agent was started together with others, which run at the same time. Their tools do
    /// not depend on which of them are still running.
    Others,
}

/// Returns the maximum number of sub-agents, or of deliveries, that run at a time.
pub(crate) fn max_concurrency() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * cores + 4).min(32)
}

/// The unread messages of an agent in this process.
#[derive(Default)]
struct MailboxQueue(Mutex<QueuedMessages>);

#[derive(Default)]
struct QueuedMessages {
    messages: VecDeque<AgentMessage>,
    /// True if the owner reads no more messages.
    closed: bool,
}

impl MailboxQueue {
    fn lock_queue(&self) -> MutexGuard<'_, QueuedMessages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Recipient for MailboxQueue {
    async fn deliver(&self, message: AgentMessage) -> Result<(), DeliveryError> {
        let mut waiting = self.lock_queue();
        if waiting.closed {
            return Err(DeliveryError::NotRunning {
                name: message.to,
                running: Vec::new(),
            });
        }
        if waiting.messages.len() >= MAX_QUEUED_MESSAGES {
            return Err(DeliveryError::Full {
                name: message.to,
                waiting: waiting.messages.len(),
            });
        }
        waiting.messages.push_back(message);
        Ok(())
    }
}

/// The receiving end of an agent's messages. Dropping the mailbox ends the agent's registration.
pub struct Mailbox {
    hub: Arc<Hub>,
    name: String,
    number: u64,
    slot: Arc<MailboxQueue>,
}

impl Mailbox {
    /// Takes the messages that have arrived, oldest first.
    pub fn take_messages(&self) -> Vec<AgentMessage> {
        self.slot.lock_queue().messages.drain(..).collect()
    }

    pub fn has_messages(&self) -> bool {
        !self.slot.lock_queue().messages.is_empty()
    }

    /// Closes the mailbox if it contains no unread messages. Returns true if the mailbox is closed.
    pub fn close_if_empty(&self) -> bool {
        let mut waiting = self.slot.lock_queue();
        waiting.closed |= waiting.messages.is_empty();
        waiting.closed
    }

    /// Closes the mailbox and returns the unread messages.
    pub fn close(&self) -> Vec<AgentMessage> {
        self.slot.lock_queue().closed = true;
        self.take_messages()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.hub.unregister(&self.name, self.number);
    }
}
