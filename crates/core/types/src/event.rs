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

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
    /// The conversation it happened in.
    pub conversation_id: ConversationId,
    /// Its number within the run, from 1, without gaps.
    pub seq: u64,
    /// The agent it happened to: `main`, or a sub-agent's name.
    pub agent: String,
}

/// How far a tool call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallPhase {
    /// The model named the tool.
    Started,
    /// A piece of its arguments arrived, in `raw`.
    Arguments,
    /// The call is whole.
    Finished,
}

/// How far a compaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionPhase {
    /// The summary is being written.
    Started,
    /// The summary stands in for the archived rounds.
    Finished,
    /// It could not be made; only recent history is sent.
    Failed,
}

/// How far a background task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// It runs.
    Started,
    /// It ended with exit code 0.
    Finished,
    /// It ended otherwise, or could not be run.
    Failed,
    /// It was ended: on request, or because the run was over.
    Killed,
    /// The haft that ran it ended without a report; so did the task.
    Lost,
}

/// How far a sub-agent has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentPhase {
    /// It begins.
    Started,
    /// It is over.
    Finished,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It did not exist before.
    Added,
    /// Its content changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// The share of one layer in a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLayer {
    /// The layer.
    pub layer: Layer,
    /// Its estimated tokens.
    pub tokens: u64,
    /// Its part of the window, 0 to 1.
    pub share: f64,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// The run begins; always first.
    Conversation {
        /// Whether the conversation existed before.
        resumed: bool,
        /// Its name.
        name: String,
        /// The model, as `provider/model`.
        model: String,
        /// The working directory.
        cwd: String,
        /// What holds commands in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxStatus>,
    },
    /// Words of the answer, as they arrive.
    Text {
        /// The new text.
        text: String,
    },
    /// Words of the reasoning, as they arrive.
    Thinking {
        /// The new text.
        text: String,
    },
    /// A tool call takes shape.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// How far it has come.
        phase: CallPhase,
        /// The parsed arguments, once whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The raw text: a piece of it, or all of it once whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    /// A tool has run and its result is stored.
    ToolResult {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// How it ended.
        status: ToolStatus,
        /// What the model reads.
        text: String,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
    },
    /// A tool that is still running has something to show. Not part of the result: only for those
    /// who watch.
    ToolProgress {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// What is new, short.
        text: String,
    },
    /// What one request cost; after every request.
    Usage {
        /// The model, as `provider/model`.
        model: String,
        /// Tokens by class.
        usage: Usage,
        /// Money by class; null without prices.
        cost: Option<Cost>,
        /// Tokens this request did not hold because what was read again was referred to; left out
        /// when there are none.
        #[serde(default, skip_serializing_if = "is_zero")]
        saved_tokens: u64,
    },
    /// How full the window is; before each request.
    Window {
        /// Estimated tokens of the request.
        tokens: u64,
        /// The model's window.
        window: u64,
        /// Tokens left out by pruning.
        pruned_tokens: u64,
        /// The round, from 1.
        round: u32,
    },
    /// Where the tokens of the next request go; before each request.
    Budget {
        /// Each layer's share.
        layers: Vec<BudgetLayer>,
        /// Tokens kept free for the reply.
        output_reserve: u64,
        /// Tokens left.
        remaining: i64,
        /// The model's window.
        window: u64,
    },
    /// Where the reminders stand in the next request.
    Reminders {
        /// Their place among the messages, the system message being 0.
        index: usize,
        /// Which ones there are, in order: role, todo, useful, notes.
        kinds: Vec<String>,
    },
    /// The next request is not an extension of the one before.
    PrefixBreak {
        /// A stable name for the cause.
        cause: String,
        /// The cause for people.
        message: String,
        /// The place of the first segment that differs.
        index: usize,
        /// Who put that segment there.
        owner: String,
        /// The short id of its message.
        message_id: String,
        /// Tokens that were sent before and are sent anew.
        tokens: u64,
        /// What that costs more than reading them from the cache, in USD; null without prices.
        cost: Option<f64>,
    },
    /// Something of the conversation is not sent, or not whole.
    Pruning {
        /// What was done: `cleared`, `deleted`, `older_rounds`, `short_system`, `excerpts`,
        /// `bare_minimum` or `refused_as_too_long`.
        step: String,
        /// Tokens left out.
        tokens: u64,
        /// The sentence for people.
        message: String,
    },
    /// Older rounds are being archived behind a summary.
    Compaction {
        /// How far it has come.
        phase: CompactionPhase,
        /// How many rounds.
        rounds: u32,
        /// The sentence for people.
        message: String,
    },
    /// A request failed and will be tried again.
    Retry {
        /// Which retry this is, from 1.
        attempt: u32,
        /// How many there may be; null without limit.
        limit: Option<u32>,
        /// The wait before it.
        delay_ms: u64,
        /// What went wrong.
        reason: String,
    },
    /// Something a person should know, and no failure.
    Notice {
        /// A stable name for programs.
        code: String,
        /// What, where, and what to do.
        message: String,
    },
    /// Something went wrong.
    Error {
        /// A stable name for programs.
        code: String,
        /// What, where, and what to do.
        message: String,
    },
    /// The model asks the user.
    Question {
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// The model puts a plan before the user, and waits for their decision.
    Plan {
        /// The plan.
        response: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// The model says the task is done.
    Completion {
        /// Its report.
        result: String,
        /// A command that shows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
    /// A tool changed a file.
    FileChanged {
        /// The file, relative to the project where it lies inside.
        path: String,
        /// What happened to it.
        change: ChangeKind,
    },
    /// A command in the background was started or has ended.
    BackgroundTask {
        /// The task's id.
        id: String,
        /// How far it has come.
        phase: TaskPhase,
        /// What it runs.
        command: String,
        /// Its exit code, if it ended with one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The file with its output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// The sentence for people.
        message: String,
    },
    /// A sub-agent begins or is over. The event's `agent` and `conversation_id` are the sub-agent's
    /// own, as in all its events.
    Subagent {
        /// How far it has come.
        phase: SubagentPhase,
        /// The agent's name in its file; `agent` differs where the same one works several times at
        /// once.
        name: String,
        /// The conversation of whoever started it.
        parent: ConversationId,
        /// The call that started it.
        call_id: String,
        /// Its model, as `provider/model`.
        model: String,
        /// What it is to do.
        task: String,
        /// What came of it, once it is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Box<TurnResult>>,
    },
    /// The run is over; always last.
    Result(TurnResult),
}

/// The last event of a run, and the whole output of `--output-format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnResult {
    /// How it ended.
    pub outcome: Outcome,
    /// A stable name for the reason.
    pub code: String,
    /// The reason for people.
    pub message: String,
    /// The answer.
    pub text: String,
    /// Requests answered in this run.
    pub turns: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// Tokens of all requests.
    pub usage: Usage,
    /// Money of all requests as far as it is known; null without prices.
    pub cost: Option<Cost>,
    /// The answer as data, where a schema was asked for and the answer fits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// True where the model ended the run as done although every write and command of it failed,
    /// or no call of it succeeded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nothing_changed: bool,
}

impl TurnResult {
    /// The `code` of a run whose store failed.
    pub const STORE_FAILED: &str = "store";

    /// True if the store failed: the run may succeed when it is repeated.
    pub fn is_of_store(&self) -> bool {
        self.code == Self::STORE_FAILED
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
