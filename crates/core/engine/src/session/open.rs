//! Opens a conversation: a new conversation, the current one of the project, or one chosen by id.

use std::sync::Arc;

use haft_context::ContextError;
use haft_sandbox::release_free_memory;
use haft_store::{Conversation, ConversationMatch, ConversationScope, NewFork, StoreError};
use haft_tool::{Registry, UnknownChoice};
use haft_types::{ConversationId, Message, Metadata};
use tokio_util::sync::CancellationToken;

use super::config::{Services, SessionConfig};
use super::planner::PlannerState;
use super::transcript::{FoundConversation, OnCreation, Transcript};
use super::{AgentLinks, Session, tasks};
use crate::agents::announcements::unannounced_agents;
use crate::agents::hub::Mailbox;
use crate::agents::parent::{Inherited, ParentLink, Rank};
use crate::agents::relay::RelayedEvents;
use crate::agents::roster::SubagentRoster;
use crate::budget::meter::Meter;
use crate::hooks::{HookEvent, HookRunner};
use crate::ports::{Knowledge, SkillWatch};
use crate::prompt::declared_tools::restore_descriptions;
use crate::prompt::offered_tools::{Peers, select_subagent_tools, select_tools};
use crate::prompt::prompt_context::{OfferedContext, PromptContext};
use crate::prompt::redescribed_tool::translate_tools;
use crate::request::sent_state::{LoggedState, SentState, load_logged_state};
use crate::stored_state::StoredState;
use crate::turn::attach_port::OpenedSession;

/// The choice of a conversation to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationChoice {
    /// A new conversation, named after the first line of a text.
    New {
        /// The text, usually the task.
        title: String,
    },
    /// A new conversation with the given id.
    NewAs {
        /// The text after which the conversation is named, usually the task.
        title: String,
        /// The id, which must not be in use.
        id: ConversationId,
    },
    /// The current conversation of the namespace, or a new conversation if there is none.
    Current {
        /// The title of a new conversation; if `None`, a missing conversation is an error.
        or_new: Option<String>,
    },
    /// The conversation with this id or name, or the only conversation whose id starts with this
    /// text.
    Named(String),
    /// A copy of another conversation. If that conversation does not exist, the inner choice
    /// applies unchanged.
    Fork(Box<ConversationChoice>),
}

/// A failure to open a conversation.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no current conversation.
    #[error("there is no conversation to continue here")]
    NothingToContinue,
    #[error("there is no conversation `{0}`")]
    Unknown(String),
    /// The chosen id of a new conversation is already in use.
    #[error("there is a conversation `{0}` already")]
    Taken(ConversationId),
    /// Several conversations match the given id or name.
    #[error("`{name}` could be any of {candidates}; give more of the id")]
    Ambiguous {
        name: String,
        /// The list of matching conversations, as text for the error message.
        candidates: String,
    },
    /// The chosen tools include an unknown name.
    #[error(transparent)]
    UnknownTool(#[from] UnknownChoice),
    /// The system prompt could not be built.
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Session {
    /// Opens a conversation and makes it the current conversation of its namespace. A new
    /// conversation is stored together with its first message.
    pub async fn open(
        mut config: SessionConfig,
        services: Services,
        which: ConversationChoice,
    ) -> Result<Self, OpenError> {
        let hooks = config.hook_runner();
        let cancel = CancellationToken::new();
        hooks.call(HookEvent::PreToolsLoaded {}, &cancel).await;
        let roster = SubagentRoster::load(&config.knowledge, &config.safety.masker);
        let registry = select_tools(&mut config, &services, Peers::Startable(roster.as_ref()))?;
        let tools = registry
            .offered_tools()
            .map(|tool| tool.spec().name.clone())
            .collect();
        hooks
            .call(HookEvent::PostToolsLoaded { tools }, &cancel)
            .await;
        let (conversation, resumed) = find_or_draft_conversation(&config, &services, which).await?;
        let hooks = hooks.with_conversation(conversation.id.as_str());
        // The lock is taken before anything is read, so that no other process changes the
        // conversation afterwards.
        let store = &services.shared.store;
        let lock = store.try_lock(&conversation.id).await?;
        let mut messages = Vec::new();
        if resumed {
            hooks
                .call(HookEvent::PreConversationResumed {}, &cancel)
                .await;
            messages = store.uncached_messages(&conversation.id).await?;
            store
                .set_current_conversation(&config.namespace, &conversation.id)
                .await?;
            hooks
                .call(
                    HookEvent::PostConversationResumed {
                        messages: messages.len(),
                    },
                    &cancel,
                )
                .await;
        }
        let mailbox = services.shared.hub.register(
            &config.agent,
            config
                .prompt
                .roles
                .main
                .as_deref()
                .unwrap_or(DEFAULT_MAIN_ROLE),
        );
        let found = FoundConversation {
            conversation,
            resumed,
            messages,
            lock: Some(lock),
        };
        let opened = OpenedConversation { found, hooks };
        let lineage = Lineage {
            roster,
            mailbox: Some(mailbox),
            inherited: None,
        };
        let session = Self::load(config, services, registry, opened, lineage).await?;
        if let Some(port) = session.attach_port() {
            port.session_opened(OpenedSession {
                conversation: session.conversation(),
                model: session.model(),
                working_folder: &session.config.folders.workspace.cwd,
                mode_switch: session.mode_switch(),
            });
        }
        Ok(session)
    }

    /// Opens a conversation with the given messages as read-only: nothing is written, and the
    /// namespace keeps its current conversation. The conversation need not be in the store.
    pub async fn open_read_only(
        mut config: SessionConfig,
        services: Services,
        conversation: Conversation,
        messages: Vec<Message>,
    ) -> Result<Self, OpenError> {
        let roster = SubagentRoster::load(&config.knowledge, &config.safety.masker);
        let registry = select_tools(&mut config, &services, Peers::Startable(roster.as_ref()))?;
        let lineage = Lineage {
            roster,
            mailbox: None,
            inherited: None,
        };
        let hooks = config.silent_hook_runner();
        let found = FoundConversation {
            conversation,
            resumed: true,
            messages,
            lock: None,
        };
        let opened = OpenedConversation { found, hooks };
        Self::load(config, services, registry, opened, lineage).await
    }

    /// Opens the conversation of a sub-agent.
    pub(crate) async fn open_subagent(
        mut config: SessionConfig,
        services: Services,
        conversation: Conversation,
        resumed: bool,
        parent: ParentLink,
    ) -> Result<Self, OpenError> {
        let registry = select_subagent_tools(&mut config, &services, parent.waiting.as_deref())?;
        let store = &services.shared.store;
        let lock = store.lock(&conversation.id).await?;
        let messages = if resumed {
            store.uncached_messages(&conversation.id).await?
        } else {
            Vec::new()
        };
        let hooks = config
            .hook_runner()
            .with_conversation(conversation.id.as_str());
        let found = FoundConversation {
            conversation,
            resumed,
            messages,
            lock: Some(lock),
        };
        let opened = OpenedConversation { found, hooks };
        Self::load(
            config,
            services,
            registry,
            opened,
            Lineage {
                roster: None,
                mailbox: Some(parent.mailbox),
                inherited: Some(parent.inherited),
            },
        )
        .await
    }

    async fn load(
        mut config: SessionConfig,
        services: Services,
        mut registry: Registry,
        OpenedConversation { found, hooks }: OpenedConversation,
        Lineage {
            roster,
            mailbox,
            inherited,
        }: Lineage,
    ) -> Result<Self, OpenError> {
        let safe_zone = config
            .policy
            .safe_zone_tokens(&config.model)
            .map_err(ContextError::from)?;
        config.prompt.environment.safe_zone_tokens = Some(safe_zone);
        // Outputs belong to the conversation. Sub-agents inherit the folder of the agent that started
        // them, because they report their outputs to it.
        if inherited.is_none() {
            let spill = &mut config.folders.workspace.spill;
            spill.push(found.conversation.id.file_name());
            services.running.show_folder(spill.clone());
        }
        let resumed = found.resumed;
        let mut state = if resumed {
            StoredState::read(services.shared.store.as_ref(), &found.conversation.id).await?
        } else {
            StoredState::default()
        };
        let skills = SkillWatch::new(&config.knowledge.paths);
        let unkept_descriptions = restore_descriptions(&mut registry, &mut state);
        translate_tools(&mut registry, &config);
        let (rank, on_creation) = match &inherited {
            Some(_) => (Rank::Sub, OnCreation::LeaveCurrent),
            None => (Rank::Main, OnCreation::MakeCurrent),
        };
        let transcript = Transcript::load(
            Arc::clone(&services.shared),
            config.safety.masker.clone(),
            found,
            on_creation,
        )
        .await?;
        if resumed {
            tasks::restore_tasks(&services.running, transcript.history(), &mut state);
        }
        let left = unannounced_agents(transcript.history());
        let shared = &services.shared;
        let knowledge = Knowledge::open(
            shared,
            &config,
            services.running.limits(),
            transcript.id(),
            inherited.as_ref().map(|inherited| &inherited.knowledge),
            &mut state,
        )
        .await?;
        let inherited = inherited.unwrap_or_else(|| {
            Inherited::new(
                &config,
                shared,
                &hooks,
                transcript.id(),
                knowledge.shared(),
                &mut state,
            )
        });
        let running = Arc::clone(&services.running);
        let counter = Arc::clone(&shared.counter);
        let offered = OfferedContext {
            registry,
            unkept_descriptions,
            skills,
            todo: inherited.todo,
            starter_reads: inherited.starter_reads,
            knowledge,
            running,
            counter,
        };
        let history = transcript.history();
        let prompt = PromptContext::open(offered, &config, history, &hooks, &mut state).await?;
        let store = shared.store.as_ref();
        let counter = shared.counter.as_ref();
        let logged = if resumed {
            load_logged_state(store, &transcript, &config, counter, &mut state).await?
        } else {
            LoggedState::default()
        };
        let sent = SentState::restore(logged, history, counter, &mut state);
        let meter = Meter::new(
            config.task.limits,
            shared.budget.clone(),
            state.take().unwrap_or_default(),
        );
        let image_descriptions = state.take().unwrap_or_default();
        config.notices.extend(state.take_notices());
        let (events, relayed) = RelayedEvents::new();
        let agents = AgentLinks {
            rank,
            roster,
            relayed,
            unannounced: left,
            mailbox,
        };
        let mut session = Self {
            config,
            services,
            transcript,
            prompt,
            sent,
            meter,
            permit: inherited.permit,
            hooks,
            recorded: inherited.recorded,
            resumed,
            agents,
            seq: 0,
            attached: Vec::new(),
            waiting_ranges: Vec::new(),
            planner: PlannerState::Idle,
            image_descriptions,
        };
        session.apply_tokenizer_factor();
        match session.follow_plan_mode()? {
            // The notice has the price of the resumption.
            Some(planner) if session.has_changed_model() => session.config.notices.push(planner),
            planner => {
                session.config.notices.extend(planner);
                session.add_resumption_notice();
            }
        }
        session.initialize_roster(events);
        release_free_memory();
        Ok(session)
    }
}

/// The role that other agents see for a main agent without a configured role.
const DEFAULT_MAIN_ROLE: &str = "The agent the user talks to.";

/// The links of a session to the agent that started it and to the agents that it can start.
struct Lineage {
    roster: Option<Arc<SubagentRoster>>,
    mailbox: Option<Mailbox>,
    /// The state shared by the session that started this session; `None` for a main session.
    inherited: Option<Inherited>,
}

/// A conversation that is being opened, and the runner of its hooks.
struct OpenedConversation {
    found: FoundConversation,
    hooks: HookRunner,
}

async fn find_or_draft_conversation(
    config: &SessionConfig,
    services: &Services,
    which: ConversationChoice,
) -> Result<(Conversation, bool), OpenError> {
    let store = &services.shared.store;
    let (title, id) = match which {
        ConversationChoice::Fork(which) => {
            let (conversation, resumed) =
                Box::pin(find_or_draft_conversation(config, services, *which)).await?;
            if !resumed {
                return Ok((conversation, false));
            }
            let fork = NewFork::new(ConversationId::from(services.shared.ids.new_uuid()));
            return Ok((store.fork(&conversation.id, fork).await?, true));
        }
        ConversationChoice::New { title } => {
            (title, ConversationId::from(services.shared.ids.new_uuid()))
        }
        ConversationChoice::NewAs { title, id } => {
            if store.get(&id).await?.is_some() {
                return Err(OpenError::Taken(id));
            }
            (title, id)
        }
        ConversationChoice::Current { or_new } => {
            if let Some(id) = store.current_conversation(&config.namespace).await?
                && let Some(conversation) = store.get(&id).await?
                && (conversation.messages > 0 || or_new.is_some())
            {
                return Ok((conversation, true));
            }
            (
                or_new.ok_or(OpenError::NothingToContinue)?,
                ConversationId::from(services.shared.ids.new_uuid()),
            )
        }
        ConversationChoice::Named(name) => {
            return match store
                .find_conversation(&name, ConversationScope::Everywhere)
                .await?
            {
                ConversationMatch::One(found) => Ok((*found, true)),
                ConversationMatch::Nothing => Err(OpenError::Unknown(name)),
                ConversationMatch::Several(several) => {
                    let ids: Vec<_> = several
                        .iter()
                        .map(|one| format!("{} ({})", one.id, one.name))
                        .collect();
                    Err(OpenError::Ambiguous {
                        name,
                        candidates: ids.join(", "),
                    })
                }
            };
        }
    };
    let now = services.shared.clock.now();
    let title = config.safety.masker.mask(&make_title(&title)).into_owned();
    Ok((
        Conversation {
            name: if title.is_empty() {
                format!("Conversation {}", id.short_prefix())
            } else {
                title
            },
            id,
            namespace: config.namespace.clone(),
            description: String::new(),
            metadata: Metadata::new(),
            created_at: now,
            updated_at: now,
            messages: 0,
            revisions: 0,
        },
        false,
    ))
}

/// Returns the first line of the task, shortened to fit into a table.
pub(crate) fn make_title(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let line = haft_text::sanitize(line);
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_of_returns_one_short_line() {
        assert_eq!(make_title("\n  fix the bug  \nin a.rs"), "fix the bug");
        assert_eq!(make_title(&"ü".repeat(80)).chars().count(), 61);
        assert_eq!(make_title(" \n"), "");
    }
}
