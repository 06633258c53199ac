//! The tool trait, its specification, the registry, the search for deferred tools, and the ports
//! through which tools reach the agent.
//!
//! This crate contains no tools except those that find and call other tools, and depends on no
//! model and no store. `haft-tools` holds the built-in tools; `haft-engine` and the extensions
//! implement the ports.
//!
//! Read first: [`Tool`] (the trait), [`ToolDefinition`] (makes a tool from a function),
//! [`ToolContext`] (the input of a call besides its arguments), [`Registry`] (finds tools and runs
//! calls), [`Plugin`] (inspects calls before and after they run), [`ToolCatalogue`], [`ToolSearch`]
//! and [`UseTool`] (tools the model finds by searching).
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
//! static MANUAL: Manual = Manual::for_group(Group::Others);
//! let add = ToolDefinition::new("add", "Adds two numbers.", &MANUAL, Access::Read, |_| Intent::Nothing);
//! let add = add.with_function(|_, AddParameters { left, right }| {
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

/// The effects that a tool may have. Permission checks and parallel execution depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads: calls may run in parallel, and again after a crash.
    Read,
    /// Changes only haft's own state of the conversation, such as the TODO list.
    State,
    /// Changes files.
    Write,
    /// Runs a program.
    Execute,
}

/// The reaction of a tool to a new list of deferred tools.
pub enum DeferralUpdate {
    /// The tool is unchanged.
    Same,
    /// This tool replaces it.
    Replaced(Arc<dyn Tool>),
    /// The tool has no use and is not offered.
    Useless,
}

/// A function that the model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name, description and parameters that are sent to the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns the text that the description begins with, in every language. `None` if the text is
    /// not haft's own.
    fn prompt(&self) -> Option<Prompt> {
        None
    }

    /// Returns example, guideline, group and aliases of the tool.
    fn manual(&self) -> &Manual {
        &Manual::NONE
    }

    /// Returns a document about what can be reached through the tool, such as servers or
    /// collections. The system prompt contains it after the tools.
    fn reachable(&self) -> Option<&CaseDocument> {
        None
    }

    /// Returns the user's declaration of a tool whose description is fetched from elsewhere. A
    /// conversation keeps the first description it saw until the declaration changes. With `None`,
    /// it always uses the current description.
    fn declared_by(&self) -> Option<&str> {
        None
    }

    /// Translates a call of another tool, `name`, into arguments of this tool. `None` if this tool
    /// does not stand in for `name`.
    fn stand_in(&self, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }

    /// Returns this tool limited to the parts that `names` stand for, or `None` if one of them is
    /// not a part of it. An existing limit stays in force.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Returns the name of the tool whose limits apply to this one too, for a tool that describes
    /// calls of another one. The limits apply even if this tool was selected without limits.
    fn narrowed_with(&self) -> Option<&str> {
        None
    }

    /// Updates the tool for a new list of deferred tools. Only tools that describe or call deferred
    /// tools need this.
    fn with_deferred(&self, _deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        DeferralUpdate::Same
    }

    /// Returns an error for a call outside of the tool's limits; see [`Self::narrow_to`]. The check
    /// precedes permission, so no mode, rule or user can allow such a call.
    fn refusal(&self, _arguments: &Value) -> Option<Envelope> {
        None
    }

    fn access(&self) -> Access;

    /// Returns the effects of a call, including every file it would read or write. The permission
    /// check uses nothing else, so there is no default implementation.
    fn intent(&self, arguments: &Value) -> Intent;

    /// Computes the changes a call would make in files, which the approval prompt shows instead of
    /// the arguments. If the preview fails, the call fails without asking for approval.
    async fn preview(&self, _context: &ToolContext, _arguments: &Value) -> Foreseen {
        Ok(None)
    }

    /// Runs the call. The arguments are a valid JSON object. A failure is returned as an envelope,
    /// never as a panic.
    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput;
}

/// The changes a call would make in files, as unified diffs; `Ok(None)` if its arguments are
/// clearer. The error is the result with which the call would fail.
pub type Foreseen = Result<Option<String>, Envelope>;

/// The `change` in the result data of a call that left a file unchanged because it already had the
/// requested content.
pub const UNCHANGED: &str = "unchanged";

/// The result of a call: the envelope for the model, and the effects on the turn.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// The result that the model reads and the store keeps.
    pub envelope: Envelope,
    /// Images that belong to the result.
    pub images: Vec<Image>,
    /// Files the call changed.
    pub changes: Vec<FileChange>,
    /// Requests the call made to models: the model, the tokens, and the cost if known.
    pub requests: Vec<(String, Usage, Option<Cost>)>,
    /// The way the turn continues.
    pub flow: TurnFlow,
    /// The condition of the tool; [`ToolHealth::Broken`] counts towards blocking it.
    pub health: ToolHealth,
}

/// The condition of a tool. A non-zero exit, an edit that does not match, invalid arguments and a
/// denial do not count against the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolHealth {
    /// The tool works, whether or not the call succeeded.
    #[default]
    Sound,
    /// The tool crashed, or something it depends on is missing.
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

/// A file that a tool changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The absolute path.
    pub path: PathBuf,
    pub kind: ChangeKind,
}

/// The way the turn continues after a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnFlow {
    /// The model gets the result.
    #[default]
    Continue,
    /// The user is asked a question; the answer becomes the result.
    Ask {
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// A plan is shown to the user; the user's response becomes the result.
    Plan {
        response: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// The task is done.
    Complete {
        result: String,
        /// A command that demonstrates the result.
        command: Option<String>,
    },
}
