//! The tools of the MCP server as a client's model sees them, and their arguments.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::TurnLimits;
use haft_types::PermissionMode;
use rmcp::model::{ErrorData, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::task_view::{TaskStatus, TaskView};
use super::tasks::RunRequest;
use crate::host::ListedConversation;

/// The maximum time for which a call may wait for a task, in seconds.
const MAX_WAIT_SECONDS: f64 = 3600.0;

/// The permission mode of a task: the actions that need no approval.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TaskMode {
    /// The task can only read.
    Plan,
    /// Every change and every command needs an approval.
    Ask,
    /// Edits in the project are allowed; commands need an approval.
    AcceptEdits,
    /// Inside the sandbox, nothing needs an approval.
    Auto,
}

impl From<TaskMode> for PermissionMode {
    fn from(mode: TaskMode) -> Self {
        match mode {
            TaskMode::Plan => Self::Plan,
            TaskMode::Ask => Self::Ask,
            TaskMode::AcceptEdits => Self::AcceptEdits,
            TaskMode::Auto => Self::Auto,
        }
    }
}

/// The limits of a run. A task that reaches a limit is `exhausted` and can be continued.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TaskLimits {
    /// The maximum number of model replies.
    #[serde(rename = "max_turns")]
    turns: Option<u32>,
    /// The maximum number of tokens, input and output together.
    #[serde(rename = "max_tokens")]
    tokens: Option<u64>,
    /// The maximum cost in US dollars, as far as prices are known.
    #[serde(rename = "max_budget_usd")]
    budget_usd: Option<f64>,
    /// The maximum duration in seconds.
    #[serde(rename = "max_seconds")]
    seconds: Option<u32>,
}

impl From<TaskLimits> for TurnLimits {
    fn from(limits: TaskLimits) -> Self {
        Self {
            turns: limits.turns,
            tokens: limits.tokens,
            budget_usd: limits.budget_usd,
            wall_time: limits
                .seconds
                .map(|seconds| Duration::from_secs(seconds.into())),
        }
    }
}

/// Converts the argument `wait_seconds` to a duration between zero and [`MAX_WAIT_SECONDS`].
pub(super) fn clamp_wait(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_WAIT_SECONDS)).unwrap_or_default()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartArguments {
    /// The work to do, with all information that haft needs: haft cannot see your conversation.
    pub(super) prompt: String,
    /// The project folder, preferably as an absolute path. The default is the server's folder.
    pub(super) cwd: Option<String>,
    /// The model, as `provider/model`. The default is the configured model.
    model: Option<String>,
    /// The actions that need no approval. The default is the configured mode, which is also the
    /// most permissive one.
    permission_mode: Option<TaskMode>,
    #[serde(default)]
    limits: TaskLimits,
    /// The number of seconds to wait for the result; 0 returns at once. The task continues after
    /// that time.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(super) wait_seconds: f64,
    /// True if canceling this call while it waits also cancels the task.
    #[serde(default)]
    pub(super) cancel_with_call: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContinueArguments {
    /// The id of the task.
    pub(super) task_id: String,
    /// The next work to do. Without a prompt, a task that was interrupted or reached a limit
    /// continues where it stopped.
    pub(super) prompt: Option<String>,
    /// A different model than before, as `provider/model`.
    model: Option<String>,
    /// A different permission mode than before, at most the configured one.
    permission_mode: Option<TaskMode>,
    #[serde(default)]
    limits: TaskLimits,
    /// The number of seconds to wait for the result; 0 returns at once.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(super) wait_seconds: f64,
    /// True if canceling this call while it waits also cancels the task.
    #[serde(default)]
    pub(super) cancel_with_call: bool,
}

impl StartArguments {
    pub(super) fn to_run_request(&self) -> RunRequest {
        RunRequest {
            prompt: Some(self.prompt.clone()),
            model: self.model.clone(),
            mode: self.permission_mode.map(Into::into),
            limits: self.limits.into(),
            typed: false,
        }
    }
}

impl ContinueArguments {
    pub(super) fn to_run_request(&self) -> RunRequest {
        RunRequest {
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            mode: self.permission_mode.map(Into::into),
            limits: self.limits.into(),
            typed: false,
        }
    }
}

/// A decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskDecision {
    /// Allow this call only.
    Allow,
    /// Allow this call, and apply the rules in `remember` to later calls of this run. Only a user
    /// who fills in a form can save rules.
    Always,
    /// Deny the call.
    Deny,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerArguments {
    /// The id of the task.
    pub(super) task_id: String,
    /// The answer to the task's question.
    pub(super) answer: Option<String>,
    /// The decision about an approval.
    pub(super) decision: Option<TaskDecision>,
    /// The id of the approval; required if several approvals are pending.
    pub(super) approval_id: Option<String>,
    /// With `deny`: the reason, as a message for haft's model.
    #[serde(default)]
    pub(super) reason: String,
    /// The number of seconds to wait for the result; 0 returns at once.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(super) wait_seconds: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetArguments {
    /// The id of the task.
    pub(super) task_id: String,
    /// The number of seconds to wait until the task ends, asks a question or needs an approval; 0
    /// returns at once.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(super) wait_seconds: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// The project folder. The default is the server's folder.
    pub(super) cwd: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelArguments {
    /// The id of the task.
    pub(super) task_id: String,
}

/// A task in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TaskRow {
    task_id: String,
    /// The beginning of the task's first prompt, or the task's name.
    name: String,
    /// The status of the task, if this server knows the task. For other tasks, call `get_task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<TaskStatus>,
    /// The time of the newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    messages: u64,
}

impl TaskRow {
    /// Creates a row for a stored conversation.
    pub(super) fn from_stored(status: Option<TaskStatus>, one: ListedConversation) -> Self {
        let updated_at = Some(one.updated_at.to_string());
        Self {
            task_id: one.id.as_str().to_owned(),
            name: one.name,
            status,
            updated_at,
            messages: one.messages,
        }
    }

    /// Creates a row for a task that is not stored yet.
    pub(super) fn from_unstored(view: TaskView, name: String) -> Self {
        Self {
            task_id: view.task_id,
            name,
            status: Some(view.status),
            updated_at: None,
            messages: 0,
        }
    }
}

/// The tasks of a project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TaskList {
    /// The tasks, newest first.
    pub(super) tasks: Vec<TaskRow>,
    /// The number of older tasks that are not in the list.
    pub(super) left_out: usize,
}

/// The instructions that the server sends to a client's model.
pub(super) const INSTRUCTIONS: &str = include_str!("instructions.md");

/// Returns the definitions of all tools that the server offers.
pub(super) fn tool_definitions() -> Vec<Tool> {
    let acts = || {
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true)
    };
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    vec![
        define_tool::<StartArguments, TaskView>(
            ("start_task", "Start a task"),
            "Gives haft, a coding agent, a task in a project folder. haft reads and edits files and runs commands there by \
             itself. Returns the task's id and status at once, or waits up to `wait_seconds` for the result. Work of many \
             minutes: start it, then call get_task with `wait_seconds`. Read `status`: waiting means that a question or an \
             approval needs answer_task.",
            acts(),
        ),
        define_tool::<ContinueArguments, TaskView>(
            ("continue_task", "Continue a task"),
            "Gives a task that is not running its next prompt; haft still knows everything of the task. Without a prompt, a task \
             that was interrupted, cancelled or stopped by a limit goes on where it stopped.",
            acts(),
        ),
        define_tool::<AnswerArguments, TaskView>(
            ("answer_task", "Answer a task"),
            "Answers what a waiting task asks: `answer` for its question, or `decision` for an approval. Approve only what your \
             user would approve; ask them when in doubt.",
            acts(),
        ),
        define_tool::<GetArguments, TaskView>(
            ("get_task", "Get a task"),
            "Returns how a task stands: status, last text, question or approvals that wait, usage, cost and changed files. With \
             `wait_seconds` it returns when the task ends or asks something.",
            reads(),
        ),
        define_tool::<ListArguments, TaskList>(
            ("list_tasks", "List tasks"),
            "Lists the tasks and other conversations of a project, the newest first.",
            reads(),
        ),
        define_tool::<CancelArguments, TaskView>(
            ("cancel_task", "Cancel a task"),
            "Cancels the work on a task and returns how it stands then. Changes in files stay; continue_task can go on with it.",
            ToolAnnotations::new()
                .read_only(false)
                .destructive(false)
                .idempotent(true)
                .open_world(false),
        ),
    ]
}

fn define_tool<A: JsonSchema, R: JsonSchema>(
    (name, title): (&'static str, &str),
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    let mut tool = Tool::new(name, description, build_inlined_schema::<A>());
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(build_inlined_schema::<R>());
    tool.annotations = Some(annotations);
    tool
}

/// Returns the schema of a type with all references inlined, because some clients do not resolve
/// references.
fn build_inlined_schema<T: JsonSchema>() -> Arc<JsonObject> {
    let plain = RecursiveTransform(|schema: &mut schemars::Schema| {
        // Formats such as `uint64` are specific to Rust, and clients warn about them.
        schema.remove("format");
        // Line breaks of a doc comment must not appear in a description.
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = description.replace('\n', " ");
        }
    });
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(plain);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// Parses the arguments of a tool call. Fails with the protocol's error for invalid parameters.
pub(super) fn parse_arguments<T: DeserializeOwned>(
    given: Option<JsonObject>,
) -> Result<T, ErrorData> {
    serde_json::from_value(Value::Object(given.unwrap_or_default())).map_err(|error| {
        ErrorData::invalid_params(format!("the arguments do not fit: {error}"), None)
    })
}
