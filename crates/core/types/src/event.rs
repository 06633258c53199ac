//! The events of a run, written as one JSON object per line. Their names are a contract with the
//! programs that read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::ConversationId;
use crate::outcome::Outcome;
use crate::price::Cost;
use crate::request::Layer;
use crate::sandbox::SandboxStatus;
use crate::tool::{ToolError, ToolStatus};
use crate::usage::Usage;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The kind of the event, with its data.
    #[serde(flatten)]
    pub body: EventBody,
    /// The conversation that the event belongs to.
    pub conversation_id: ConversationId,
    /// The number within the run, from 1, without gaps.
    pub seq: u64,
    /// The agent that the event belongs to: `main`, or a sub-agent's name.
    pub agent: String,
}

/// The phase of a tool call, from the model's first word about it to its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// The model named the tool.
    Started,
    /// A piece of the arguments arrived, in `raw`.
    Arguments,
    /// The call is complete. It may still wait for earlier calls or for an approval.
    Finished,
    /// The call is permitted and begins to run. Calls that are refused never run.
    Running,
}

/// The progress of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionPhase {
    /// The summary is being written.
    Started,
    /// The summary replaces the archived rounds.
    Finished,
    /// The summary could not be made; only recent history is sent.
    Failed,
}

/// The progress of a background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// The task was started.
    Started,
    /// The task ended with exit code 0.
    Finished,
    /// The task ended with an exit code other than 0, or could not be run.
    Failed,
    /// The task was killed, on request or at the end of the run.
    Killed,
    /// The haft process that ran the task ended without reporting a result, and the task ended with
    /// it.
    Lost,
}

/// The progress of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentPhase {
    /// The sub-agent was started.
    Started,
    /// The sub-agent has ended.
    Finished,
}

/// The kind of change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file was created.
    Added,
    /// The content was changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

/// The size of one layer of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLayer {
    /// The layer of the request.
    pub layer: Layer,
    /// The estimated number of tokens in the layer.
    pub tokens: u64,
    /// The layer's share of the window, from 0 to 1.
    pub share: f64,
}

/// The kinds of events, each with its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The run begins. Always the first event.
    Conversation {
        /// True if the conversation existed before.
        resumed: bool,
        /// The name of the conversation.
        name: String,
        /// The model, as `provider/model`.
        model: String,
        /// The working directory.
        cwd: String,
        /// The sandbox in which commands run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxStatus>,
    },
    /// A new piece of the answer's text.
    Text {
        /// The new text.
        text: String,
    },
    /// A new piece of the reasoning's text.
    Thinking {
        /// The new text.
        text: String,
    },
    /// A tool call is arriving from the model.
    ToolCall {
        /// The call's id.
        id: String,
        /// The name of the tool.
        name: String,
        /// The progress of the call.
        phase: CallPhase,
        /// The parsed arguments, once the call is complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The raw text of the arguments: a piece of it, or all of it once the call is complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    /// A tool has run and its result is stored.
    ToolResult {
        /// The call's id.
        id: String,
        /// The name of the tool.
        name: String,
        /// The status of the call.
        status: ToolStatus,
        /// The text of the result, as the model reads it.
        text: String,
        /// The reason for a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// A running tool reports progress. The report is meant for people and is not part of the
    /// result.
    ToolProgress {
        /// The call's id.
        id: String,
        /// The name of the tool.
        name: String,
        /// A short progress message.
        text: String,
    },
    /// The usage and cost of one request. Sent after every request.
    Usage {
        /// The model, as `provider/model`.
        model: String,
        /// The number of tokens in each class.
        usage: Usage,
        /// The cost of each class of tokens; null without prices.
        cost: Option<Cost>,
        /// The number of tokens saved by replacing repeated reads with a reference. Omitted if
        /// zero.
        #[serde(default, skip_serializing_if = "is_zero")]
        saved_tokens: u64,
    },
    /// The fill level of the window. Sent before each request.
    Window {
        /// The estimated number of tokens in the request.
        tokens: u64,
        /// The size of the model's window in tokens.
        window: u64,
        /// The number of tokens left out by pruning.
        pruned_tokens: u64,
        /// The number of the round, from 1.
        round: u32,
    },
    /// The tokens of the next request by layer. Sent before each request.
    Budget {
        /// The size of each layer.
        layers: Vec<BudgetLayer>,
        /// The number of tokens kept free for the reply.
        output_reserve: u64,
        /// The number of tokens that are still free; negative if the request does not fit.
        remaining: i64,
        /// The size of the model's window in tokens.
        window: u64,
    },
    /// The position of the reminders in the next request.
    Reminders {
        /// The index among the messages; the system message has index 0.
        index: usize,
        /// The kinds of reminders, in order: role, todo, useful, notes.
        kinds: Vec<String>,
    },
    /// The next request does not extend the previous one.
    PrefixBreak {
        /// A stable name for the cause, for programs.
        cause: String,
        /// A description of the cause, for people.
        message: String,
        /// The index of the first segment that differs from the previous request.
        index: usize,
        /// The component that added the segment.
        owner: String,
        /// The short id of the message that contains the segment.
        message_id: String,
        /// The number of tokens that were sent before and are expected to be billed again.
        tokens: u64,
        /// The extra cost of these tokens in USD, compared with reading them from the cache; null
        /// without prices.
        cost: Option<f64>,
        /// True if `tokens` and `cost` are a forecast from the documented rules of the provider's
        /// cache, because the request has not been sent. `haft context why` prints the figures
        /// that agree with the bill.
        #[serde(default)]
        forecast: bool,
    },
    /// A part of the conversation is left out or shortened.
    Pruning {
        /// The kind of pruning: `cleared`, `deleted`, `older_rounds`, `short_system`, `excerpts`,
        /// `bare_minimum` or `refused_as_too_long`.
        step: String,
        /// The number of tokens left out.
        tokens: u64,
        /// A message that describes the event, for people.
        message: String,
    },
    /// Older rounds are archived and replaced by a summary.
    Compaction {
        /// The progress of the compaction.
        phase: CompactionPhase,
        /// The number of rounds that are archived.
        rounds: u32,
        /// A message that describes the event, for people.
        message: String,
    },
    /// A request failed and will be retried.
    Retry {
        /// The number of the retry, from 1.
        attempt: u32,
        /// The maximum number of retries; null without a limit.
        limit: Option<u32>,
        /// The wait before the retry, in milliseconds.
        delay_ms: u64,
        /// The reason for the failure.
        reason: String,
    },
    /// Information for the user that is not an error.
    Notice {
        /// A stable name for programs.
        code: String,
        /// The problem, its place, and the remedy.
        message: String,
    },
    /// An error occurred.
    Error {
        /// A stable name for programs.
        code: String,
        /// The problem, its place, and the remedy.
        message: String,
    },
    /// The model asks the user a question.
    Question {
        /// The question.
        question: String,
        /// The answers to choose from.
        options: Vec<String>,
    },
    /// The model presents a plan and waits for the user's decision.
    Plan {
        /// The text of the plan.
        response: String,
        /// The answers to choose from.
        options: Vec<String>,
    },
    /// The model reports that the task is done.
    Completion {
        /// The model's report.
        result: String,
        /// A command that demonstrates the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// A tool changed a file.
    FileChanged {
        /// The path of the file, relative to the project if the file is inside it.
        path: String,
        /// The kind of change.
        change: ChangeKind,
    },
    /// A background command was started or has ended.
    BackgroundTask {
        /// The task's id.
        id: String,
        /// The progress of the task.
        phase: TaskPhase,
        /// The command line.
        command: String,
        /// The exit code, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The file that contains the output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// A message that describes the event, for people.
        message: String,
    },
    /// A sub-agent was started or has ended. `agent` and `conversation_id` of the event are the
    /// sub-agent's own, as in all its events.
    Subagent {
        /// The progress of the sub-agent.
        phase: SubagentPhase,
        /// The name of the agent, as in its file; `agent` differs if several agents with that name
        /// run at once.
        name: String,
        /// The conversation of the agent that started the sub-agent.
        parent: ConversationId,
        /// The id of the tool call that started the sub-agent.
        call_id: String,
        /// The model, as `provider/model`.
        model: String,
        /// The task of the sub-agent.
        task: String,
        /// The result, once the sub-agent has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<TurnResult>>,
    },
    /// The run is over. Always the last event.
    Result(TurnResult),
}

/// The last event of a run, and the whole output of `--output-format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// The outcome of the turn.
    pub outcome: Outcome,
    /// A stable name for the reason of the outcome, for programs.
    pub code: String,
    /// The reason for the outcome, for people.
    pub message: String,
    /// The text of the answer.
    pub text: String,
    /// The number of requests that were answered.
    pub turns: u32,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The tokens of all requests, by class.
    pub usage: Usage,
    /// The cost of all requests, as far as it is known; null without prices.
    pub cost: Option<Cost>,
    /// The answer as data, if a schema was requested and the answer matches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// True if the model reported success although all its writes and edits failed, or if a small
    /// model changed no file although the prompt asks for a change.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nothing_changed: bool,
}

impl TurnResult {
    /// The [`TurnResult::code`] of a run whose store failed.
    pub const STORE_FAILURE_CODE: &str = "store";

    /// True if the run ended because its store failed. A second attempt may succeed.
    pub fn is_store_failure(&self) -> bool {
        self.code == Self::STORE_FAILURE_CODE
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
