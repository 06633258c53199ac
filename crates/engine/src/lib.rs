//! The turn as a state machine, and the driver that runs it against model, tools and store.
//!
//! [`turn`] holds every decision and no handle; [`Session`] holds the handles and decides nothing. This crate reads no
//! environment, terminal or wall clock: the binary gives it values, a clock and ids.
//!
//! Read first: [`turn::Turn`] (what happens next), [`Session`] (how it is done), [`EventSink`] (how it is watched).

mod approval;
mod calls;
mod documents;
mod emit;
mod external;
pub mod files;
mod gate;
pub mod hub;
mod names;
mod permit;
mod ports;
mod resume;
mod secrets;
mod session;
mod stamps;
mod strict_json;
mod subagents;
mod touched;
pub mod turn;

pub use approval::{Answer, Approval, Approver};
pub use emit::EventSink;
pub use external::{Asking, HelpCell, ToolHelp};
pub use names::MAIN;
pub use ports::{StoredMarks, StoredNotes, StoredUseful};
pub use session::{
    EngineError, Leftovers, Models, Notice, OpenError, ProjectRules, Roles, RunReport, Services, Session,
    SessionConfig, Standby, Which, all_tools, wanted_tools,
};
