//! An open conversation: loads it, runs turns in it, and keeps memory and store consistent.
//!
//! A session has four parts, each with its own data and usable without a model: [`Transcript`] (the
//! stored messages), [`PromptContext`] (knowledge and offered tools), [`SentState`] (state that
//! sent requests leave for the next one) and [`Meter`] (tokens, money, limits). The session only
//! coordinates them.

pub(crate) mod config;
pub(crate) mod model_opener;
pub(crate) mod models;
pub(crate) mod modes;
pub(crate) mod open;
pub(crate) mod planner;
pub(crate) mod recorded_run;
pub(crate) mod run;
pub(crate) mod secrets;
pub(crate) mod tasks;
pub(crate) mod title;
pub(crate) mod transcript;

use std::sync::Arc;

use haft_context::{ContextError, View};
use haft_store::Conversation;
use haft_tool::{ChangeWatch, StartedAgent};
use haft_tools::{NewUsefulItem, StoredNotes, StoredUseful};
use haft_types::{Entry, Image, ModelSpec};

use crate::agents::hub::Mailbox;
use crate::agents::parent::Rank;
use crate::agents::relay::RelayedEvents;
use crate::agents::roster::SubagentRoster;
use crate::budget::meter::Meter;
use crate::calls::permit::Permit;
use crate::hooks::HookRunner;
use crate::prompt::prompt_context::PromptContext;
use crate::request::sent_state::SentState;
use crate::stored_state::ImageDescriptions;
use crate::turn::attach_port::AttachPort;
use config::{Services, SessionConfig};
use planner::PlannerState;
use transcript::Transcript;

/// An open conversation with its models, tools and limits. Runs one turn at a time.
pub struct Session {
    pub(crate) config: SessionConfig,
    pub(crate) services: Services,
    pub(crate) transcript: Transcript,
    pub(crate) prompt: PromptContext,
    /// The facts about earlier requests on which the next request depends.
    pub(crate) sent: SentState,
    /// The tokens, money and time used so far, with their limits.
    pub(crate) meter: Meter,
    pub(crate) permit: Arc<Permit>,
    pub(crate) hooks: HookRunner,
    /// Records the file changes that this session's tool calls make.
    pub(crate) recorded: Arc<dyn ChangeWatch>,
    pub(crate) resumed: bool,
    pub(crate) agents: AgentLinks,
    /// The sequence number of the last event.
    pub(crate) seq: u64,
    /// Images to send with the user's next input.
    pub(crate) attached: Vec<Image>,
    /// File ranges that are stored as useful once the conversation is in the store.
    pub(crate) waiting_ranges: Vec<NewUsefulItem>,
    pub(crate) planner: PlannerState,
    /// The stored descriptions of images, for models that accept no images.
    pub(crate) image_descriptions: ImageDescriptions,
}

/// The connections between a session and other agents.
pub(crate) struct AgentLinks {
    pub(crate) rank: Rank,
    /// The agents that the session can start.
    pub(crate) roster: Option<Arc<SubagentRoster>>,
    pub(crate) relayed: RelayedEvents,
    /// Background agents that have ended, but whose end has not been announced to the model.
    pub(crate) unannounced: Vec<StartedAgent>,
    /// Receives messages of other agents; `None` if the session is read-only.
    pub(crate) mailbox: Option<Mailbox>,
}

impl Session {
    pub fn conversation(&self) -> &Conversation {
        self.transcript.conversation()
    }

    /// Returns the further front ends of this session, or `None` if none can attach.
    pub fn attach_port(&self) -> Option<&Arc<dyn AttachPort>> {
        self.config.task.attach_port.as_ref()
    }

    pub fn model(&self) -> &ModelSpec {
        &self.config.model
    }

    /// Returns all messages of the conversation, oldest first.
    pub fn history(&self) -> &[Arc<Entry>] {
        self.transcript.history()
    }

    /// Returns the documents that every request contains. Each item is the heading or path, the
    /// text, and the number of tokens.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let counter = &self.services.shared.counter;
        self.prompt.documents().iter().map(move |one| {
            (
                one.heading.as_str(),
                one.text.as_str(),
                counter.count_text(&one.text),
            )
        })
    }

    /// Returns the paths that the system message lists as the files that the task is about.
    pub fn focus_files(&self) -> &[String] {
        &self.config.prompt.focus_files
    }

    /// Replaces the focus paths, starting with the next request. This changes the system message
    /// and so invalidates the cached prefix.
    pub fn set_focus_files(&mut self, paths: Vec<String>) -> Result<(), ContextError> {
        self.config.prompt.focus_files = paths;
        self.prompt.render(&self.config)
    }

    /// Changes the layout of requests, starting with the next request. This invalidates the cached
    /// prefix.
    pub fn set_view(&mut self, view: View) {
        self.config.policy.view = view;
    }

    /// Returns the file ranges that every request of the conversation contains, or `None` if the
    /// conversation is not in the store yet. See [`Self::waiting_ranges()`].
    pub fn useful(&self) -> Option<&Arc<StoredUseful>> {
        Some(&self.prompt.knowledge().useful).filter(|_| self.transcript.is_stored())
    }

    /// Returns the file ranges that wait for the first message, with which the conversation is
    /// stored. The first request contains them.
    pub fn waiting_ranges(&mut self) -> &mut Vec<NewUsefulItem> {
        &mut self.waiting_ranges
    }

    /// Returns the notes on folders and files of the project.
    pub fn notes(&self) -> &Arc<StoredNotes> {
        &self.prompt.knowledge().notes
    }

    /// Returns the names of the tools offered to the model, in the order of the registry.
    pub fn offered_tools(&self) -> Vec<String> {
        self.prompt
            .registry()
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect()
    }
}
