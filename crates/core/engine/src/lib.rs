//! Runs conversations between the model and tools: the turn as a state machine, and the session
//! that drives it.
//!
//! [`turn`] decides the next step of a turn (request, calls, nudge, end) and holds no handles.
//! [`Session`] holds the handles and carries out each step: it decides which tools are offered,
//! when history is archived, and whether a call may run. This crate must not read the environment,
//! the terminal or the wall clock: the binary passes in values, a clock and ids.
//!
//! The modules follow the data: `session` opens a conversation, `turn` drives a turn in it,
//! `prompt` and `request` build the request, `calls` runs the tool calls of the reply. `hooks`,
//! `agents` and `budget` take part in every step; `ports` gives tools access to the conversation.
//!
//! Read first: [`turn::Turn`] (decides the next step), [`Session`] (carries it out), [`EventSink`]
//! (observes a turn), [`Callback`] (a hook that is called at each step).

mod agents;
mod budget;
mod calls;
mod error;
mod hooks;
mod names;
mod ports;
mod prompt;
mod request;
mod session;
mod stored_state;
pub mod turn;

pub use agents::hub;
pub use budget::shared_budget::SharedBudget;
pub use calls::approval::{Approval, ApprovalReply, Approver, SubjectKind};
pub use calls::permit::{DecisionState, ModeSwitch};
pub use error::{EditContextError, EngineError, Notice};
pub use hooks::{
    Callback, CommandHook, HookContext, HookEvent, HookHost, HookOutcome, StartGuard, StartRefusal,
    StartRequest, ToolName, ToolResponse, callback_at, parse_hook_output,
};
pub use names::{CHANGED_ARGUMENTS_NOTE, MAIN_AGENT};
pub use ports::StoredMarks;
pub use prompt::attachments::mention_kind;
pub use prompt::external::{HelpSandbox, HelpSettings, ToolHelp};
pub use prompt::offered_tools::{all_tools, resolve_wanted_tools};
pub use request::compact::CompactionOutcome;
pub use request::edit::{CacheState, ContextLine, ContextPage, EditEffect, RangeSummary};
pub use request::quotes::{prefix_cache_from_outlines, sent_from_outline};
pub use session::Session;
pub use session::config::{
    KnowledgeSettings, Leftovers, ModelServices, ProjectRules, PromptSettings, Roles,
    SafetySettings, Services, SessionConfig, SessionFolders, SharedServices, TaskSettings,
    ToolSettings,
};
pub use session::model_opener::{ModelOpener, SideModels, Standby};
pub use session::models::SwitchError;
pub use session::open::{ConversationChoice, OpenError};
pub use session::recorded_run::{
    RecordedRun, RepeatedCalls, ReplayedCall, has_context_edits, load_image_descriptions,
};
pub use session::run::RunReport;
pub use session::tasks::TaskWatch;
pub use session::title::TitleRequest;
pub use turn::answer::{AnswerSchema, SchemaError};
pub use turn::attach_port::{AttachPort, ModeListener, OpenedSession};
pub use turn::turn_io::EventSink;
