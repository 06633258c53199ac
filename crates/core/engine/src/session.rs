//! A conversation that is open: loads it, runs turns in it, and keeps what is in memory equal to
//! what is stored.
//!
//! It has four parts, each with data of its own and usable without a model: [`Transcript`] (what
//! was said and stored), [`PromptContext`] (what is known and offered), [`SentState`] (what was
//! sent and is remembered for the next request) and [`Meter`] (tokens, money, limits). The session
//! itself only brings them together.

mod active;
mod advertised;
mod agents;
mod background_agents;
mod build;
mod compact;
mod config;
mod cut;
mod declared;
mod edit;
mod model_opener;
mod models;
mod modes;
mod offered_tools;
mod open;
mod progress;
mod prompt_context;
mod quoted;
mod redescribed;
mod repeated;
mod run;
mod run_calls;
mod sent_state;
mod session_hooks;
mod tasks;
mod transcript;
mod vision;

use std::sync::Arc;

use haft_context::ContextError;
use haft_model::Client;
use haft_store::Conversation;
use haft_tool::{ChangeWatch, StartedAgent};
use haft_types::{Entry, Image, ModelSpec};

use crate::error::{EditContextError, EngineError, Notice};
use crate::hooks::HookRunner;
use crate::hub::Mailbox;
use crate::meter::Meter;
use crate::permit::Permit;
use crate::stored_state::ImageDescriptions;
use crate::subagents::{Rank, Relayed, SubagentRoster};

use prompt_context::PromptContext;
use sent_state::SentState;
use transcript::Transcript;

pub(crate) use build::cause_of;
pub use compact::Compacted;
pub use config::{
    Delegation, KnowledgeSettings, Leftovers, ModelServices, ProjectRules, PromptSettings, Roles,
    SafetySettings, Services, SessionConfig, SessionFolders, TaskSettings, ToolSettings,
};
pub use edit::{CacheState, ContextLine, EditNews, RangeSummary};
pub use model_opener::{ModelOpener, Standby};
pub(crate) use models::MOST_SQUEEZES;
pub use models::SwitchError;
pub use modes::ModeSwitch;
pub use offered_tools::{all_tools, wanted_tools};
pub(crate) use open::title_of;
pub use open::{OpenError, Which};
pub use quoted::{prefix_cache_of, sent_of};
pub use run::{RunReport, mention_kind};

/// An open conversation.
pub struct Session {
    pub(crate) config: SessionConfig,
    pub(crate) services: Services,
    /// What was said and stored.
    pub(crate) transcript: Transcript,
    /// What is known and offered.
    pub(crate) prompt: PromptContext,
    /// What was sent, and what of it is remembered for the next request.
    pub(crate) sent: SentState,
    /// What is used up, and how far it may go.
    pub(crate) meter: Meter,
    pub(crate) permit: Arc<Permit>,
    pub(crate) hooks: HookRunner,
    pub(crate) recorded: Arc<dyn ChangeWatch>,
    pub(crate) resumed: bool,
    pub(crate) agents: AgentLinks,
    /// The number of the last event.
    pub(crate) seq: u64,
    /// Images that go with the user's next input.
    pub(crate) attached: Vec<Image>,
    /// The model that writes summaries, once it was needed.
    pub(crate) summariser: Option<Box<Client>>,
    /// What pictures show, as it is stored.
    pub(crate) image_descriptions: ImageDescriptions,
}

/// A session among other agents.
pub(crate) struct AgentLinks {
    /// Whether it was started by another session.
    pub(crate) rank: Rank,
    /// The agents it can start, and where their events arrive.
    pub(crate) roster: Option<Arc<SubagentRoster>>,
    pub(crate) relayed: Relayed,
    /// Those it started in the background that run no more, and of which the model has not read.
    pub(crate) left: Vec<StartedAgent>,
    /// Where messages of other agents arrive; none where nothing is run.
    pub(crate) mailbox: Option<Mailbox>,
}

impl Session {
    /// The conversation this session works on.
    pub fn conversation(&self) -> &Conversation {
        self.transcript.conversation()
    }

    /// The model it asks.
    pub fn model(&self) -> &ModelSpec {
        &self.config.model
    }

    /// Every message, in order.
    pub fn history(&self) -> &[Arc<Entry>] {
        self.transcript.history()
    }

    /// The documents that are sent with every request: heading or path, text, and tokens.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let counter = &self.services.counter;
        let tokens = |one: &'_ haft_context::Document| counter.text(&one.text);
        self.prompt
            .documents()
            .iter()
            .map(move |one| (one.heading.as_str(), one.text.as_str(), tokens(one)))
    }

    /// The paths the system message names as the focus of the task.
    pub fn focus_files(&self) -> &[String] {
        &self.config.prompt.focus_files
    }

    /// Names other paths from the next request on. They stand in the system message, which is sent
    /// anew.
    pub fn set_focus_files(&mut self, paths: Vec<String>) -> Result<(), ContextError> {
        self.config.prompt.focus_files = paths;
        self.prompt.render(&self.config)
    }

    /// The names of the tools the model is offered, in order.
    pub fn offered_tools(&self) -> Vec<String> {
        self.prompt
            .registry()
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect()
    }
}
