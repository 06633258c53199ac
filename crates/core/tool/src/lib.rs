//! The tool trait, its specification, the registry, tools that are deferred and found, and the
//! ports through which tools reach the agent.
//!
//! This crate knows no particular tool but those that find and call others, no model and no store;
//! `haft-tools` holds the built-in tools; `haft-engine` and the extensions implement the ports.
//!
//! Read first: [`Tool`] (what a tool is), [`ToolDefinition`] (how one is made of a function),
//! [`ToolContext`] (what it is given), [`Registry`] (where it is found and how it is called),
//! [`Gateway`] (tools that stand for others), [`CallObserver`] (what observes calls),
//! [`ToolCatalogue`], [`ToolSearch`] and [`UseTool`] (tools the model finds by searching).
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::FutureExt as _;
//! use haft_tool::{Access, Group, Intent, Manual, Registry, ToolContext, ToolDefinition, ToolOutput};
//! use haft_types::Envelope;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct AddParameters {
//!     left: i64,
//!     right: i64,
//! }
//!
//! static MANUAL: Manual = Manual::of(Group::Others);
//! let add = ToolDefinition::new("add", "Adds two numbers.", &MANUAL, Access::Read, |_| Intent::Nothing);
//! let add = add.runs(|_, AddParameters { left, right }| {
//!     Box::pin(async move { Ok::<_, ToolOutput>(Envelope::success((left + right).to_string())) })
//! });
//! let mut registry = Registry::default();
//! registry.register(Arc::new(add));
//!
//! let tool = registry.get("add").unwrap();
//! let context = ToolContext::bare("/project", "call-1", Default::default());
//! let called = registry.call(tool.as_ref(), &context, serde_json::json!({"left": 2, "right": 3}));
//! assert_eq!(called.now_or_never().unwrap().envelope.text, "5");
//! ```

mod context;
mod deferred;
mod function;
mod gateway;
mod intent;
mod manual;
mod mentions;
mod observer;
mod paths;
mod ports;
mod read_ledger;
mod registry;
mod schema;
mod selection;
mod session_state;
mod tool_search;
mod use_tool;

pub use context::{CallProgress, OutputLimits, ReadFilter, ToolContext, Workspace};
pub use deferred::{ToolDetail, describe_tool, shorten};
pub use function::{FunctionTool, ToolDefinition};
pub use gateway::{DeferralUpdate, Gateway};
pub use intent::{FileUse, Intent};
pub use manual::{Alias, CaseDocument, Group, Manual, Set, ToolTexts};
pub use mentions::{ALL_TOOL_NAMES, ToolNames, without_names, without_unknown_tools};
pub use observer::CallObserver;
pub use paths::{LinkError, follow_links};
pub use ports::{
    AgentReport, Assignment, CallName, ChangeRecords, ChangeUndo, ChangeWatch, DocumentError,
    DocumentFormat, DocumentReader, DocumentSource, DocumentText, EditorBuffers, Evidence,
    FileHistory, GroupDelivery, NotDelivered, OpenedSkill, Patience, PortError, Post, RecordedCall,
    SkillShelf, StartedAgent, SubAgents, ToolCatalogue, UndoOutcome, UndoReport, UndoTarget,
    UndoneFile, UnknownAgent, Unrecorded, WorkOrder, WorkPlace,
};
pub use read_ledger::{FileState, ReadLedger};
pub use registry::{Registry, Resolved, ToolStatistics};
pub use schema::{InvalidArguments, parse_arguments, schema_of};
pub use selection::{PROFILES, UnknownChoice, need_of};
pub use session_state::SessionState;
pub use tool_search::ToolSearch;
pub use use_tool::UseTool;

use async_trait::async_trait;
use haft_types::{ChangeKind, Cost, Envelope, Image, Prompt, ToolSpec, Usage};
use serde_json::Value;
use std::path::PathBuf;

/// What a call may do to the world; permission and parallel running are decided by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Looks only: may run in parallel with other such calls, and again after a crash.
    Read,
    /// Changes haft's own state of this conversation only, such as the TODO list.
    State,
    /// Changes files.
    Write,
    /// Runs a program.
    Execute,
}

/// Something the model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and parameters as offered to the model.
    fn spec(&self) -> &ToolSpec;

    /// The text its description begins with, in every language; none where somebody else wrote it.
    fn prompt(&self) -> Option<Prompt> {
        None
    }

    /// What there is to say of it beside the specification.
    fn manual(&self) -> &Manual {
        &Manual::NONE
    }

    /// Returns the side of the tool that stands for other tools or describes them, if it has one.
    fn gateway(&self) -> Option<&dyn Gateway> {
        None
    }

    /// What a call may do.
    fn access(&self) -> Access;

    /// What a call with these arguments would do, with every file it would read or write:
    /// permission looks at nothing else before the call runs. There is no default, so that no
    /// tool can forget one.
    fn intent(&self, arguments: &Value) -> Intent;

    /// What a call with these arguments would change in files: whoever is asked sees it instead of
    /// the arguments. Nobody is asked about a call that would fail.
    async fn preview(&self, _context: &ToolContext, _arguments: &Value) -> Foreseen {
        Ok(None)
    }

    /// Runs the call. The arguments are an object that was checked to be JSON; a failure is an
    /// envelope, never a panic.
    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput;
}

/// What a call would change in files, as unified diffs; none where its arguments say it better. An
/// error is what the call would fail with.
pub type Foreseen = Result<Option<String>, Envelope>;

/// The `change` in the data of a result that left a file as it was, because it held all of that
/// already.
pub const UNCHANGED: &str = "unchanged";

/// What a call gives back: the envelope for the model, and what it means for the turn.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// What the model reads and the store keeps.
    pub envelope: Envelope,
    /// Pictures that belong to the result.
    pub images: Vec<Image>,
    /// Files it changed.
    pub changes: Vec<FileChange>,
    /// Requests to models it made: the model, its tokens, and what they cost where that is known.
    pub requests: Vec<(String, Usage, Option<Cost>)>,
    /// How the turn goes on.
    pub flow: TurnFlow,
    /// Whether the tool itself works.
    pub health: ToolHealth,
}

/// Whether a tool works. A non-zero exit, an edit that does not fit, bad arguments and a denial are
/// no fault of the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolHealth {
    /// It does, whatever came of the call.
    #[default]
    Sound,
    /// It crashed, or what it needs is not there.
    Broken,
}

impl From<Envelope> for ToolOutput {
    fn from(envelope: Envelope) -> Self {
        Self {
            envelope,
            ..Self::default()
        }
    }
}

/// A file a tool changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its absolute path.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// How the turn goes on after a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnFlow {
    /// The model gets the result.
    #[default]
    Continue,
    /// The user is asked; the answer becomes the result.
    Ask {
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// A plan is put before the user; their word becomes the result.
    Plan {
        /// The plan.
        response: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// The task is done.
    Complete {
        /// The report.
        result: String,
        /// A command that shows it.
        command: Option<String>,
    },
}
