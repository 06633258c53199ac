//! The state of a task as its tools return it, built from the events of its runs or from its stored
//! messages.

use std::collections::{BTreeMap, HashMap};

use haft_agent::{Approval, MAIN_AGENT};
use haft_messages::{CallHeadline, TaskActivity};
use haft_types::{
    CallPhase, ChangeKind, Event, EventBody, Message, Outcome, Role, ToolStatus, TurnResult, Usage,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The name, as stored in messages, of the tool with which the model asks the user a question. A
/// call ends the turn.
const ASK_TOOL: &str = "ask_followup_question";
/// The name, as stored in messages, of the tool with which the model presents a plan. A call ends
/// the turn.
const PLAN_TOOL: &str = "plan_mode_respond";
/// The name, as stored in messages, of the tool with which the model reports the final result. A
/// call ends the turn.
const COMPLETION_TOOL: &str = "attempt_completion";

/// The maximum width of a call's headline, in columns.
const MAX_HEADLINE_COLUMNS: usize = 120;

/// The status of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// haft is working on the task.
    #[default]
    Running,
    /// The task is waiting for the answer to a question or an approval.
    Waiting,
    /// The task is done.
    Completed,
    /// An error ended the task.
    Failed,
    /// The task was canceled or interrupted. It can be continued.
    Aborted,
    /// The task reached a limit. It can be continued.
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

/// A question that haft's model asks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskQuestion {
    /// The text of the question, or the plan that needs a decision.
    pub question: String,
    /// Suggested answers. Any other text is also allowed.
    pub options: Vec<String>,
}

/// A tool call that waits for an approval.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskApproval {
    /// The id by which an answer refers to this approval.
    pub approval_id: String,
    /// The agent that made the call: `main`, or the name of a sub-agent.
    pub agent: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments of the call. They are not part of the JSON, because `subject` shows them.
    #[serde(skip)]
    pub arguments: Value,
    /// The exact command that would run, or the exact content that would be written. Characters
    /// without a visible form are written as symbols such as `␛` or `<U+202E>`.
    pub subject: String,
    /// The reason why the call needs an approval.
    pub reason: String,
    /// True if the call would run outside of the sandbox.
    pub leaves_sandbox: bool,
    /// The rules that `always` would save. If the list is empty, `always` allows only this call.
    pub remember: Vec<String>,
}

impl TaskApproval {
    /// Describes an open approval, in the form in which users are shown it.
    pub fn new(approval_id: String, approval: &Approval) -> Self {
        Self {
            approval_id,
            agent: approval.agent.clone(),
            tool: approval.tool.clone(),
            arguments: approval.arguments.clone(),
            subject: approval.shown_subject(),
            reason: approval.shown_reason(),
            leaves_sandbox: approval.leaves_sandbox,
            remember: approval.shown_rules(),
        }
    }
}

/// A file that a task changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct ChangedFile {
    /// The path of the file, relative to the project if the file is inside the project.
    path: String,
    /// The kind of the last change of the file.
    change: ChangeKind,
}

/// The state of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TaskView {
    /// The id of the task, which is also the id of its conversation.
    pub task_id: String,
    /// The status of the task.
    pub status: TaskStatus,
    /// The last text of haft's model. For a completed task, the final answer.
    pub text: String,
    /// An explanation of the status; may be empty.
    pub message: String,
    /// The question that waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<TaskQuestion>,
    /// The tool calls that wait for an approval.
    pub approvals: Vec<TaskApproval>,
    /// The working folder of the task.
    pub cwd: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// The tokens used since this server started or loaded the task.
    pub usage: Usage,
    /// The cost of these tokens in US dollars; null if a price is unknown.
    pub cost_usd: Option<f64>,
    /// The files changed since this server started or loaded the task.
    #[schemars(with = "Vec<ChangedFile>")]
    #[serde(serialize_with = "serialize_changed_files")]
    pub changed_files: BTreeMap<String, ChangeKind>,
}

/// Describes a tool call in one line, which is safe to print.
fn describe_call(tool: &str, arguments: &Value) -> String {
    let line = CallHeadline::new(tool, arguments).to_line();
    haft_text::truncate_to_width(&haft_text::sanitize(&line), MAX_HEADLINE_COLUMNS).into_owned()
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
    /// The part of the state that clients see.
    pub view: TaskView,
    /// True while a run of the task is in progress.
    pub is_running: bool,
    /// A description of the latest activity, for progress notifications.
    pub activity: String,
    /// The headlines of the calls that have no result yet, by agent and call id.
    open_calls: HashMap<(String, String), String>,
    /// True if the next text from the model starts a new message, so that it replaces the text in
    /// the view.
    starts_message: bool,
    /// True if the price of at least one request is unknown, so that the total cost is unknown.
    unpriced: bool,
}

impl TaskState {
    /// Prepares the state for the next run: clears the message, the text and the question.
    pub(super) fn begin_run(&mut self) {
        self.is_running = true;
        self.activity = TaskActivity::Start.to_line();
        self.open_calls.clear();
        let view = &mut self.view;
        (view.status, view.question) = (TaskStatus::Running, None);
        view.message.clear();
        view.text.clear();
    }

    /// Updates the state after an event of the run. Returns true if waiting clients must be
    /// notified.
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
                id,
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                let call = describe_call(name, arguments.as_ref().unwrap_or(&Value::Null));
                // An approval may be asked for before the event of its call arrives.
                if self.view.approvals.is_empty() {
                    self.activity = if main {
                        TaskActivity::Call(&call).to_line()
                    } else {
                        let agent = &haft_text::sanitize(&event.agent);
                        TaskActivity::AgentCall { agent, call: &call }.to_line()
                    };
                }
                let key = (event.agent.clone(), id.clone());
                self.open_calls.insert(key, call);
                return true;
            }
            EventBody::ToolResult {
                id, name, status, ..
            } => {
                let key = (event.agent.clone(), id.clone());
                let call = self.open_calls.remove(&key);
                let call = call.unwrap_or_else(|| describe_call(name, &Value::Null));
                self.activity = match status {
                    ToolStatus::Success | ToolStatus::Partial => {
                        TaskActivity::Done(&call).to_line()
                    }
                    ToolStatus::Error => TaskActivity::Failed(&call).to_line(),
                };
                return true;
            }
            EventBody::Retry { reason, .. } => {
                self.activity = TaskActivity::Retry(reason).to_line();
                return true;
            }
            _ => {}
        }
        false
    }

    /// Adds an approval that waits for an answer.
    pub(super) fn open_approval(&mut self, id: String, approval: &Approval) {
        let call = describe_call(&approval.tool, &approval.arguments);
        self.activity = TaskActivity::Approval(&call).to_line();
        self.view.approvals.push(TaskApproval::new(id, approval));
        self.view.status = TaskStatus::Waiting;
    }

    /// Removes an approval that was answered or is no longer needed.
    pub(super) fn close_approval(&mut self, id: &str) {
        self.view.approvals.retain(|one| one.approval_id != id);
        if self.is_running && self.view.approvals.is_empty() {
            self.view.status = TaskStatus::Running;
        }
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
        self.activity = TaskActivity::End(&result.outcome.name()).to_line();
    }

    /// Records that the run ended without a result, with the given status and message.
    pub(super) fn stop_run(&mut self, status: TaskStatus, message: String) {
        self.is_running = false;
        self.view.approvals.clear();
        self.view.status = status;
        self.activity.clone_from(&message);
        self.view.message = message;
    }

    /// Derives the state of a task that is not running from its stored messages.
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
