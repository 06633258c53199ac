//! The tasks of a server. Each task is a conversation and runs as a session of its own on the
//! server's thread.
//!
//! Invariants: a task has at most one run at a time. A session is open only while its run lasts, so
//! the store holds the whole state and another process can continue the task.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use haft_agent::{Approval, ApprovalReply, Approver, ConversationChoice, Session, TurnLimits};
use haft_types::{ConversationId, Event, EventBody, PermissionMode};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::task_view::{TaskState, TaskStatus, TaskView};
use super::tools::TaskRow;
use crate::host::{Host, HostError, OpenRequest, WrittenPrompt, new_conversation_id};

/// The maximum number of tasks that run at the same time.
const MAX_RUNNING_TASKS: usize = 32;
/// The time limit for canceled tasks to end when the server shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why an operation on a task failed, with a message for the caller.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The task is neither known to this server nor stored.
    #[error("there is no task `{0}`; list_tasks shows the tasks of a project")]
    Unknown(String),
    /// The task cannot be started, because it is already running.
    #[error("the task is still running; wait for it with get_task, or cancel it with cancel_task")]
    Running,
    /// The task cannot be started, because too many tasks are running.
    #[error("{MAX_RUNNING_TASKS} tasks are running; wait for one of them, or cancel one")]
    TooMany,
    /// The requested permission mode allows more than the configured mode.
    #[error(
        "the mode `{wanted}` allows more than the configured mode `{limit}`; the user can raise it with `[permissions] mode` or `haft mcp serve --permission-mode`"
    )]
    Mode {
        wanted: PermissionMode,
        limit: PermissionMode,
    },
    /// The working folder does not exist.
    #[error("`{0}` is not a folder")]
    NoFolder(String),
    /// The host reported an error.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// The callers who choose the permission modes of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCaller {
    /// The user. They may choose every mode but `yolo`.
    User,
    /// Another program, such as an agent. It gets at most the configured mode, and in a folder that
    /// the user does not trust at most `ask`.
    Program,
}

/// The parameters of a run of a task.
#[derive(Clone, Default)]
pub struct RunRequest {
    /// The prompt that starts the run. If `None`, the run resumes an interrupted turn.
    pub prompt: Option<String>,
    /// The model for this and later runs, as `provider/model`. If `None`, the model does not
    /// change.
    pub model: Option<String>,
    /// The permission mode for this and later runs, within the limit of the [`TaskCaller`]. If
    /// `None`, the mode does not change.
    pub mode: Option<PermissionMode>,
    /// Limits on the turns, tokens, cost and time of the run.
    pub limits: TurnLimits,
    /// True if a person wrote the prompt, so that its commands and mentions are expanded.
    pub typed: bool,
}

/// A task that another program delegated to haft.
pub struct DelegatedTask {
    /// The id of the task's conversation.
    pub id: ConversationId,
    cwd: PathBuf,
    /// The first prompt, kept until the task is stored.
    unstored_prompt: Mutex<Option<String>>,
    state: watch::Sender<TaskState>,
    choices: Mutex<RunSettings>,
    /// The senders through which open approvals receive their answers, by approval id.
    replies: Mutex<HashMap<String, oneshot::Sender<ApprovalReply>>>,
    host: Arc<Host>,
}

/// The settings that were last chosen for a task, and the state of its current run.
struct RunSettings {
    model: Option<String>,
    mode: Option<PermissionMode>,
    cancel: CancellationToken,
    /// The number of approvals requested so far. The ids of approvals are derived from it.
    approvals: u64,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DelegatedTask {
    fn new(
        id: ConversationId,
        cwd: PathBuf,
        first: Option<String>,
        mut state: TaskState,
        host: Arc<Host>,
    ) -> Arc<Self> {
        id.as_str().clone_into(&mut state.view.task_id);
        state.view.cwd = cwd.display().to_string();
        let choices = RunSettings {
            model: None,
            mode: None,
            cancel: CancellationToken::new(),
            approvals: 0,
        };
        let state = watch::Sender::new(state);
        let choices = Mutex::new(choices);
        Arc::new(Self {
            id,
            cwd,
            unstored_prompt: Mutex::new(first),
            state,
            choices,
            replies: Mutex::default(),
            host,
        })
    }

    /// Returns a copy of the task's current state.
    pub fn state(&self) -> TaskState {
        self.state.borrow().clone()
    }

    /// Returns the first prompt, or `None` once the task is stored.
    pub fn first_prompt(&self) -> Option<String> {
        lock_mutex(&self.unstored_prompt).clone()
    }

    /// Returns a copy of the part of the state that clients see.
    pub fn view(&self) -> TaskView {
        self.state.borrow().view.clone()
    }

    /// Returns a receiver that is notified when the task's state changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<TaskState> {
        self.state.subscribe()
    }

    /// Cancels the current run of the task, if there is one.
    pub fn cancel(&self) {
        lock_mutex(&self.choices).cancel.cancel();
    }

    /// Answers the open approval with the id `approval`. Returns false if it is no longer open.
    pub fn answer_approval(&self, approval: &str, reply: ApprovalReply) -> bool {
        lock_mutex(&self.replies)
            .remove(approval)
            .is_some_and(|waiting| waiting.send(reply).is_ok())
    }

    fn fail_run(&self, message: String) {
        self.state
            .send_modify(|state| state.stop_run(TaskStatus::Failed, message));
    }

    fn apply_event(&self, event: &Event) {
        if matches!(event.body, EventBody::Conversation { .. }) {
            lock_mutex(&self.unstored_prompt).take();
        }
        self.state
            .send_if_modified(|state| state.apply_event(event));
    }

    /// Returns the conversation that a run opens, and the run's prompt. A task that was never
    /// stored starts from the beginning, with its first prompt placed before `prompt`.
    fn conversation_to_open(&self, prompt: Option<String>) -> (ConversationChoice, Option<String>) {
        let Some(title) = lock_mutex(&self.unstored_prompt).clone() else {
            return (
                ConversationChoice::Named(self.id.as_str().to_owned()),
                prompt,
            );
        };
        let whole = match prompt {
            Some(prompt) if prompt != title => format!("{title}\n\n{prompt}"),
            _ => title.clone(),
        };
        (
            ConversationChoice::NewAs {
                title,
                id: self.id.clone(),
            },
            Some(whole),
        )
    }

    fn forget_approval(&self, id: &str) {
        lock_mutex(&self.replies).remove(id);
        self.state.send_modify(|state| state.close_approval(id));
    }
}

/// An approver that adds approval requests to the task's state, from which clients read them, and
/// waits for the answers.
struct TaskApprover(Arc<DelegatedTask>);

/// A guard for an open approval. When the approval is answered or its call is canceled, the guard
/// is dropped and removes the approval from the task's state.
struct OpenApproval<'a>(&'a DelegatedTask, String);

impl Drop for OpenApproval<'_> {
    fn drop(&mut self) {
        self.0.forget_approval(&self.1);
    }
}

#[async_trait]
impl Approver for TaskApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let task = &self.0;
        let id = {
            let mut choices = lock_mutex(&task.choices);
            choices.approvals += 1;
            choices.approvals.to_string()
        };
        let (sender, receiver) = oneshot::channel();
        lock_mutex(&task.replies).insert(id.clone(), sender);
        let open = OpenApproval(task, id.clone());
        task.state
            .send_modify(|state| state.open_approval(id, approval));
        let reply = receiver.await.unwrap_or(ApprovalReply::No {
            reason: String::new(),
        });
        drop(open);
        reply
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.0.host.save_rules(rules)
    }
}

/// The tasks that a server has started or loaded, by the id of their conversation.
pub struct DelegatedTasks {
    host: Arc<Host>,
    cwd: PathBuf,
    caller: TaskCaller,
    known: Mutex<HashMap<ConversationId, Arc<DelegatedTask>>>,
    local: mpsc::UnboundedSender<LocalWork>,
    /// A token that is canceled when the only client has disconnected.
    pub(super) shutdown: CancellationToken,
}

/// A run that has been accepted but not yet started.
struct PendingRun {
    task: Arc<DelegatedTask>,
    request: OpenRequest,
    prompt: Option<String>,
    typed: bool,
    cancel: CancellationToken,
}

/// A closure that is executed on the thread on which sessions run.
type LocalWork = Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>;

/// Receives the runs of tasks, and executes them on the thread on which sessions run.
pub struct TaskRuns(mpsc::UnboundedReceiver<LocalWork>);

impl TaskRuns {
    /// Runs the work that [`DelegatedTasks`] sends, until its sender is dropped.
    pub async fn run_until_closed(mut self) {
        while let Some(work) = self.0.recv().await {
            tokio::task::spawn_local(work());
        }
    }
}

impl PendingRun {
    async fn run_and_report_panic(self) {
        let task = Arc::clone(&self.task);
        if tokio::task::spawn_local(self.open_and_run()).await.is_err() {
            task.fail_run("the run broke; see `haft logs`".to_owned());
        }
    }

    async fn open_and_run(self) {
        let Self {
            task,
            request,
            prompt,
            typed,
            cancel,
        } = self;
        let opening = async {
            let prompt = match prompt {
                Some(text) if typed => Some(expand_prompt(&task, &request, text, &cancel).await?),
                prompt => prompt,
            };
            Ok::<_, HostError>((task.host.open_session(request).await?, prompt))
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = cancel.cancelled() => {
                let message = "the task was cancelled before it began".to_owned();
                return task.state.send_modify(|state| state.stop_run(TaskStatus::Aborted, message));
            }
        };
        match opened {
            Ok((session, prompt)) => {
                let result = Box::pin(run_turn(session, &task, prompt, &cancel)).await;
                task.state.send_modify(|state| state.finish_run(result));
            }
            Err(error) => task.fail_run(error.to_string()),
        }
    }
}

/// Expands the commands and mentions in `text`, a prompt that a person wrote.
async fn expand_prompt(
    task: &Arc<DelegatedTask>,
    request: &OpenRequest,
    text: String,
    cancel: &CancellationToken,
) -> Result<String, HostError> {
    let mode = request.mode.unwrap_or_else(|| task.host.default_mode());
    let approver = request.task.approver.clone();
    let cancel = cancel.clone();
    task.host
        .expand_prompt(WrittenPrompt {
            cwd: &task.cwd,
            text,
            mode,
            approver,
            cancel,
        })
        .await
}

/// Runs one turn in a session that is closed at the end, so that another process can open the
/// conversation.
async fn run_turn(
    mut session: Session,
    task: &Arc<DelegatedTask>,
    prompt: Option<String>,
    cancel: &CancellationToken,
) -> haft_types::TurnResult {
    let mut sink = |event: &Event| task.apply_event(event);
    let report = session.run(prompt, &mut sink, cancel).await;
    session.close().await;
    report.result
}

impl DelegatedTasks {
    /// Creates an empty list of tasks. Tasks without a folder work in `cwd`.
    /// [`TaskRuns::run_until_closed`] must run at the same time, on a thread with a `LocalSet`.
    pub fn new(host: Arc<Host>, cwd: PathBuf, caller: TaskCaller) -> (Arc<Self>, TaskRuns) {
        let (local, receiver) = mpsc::unbounded_channel();
        let tasks = Self {
            host,
            cwd,
            caller,
            known: Mutex::default(),
            local,
            shutdown: CancellationToken::new(),
        };
        (Arc::new(tasks), TaskRuns(receiver))
    }

    /// Returns the tasks that were started or loaded by this server.
    pub fn known_tasks(&self) -> Vec<Arc<DelegatedTask>> {
        lock_mutex(&self.known).values().cloned().collect()
    }

    /// Returns a task that this server has started or loaded.
    pub fn known_task(&self, id: &ConversationId) -> Option<Arc<DelegatedTask>> {
        lock_mutex(&self.known).get(id).cloned()
    }

    /// Starts a new task in a folder, which may be relative to the server's folder.
    pub fn start_task(
        &self,
        cwd: Option<&str>,
        request: RunRequest,
    ) -> Result<Arc<DelegatedTask>, TaskError> {
        let cwd = self.resolve_folder(cwd)?;
        let id = new_conversation_id();
        let first = request.prompt.clone();
        let task = DelegatedTask::new(
            id.clone(),
            cwd,
            first,
            TaskState::default(),
            Arc::clone(&self.host),
        );
        self.start_run(&task, request)?;
        lock_mutex(&self.known).insert(id, Arc::clone(&task));
        Ok(task)
    }

    /// Starts another run of a task. Fails if the task is already running.
    pub fn start_run(
        &self,
        task: &Arc<DelegatedTask>,
        request: RunRequest,
    ) -> Result<(), TaskError> {
        // The user may have changed the configuration since the last run.
        self.host.reload_config()?;
        let limit = self.find_mode_limit();
        if let Some(wanted) = request.mode.filter(|wanted| *wanted > limit) {
            return Err(TaskError::Mode { wanted, limit });
        }
        if lock_mutex(&self.known)
            .values()
            .filter(|task| task.state.borrow().is_running)
            .count()
            >= MAX_RUNNING_TASKS
        {
            return Err(TaskError::TooMany);
        }
        let began = task.state.send_if_modified(|state| {
            let free = !state.is_running;
            if free {
                state.begin_run();
            }
            free
        });
        if !began {
            return Err(TaskError::Running);
        }
        let cancel = CancellationToken::new();
        let mut choices = lock_mutex(&task.choices);
        choices.cancel = cancel.clone();
        choices.model = request.model.or(choices.model.take());
        choices.mode = request.mode.or(choices.mode);
        // The configured mode may have been lowered since the task got its mode.
        let mode = choices
            .mode
            .unwrap_or_else(|| self.host.default_mode())
            .min(limit);
        let mode = match self.caller {
            TaskCaller::Program if !self.host.is_trusted(&task.cwd) => {
                mode.min(PermissionMode::Ask)
            }
            TaskCaller::Program | TaskCaller::User => mode,
        };
        let (which, prompt) = task.conversation_to_open(request.prompt);
        let mut open = OpenRequest {
            model: choices.model.clone(),
            mode: Some(mode),
            ..OpenRequest::new(task.cwd.clone(), which)
        };
        open.task.approver = Some(Arc::new(TaskApprover(Arc::clone(task))));
        open.task.limits = request.limits;
        drop(choices);
        let typed = request.typed;
        let run = PendingRun {
            task: Arc::clone(task),
            request: open,
            prompt,
            typed,
            cancel,
        };
        if self
            .local
            .send(Box::new(|| run.run_and_report_panic().boxed_local()))
            .is_err()
        {
            task.fail_run("the server is about to end".to_owned());
        }
        Ok(())
    }

    /// Returns the most permissive mode that a task can have. A client that is not at the terminal
    /// cannot turn all protection off.
    fn find_mode_limit(&self) -> PermissionMode {
        match self.caller {
            TaskCaller::User => PermissionMode::Auto,
            TaskCaller::Program => self.host.default_mode().min(PermissionMode::Auto),
        }
    }

    /// Returns the task with this id. The task may have been started by another server or by `haft`
    /// itself.
    pub async fn find_task(&self, id: &str) -> Result<Arc<DelegatedTask>, TaskError> {
        let wanted = ConversationId::new(id);
        if let Some(known) = lock_mutex(&self.known).get(&wanted) {
            return Ok(Arc::clone(known));
        }
        let asked = wanted.clone();
        let stored = self
            .call_host(|host| async move { host.read_conversation(&asked).await }.boxed_local())
            .await;
        let (folder, messages) = stored.map_err(|error| match error {
            HostError::NotFound(_) => TaskError::Unknown(id.to_owned()),
            other => other.into(),
        })?;
        let state = TaskState::from_messages(TaskView::default(), &messages);
        let task = DelegatedTask::new(wanted.clone(), folder, None, state, Arc::clone(&self.host));
        Ok(Arc::clone(
            lock_mutex(&self.known).entry(wanted).or_insert(task),
        ))
    }

    /// Calls the host on the thread on which sessions run, because the host's futures are not
    /// `Send`.
    async fn call_host<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Arc<Host>) -> LocalBoxFuture<'static, Result<T, HostError>> + Send + 'static,
    ) -> Result<T, HostError> {
        let (sender, receiver) = oneshot::channel();
        let host = Arc::clone(&self.host);
        let work = move || {
            let answer = ask(host);
            // The caller may have disconnected.
            async move { drop(sender.send(answer.await)) }.boxed_local()
        };
        let _ = self.local.send(Box::new(work));
        receiver
            .await
            .unwrap_or_else(|_| Err(HostError::Failed("the server is about to end".to_owned())))
    }

    /// Resolves a folder relative to the server's folder.
    fn resolve_folder(&self, cwd: Option<&str>) -> Result<PathBuf, TaskError> {
        let folder = cwd.map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd));
        if folder.is_dir() {
            Ok(folder)
        } else {
            Err(TaskError::NoFolder(folder.display().to_string()))
        }
    }

    /// Returns the tasks and other conversations of the project that contains `cwd`, newest first.
    /// Only tasks known to this server have a status.
    pub(super) async fn list_tasks(&self, cwd: Option<&str>) -> Result<Vec<TaskRow>, TaskError> {
        let folder = self.resolve_folder(cwd)?;
        let wanted = folder.clone();
        let listed = self
            .call_host(|host| {
                async move { host.list_conversations(Some(&wanted)).await }.boxed_local()
            })
            .await?;
        let known = lock_mutex(&self.known);
        let unstored = known
            .values()
            .filter(|task| task.cwd == folder)
            .filter_map(|task| {
                let name = lock_mutex(&task.unstored_prompt).clone()?;
                Some(TaskRow::from_unstored(task.view(), name))
            });
        Ok(unstored
            .chain(listed.into_iter().map(|one| {
                let task = known.get(&one.id);
                TaskRow::from_stored(task.map(|task| task.state.borrow().view.status), one)
            }))
            .collect())
    }

    /// Cancels all running tasks, and waits for a limited time until they have ended.
    pub async fn shut_down(&self) {
        self.shutdown.cancel();
        let known: Vec<_> = lock_mutex(&self.known).values().cloned().collect();
        for task in &known {
            task.cancel();
        }
        let ended = async {
            for task in &known {
                // Fails if the task no longer exists, which is fine.
                let _ = task.subscribe().wait_for(|state| !state.is_running).await;
            }
        };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await;
    }
}
