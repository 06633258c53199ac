//! The tool trait, its specification, the registry, tools that are deferred and found, and the
//! ports through which tools reach the agent.
//!
//! This crate knows no particular tool but those that find and call others, no model and no store;
//! `haft-tools` holds the built-in tools; `haft-engine` and the extensions implement the ports.
//!
//! Read first: [`Tool`] (what a tool is), [`ToolDefinition`] (how one is made of a function),
//! [`ToolContext`] (what it is given), [`Registry`] (where it is found and how it is called),
//! [`Plugin`] (who looks over its shoulder), [`ToolCatalogue`], [`ToolSearch`] and [`UseTool`]
//! (tools the model finds by searching).
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

mod bare;
mod context;
mod deferred;
mod function;
mod guard;
mod intent;
mod manual;
mod mentions;
mod paths;
mod plugin;
mod ports;
mod registry;
mod schema;
mod selection;
mod tool_search;
mod use_tool;

pub use context::{OutputLimits, ReadFilter, ToolContext, Workspace};
pub use deferred::{ToolDetail, describe_tool, shorten};
pub use function::{FunctionTool, ToolDefinition};
pub use guard::Guard;
pub use intent::{FileUse, Intent};
pub use manual::{Alias, CaseDocument, Group, Manual, Set, ToolTexts};
pub use mentions::{ALL_TOOL_NAMES, ToolNames, without_names, without_unknown_tools};
pub use paths::{LinkError, follow_links};
pub use plugin::Plugin;
pub use ports::{
    Added, AgentReport, Assignment, CallName, CallProgress, ChangeRecords, ChangeUndo, ChangeWatch,
    ConversationMessages, DocumentError, DocumentFormat, DocumentReader, DocumentSource,
    DocumentText, EditorBuffers, Evidence, FileHistory, FileState, GroupDelivery, NewUseful,
    NotDelivered, Note, OpenedSkill, Patience, PortError, Post, ProjectNotes, ReadLedger, Recalled,
    RecordedCall, SkillShelf, StartedAgent, SubAgents, TodoItem, TodoList, TodoState, TokenCount,
    ToolCatalogue, UndoOutcome, UndoReport, UndoTarget, UndoneFile, UnknownAgent, Unrecorded,
    UsefulInfo, UsefulItem, WorkOrder, WorkPlace,
};
pub use registry::{Registry, Resolved, Switch, ToolStatistics};
pub use schema::{InvalidArguments, parse_arguments, schema_of};
pub use selection::{PROFILES, UnknownChoice, need_of};
pub use tool_search::ToolSearch;
pub use use_tool::UseTool;

use async_trait::async_trait;
use haft_types::{ChangeKind, Cost, Envelope, Image, Prompt, ToolSpec, Usage};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

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

/// What becomes of a tool when others are deferred.
pub enum DeferralUpdate {
    /// It stays as it is.
    Same,
    /// This one stands in its place.
    Replaced(Arc<dyn Tool>),
    /// There is nothing it could be used for, so it is not offered.
    Useless,
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

    /// What can be reached through it, such as servers or collections: a section of its own behind
    /// the tools.
    fn reachable(&self) -> Option<&CaseDocument> {
        None
    }

    /// What the user declared it by, for a tool whose description is learnt. While it is the same,
    /// a conversation hears of the tool what it heard first; without one it hears what is true
    /// now.
    fn declared_by(&self) -> Option<&str> {
        None
    }

    /// Its own arguments for a call of something else that it stands for, by the name the model
    /// used; none where it does not stand for that.
    fn stand_in(&self, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }

    /// This tool, limited to what these names stand for; none where one of them stands for nothing
    /// of it. A limit it already has stays.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn Tool>> {
        None
    }

    /// The tool whose calls this one tells of: where that one is narrowed, this one is too, whether
    /// it was chosen or not.
    fn narrowed_with(&self) -> Option<&str> {
        None
    }

    /// This tool, now that these are the deferred ones. Only tools that tell of others or call them
    /// have a use for it.
    fn with_deferred(&self, _deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        DeferralUpdate::Same
    }

    /// What the model reads when a call with these arguments is outside of what the tool was
    /// narrowed to. It is asked before permission, so no mode, no rule and nobody can allow
    /// such a call.
    fn refusal(&self, _arguments: &Value) -> Option<Envelope> {
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
