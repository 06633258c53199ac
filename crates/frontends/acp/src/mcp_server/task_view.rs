//! The state of a task as its tools return it, built from the events of its runs or from its stored
//! messages.

use std::collections::BTreeMap;

use haft_agent::{Approval, MAIN_AGENT};
use haft_types::{
    CallPhase, ChangeKind, Event, EventBody, Message, Outcome, Role, ToolStatus, TurnResult, Usage,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The tool that asks the user a question, under the name with which calls are stored. It ends the
/// turn.
const ASK_TOOL: &str = "ask_followup_question";
/// The tool that presents a plan, under the name with which calls are stored. It ends the turn.
const PLAN_TOOL: &str = "plan_mode_respond";
/// The tool that reports the final result, under the name with which calls are stored. It ends the
/// turn.
const COMPLETION_TOOL: &str = "attempt_completion";

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// haft works on it.
    #[default]
    Running,
    /// A question or an approval waits for an answer.
    Waiting,
    /// It is done.
    Completed,
    /// It could not go on.
    Failed,
    /// It was cancelled or interrupted; it can be continued.
    Aborted,
    /// A limit was reached; it can be continued.
    Exhausted,
}

impl From<Outcome> for TaskStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Waiting => Self::Waiting,
            Outcome::Aborted => Self::Aborted,
            Outcome::Exhausted => Self::Exhausted,
            Outcome::Failed => Self::Failed,
        }
    }
}

/// A question of haft's model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskQuestion {
    /// The question, or the plan that waits for a decision.
    pub question: String,
    /// Answers to choose from; any other text is possible, too.
    pub options: Vec<String>,
}

/// A call of haft's model that waits for a yes or no.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskApproval {
    /// By which an answer names it.
    pub approval_id: String,
    /// The agent that calls: `main`, or a sub-agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Exactly what would run or be written.
    pub subject: String,
    /// Why it is asked.
    pub reason: String,
    /// Whether it would run outside of the sandbox.
    pub leaves_sandbox: bool,
    /// The rules that `always` would write; without any, `always` means this once.
    pub remember: Vec<String>,
}

impl TaskApproval {
    pub(super) fn new(approval_id: String, approval: &Approval) -> Self {
        Self {
            approval_id,
            agent: approval.agent.clone(),
            tool: approval.tool.clone(),
            subject: approval.subject.clone(),
            reason: approval.reason.clone(),
            leaves_sandbox: approval.leaves_sandbox,
            remember: approval.remember.clone(),
        }
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct ChangedFile {
    /// The file, relative to the project where it lies inside.
    path: String,
    /// What happened to it last.
    change: ChangeKind,
}

/// A task as its tools give it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TaskView {
    /// The id of the task, which is the id of its conversation.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// The last text of haft's model; the answer once the task is completed.
    pub text: String,
    /// Why it stands so, where that needs saying.
    pub message: String,
    /// The question that waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<TaskQuestion>,
    /// The calls that wait for a yes or no.
    pub approvals: Vec<TaskApproval>,
    /// The folder it works in.
    pub cwd: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// Tokens used since this server knows the task.
    pub usage: Usage,
    /// What they cost in USD; null without prices.
    pub cost_usd: Option<f64>,
    /// The files that were changed since this server knows the task.
    #[schemars(with = "Vec<ChangedFile>")]
    #[serde(serialize_with = "serialize_changed_files")]
    pub changed_files: BTreeMap<String, ChangeKind>,
}

fn serialize_changed_files<S: serde::Serializer>(
    files: &BTreeMap<String, ChangeKind>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(files.iter().map(|(path, change)| ChangedFile {
        path: path.clone(),
        change: *change,
    }))
}

/// The state of a task: the view for clients, and the data needed to update it.
#[derive(Clone, Debug, Default)]
pub struct TaskState {
    /// The view for clients.
    pub view: TaskView,
    /// True while the task has a run.
    pub is_running: bool,
    /// A description of the latest activity, for progress notifications.
    pub activity: String,
    /// True if the next text starts a new message.
    starts_message: bool,
    /// True if a request had no price.
    unpriced: bool,
}

impl TaskState {
    /// Resets the state for another run.
    pub(super) fn begin_run(&mut self) {
        self.is_running = true;
        "the task begins".clone_into(&mut self.activity);
        let view = &mut self.view;
        (view.status, view.question) = (TaskStatus::Running, None);
        view.message.clear();
        view.text.clear();
    }

    /// Applies an event of the run. Returns true if waiting clients must be notified.
    pub(super) fn apply_event(&mut self, event: &Event) -> bool {
        let main = event.agent == MAIN_AGENT;
        match &event.body {
            EventBody::Conversation { model, .. } if main => self.view.model.clone_from(model),
            EventBody::Window { .. } if main => self.starts_message = true,
            EventBody::Text { text } if main => {
                if std::mem::take(&mut self.starts_message) {
                    self.view.text.clear();
                }
                self.view.text.push_str(text);
            }
            EventBody::Question { question, options }
            | EventBody::Plan {
                response: question,
                options,
            } if main => {
                self.view.question = Some(TaskQuestion {
                    question: question.clone(),
                    options: options.clone(),
                });
            }
            EventBody::FileChanged { path, change } => {
                self.view.changed_files.insert(path.clone(), *change);
            }
            EventBody::Usage { usage, cost, .. } => {
                self.view.usage += *usage;
                self.unpriced |= cost.is_none();
                let total =
                    self.view.cost_usd.unwrap_or_default() + cost.map_or(0.0, |cost| cost.total);
                self.view.cost_usd = Some(total).filter(|_| !self.unpriced);
            }
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                ..
            } => {
                self.activity = if main {
                    format!("calls {name}")
                } else {
                    format!("{}: calls {name}", event.agent)
                };
                return true;
            }
            EventBody::ToolResult { name, status, .. } => {
                let ended = if *status == ToolStatus::Error {
                    "failed"
                } else {
                    "is done"
                };
                self.activity = format!("{name} {ended}");
                return true;
            }
            EventBody::Retry { reason, .. } => {
                self.activity = format!("asks the model again: {reason}");
                return true;
            }
            _ => {}
        }
        false
    }

    /// Records the result of the run.
    pub(super) fn finish_run(&mut self, result: TurnResult) {
        self.is_running = false;
        let view = &mut self.view;
        view.approvals.clear();
        view.status = result.outcome.into();
        if view.status != TaskStatus::Waiting {
            view.question = None;
        }
        if !result.text.is_empty() {
            view.text = result.text;
        }
        if view.status != TaskStatus::Completed {
            view.message = result.message;
        }
        self.activity = format!("the task is {}", result.outcome.name());
    }

    /// Records that the run ended without a result.
    pub(super) fn stop_run(&mut self, status: TaskStatus, message: String) {
        self.is_running = false;
        self.view.approvals.clear();
        self.view.status = status;
        self.activity.clone_from(&message);
        self.view.message = message;
    }

    /// Derives the state of a task without a run from its stored messages.
    pub(super) fn from_messages(view: TaskView, messages: &[Message]) -> Self {
        let mut state = Self {
            view,
            ..Self::default()
        };
        let mut messages = messages
            .iter()
            .rev()
            .filter(|message| message.role != Role::Summary)
            .peekable();
        let newest = messages.peek().copied();
        let view = &mut state.view;
        view.status = TaskStatus::Aborted;
        "the run was interrupted; continue_task goes on with it".clone_into(&mut view.message);
        let (Some(newest), Some(reply)) = (
            newest,
            messages.find(|message| message.role == Role::Assistant),
        ) else {
            return state;
        };
        view.text = reply.joined_text();
        let calls: Vec<_> = reply.tool_calls().collect();
        let argument = |name: &str, key: &str| {
            let call = calls.iter().find(|call| call.name == name)?;
            serde_json::from_str::<Value>(&call.arguments)
                .ok()?
                .get(key)
                .cloned()
        };
        let text = |value: Value| value.as_str().map(str::to_owned);
        if newest.message_id == reply.message_id {
            let asked = argument(ASK_TOOL, "question")
                .or_else(|| argument(PLAN_TOOL, "response"))
                .and_then(text);
            if calls.is_empty() {
                (view.status, view.message) = (TaskStatus::Completed, String::new());
            } else if let Some(question) = asked {
                let options =
                    argument(ASK_TOOL, "options").or_else(|| argument(PLAN_TOOL, "options"));
                let options = options
                    .and_then(|options| serde_json::from_value(options).ok())
                    .unwrap_or_default();
                view.question = Some(TaskQuestion { question, options });
                (view.status, view.message) = (TaskStatus::Waiting, String::new());
            }
        } else if let Some(report) = argument(COMPLETION_TOOL, "result").and_then(text)
            && newest
                .tool_results()
                .all(|result| result.envelope.status != ToolStatus::Error)
        {
            (view.status, view.message, view.text) = (TaskStatus::Completed, String::new(), report);
        }
        state
    }
}
