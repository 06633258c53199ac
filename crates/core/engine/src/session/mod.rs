//! A conversation that is open: loads it, runs turns in it, and keeps what is in memory equal to what is stored.
//!
//! Invariant: a message is in `history` exactly when it is in the store, in the same order.

mod act;
mod active;
mod agents;
mod build;
mod calling;
mod compact;
mod cut;
mod drive;
mod edit;
mod hooked;
mod models;
mod modes;
mod open;
mod progress;
mod quoted;
mod repeated;
mod steady;
mod tasks;
mod told;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use haft_context::{Carried, Cleared, ContextError, EditState, Edits, Memo, Policy, Sent, TOOL};
use haft_model::Client;
use haft_permission::Permissions;
use haft_project::Ground;
use haft_project::library::Libraries;
use haft_store::versions::Versions;
use haft_store::{Conversation, NewConversation, Store, StoreError, WriteLock};
use haft_text::Masker;
use haft_tool::{Plugin, Registry, Tool, Workspace};
use haft_tools::Running;
use haft_types::{
    Clock, Cost, Entry, Envelope, IdSource, Image, Message, MessageId, Metadata, ModelSpec, Origin, Part, Price, Role,
    ShortId, TokenCounter, ToolCall, ToolResult, Usage,
};

use crate::answer::AnswerSchema;
use crate::approval::Approver;
use crate::callbacks::Callback;
use crate::documents::StandingDocuments;
use crate::external::{ExternalShelf, ToolHelp};
use crate::files::Watch;
use crate::hub::{Hub, Mailbox};
use crate::permit::Permit;
use crate::ports::{Knowledge, Reads, SkillWatch, StoredTodo};
use crate::resume::Begun;
use crate::secrets;
use crate::subagents::{Household, Purse, Rank, Relayed};
use crate::touched::Mentions;
use crate::turn::{Limits, Spent};

use active::Active;
use hooked::Hooked;

pub(crate) use act::{fingerprint, take_flow};
pub use compact::Compacted;
pub use drive::RunReport;
pub(crate) use drive::{call_finished, tell_delta};
pub use edit::{CacheState, ContextLine, EditContextError, EditNews, RangeSummary};
pub use models::{Models, Standby, SwitchError};
pub use modes::ModeSwitch;
pub(crate) use open::title_of;
pub use open::{OpenError, Which, all_tools, wanted_tools};
pub use quoted::{prefix_cache_of, sent_of};
pub use tasks::Leftovers;
pub(crate) use told::Told;

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
    pub versions: Arc<Versions>,
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
    conversation: Conversation,
    /// Nobody else writes to the conversation while this session has it open.
    _lock: Option<WriteLock>,
    resumed: bool,
    /// Whether the store knows the conversation yet.
    stored: bool,
    /// Whether it was started by another session.
    rank: Rank,
    /// The agents it can start, and where their events arrive.
    household: Option<Arc<Household>>,
    relayed: Relayed,
    /// Where messages of other agents arrive; none where nothing is run.
    mailbox: Option<Mailbox>,
    /// Tokens that references to earlier reads have saved since this was last told.
    saved_tokens: u64,
    /// What all turns have used, with their sub-agents.
    purse: Purse,
    history: Vec<Arc<Entry>>,
    short_ids: HashSet<ShortId>,
    begun: HashSet<Begun>,
    registry: Registry,
    permit: Arc<Permit>,
    hooked: Hooked,
    /// What the model is told of them.
    told: Told,
    /// What has to be kept of it before the next request.
    to_keep: Option<steady::Steady>,
    system: Arc<Entry>,
    todo: Arc<StoredTodo>,
    reads: Arc<Reads>,
    mentions: Mentions,
    watch: Arc<Watch>,
    knowledge: Knowledge,
    documents: StandingDocuments,
    /// Programs the model may run; none where it can run nothing.
    external: Option<ExternalShelf>,
    skills: SkillWatch,
    active: Active,
    /// What was made for earlier requests.
    memo: Memo,
    /// The request before.
    sent: Option<Sent>,
    /// What pruning has decided so far.
    cleared: Option<Cleared>,
    /// What else requests have decided for later ones.
    carried: Option<Carried>,
    /// What people have edited of what is sent, and what that comes to.
    edits: Edits,
    edited: EditState,
    /// Sent in place of a summary that could not be had; it is no message of the conversation.
    stand_in: Option<Arc<Entry>>,
    /// Summaries in a row that failed or were refused.
    failed_summaries: u32,
    /// Counted tokens a request may take, once the provider has refused a larger one.
    most: Option<u64>,
    /// The file a tool changed last.
    last_write: Option<String>,
    /// Whether the newest message was noted as the end of its turn.
    turn_ended: bool,
    /// Whether the model was told that plan mode holds.
    plan_told: bool,
    totals: Totals,
    /// The number of the last event.
    seq: u64,
    /// The model that writes summaries, once it was needed.
    summariser: Option<Box<Client>>,
    /// What replies have taught about tokenizers.
    factors: models::Factors,
}

/// What this turn has used, with its sub-agents.
struct Totals {
    /// When this turn began.
    since: Instant,
    /// Of this turn.
    usage: Usage,
    /// Of this turn: money by class; none once a request had no price.
    cost: Option<Cost>,
}

impl Totals {
    fn new() -> Self {
        Self { since: Instant::now(), usage: Usage::default(), cost: None }
    }

    /// Another turn begins.
    fn begin(&mut self, price: Option<Price>) {
        let cost = price.map(|_| Cost::default());
        *self = Self { cost, ..Self::new() };
    }

    /// Adds a request's usage and cost.
    fn add(&mut self, usage: Usage, cost: Option<Cost>) {
        self.usage += usage;
        self.cost = self.cost.zip(cost).map(|(mut total, cost)| {
            total += cost;
            total
        });
    }
}

impl Session {
    /// The conversation this session works on.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The model it asks.
    pub fn model(&self) -> &ModelSpec {
        &self.config.model
    }

    /// Every message, in order.
    pub fn history(&self) -> &[Arc<Entry>] {
        &self.history
    }

    /// The documents that are sent with every request: heading or path, text, and tokens.
    pub fn documents(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let counter = &self.services.counter;
        let told = |one: &'_ haft_context::Document| counter.text(&one.text);
        self.documents.documents().iter().map(move |one| (one.heading.as_str(), one.text.as_str(), told(one)))
    }

    /// The paths the system message names as the focus of the task.
    pub fn focus_files(&self) -> &[String] {
        &self.config.focus_files
    }

    /// Names other paths from the next request on. They stand in the system message, which is sent anew.
    pub fn set_focus_files(&mut self, paths: Vec<String>) -> Result<(), ContextError> {
        self.config.focus_files = paths;
        self.tell_again()
    }

    /// The names of the tools the model is offered, in order.
    pub fn offered_tools(&self) -> Vec<String> {
        self.registry.iter().map(|tool| tool.spec().name.clone()).collect()
    }

    /// A message id whose short form is free in this conversation.
    fn fresh_id(&self) -> MessageId {
        loop {
            let id = self.services.ids.message_id();
            if !self.short_ids.contains(&id.short()) {
                return id;
            }
        }
    }

    /// Stores a message, then takes it into memory.
    async fn append(&mut self, role: Role, content: Vec<Part>, metadata: Metadata) -> Result<(), EngineError> {
        let mut message = Message::new(self.fresh_id(), role, content, self.services.clock.now());
        message.metadata = metadata;
        self.append_message(message).await
    }

    /// Stores a message, then takes it into memory. The first one brings a new conversation into being, in one transaction:
    /// a kill leaves either both or nothing.
    async fn append_message(&mut self, mut message: Message) -> Result<(), EngineError> {
        secrets::mask_message(&self.config.masker, &mut message);
        if self.stored {
            self.services.store.append(&self.conversation.id, &message).await?;
        } else {
            let new = NewConversation {
                messages: vec![message.clone()],
                metadata: self.conversation.metadata.clone(),
                make_current: self.rank == Rank::Main,
                ..NewConversation::new(self.conversation.id.clone(), &self.conversation.namespace)
                    .named(&self.conversation.name)
            };
            self.services.store.create(new).await?;
            self.stored = true;
        }
        self.short_ids.insert(message.message_id.short());
        self.history.push(Entry::new(message, self.services.counter.as_ref()));
        Ok(())
    }

    async fn append_user(&mut self, text: String, origin: Origin) -> Result<(), EngineError> {
        let message = Message::text(self.fresh_id(), Role::User, text, self.services.clock.now()).from(origin);
        self.append_message(message).await
    }

    async fn append_result(
        &mut self,
        call: &ToolCall,
        envelope: Envelope,
        images: Vec<Image>,
    ) -> Result<(), EngineError> {
        let result = ToolResult { tool_call_id: call.id.clone(), name: call.name.clone(), envelope };
        let mut content = vec![Part::ToolResult(Box::new(result))];
        content.extend(images.into_iter().map(Part::Image));
        self.append(Role::Tool, content, self.result_metadata(call)).await
    }

    /// The tool's own name, whatever the model called it, and which step of the round it was (SPEC 4.2).
    fn result_metadata(&self, call: &ToolCall) -> Metadata {
        let name = self.registry.resolve(&call.name).map_or(&call.name, |found| &found.tool.spec().name);
        let round = self.history.iter().rev().take_while(|entry| !entry.message.opens_round());
        let step = round.filter(|entry| entry.message.role == Role::Tool).count() + 1;
        Metadata::from_iter([(TOOL.to_owned(), name.as_str().into()), ("step".to_owned(), step.into())])
    }

    /// Adds a request's usage to the totals and gives its cost.
    fn spend(&mut self, price: Option<Price>, usage: Usage) -> Option<Cost> {
        let cost = price.map(|price| price.cost(usage));
        self.purse.spend(usage.total(), cost.map_or(0.0, |cost| cost.total));
        self.totals.add(usage, cost);
        cost
    }

    /// What the run has used up so far.
    fn spent(&self) -> Spent {
        Spent { tokens: self.purse.tokens(), usd: self.purse.usd(), elapsed: self.totals.since.elapsed() }
    }

    fn round(&self) -> u32 {
        self.history.iter().filter(|entry| entry.message.opens_round()).count() as u32
    }
}
