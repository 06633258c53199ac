//! Handles the calls of a client: implements each tool, and waits for tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft_agent::ApprovalReply;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ElicitResult, ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData as McpError, ServerHandler};
use serde::Serialize;
use tokio::time::Instant;

use super::elicitation::{FormState, FormSupport, NeedAnswer, TaskNeed};
use super::task_view::{TaskState, TaskStatus};
use super::tasks::{DelegatedTask, DelegatedTasks, RunRequest, TaskError};
use super::tools::{
    self, AnswerArguments, CancelArguments, ContinueArguments, GetArguments, ListArguments,
    StartArguments, TaskDecision, TaskList,
};

/// The interval at which waiting clients get a progress notification even if nothing has changed.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum time for which `cancel_task` waits until the canceled task has ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of tasks that `list_tasks` returns.
const MAX_LISTED_TASKS: usize = 50;

/// The reason why a tool call from a client failed.
#[derive(Debug, thiserror::Error)]
enum CallError {
    /// The call is invalid and is answered with a protocol error.
    #[error(transparent)]
    Protocol(#[from] McpError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error("an approval waits: say `decision`: allow, always or deny")]
    NoDecision,
    #[error("{0} approvals wait: say `approval_id`")]
    WhichApproval(usize),
    #[error("the approval is no longer waiting")]
    ApprovalGone,
    #[error(
        "the user decides: call get_task with `wait_seconds`, and this client shows them the approval"
    )]
    UserDecides,
    #[error("the task asks nothing; continue_task gives it another prompt")]
    NothingAsked,
    #[error("the task asks a question: say `answer`")]
    NoAnswer,
}

type CallOutcome = Result<CallToolResponse, CallError>;

/// Handles the requests of one client for delegated tasks.
pub(super) struct TaskHandler {
    tasks: Arc<DelegatedTasks>,
    /// True once the client has failed to show a form although it declared support for forms.
    forms_fail: AtomicBool,
}

/// A client's call that waits for a task, with the conditions of the wait.
struct CallWait<'a> {
    context: &'a RequestContext<RoleServer>,
    wait: Duration,
    /// True if canceling the call also cancels the task.
    cancel_with_call: bool,
}

/// The reason why a call stops waiting for a task.
enum WaitEnd {
    /// The task has ended or needs an answer, or the waiting time is over, so the task's state is
    /// returned.
    Return,
    /// The client's user has to fill in a form before the call can continue.
    Round(Box<rmcp::model::InputRequiredResult>),
}

fn structured_result(value: &impl Serialize) -> CallOutcome {
    let value = serde_json::to_value(value)
        .map_err(|error| McpError::internal_error(error.to_string(), None))?;
    Ok(CallToolResult::structured(value).into())
}

impl TaskHandler {
    pub(super) fn new(tasks: Arc<DelegatedTasks>) -> Self {
        Self {
            tasks,
            forms_fail: AtomicBool::new(false),
        }
    }

    fn form_support(&self, context: &RequestContext<RoleServer>) -> FormSupport {
        if self.forms_fail.load(Ordering::Relaxed) {
            FormSupport::None
        } else {
            FormSupport::from_context(context)
        }
    }

    async fn dispatch_call(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallOutcome {
        let answered = self.apply_form(&request).await?;
        let arguments = request.arguments.take();
        match request.name.as_ref() {
            "start_task" => self.start_task(arguments, answered, context).await,
            "continue_task" => self.continue_task(arguments, answered, context).await,
            "answer_task" => self.answer_task(arguments, answered, context).await,
            "get_task" => {
                let GetArguments {
                    task_id,
                    wait_seconds,
                } = tools::parse_arguments(arguments)?;
                let task = self.tasks.find_task(&task_id).await?;
                self.wait_and_respond(
                    &task,
                    CallWait {
                        context,
                        wait: tools::clamp_wait(wait_seconds),
                        cancel_with_call: false,
                    },
                )
                .await
            }
            "list_tasks" => self.list_tasks(tools::parse_arguments(arguments)?).await,
            "cancel_task" => self.cancel_task(tools::parse_arguments(arguments)?).await,
            other => {
                Err(McpError::invalid_params(format!("there is no tool `{other}`"), None).into())
            }
        }
    }

    async fn start_task(
        &self,
        arguments: Option<JsonObject>,
        answered: Option<Arc<DelegatedTask>>,
        context: &RequestContext<RoleServer>,
    ) -> CallOutcome {
        let arguments: StartArguments = tools::parse_arguments(arguments)?;
        if arguments.prompt.trim().is_empty() {
            return Err(McpError::invalid_params("the prompt is empty", None).into());
        }
        let task = match answered {
            Some(task) => task,
            None => self
                .tasks
                .start_task(arguments.cwd.as_deref(), arguments.to_run_request())?,
        };
        let wait = tools::clamp_wait(arguments.wait_seconds);
        let cancel_with_call = arguments.cancel_with_call;
        self.wait_and_respond(
            &task,
            CallWait {
                context,
                wait,
                cancel_with_call,
            },
        )
        .await
    }

    async fn continue_task(
        &self,
        arguments: Option<JsonObject>,
        answered: Option<Arc<DelegatedTask>>,
        context: &RequestContext<RoleServer>,
    ) -> CallOutcome {
        let arguments: ContinueArguments = tools::parse_arguments(arguments)?;
        if arguments
            .prompt
            .as_ref()
            .is_some_and(|prompt| prompt.trim().is_empty())
        {
            return Err(McpError::invalid_params("the prompt is empty", None).into());
        }
        let task = self.tasks.find_task(&arguments.task_id).await?;
        if answered.is_none() {
            self.tasks.start_run(&task, arguments.to_run_request())?;
        }
        let wait = tools::clamp_wait(arguments.wait_seconds);
        let cancel_with_call = arguments.cancel_with_call;
        self.wait_and_respond(
            &task,
            CallWait {
                context,
                wait,
                cancel_with_call,
            },
        )
        .await
    }

    async fn answer_task(
        &self,
        arguments: Option<JsonObject>,
        answered: Option<Arc<DelegatedTask>>,
        context: &RequestContext<RoleServer>,
    ) -> CallOutcome {
        let arguments: AnswerArguments = tools::parse_arguments(arguments)?;
        let task = self.tasks.find_task(&arguments.task_id).await?;
        let wait = CallWait {
            context,
            wait: tools::clamp_wait(arguments.wait_seconds),
            cancel_with_call: false,
        };
        if answered.is_some() {
            return self.wait_and_respond(&task, wait).await;
        }
        let view = task.view();
        if !view.approvals.is_empty() {
            let decision = arguments.decision.ok_or(CallError::NoDecision)?;
            let id = match (arguments.approval_id, view.approvals.as_slice()) {
                (Some(id), _) => id,
                (None, [only]) => only.approval_id.clone(),
                (None, several) => return Err(CallError::WhichApproval(several.len())),
            };
            if decision != TaskDecision::Deny && self.form_support(context) != FormSupport::None {
                return Err(CallError::UserDecides);
            }
            let reply = match decision {
                TaskDecision::Allow => ApprovalReply::Once,
                // Saved rules would outlive the run and raise what later runs may do unasked.
                TaskDecision::Always => ApprovalReply::Session,
                TaskDecision::Deny => ApprovalReply::No {
                    reason: arguments.reason,
                },
            };
            self.answer_approval(&task, &id, reply).await?;
        } else if view.status == TaskStatus::Waiting {
            let answer = arguments
                .answer
                .filter(|answer| !answer.trim().is_empty())
                .ok_or(CallError::NoAnswer)?;
            self.tasks.start_run(
                &task,
                RunRequest {
                    prompt: Some(answer),
                    ..RunRequest::default()
                },
            )?;
        } else {
            return Err(CallError::NothingAsked);
        }
        self.wait_and_respond(&task, wait).await
    }

    /// Answers an approval, and waits until the task has received the answer.
    async fn answer_approval(
        &self,
        task: &DelegatedTask,
        id: &str,
        reply: ApprovalReply,
    ) -> Result<(), CallError> {
        if !task.answer_approval(id, reply) {
            return Err(CallError::ApprovalGone);
        }
        let taken =
            |state: &TaskState| state.view.approvals.iter().all(|one| one.approval_id != id);
        // Fails only if the task no longer exists.
        let _ = task.subscribe().wait_for(taken).await;
        Ok(())
    }

    async fn list_tasks(&self, arguments: ListArguments) -> CallOutcome {
        let mut tasks = self.tasks.list_tasks(arguments.cwd.as_deref()).await?;
        let left_out = tasks.len().saturating_sub(MAX_LISTED_TASKS);
        tasks.truncate(MAX_LISTED_TASKS);
        structured_result(&TaskList { tasks, left_out })
    }

    async fn cancel_task(&self, arguments: CancelArguments) -> CallOutcome {
        let task = self.tasks.find_task(&arguments.task_id).await?;
        task.cancel();
        let _ = tokio::time::timeout(
            CANCEL_TIMEOUT,
            task.subscribe().wait_for(|state| !state.is_running),
        )
        .await;
        structured_result(&task.view())
    }

    /// Applies the filled form that the client returns by repeating a call. Returns the form's
    /// task, or `None` if the call contains no form.
    async fn apply_form(
        &self,
        request: &CallToolRequestParams,
    ) -> Result<Option<Arc<DelegatedTask>>, CallError> {
        let Some(state) = &request.request_state else {
            return Ok(None);
        };
        let state: FormState = serde_json::from_str(state).map_err(|error| {
            McpError::invalid_params(
                format!("the request state is not one of haft's: {error}"),
                None,
            )
        })?;
        let task = self.tasks.find_task(&state.task_id).await?;
        let filled = request
            .input_responses
            .as_ref()
            .and_then(|forms| forms.get(&state.need))
            .cloned();
        let need = TaskNeed::from_view(&task.view()).filter(|need| need.key() == state.need);
        // The task may have stopped asking in the meantime.
        let (Some(filled), Some(need)) = (filled, need) else {
            return Ok(Some(task));
        };
        let filled: ElicitResult = serde_json::from_value(filled).map_err(|error| {
            McpError::invalid_params(format!("the form is not filled in: {error}"), None)
        })?;
        self.apply_answer(&task, &need, &filled).await?;
        Ok(Some(task))
    }

    /// Applies the answer in a filled form to the task. Returns false if the form contains no
    /// usable answer.
    async fn apply_answer(
        &self,
        task: &Arc<DelegatedTask>,
        need: &TaskNeed,
        filled: &ElicitResult,
    ) -> Result<bool, CallError> {
        match (need.parse_answer(filled), need) {
            (NeedAnswer::Reply(reply), TaskNeed::Approval(approval)) => {
                self.answer_approval(task, &approval.approval_id, reply)
                    .await?;
                Ok(true)
            }
            (NeedAnswer::Text(answer), _) => {
                self.tasks.start_run(
                    task,
                    RunRequest {
                        prompt: Some(answer),
                        ..RunRequest::default()
                    },
                )?;
                Ok(true)
            }
            (NeedAnswer::Open | NeedAnswer::Reply(_), _) => Ok(false),
        }
    }

    async fn wait_and_respond(&self, task: &Arc<DelegatedTask>, wait: CallWait<'_>) -> CallOutcome {
        match self.wait_for_news(task, &wait).await? {
            WaitEnd::Return => structured_result(&task.view()),
            WaitEnd::Round(form) => Ok((*form).into()),
        }
    }

    async fn wait_for_news(
        &self,
        task: &Arc<DelegatedTask>,
        call: &CallWait<'_>,
    ) -> Result<WaitEnd, CallError> {
        if call.wait.is_zero() {
            return Ok(WaitEnd::Return);
        }
        let deadline = Instant::now() + call.wait;
        let mut watch = task.subscribe();
        let mut progress = ProgressReporter::new(call.context);
        loop {
            let (need, runs, activity) = {
                let state = watch.borrow_and_update();
                (
                    TaskNeed::from_view(&state.view),
                    state.is_running,
                    state.activity.clone(),
                )
            };
            progress.report_activity(&activity).await;
            if let Some(need) = need {
                match self.ask_user(task, &need, call).await? {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            if !runs {
                return Ok(WaitEnd::Return);
            }
            tokio::select! {
                _ = watch.changed() => {}
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => progress.resend_activity().await,
                () = tokio::time::sleep_until(deadline) => return Ok(WaitEnd::Return),
                () = self.tasks.shutdown.cancelled() => return Ok(WaitEnd::Return),
                () = call.context.ct.cancelled() => {
                    if call.cancel_with_call {
                        task.cancel();
                    }
                    return Ok(WaitEnd::Return);
                }
            }
        }
    }

    /// Shows the task's approval or question to the client's user, if the client can show forms.
    /// Returns the reason to stop waiting, or `None` to continue waiting.
    async fn ask_user(
        &self,
        task: &Arc<DelegatedTask>,
        need: &TaskNeed,
        call: &CallWait<'_>,
    ) -> Result<Option<WaitEnd>, CallError> {
        match self.form_support(call.context) {
            FormSupport::None => Ok(Some(WaitEnd::Return)),
            FormSupport::Rounds => {
                let round = need.build_form_result(task.id.as_str());
                Ok(Some(round.map_or(WaitEnd::Return, |round| {
                    WaitEnd::Round(Box::new(round))
                })))
            }
            FormSupport::Requests => {
                let Some(form) = need.build_form() else {
                    return Ok(Some(WaitEnd::Return));
                };
                let mut watch = task.subscribe();
                let filled = tokio::select! {
                    filled = call.context.peer.create_elicitation(form) => filled,
                    _ = watch.wait_for(|state| TaskNeed::from_view(&state.view).as_ref() != Some(need)) => return Ok(None),
                    () = self.tasks.shutdown.cancelled() => return Ok(Some(WaitEnd::Return)),
                    () = call.context.ct.cancelled() => {
                        if call.cancel_with_call {
                            task.cancel();
                        }
                        return Ok(Some(WaitEnd::Return));
                    }
                };
                let Ok(filled) = filled else {
                    // The client failed to show the form. Its model can answer with `answer_task`.
                    self.forms_fail.store(true, Ordering::Relaxed);
                    return Ok(Some(WaitEnd::Return));
                };
                let answered = self.apply_answer(task, need, &filled).await?;
                Ok(if answered {
                    None
                } else {
                    Some(WaitEnd::Return)
                })
            }
        }
    }
}

/// Sends progress notifications to a client whose call is waiting.
struct ProgressReporter<'a> {
    context: &'a RequestContext<RoleServer>,
    steps: u32,
    last: String,
}

impl<'a> ProgressReporter<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Self {
            context,
            steps: 0,
            last: String::new(),
        }
    }

    async fn report_activity(&mut self, activity: &str) {
        if activity != self.last {
            activity.clone_into(&mut self.last);
            self.resend_activity().await;
        }
    }

    async fn resend_activity(&mut self) {
        let Some(token) = self.context.meta.get_progress_token() else {
            return;
        };
        self.steps += 1;
        let progress = ProgressNotificationParam::new(token, f64::from(self.steps))
            .with_message(self.last.clone());
        // A client that misses a notification can call `get_task` again.
        let _ = self.context.peer.notify_progress(progress).await;
    }
}

impl ServerHandler for TaskHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let server = Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft");
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(tools::INSTRUCTIONS.trim_end())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::tool_definitions()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.dispatch_call(request, &context).await {
            Ok(response) => Ok(response),
            Err(CallError::Protocol(error)) => Err(error),
            Err(error) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into())
            }
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Known methods end up here if their parameters are invalid.
        const KNOWN_METHODS: [&str; 5] = [
            "initialize",
            "ping",
            "server/discover",
            "tools/list",
            "tools/call",
        ];
        Err(if KNOWN_METHODS.contains(&request.method.as_str()) {
            ErrorData::invalid_params(
                format!("the parameters of `{}` do not fit", request.method),
                None,
            )
        } else {
            ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method `{}`", request.method),
                None,
            )
        })
    }
}
