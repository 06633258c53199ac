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

mod context;
mod deferred;
mod function;
mod gateway;
mod intent;
mod manual;
mod observer;
mod paths;
mod ports;
mod read_ledger;
mod registry;
mod schema;
mod selection;
mod session_state;
mod tool_mentions;
mod tool_search;
mod use_tool;

pub use context::{CallProgress, OutputLimits, ReadFilter, ToolContext, Workspace};
pub use deferred::{ToolDetail, describe_tool, sanitize_and_truncate};
pub use function::{FunctionTool, ToolDefinition};
pub use gateway::{DeferralUpdate, Gateway};
pub use intent::{FileUse, Intent};
pub use manual::{Alias, Availability, CaseDocument, Group, Manual, ToolTexts};
pub use observer::CallObserver;
pub use paths::{LinkError, follow_links};
pub use ports::{
    AgentMessenger, AgentReport, Assignment, CallName, ChangeRecords, ChangeUndo, ChangeWatch,
    DeliveryError, DocumentError, DocumentFormat, DocumentReader, DocumentSource, DocumentText,
    EditorBuffers, Evidence, FileHistory, GroupDelivery, NoChangeRecords, OpenedSkill, PortError,
    RecordedCall, SkillSource, SourceWait, StartedAgent, SubAgents, ToolCatalogue, UndoOutcome,
    UndoReport, UndoTarget, UndoneFile, UnknownAgent, WorkOrder, WorkPlace,
};
pub use read_ledger::{ATTACHED_FILES_KEY, FileState, ReadLedger};
pub use registry::{BreakerLimits, Registry, ResolvedTool, ToolStatistics};
pub use schema::{InvalidArguments, parameter_schema, parse_arguments};
pub use selection::{BUILT_IN_PROFILES, UnknownChoice, find_tool_requirement};
pub use session_state::SessionState;
pub use tool_mentions::{ALL_TOOL_NAMES, ToolNames, remove_mentions_of, remove_unknown_mentions};
pub use tool_search::ToolSearch;
pub use use_tool::UseTool;

use async_trait::async_trait;
use haft_types::{ChangeKind, Cost, Envelope, Image, Prompt, ToolSpec, Usage};
use serde_json::Value;
use std::path::PathBuf;

/// The strongest effect that a tool may have. Permission checks and parallel execution depend on
/// this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The tool only reads. Its calls may run in parallel, and may be repeated after a crash.
    Read,
    /// The tool changes only data that haft keeps for the conversation, such as the TODO list.
    State,
    /// The tool changes files.
    Write,
    /// The tool runs a program.
    Execute,
}

/// A function that the model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name, description and parameters that are sent to the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns the text, in all languages, with which the tool's description begins. `None` if the
    /// description is not haft's own.
    fn prompt(&self) -> Option<Prompt> {
        None
    }

    /// Returns the tool's manual: its example, guideline, group and aliases.
    fn manual(&self) -> &Manual {
        &Manual::NONE
    }

    /// Returns the interface of a tool that stands for other tools or describes them; `None` for
    /// any other tool.
    fn gateway(&self) -> Option<&dyn Gateway> {
        None
    }

    fn access(&self) -> Access;

    /// Returns the effects of a call, including every file that it would read or write. The
    /// permission check relies on nothing else, so there is no default implementation.
    fn intent(&self, arguments: &Value) -> Intent;

    /// Computes the changes that a call would make in files. The approval prompt shows these
    /// changes instead of the arguments. If the preview fails, the call fails without asking for
    /// approval.
    async fn preview(&self, _context: &ToolContext, _arguments: &Value) -> PreviewResult {
        Ok(None)
    }

    /// Runs the call. The arguments are a valid JSON object. A failure is returned as an envelope,
    /// never as a panic.
    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput;
}

/// The changes that a call would make in files, as unified diffs; `Ok(None)` if the arguments are
/// clearer than a diff. The error is the result with which the call would fail.
pub type PreviewResult = Result<Option<String>, Envelope>;

/// The value of `change` in the result data of a call that left a file as it was, because the file
/// already had the requested content.
pub const UNCHANGED: &str = "unchanged";

/// The result of a call: the envelope for the model, and the effects on the turn.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// The result that the model reads and the store keeps.
    pub envelope: Envelope,
    /// The images that belong to the result.
    pub images: Vec<Image>,
    /// The files that the call changed.
    pub changes: Vec<FileChange>,
    /// The model requests that the call made. For each request, the model, the tokens, and the cost
    /// if it is known.
    pub requests: Vec<(String, Usage, Option<Cost>)>,
    /// The way in which the turn continues after the call.
    pub flow: TurnFlow,
    /// The condition of the tool after the call; each [`ToolHealth::Broken`] counts toward blocking
    /// the tool.
    pub health: ToolHealth,
}

/// The condition of a tool, as shown by a call. A command that exits with an error, an edit that
/// does not match, invalid arguments and a denial do not count against the tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolHealth {
    /// The tool works, whether or not the call succeeded.
    #[default]
    Sound,
    /// The tool crashed, or something that it depends on is missing.
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
    /// The absolute path of the file.
    pub path: PathBuf,
    pub kind: ChangeKind,
}

/// The way in which the turn continues after a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TurnFlow {
    /// The turn continues: the model gets the result.
    #[default]
    Continue,
    /// A question is shown to the user, whose answer becomes the result.
    Ask {
        question: String,
        /// The answers to choose from; if empty, the user writes an answer.
        options: Vec<String>,
    },
    /// A plan is shown to the user, whose response becomes the result.
    Plan {
        response: String,
        /// The responses to choose from.
        options: Vec<String>,
    },
    /// The turn ends, because the task is done.
    Complete {
        result: String,
        /// A command that demonstrates the result to the user.
        command: Option<String>,
    },
}
