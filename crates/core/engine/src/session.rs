//! A conversation that is open: loads it, runs turns in it, and keeps what is in memory equal to what is stored.
//!
//! It has four parts, each with data of its own and usable without a model: [`Transcript`] (what was said and stored),
//! [`PromptContext`] (what is known and offered), [`SentState`] (what was sent and is remembered for the next request) and
//! [`Meter`] (tokens, money, limits). The session itself only brings them together.

mod active;
mod advertised;
mod agents;
mod build;
mod call_hooks;
mod compact;
mod cut;
mod declared;

mod edit;
mod hooked;
mod models;
mod modes;
mod open;
mod progress;
mod prompt_context;
mod quoted;
mod repeated;
mod run;
mod run_calls;
mod sent_state;
mod tasks;
mod transcript;
mod turn_host;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use haft_context::{ContextError, Policy};
use haft_model::Client;
use haft_permission::Permissions;
use haft_project::Ground;
use haft_project::library::Libraries;
use haft_store::versions::FileVersions;
use haft_store::{Conversation, Store, StoreError};
use haft_text::Masker;
use haft_tool::{Plugin, Tool, Workspace};
use haft_tools::Running;
use haft_types::{Clock, Entry, IdSource, ModelSpec, TokenCounter};

use crate::answer::AnswerSchema;
use crate::approval::Approver;
use crate::callbacks::Callback;
use crate::external::ToolHelp;
use crate::files::Watch;
use crate::hub::{Hub, Mailbox};
use crate::meter::Meter;
use crate::permit::Permit;
use crate::subagents::{Household, Purse, Rank, Relayed};
use crate::turn::Limits;

use hooked::Hooked;

use prompt_context::PromptContext;
use sent_state::SentState;
use transcript::Transcript;

pub(crate) use advertised::AdvertisedTools;
pub use compact::Compacted;
pub use edit::{CacheState, ContextLine, EditContextError, EditNews, RangeSummary};
pub use models::{Models, Standby, SwitchError};
pub use modes::ModeSwitch;
pub(crate) use open::title_of;
pub use open::{OpenError, Which, all_tools, wanted_tools};
pub use quoted::{prefix_cache_of, sent_of};
pub use run::RunReport;
pub use tasks::Leftovers;

/// Something went wrong that is not the model's or a tool's doing.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The conversation could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a session works with.
pub struct Services {
    /// Where conversations are kept.
    pub store: Arc<dyn Store>,
    /// Where files are saved before they are changed.
    pub versions: Arc<dyn FileVersions>,
    /// The main model.
    pub client: Client,
    /// Who is asked in its place while it has too much to do, in order.
    pub fallbacks: VecDeque<Standby>,
    /// Who writes summaries, in order; the main model when there is none.
    pub summarisers: VecDeque<Standby>,
    /// How other models are opened, for sub-agents.
    pub models: Models,
    /// The agents that run in this process, and the groups they are in.
    pub hub: Arc<Hub>,
    /// What is used, where several sessions share their limits.
    pub purse: Purse,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// What this conversation has running beside its calls.
    pub running: Arc<Running>,
    /// Who is asked before a call runs; without one, asking means no.
    pub approver: Option<Arc<dyn Approver>>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
}

/// Who the model is told to be: the `[roles]` section, with the files it names already read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// The role definition of the main agent; a built-in one when absent.
    pub main: Option<String>,
    /// A system prompt that stands in place of the role.
    pub system_prompt: Option<String>,
    /// Text added as the last section.
    pub append: Option<String>,
    /// How to finish, for a sub-agent.
    pub completion: Option<String>,
}

/// Whether the model is told the project's rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectRules {
    /// It is.
    #[default]
    Told,
    /// It is not: a sub-agent whose file does not ask for them.
    LeftOut,
}

/// What a session is told by flags and configuration.
#[derive(Clone)]
pub struct SessionConfig {
    /// The name events, approvals and other agents know it by: [`MAIN`](crate::MAIN) for the one the user talks to.
    pub agent: String,
    /// The model.
    pub model: ModelSpec,
    /// How requests are built.
    pub policy: Policy,
    /// Who the model is told to be.
    pub roles: Roles,
    /// The machine as the model is told of it.
    pub environment: haft_context::Environment,
    /// The folders tools work in.
    pub workspace: Workspace,
    /// Folders of haft's own, which no scan for changes looks into.
    pub private: Vec<PathBuf>,
    /// Where copies of the project lie in which sub-agents work.
    pub worktrees: PathBuf,
    /// The environment of child processes.
    pub child_environment: Arc<Vec<(String, String)>>,
    /// Where knowledge of the project is looked for, and whether its own files are obeyed.
    pub ground: Ground,
    /// How external tools are used.
    pub tool_help: ToolHelp,
    /// Documentation of libraries the project uses.
    pub libraries: Libraries,
    /// Whether the project's rules are told.
    pub rules: ProjectRules,
    /// Finds secrets that may not be kept.
    pub masker: Masker,
    /// What may happen without asking.
    pub permissions: Permissions,
    /// Tools beside the built-in ones, after them in order.
    pub further_tools: Vec<Arc<dyn Tool>>,
    /// The tools offered: names, aliases, groups, profiles, `*`, `none`; the default set when empty.
    pub offered_tools: Vec<String>,
    /// The user's profiles of tools.
    pub tool_profiles: BTreeMap<String, Vec<String>>,
    /// Who looks over the shoulder of every call.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// What the final answer must look like.
    pub answer: Option<AnswerSchema>,
    /// Who is called at the points of a run, in order.
    pub callbacks: Vec<Arc<dyn Callback>>,
    /// Paths named as the focus of the task.
    pub focus_files: Vec<String>,
    /// What the run may use up.
    pub limits: Limits,
    /// Whether the task is a goal: only the model's report that it is reached ends a turn.
    pub goal: bool,
    /// What becomes of what is still running when a turn is over.
    pub leftovers: Leftovers,
    /// Under which current conversations are kept, usually the project's path.
    pub namespace: String,
    /// Under which the project's notes are kept, usually the namespace.
    pub notes: String,
    /// What the user must be told first, once.
    pub notices: Vec<Notice>,
}

/// Something that happened before the session was opened; told as an `error` event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A stable name for programs.
    pub code: &'static str,
    /// The sentence for people.
    pub message: String,
}

/// An open conversation.
pub struct Session {
    config: SessionConfig,
    services: Services,
    /// What was said and stored.
    transcript: Transcript,
    /// What is known and offered.
    prompt: PromptContext,
    /// What was sent, and what of it is remembered for the next request.
    sent: SentState,
    /// What is used up, and how far it may go.
    meter: Meter,
    permit: Arc<Permit>,
    hooked: Hooked,
    watch: Arc<Watch>,
    resumed: bool,
    /// Whether it was started by another session.
    rank: Rank,
    /// The agents it can start, and where their events arrive.
    household: Option<Arc<Household>>,
    relayed: Relayed,
    /// Where messages of other agents arrive; none where nothing is run.
    mailbox: Option<Mailbox>,
    /// The number of the last event.
    seq: u64,
    /// The model that writes summaries, once it was needed.
    summariser: Option<Box<Client>>,
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
        let told = |one: &'_ haft_context::Document| counter.text(&one.text);
        self.prompt.documents().iter().map(move |one| (one.heading.as_str(), one.text.as_str(), told(one)))
    }

    /// The paths the system message names as the focus of the task.
    pub fn focus_files(&self) -> &[String] {
        &self.config.focus_files
    }

    /// Names other paths from the next request on. They stand in the system message, which is sent anew.
    pub fn set_focus_files(&mut self, paths: Vec<String>) -> Result<(), ContextError> {
        self.config.focus_files = paths;
        self.prompt.render(&self.config)
    }

    /// The names of the tools the model is offered, in order.
    pub fn offered_tools(&self) -> Vec<String> {
        self.prompt.registry().iter().map(|tool| tool.spec().name.clone()).collect()
    }
}
