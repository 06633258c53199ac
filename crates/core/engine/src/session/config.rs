//! The values with which a session is opened ([`SessionConfig`]), and the services that it uses
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

use super::model_opener::{ModelOpener, SideModels, Standby};
use super::recorded_run::RecordedRun;
use crate::agents::hub::Hub;
use crate::budget::limits::TurnLimits;
use crate::budget::shared_budget::SharedBudget;
use crate::calls::approval::Approver;
use crate::calls::permit::DecisionState;
use crate::error::Notice;
use crate::hooks::Callback;
use crate::prompt::external::ToolHelp;
use crate::turn::answer::AnswerSchema;
use crate::turn::attach_port::AttachPort;

/// The services and models with which one session works.
pub struct Services {
    /// Services that the session shares with the agents that it starts.
    pub shared: Arc<SharedServices>,
    pub models: ModelServices,
    /// The programs and tasks that tool calls of the conversation have left running.
    pub running: Arc<Running>,
}

/// The services that a session shares with all agents that it starts. They live as long as the last
/// of these sessions.
pub struct SharedServices {
    pub store: Arc<dyn Store>,
    /// Saves the content of files before they are changed.
    pub changes: Arc<dyn ChangeRecords>,
    /// Creates copies of the project for sub-agents. If `None`, sub-agents that need a copy are not
    /// started.
    pub copies: Option<Arc<dyn ProjectCopies>>,
    pub counter: Arc<dyn TokenCounter>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    /// Opens further models: models of sub-agents, and models that the user switches to.
    pub opener: ModelOpener,
    /// The agents that run in this process, and their groups.
    pub hub: Arc<Hub>,
    /// The usage that counts toward the limits. Sessions that run at the same time may share one
    /// budget.
    pub budget: SharedBudget,
}

/// The models that a session uses: the main model, its fallbacks, and models for side requests.
pub struct ModelServices {
    /// The main model.
    pub client: Client,
    /// The models to try, in order, if the main model is overloaded.
    pub fallbacks: VecDeque<Standby>,
    /// The models that write summaries; the main model if there are none.
    pub summarizers: SideModels,
    /// The models that describe folders; those that write summaries if there are none.
    pub describers: SideModels,
    /// The models that name the conversation; it keeps its name if there are none.
    pub titlers: SideModels,
}

/// The settings of a session, from flags and configuration.
#[derive(Clone)]
pub struct SessionConfig {
    /// The agent's name in events, approvals and messages. The agent that the user talks to has the
    /// name [`MAIN_AGENT`](crate::MAIN_AGENT).
    pub agent: String,
    pub model: ModelSpec,
    /// Controls how requests are built.
    pub policy: Policy,
    /// The parts of the system message other than tools and documents.
    pub prompt: PromptSettings,
    pub folders: SessionFolders,
    /// The sources of knowledge about the project.
    pub knowledge: KnowledgeSettings,
    /// The tools offered to the model.
    pub tools: ToolSettings,
    /// Permissions and the masking of secrets.
    pub safety: SafetySettings,
    /// The limits of a turn and the conditions for its end.
    pub task: TaskSettings,
    /// The hooks, in call order.
    pub callbacks: Vec<Arc<dyn Callback>>,
    /// The namespace in which conversations are stored, usually the project's path. Each namespace
    /// has one current conversation.
    pub namespace: String,
    /// Notices to show to the user once, at the start of the next turn.
    pub notices: Vec<Notice>,
}

/// The parts of the prompt about the model's role and environment.
#[derive(Clone, Debug, Default)]
pub struct PromptSettings {
    pub roles: Roles,
    /// The description of the machine on which the agent runs.
    pub environment: haft_context::Environment,
    pub rules: ProjectRules,
    /// Paths that the system message lists as the focus of the task.
    pub focus_files: Vec<String>,
}

/// The role of the model: the `[roles]` section, with the contents of the files that it names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roles {
    /// The role of the main agent; `None` for the built-in role.
    pub main: Option<String>,
    /// A system prompt that replaces the role.
    pub system_prompt: Option<String>,
    /// Text that is added to the system message as its last section.
    pub append: Option<String>,
    /// The instructions on how a sub-agent finishes its task.
    pub completion: Option<String>,
    /// Replacements for built-in sections: the `[prompt]` section, with the contents of the files
    /// that it names.
    pub sections: PromptSections,
}

/// Controls whether the system prompt contains the project's rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectRules {
    #[default]
    Include,
    /// The rules are left out, as for a sub-agent whose file does not include the rules.
    Exclude,
}

/// The folders that a session works in, and the folders that haft manages itself.
#[derive(Clone)]
pub struct SessionFolders {
    /// The folders in which tools work.
    pub workspace: Workspace,
    /// haft's own folders, which are excluded from scans for changes.
    pub private: Vec<PathBuf>,
    /// The folder that contains the project copies in which sub-agents work.
    pub worktrees: PathBuf,
}

/// The sources of a session's knowledge.
#[derive(Clone)]
pub struct KnowledgeSettings {
    /// The search paths for knowledge about the project, and whether the project is trusted.
    pub paths: KnowledgePaths,
    /// The documentation of libraries that the project uses.
    pub libraries: Libraries,
    /// The help texts of external tools.
    pub tool_help: ToolHelp,
    /// The namespace of the project's notes, usually the namespace of its conversations.
    pub notes: String,
    /// Agents that are defined by the configuration instead of by files.
    pub agents: Vec<AgentDefinition>,
}

/// The tools of a session, and the settings that apply to all of them.
#[derive(Clone, Default)]
pub struct ToolSettings {
    /// Tools in addition to the built-in tools, in order.
    pub further: Vec<Arc<dyn Tool>>,
    /// The tools to offer: names, aliases, groups, profiles, `*`, `none`. An empty list offers the
    /// default set.
    pub offered: Vec<String>,
    /// The only tools that may be offered, to this session and its sub-agents; `None` allows every
    /// tool.
    pub within: Option<Vec<String>>,
    /// If true, `offered` comes from an agent file. Unknown names are then ignored, because the
    /// file may be made for another program.
    pub from_agent_file: bool,
    /// The tool profiles defined by the user, by name.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// The observers of every tool call.
    pub observers: Vec<Arc<dyn CallObserver>>,
    /// The environment variables of child processes.
    pub child_environment: Arc<Vec<(String, String)>>,
    /// The record of the run that the session replays; `None` in every other session.
    pub replayed: Option<Arc<RecordedRun>>,
}

/// The settings for permissions and for the masking of secrets.
#[derive(Clone, Default)]
pub struct SafetySettings {
    /// Removes secrets from everything that is stored.
    pub masker: Masker,
    /// The rules and the mode that determine what may run without approval.
    pub permissions: Permissions,
    /// State shared by all permission checks of the session.
    pub shared: Arc<DecisionState>,
}

/// The goal of a turn, its limits, and the approver of its tool calls.
#[derive(Clone, Default)]
pub struct TaskSettings {
    pub limits: TurnLimits,
    /// If true, the task is a goal: a turn ends only after the model has reported the goal as
    /// reached.
    pub goal: bool,
    /// The schema that the final answer must match; `None` for any answer.
    pub answer: Option<AnswerSchema>,
    /// Controls what happens to running tasks at the end of a turn.
    pub leftovers: Leftovers,
    /// The approver of tool calls. If `None`, calls that need approval are refused.
    pub approver: Option<Arc<dyn Approver>>,
    /// The further front ends of the session; `None` if it has only its own. Sub-agents have none:
    /// their events are part of the session's.
    pub attach_port: Option<Arc<dyn AttachPort>>,
}

/// Controls what happens to terminal sessions and background tasks at the end of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// Running tasks are ended, because no later turn could use them.
    #[default]
    End,
    /// Running tasks continue while the conversation is open.
    Keep,
}
