//! Connects a session with its sub-agents: passes values to them, adds up their usage, receives
//! messages from agents, and describes the progress of sub-agents after a crash.

use std::collections::HashSet;
use std::sync::Arc;

use haft_store::Fact;
use haft_tools::{RUN_SUBAGENTS, parse_assignments};
use haft_types::{ConversationId, Entry, Envelope, Event, Origin, ToolCall, ToolError, ToolStatus};
use tokio::sync::mpsc::UnboundedSender;

use super::child::run_child;
use super::evidence::collect_evidence;
use super::hub::{AgentMessage, Hub, Mailbox, USER};
use super::parent::{Inherited, ParentSession, Rank};
use super::roster::{ParentProgress, child_conversation_id};
use crate::error::EngineError;
use crate::prompt::attachments::PreparedInput;
use crate::session::Session;
use crate::turn::Position;
use crate::turn::resume::{CallKey, plan_resumption};
use crate::turn::turn_io::TurnIo;

impl Session {
    /// Returns the hub of this process, through which a front end sends the user's input.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.services.shared.hub
    }

    /// Passes everything that sub-agents inherit from this session to the roster.
    pub(crate) fn initialize_roster(&self, events: UnboundedSender<Event>) {
        let Some(roster) = &self.agents.roster else {
            return;
        };
        let services = &self.services;
        roster.set_parent(ParentSession {
            run_child,
            config: self.config.clone(),
            conversation: self.transcript.id().clone(),
            shared: Arc::clone(&services.shared),
            running: Arc::clone(&services.running),
            children: Arc::clone(&self.prompt.knowledge().children),
            inherited: Inherited {
                todo: Arc::clone(self.prompt.todo()),
                starter_reads: Some(Arc::clone(self.prompt.reads())),
                knowledge: self.prompt.knowledge().shared(),
                permit: Arc::clone(&self.permit),
                recorded: Arc::clone(&self.recorded),
            },
            events,
            merge_lock: tokio::sync::Mutex::default(),
        });
    }

    /// Updates the roster with the current reply and the remaining limits, before tool calls run.
    pub(crate) fn update_roster(&self, replies: u32) {
        let Some(roster) = &self.agents.roster else {
            return;
        };
        roster.set_progress(ParentProgress {
            reply: self.transcript.last_reply_id(),
            model: self.config.model.full_name(),
            turns: self.meter.turns_left(replies),
            time: self.meter.time_left(),
        });
    }

    /// Adds the usage of sub-agents to the totals of the turn. Their cost is already in the shared
    /// budget.
    pub(crate) fn add_relayed_usage(&mut self) {
        let (usage, costs) = self.agents.relayed.take_usage();
        self.meter.add_relayed_usage(usage, costs);
    }

    /// Appends the messages that other agents and the user sent since the last request.
    pub(crate) async fn append_agent_messages(
        &mut self,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let messages = self
            .agents
            .mailbox
            .as_ref()
            .map(Mailbox::take_messages)
            .unwrap_or_default();
        for message in messages {
            if message.from == USER {
                self.append_joined_input(&message.text, io).await?;
                io.notify_input_joined(&message.text);
            } else {
                self.transcript
                    .append_user(message.text_for_model(), Origin::Agent)
                    .await?;
            }
        }
        Ok(())
    }

    /// In a replayed run, appends the messages that came from background tasks, other agents and
    /// hooks at this position of the recorded run.
    pub(crate) async fn append_recorded_messages(&mut self) -> Result<(), EngineError> {
        let Some(recorded) = self.config.tools.replayed.clone() else {
            return Ok(());
        };
        while let Some(message) = recorded.take_outside_message() {
            self.transcript.append(message).await?;
        }
        Ok(())
    }

    /// Appends the user's input that has arrived through the event sink since the last request.
    pub(crate) async fn append_user_input(
        &mut self,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        for text in io.take_input() {
            self.append_joined_input(&text, io).await?;
            io.notify_input_joined(&text);
        }
        Ok(())
    }

    async fn append_joined_input(
        &mut self,
        text: &str,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let PreparedInput { text, metadata } = self.prepare_input(text, io).await;
        self.transcript
            .append_input(text, Vec::new(), Origin::Joined, metadata)
            .await
    }

    /// Drops the user's input that no request has contained yet. For front ends that keep their own
    /// copy of the input. Messages of other agents stay in the mailbox.
    pub async fn drop_unread_input(&mut self) {
        let messages = self
            .agents
            .mailbox
            .as_ref()
            .map(Mailbox::take_messages)
            .unwrap_or_default();
        for message in messages.into_iter().filter(|message| message.from != USER) {
            // The message was just taken from the mailbox, so there is room for it.
            drop(self.services.shared.hub.send(message).await);
        }
    }

    /// Returns true if there are messages that no request has contained yet. If a sub-agent has no
    /// such messages, closes its mailbox: the sub-agent is done, and senders get an error from then
    /// on.
    pub(crate) fn has_unread_messages(&self) -> bool {
        let Some(mailbox) = &self.agents.mailbox else {
            return false;
        };
        match self.agents.rank {
            Rank::Main => mailbox.has_messages(),
            Rank::Sub => !mailbox.close_if_empty(),
        }
    }

    /// Closes the mailbox and returns the unread messages.
    pub(crate) fn close_mailbox(&self) -> Vec<AgentMessage> {
        self.agents
            .mailbox
            .as_ref()
            .map(Mailbox::close)
            .unwrap_or_default()
    }

    /// Builds the result of an interrupted call of `run_named_subagents` from the conversations of
    /// its sub-agents. Returns `None` for other calls.
    pub(crate) async fn interrupted_agents_result(
        &self,
        call: &ToolCall,
    ) -> Result<Option<Envelope>, EngineError> {
        if call.name != RUN_SUBAGENTS {
            return Ok(None);
        }
        let Some(((_, work), reply)) =
            parse_assignments(&call.arguments).zip(self.transcript.last_reply_id())
        else {
            return Ok(None);
        };
        let mut sections = Vec::with_capacity(work.len());
        let mut finished = 0;
        for (index, one) in work.iter().enumerate() {
            let id = match &one.conversation {
                Some(earlier) => self
                    .prompt
                    .knowledge()
                    .children
                    .find(earlier)
                    .map(|child| child.conversation),
                None => Some(child_conversation_id(
                    self.transcript.id(),
                    reply,
                    &call.id,
                    index,
                )),
            };
            let Some(id) = id else { continue };
            let (section, done) = self.describe_progress(&one.name, &id).await?;
            finished += usize::from(done);
            sections.push(section);
        }
        let text = format!(
            "The run was interrupted while these agents worked; nothing was started again.\n\n{}",
            sections.join("\n\n")
        );
        let status = if finished == 0 {
            ToolStatus::Error
        } else {
            ToolStatus::Partial
        };
        let error = (status == ToolStatus::Error).then(|| ToolError {
            code: "interrupted".into(),
            message: "no agent had finished".into(),
        });
        Ok(Some(Envelope {
            status,
            error,
            ..Envelope::success(text)
        }))
    }

    /// Describes a sub-agent's progress. The returned flag is true if the sub-agent has an answer.
    pub(crate) async fn describe_progress(
        &self,
        name: &str,
        id: &ConversationId,
    ) -> Result<(String, bool), EngineError> {
        let store = &self.services.shared.store;
        let messages = store.messages(id).await?;
        if messages.is_empty() {
            return Ok((format!("## {name}: did not begin"), false));
        }
        let counter = self.services.shared.counter.as_ref();
        let history: Vec<_> = messages
            .into_iter()
            .map(|message| Entry::new(message, counter))
            .collect();
        let begun: HashSet<CallKey> = store
            .facts(id)
            .await?
            .into_iter()
            .filter_map(call_key_from_fact)
            .collect();
        let found = plan_resumption(&history, &begun, None);
        let seen: Vec<_> = collect_evidence(&history)
            .into_iter()
            .map(|one| format!("{} ({})", one.id, one.what))
            .collect();
        let copy = self.config.folders.worktrees.join(id.file_name());
        let copy = if copy.is_dir() {
            format!(
                "\n\nWhat it changed is NOT in the project; it is in `{}`, and is merged when the agent is named again with this `conversation` and completes.",
                copy.display()
            )
        } else {
            String::new()
        };
        let seen = if seen.is_empty() {
            String::new()
        } else {
            format!("\n\nEvidence: {}", seen.join(", "))
        };
        let answer = match found.position {
            Position::Completed(report) => Some(report),
            Position::HasReply(reply) if found.uncertain.is_empty() => Some(reply.text),
            Position::HasReply(_)
            | Position::WantsReply
            | Position::WantsTools(_)
            | Position::WantsAnswer(_) => None,
        };
        if let Some(answer) = answer {
            return Ok((
                format!(
                    "## {name}: completed\n\n{}{copy}{seen}\nConversation: {id}",
                    answer.trim()
                ),
                true,
            ));
        }
        let uncertain: Vec<_> = found
            .uncertain
            .iter()
            .map(|call| format!("`{}`", call.name))
            .collect();
        let uncertain = match uncertain.as_slice() {
            [] => String::new(),
            calls => {
                format!(
                    " It is uncertain whether its {} took effect: check before it is done again.",
                    calls.join(", ")
                )
            }
        };
        let text = format!(
            "## {name}: interrupted\n\nIt has no answer yet.{uncertain} Name it again with this `conversation` to go on.{copy}{seen}\nConversation: {id}"
        );
        Ok((text, false))
    }
}

fn call_key_from_fact(fact: Fact) -> Option<CallKey> {
    match fact {
        Fact::ToolStarted {
            message_id,
            call_id,
        } => Some((message_id, call_id)),
        Fact::TurnEnded { .. } => None,
    }
}
