//! From settings to a running agent: configuration layers, wiring, the real clock and ids.
//!
//! Every front end opens sessions through this crate and nowhere else. It is given the environment
//! of a process and the folders to work in as values ([`HostEnvironment`], [`Places`]); it reads no
//! environment, home folder or terminal, and names no extension: extensions are registered through
//! [`Extension`], which they implement themselves.
//!
//! Read first: [`Agent`] (opens sessions), [`RunPlan`] (the input of one run), [`config::Config`]
//! (the whole configuration), [`Extension`] (an optional part of a session).
//!
//! ```
//! use haft_agent::config::Config;
//! use haft_agent::{Agent, HostEnvironment, Places};
//! use haft_model::ProviderConfig;
//! use haft_types::{Api, Event, Outcome, PermissionMode};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use haft_testkit::{Reply, Script, ScriptedServer};
//! # let server = ScriptedServer::start(Script::replies([Reply::text("Nothing here yet.")])?).await?;
//! # let (url, folder) = (server.base_url(Api::Anthropic), tempfile::tempdir()?);
//! let places = Places::under_home(&folder.path().join("home"), HostEnvironment::default());
//! let agent = Agent::new(places, Config::default())
//!     .with_provider("local", ProviderConfig::new(Api::Anthropic, url))
//!     .model("local/any")
//!     .project(folder.path())
//!     .permission_mode(PermissionMode::Plan);
//! let task = "What is in this folder?";
//! let mut session = agent.start(task).await?;
//! let mut on_event = |event: &Event| println!("{event:?}");
//! let report = session.run(Some(task.into()), &mut on_event, &CancellationToken::new()).await;
//! assert_eq!(report.result.outcome, Outcome::Completed);
//! # Ok(())
//! # }
//! ```

mod agent;
mod cleanup;
mod clock;
pub mod config;
mod cut_off;
mod defaults_notice;
mod designer;
mod environment;
mod error;
mod extension;
mod help_sandbox;
mod hooks;
mod keys;
mod knowledge;
mod machine;
mod models;
mod own_programs;
mod places;
mod plan;
mod policy;
mod project;
mod prompts;
mod proxy_variables;
mod role;
mod sandbox;
mod store;
mod wiring;
mod written_tools;

pub use agent::{Agent, InspectionMode, ModelSource, ReplaySetup};
pub use clock::{RandomIds, WallClock};
pub use cut_off::is_cut_off;
pub use designer::find_designer;
pub use environment::HostEnvironment;
pub use error::{ConfigError, FolderError, KeyError, SandboxSetupError, SetupError};
/// Messages between agents, and from the user to a sub-agent.
pub use haft_engine::hub;
/// The parts of a running session that a front end needs: events, approvals, hooks.
pub use haft_engine::{
    Approval, ApprovalReply, Approver, AttachPort, CHANGED_ARGUMENTS_NOTE, Callback,
    ConversationChoice, EventSink, HookContext, HookEvent, HookOutcome, MAIN_AGENT, ModeListener,
    ModeSwitch, OpenError, OpenedSession, RunReport, Session, SubjectKind, parse_hook_output,
    sent_from_outline,
};
/// The parts of the engine that extensions use: notices and the start of programs.
pub use haft_engine::{DecisionState, Notice, StartGuard, StartRequest};
/// The settings of a session that are part of a [`RunPlan`].
pub use haft_engine::{Leftovers, PromptSettings, TaskSettings, ToolSettings};
/// The permission rule that a user may add when approving a call, and the decision on a part of a
/// command line.
pub use haft_permission::{PartVerdict, PermissionRule};
/// Trust in a project, which determines whether extensions may follow the instructions in the
/// project's files.
pub use haft_project::{
    Footprint, Level, ServerGrant, TrustError, TrustList, TrustRecord, TrustState,
    commands::split_words,
};
/// The interfaces to an editor's open files, to terminals, and to plugins.
pub use haft_tool::{CallObserver, EditorBuffers, ToolContext, ToolOutput};
/// A folder whose files are read without following links, and the readers of files that are not
/// plain text.
pub use haft_tools::{OpenFolder, Readers};

pub use extension::{AbsentExtension, Contribution, Extension, ExtensionContext};
pub use help_sandbox::build_help_settings;
pub use keys::{KeyState, find_key, find_key_state};
pub use knowledge::find_knowledge_and_trust;
pub use models::{
    build_catalogue, configured_model, list_usable_models, resolve_agent_model, resolve_model,
};
pub use own_programs::{
    configured_writable_folders, find_own_program, own_command, own_shell_command,
};
pub use places::Places;
pub use plan::{RunPlan, RunStep, TurnLimits, read_prompt_file};
pub use policy::{PolicyExtension, ProjectPolicy};
pub use project::Project;
pub use prompts::{OfferedArgument, OfferedPrompt, PromptError, PromptSource, PromptSources};
pub use proxy_variables::environment_proxies;
pub use role::ExplicitChoices;
pub use sandbox::{assess_confinement, set_up_sandbox};
pub use store::open_store;
pub use wiring::{UNKNOWN_VARIABLE_CODE, add_rules, load_permissions};
pub use written_tools::WrittenToolsExtension;
