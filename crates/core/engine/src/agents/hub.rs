//! The agents that run in this process, and the messages between them.
//!
//! Invariant: a message is given to a recipient once or not at all, and whoever sends it learns
//! which.

mod post;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt as _;
use haft_tool::{CaseDocument, GroupDelivery, NotDelivered};
use serde::{Deserialize, Serialize};

pub(crate) use post::HubPost;

/// By this name the user sends.
pub const USER: &str = "user";

/// So many messages may wait for an agent, and so many are remembered of all.
const MOST_WAITING: usize = 1_000;
const MOST_REMEMBERED: usize = 10_000;
/// So much of a role is shown to others.
const ROLE_CHARS: usize = 100;

/// A group of agents: the `[groups.NAME]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupConfig {
    /// The names of its members.
    pub members: Vec<String>,
}

/// A message from one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// Who wrote it.
    pub from: String,
    /// Who is to read it.
    pub to: String,
    /// The group it was written to, if it was.
    pub group: Option<String>,
    /// What it says.
    pub text: String,
}

impl AgentMessage {
    /// The text the recipient's model reads.
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

/// Who can be written to. Agents in this process have a mailbox; a program that embeds haft may
/// bring others.
#[async_trait]
pub trait Recipient: Send + Sync {
    /// Takes a message.
    async fn deliver(&self, message: AgentMessage) -> Result<(), NotDelivered>;
}

/// The agents that run in a process. Sessions that share one can talk to each other.
#[derive(Default)]
pub struct Hub {
    inner: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    agents: BTreeMap<String, RegisteredAgent>,
    /// The names of those that ran and have ended.
    ended: BTreeSet<String>,
    groups: BTreeMap<String, Vec<String>>,
    history: VecDeque<AgentMessage>,
    registrations: u64,
}

struct RegisteredAgent {
    /// Which registration of the name this is.
    number: u64,
    role: String,
    recipient: Arc<dyn Recipient>,
}

impl Hub {
    /// A hub with these groups.
    pub fn with_groups(groups: impl IntoIterator<Item = (String, GroupConfig)>) -> Self {
        let hub = Self::default();
        for (name, group) in groups {
            hub.set_group(name, group.members);
        }
        hub
    }

    fn inner(&self) -> MutexGuard<'_, HubState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a group, or gives it other members.
    pub fn set_group(&self, name: impl Into<String>, members: Vec<String>) {
        self.inner().groups.insert(name.into(), members);
    }

    /// Registers an agent under its name until the mailbox is dropped. One of the same name is
    /// replaced: it gets nothing more.
    pub fn register(self: &Arc<Self>, name: &str, role: &str) -> Mailbox {
        let slot = Arc::new(MailboxQueue::default());
        let number = self.register_other(name, role, Arc::<MailboxQueue>::clone(&slot) as _);
        Mailbox {
            hub: Arc::clone(self),
            name: name.to_owned(),
            number,
            slot,
        }
    }

    /// Registers somebody who takes messages elsewhere, and gives the number of the registration.
    pub fn register_other(&self, name: &str, role: &str, recipient: Arc<dyn Recipient>) -> u64 {
        let mut inner = self.inner();
        inner.registrations += 1;
        let number = inner.registrations;
        let role = role
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(ROLE_CHARS)
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

    /// Takes a registration back, unless the name was registered again since.
    pub fn unregister(&self, name: &str, number: u64) {
        let mut inner = self.inner();
        if inner
            .agents
            .get(name)
            .is_some_and(|known| known.number == number)
        {
            inner.agents.remove(name);
            inner.ended.insert(name.to_owned());
        }
    }

    /// Who runs, by name.
    pub fn names(&self) -> Vec<String> {
        self.inner().agents.keys().cloned().collect()
    }

    /// The newest messages that were delivered, oldest first.
    pub fn history(&self) -> Vec<AgentMessage> {
        self.inner().history.iter().cloned().collect()
    }

    /// Whether somebody of this name ran here before.
    pub(crate) fn has_run(&self, name: &str) -> bool {
        let inner = self.inner();
        inner.ended.contains(name) || inner.agents.contains_key(name)
    }

    /// Gives a message to whoever has that name.
    pub async fn send(&self, message: AgentMessage) -> Result<(), NotDelivered> {
        let recipient = {
            let inner = self.inner();
            let found = inner
                .agents
                .get(&message.to)
                .filter(|_| message.to != message.from);
            found
                .map(|known| Arc::clone(&known.recipient))
                .ok_or_else(|| NotDelivered::NobodyThere {
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
        let mut inner = self.inner();
        inner.history.push_back(message);
        if inner.history.len() > MOST_REMEMBERED {
            inner.history.pop_front();
        }
        Ok(())
    }

    /// Gives the same text to every member of a group but the sender, several at a time.
    pub async fn send_to_group(
        &self,
        from: &str,
        group: &str,
        text: &str,
    ) -> Result<GroupDelivery, NotDelivered> {
        let members = {
            let inner = self.inner();
            inner
                .groups
                .get(group)
                .cloned()
                .ok_or_else(|| NotDelivered::NoGroup {
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
        let sent: Vec<_> = sent.buffered(at_once()).collect().await;
        let mut delivery = GroupDelivery::default();
        for (name, sent) in to.into_iter().zip(sent) {
            match sent {
                Ok(()) => delivery.reached.push(name),
                Err(why) => delivery.failed.push((name, why)),
            }
        }
        Ok(delivery)
    }

    /// Whether a group has somebody running in it besides this agent.
    pub(crate) fn has_group_for(&self, own: &str) -> bool {
        let inner = self.inner();
        let there = |member: &String| member != own && inner.agents.contains_key(member);
        inner
            .groups
            .values()
            .any(|members| members.iter().any(there))
    }

    /// What an agent reads of those that run beside it, while one of these tools is offered.
    pub(crate) fn described(&self, own: &str) -> [Option<CaseDocument>; 2] {
        let inner = self.inner();
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

/// How many deliveries run at the same time.
pub(crate) fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * cores + 4).min(32)
}

/// Messages that wait for an agent in this process.
#[derive(Default)]
struct MailboxQueue(Mutex<QueuedMessages>);

#[derive(Default)]
struct QueuedMessages {
    messages: VecDeque<AgentMessage>,
    /// Whether its owner reads no more.
    closed: bool,
}

impl MailboxQueue {
    fn waiting(&self) -> MutexGuard<'_, QueuedMessages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Recipient for MailboxQueue {
    async fn deliver(&self, message: AgentMessage) -> Result<(), NotDelivered> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(NotDelivered::NobodyThere {
                name: message.to,
                running: Vec::new(),
            });
        }
        if waiting.messages.len() >= MOST_WAITING {
            return Err(NotDelivered::Full {
                name: message.to,
                waiting: waiting.messages.len(),
            });
        }
        waiting.messages.push_back(message);
        Ok(())
    }
}

/// Where an agent finds its messages. Dropping it ends the registration.
pub struct Mailbox {
    hub: Arc<Hub>,
    name: String,
    number: u64,
    slot: Arc<MailboxQueue>,
}

impl Mailbox {
    /// Takes what has arrived, oldest first.
    pub fn take(&self) -> Vec<AgentMessage> {
        self.slot.waiting().messages.drain(..).collect()
    }

    /// Whether something has arrived.
    pub fn has_messages(&self) -> bool {
        !self.slot.waiting().messages.is_empty()
    }

    /// Takes no more messages unless some wait to be read, and says whether it does so.
    pub fn close_if_empty(&self) -> bool {
        let mut waiting = self.slot.waiting();
        waiting.closed |= waiting.messages.is_empty();
        waiting.closed
    }

    /// Takes no more messages, and gives those that were not read.
    pub fn close(&self) -> Vec<AgentMessage> {
        self.slot.waiting().closed = true;
        self.take()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.hub.unregister(&self.name, self.number);
    }
}
