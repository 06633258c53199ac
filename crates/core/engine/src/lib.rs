//! The turn as a state machine, and the driver that runs it against model, tools and store.
//!
//! [`turn`] decides what a turn does next (request, calls, nudge, end) and holds no handle.
//! [`Session`] holds the handles, does what the turn asks for, and decides how: which tools are
//! offered, when history is archived, whether a call may run. This crate reads no environment,
//! terminal or wall clock: the binary gives it values, a clock and ids.
//!
//! Read first: [`turn::Turn`] (what happens next), [`Session`] (how it is done), [`EventSink`] (how
//! it is watched), [`Callback`] (who is called on the way).

mod answer;
mod approval;
mod call_check;
mod calls;
mod documents;
mod error;
mod event_log;
mod external;
mod hooks;
pub mod hub;
mod meter;
mod names;
mod permit;
mod ports;
mod resume;
mod secrets;
mod session;
mod spending;
mod stamps;
mod stored_state;
mod strict_json;
mod subagents;
mod touched;
pub mod turn;
mod turn_io;

pub use answer::{AnswerSchema, SchemaError};
pub use approval::{Approval, ApprovalReply, Approver};
pub use error::{EditContextError, EngineError, Notice};
pub use external::{Asking, HelpCell, ToolHelp};
pub use hooks::{
    Callback, CommandHook, HookContext, HookEvent, HookHost, HookOutcome, StartGuard, StartRefusal,
    StartRequest, ToolName, ToolResponse, on, parse_hook_output,
};
pub use names::{CHANGED_NOTE, MAIN};
pub use permit::DecisionState;
pub use ports::{StoredMarks, StoredNotes, StoredUseful};
pub use session::{
    CacheState, Compacted, ContextLine, Delegation, EditNews, KnowledgeSettings, Leftovers,
    ModeSwitch, ModelOpener, ModelServices, OpenError, ProjectRules, PromptSettings, RangeSummary,
    Roles, RunReport, SafetySettings, Services, Session, SessionConfig, SessionFolders, Standby,
    SwitchError, TaskSettings, ToolSettings, Which, all_tools, mention_kind, prefix_cache_of,
    sent_of, wanted_tools,
};
pub use subagents::SharedBudget;
pub use turn_io::EventSink;
