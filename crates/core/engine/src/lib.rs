//! The turn as a state machine, and the driver that runs it against model, tools and store.
//!
//! [`turn`] decides what a turn does next (request, calls, nudge, end) and holds no handle.
//! [`Session`] holds the handles, does what the turn asks for, and decides how: which tools are
//! offered, when history is archived, whether a call may run. This crate reads no environment,
//! terminal or wall clock: the binary gives it values, a clock and ids.
//!
//! The modules follow the data: `session` opens a conversation, `turn` drives a turn in it,
//! `prompt` and `request` make the request, `calls` runs the calls of the reply. `hooks`, `agents`
//! and `budget` take part in every step; `ports` lets tools reach the conversation.
//!
//! Read first: [`turn::Turn`] (what happens next), [`Session`] (how it is done), [`EventSink`] (how
//! it is watched), [`Callback`] (who is called on the way).

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
pub use calls::approval::{Approval, ApprovalReply, Approver};
pub use calls::permit::DecisionState;
pub use error::{EditContextError, EngineError, Notice};
pub use hooks::{
    Callback, CommandHook, HookContext, HookEvent, HookHost, HookOutcome, StartGuard, StartRefusal,
    StartRequest, ToolName, ToolResponse, on, parse_hook_output,
};
pub use names::{CHANGED_NOTE, MAIN};
pub use ports::StoredMarks;
pub use prompt::external::{Asking, HelpCell, ToolHelp};
pub use prompt::offered_tools::{all_tools, wanted_tools};
pub use request::compact::Compacted;
pub use request::edit::{CacheState, ContextLine, EditNews, RangeSummary};
pub use request::quoted::{prefix_cache_of, sent_of};
pub use session::Session;
pub use session::config::{
    KnowledgeSettings, Leftovers, ModelServices, ProjectRules, PromptSettings, Roles,
    SafetySettings, Services, SessionConfig, SessionFolders, SharedServices, TaskSettings,
    ToolSettings,
};
pub use session::model_opener::{ModelOpener, Standby};
pub use session::models::SwitchError;
pub use session::modes::ModeSwitch;
pub use session::open::{OpenError, Which};
pub use session::run::{RunReport, mention_kind};
pub use turn::answer::{AnswerSchema, SchemaError};
pub use turn::turn_io::EventSink;
