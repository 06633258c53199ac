//! What a session is opened with: its values ([`SessionConfig`]) and the ports it works through
//! ([`Services`]).

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use haft_context::{Policy, PromptSections};
use haft_model::Client;
use haft_permission::Permissions;
use haft_project::KnowledgePaths;
use haft_project::agents::AgentDefinition;
use haft_project::library::Libraries;
use haft_store::Store;
use haft_text::Masker;
use haft_tool::{CallObserver, ChangeRecords, Tool, Workspace};
use haft_tools::{ProjectCopies, Running};
use haft_types::{Clock, IdSource, ModelSpec, TokenCounter};

use super::model_opener::{ModelOpener, Standby};
use crate::agents::hub::Hub;
use crate::budget::limits::TurnLimits;
use crate::budget::shared_budget::SharedBudget;
use crate::calls::approval::Approver;
use crate::calls::permit::DecisionState;
use crate::error::Notice;
use crate::hooks::Callback;
use crate::prompt::external::ToolHelp;
use crate::turn::answer::AnswerSchema;

/// The services of one session.
pub struct Services {
    /// Services that the session shares with the agents it starts.
    pub shared: Arc<SharedServices>,
    /// Who is asked.
    pub models: ModelServices,
    /// What this conversation has running beside its calls.
    pub running: Arc<Running>,
}

/// The services that a session and all agents it starts have in common. They live as long as the
/// last of these sessions.
pub struct SharedServices {
    /// Where conversations are kept.
    pub store: Arc<dyn Store>,
    /// Saves files before they are changed.
    pub changes: Arc<dyn ChangeRecords>,
    /// Makes copies of the project for sub-agents; without it they work in the project itself.
    pub copies: Option<Arc<dyn ProjectCopies>>,
    /// Counts tokens.
    pub counter: Arc<dyn TokenCounter>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Opens further models: those of sub-agents, and those that the user switches to.
    pub opener: ModelOpener,
    /// The agents that run in this process, and the groups they are in.
    pub hub: Arc<Hub>,
    /// The usage that counts toward the limits. Sessions that run side by side may share it.
    pub budget: SharedBudget,
}

/// The models of a session.
pub struct ModelServices {
    /// The main model.
    pub client: Client,
    /// Who is asked in its place while it has too much to do, in order.
    pub fallbacks: VecDeque<Standby>,
    /// Who writes summaries, in order; the main model when there is none.
    pub summarisers: VecDeque<Standby>,
}

/// The settings of a session, from flags and configuration.
#[derive(Clone)]
pub struct SessionConfig {
    /// The name events, approvals and other agents know it by: [`MAIN`](crate::MAIN) for the one
    /// the user talks to.
    pub agent: String,
    /// The model.
    pub model: ModelSpec,
    /// How requests are built.
    pub policy: Policy,
    /// What the system message says beside tools and documents.
    pub prompt: PromptSettings,
    /// Where it works.
    pub folders: SessionFolders,
    /// What it knows of the project.
    pub knowledge: KnowledgeSettings,
    /// What the model can call.
    pub tools: ToolSettings,
    /// What may not happen.
    pub safety: SafetySettings,
    /// When a turn ends.
    pub task: TaskSettings,
    /// Who is called at the points of a run, in order.
    pub callbacks: Vec<Arc<dyn Callback>>,
    /// Under which current conversations are kept, usually the project's path.
    pub namespace: String,
    /// What the user must see first, once.
    pub notices: Vec<Notice>,
}

/// What the prompt says of the model itself and its surroundings.
#[derive(Clone, Debug, Default)]
pub struct PromptSettings {
    /// The role of the model.
    pub roles: Roles,
    /// The machine as the prompt describes it.
    pub environment: haft_context::Environment,
    /// Whether the project's rules are in the prompt.
    pub rules: ProjectRules,
    /// Paths named as the focus of the task.
    pub focus_files: Vec<String>,
}

/// The role of the model: the `[roles]` section, with the files it names already read.
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
    /// What stands in the place of built-in sections: the `[prompt]` section, with the files it
    /// names already read.
    pub sections: PromptSections,
}

/// Whether the project's rules are in the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectRules {
    /// It is.
    #[default]
    Told,
    /// It is not: a sub-agent whose file does not ask for them.
    LeftOut,
}

/// The folders of a session.
#[derive(Clone)]
pub struct SessionFolders {
    /// Those tools work in.
    pub workspace: Workspace,
    /// Those of haft's own, which no scan for changes looks into.
    pub private: Vec<PathBuf>,
    /// Where copies of the project lie in which sub-agents work.
    pub worktrees: PathBuf,
}

/// Where a session's knowledge comes from.
#[derive(Clone)]
pub struct KnowledgeSettings {
    /// Where knowledge of the project is looked for, and whether its own files are obeyed.
    pub paths: KnowledgePaths,
    /// Documentation of libraries the project uses.
    pub libraries: Libraries,
    /// How external tools are used.
    pub tool_help: ToolHelp,
    /// The namespace of the project's notes, usually that of its conversations.
    pub notes: String,
    /// Agents that come from no file.
    pub agents: Vec<AgentDefinition>,
}

/// What the model can call.
#[derive(Clone, Default)]
pub struct ToolSettings {
    /// Tools beside the built-in ones, after them in order.
    pub further: Vec<Arc<dyn Tool>>,
    /// The tools offered: names, aliases, groups, profiles, `*`, `none`; the default set when
    /// empty.
    pub offered: Vec<String>,
    /// What of them may be offered at all, to sub-agents too; everything when absent.
    pub within: Option<Vec<String>>,
    /// Whether they are an agent's file's, which may name tools that are not here.
    pub of_agent_file: bool,
    /// The user's profiles of tools.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// The observers of every call.
    pub observers: Vec<Arc<dyn CallObserver>>,
    /// The environment of child processes.
    pub child_environment: Arc<Vec<(String, String)>>,
}

/// What may not be kept, and what may not happen.
#[derive(Clone, Default)]
pub struct SafetySettings {
    /// Finds secrets that may not be kept.
    pub masker: Masker,
    /// What may happen without asking.
    pub permissions: Permissions,
    /// What others share that decide on what may run.
    pub shared: Arc<DecisionState>,
}

/// The goal of a turn, its limits, and the approver of its calls.
#[derive(Clone, Default)]
pub struct TaskSettings {
    /// What the run may use up.
    pub limits: TurnLimits,
    /// Whether the task is a goal: only the model's report that it is reached ends a turn.
    pub goal: bool,
    /// What the final answer must look like.
    pub answer: Option<AnswerSchema>,
    /// What becomes of what is still running when a turn is over.
    pub leftovers: Leftovers,
    /// The approver of calls. Without one, a call that needs approval is refused.
    pub approver: Option<Arc<dyn Approver>>,
}

/// What becomes of sessions and background tasks when a turn is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are ended: nobody will be there to look after them.
    #[default]
    End,
    /// They go on while the conversation is open.
    Keep,
}
