//! Tasks that run in other processes of this user: followed, answered and steered through the
//! sockets of their sessions.
//!
//! Invariant: an attached task holds no session. If this process ends, the task goes on.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_agent::{ApprovalReply, MAIN_AGENT, RandomIds};
use haft_attach::{
    ApprovalAnswer, AttachLine, AttachState, Attachable, AttachedSession, ClientLine, ReceivedLine,
    SessionInfo, find_sessions,
};
use haft_types::{ConversationId, EventBody, IdSource};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;

use super::task_view::{TaskState, TaskStatus};

/// The time after which a task is left that no page has shown.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// The time limit for the reaction of a session to an answer or a message. A message that joins a
/// turn is stored before the next request, which can take longer.
const REACTION_TIMEOUT: Duration = Duration::from_secs(2);

/// The refusal of an answer to an approval that is not open, as sessions word it.
const ANSWERED: &str = "it has been answered, or is no longer asked";

/// The running sessions of other processes to which this process is attached.
pub struct AttachedTasks {
    /// The folder of the sockets.
    folder: PathBuf,
    known: Mutex<HashMap<ConversationId, Arc<AttachedTask>>>,
}

/// A task of another process.
pub struct AttachedTask {
    info: SessionInfo,
    state: watch::Sender<FollowedState>,
    lines: UnboundedSender<ClientLine>,
    last_use: Mutex<Instant>,
}

/// The state of a task of another process.
#[derive(Clone, Debug, Default)]
pub struct FollowedState {
    pub task: TaskState,
    /// The texts of the messages that the session has not stored yet, oldest first.
    pub unstored: Vec<String>,
    /// The servers whose forms are open. Pages cannot fill them in.
    pub forms: Vec<String>,
    /// True if the last approval was allowed by another front end, false if it was denied; `None` if
    /// this one answered it.
    pub allowed_elsewhere: Option<bool>,
    /// The reason why the session refused a line of this process.
    pub refusal: Option<String>,
    /// The ids of [`Self::unstored`].
    sent: Vec<String>,
    /// The ids of [`Self::forms`].
    open_forms: Vec<String>,
    /// The number of the wait that the next message answers.
    idle: Option<u64>,
    /// True once the connection has ended.
    is_over: bool,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AttachedTasks {
    /// Creates an empty list of tasks, whose sockets are in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            known: Mutex::default(),
        }
    }

    /// Returns the descriptions of all running sessions of this user.
    pub async fn list_sessions(&self) -> Vec<SessionInfo> {
        let found = find_sessions(&self.folder).await.unwrap_or_default();
        let info = |one| match one {
            Attachable::Session { info, .. } => Some(*info),
            Attachable::Unusable { .. } | Attachable::Removed { .. } => None,
        };
        found.into_iter().filter_map(info).collect()
    }

    /// Returns the task of a conversation if this process is attached to it.
    pub fn known_task(&self, id: &ConversationId) -> Option<Arc<AttachedTask>> {
        let task = lock_mutex(&self.known).get(id).cloned()?;
        task.touch();
        let is_over = task.state.borrow().is_over;
        (!is_over).then_some(task)
    }

    /// Attaches to the session of a conversation, if it runs in another process and this process is
    /// not attached to it yet. Returns `None` if no session accepts this process.
    pub async fn attach_task(&self, id: &ConversationId) -> Option<Arc<AttachedTask>> {
        if let Some(known) = self.known_task(id) {
            return Some(known);
        }
        let found = find_sessions(&self.folder).await.ok()?;
        let socket = found.into_iter().find_map(|one| match one {
            Attachable::Session { info, socket }
                if info.conversation_id == id.as_str() && info.process != std::process::id() =>
            {
                Some(socket)
            }
            Attachable::Session { .. }
            | Attachable::Unusable { .. }
            | Attachable::Removed { .. } => None,
        })?;
        let session = AttachedSession::connect(&self.folder, &socket).await.ok()?;
        let task = AttachedTask::follow(session);
        let mut known = lock_mutex(&self.known);
        known.retain(|_, task| !task.state.borrow().is_over);
        // Another page may have attached at this moment.
        Some(Arc::clone(known.entry(id.clone()).or_insert(task)))
    }
}

impl AttachedTask {
    /// Starts to follow a session, until it ends or no page has shown it for some time.
    fn follow(session: AttachedSession) -> Arc<Self> {
        let (lines, wanted) = unbounded_channel();
        let task = Arc::new(Self {
            info: session.info.clone(),
            state: watch::Sender::new(FollowedState::new(&session.info)),
            lines,
            last_use: Mutex::new(Instant::now()),
        });
        tokio::spawn(Arc::clone(&task).follow_until_left(session, wanted));
        task
    }

    /// Returns a copy of the task's current state.
    pub fn state(&self) -> FollowedState {
        self.state.borrow().clone()
    }

    fn touch(&self) {
        *lock_mutex(&self.last_use) = Instant::now();
    }

    async fn follow_until_left(
        self: Arc<Self>,
        mut session: AttachedSession,
        mut wanted: UnboundedReceiver<ClientLine>,
    ) {
        loop {
            let left_at = *lock_mutex(&self.last_use) + IDLE_TIMEOUT;
            tokio::select! {
                line = session.next_text() => match line {
                    Ok(Some(line)) => {
                        let line = ReceivedLine::parse(&line);
                        self.state.send_modify(|state| state.apply_line(line, self.info.client));
                    }
                    Ok(None) | Err(_) => break,
                },
                // The sender is in `self`.
                Some(line) = wanted.recv() => if session.send(&line).await.is_err() {
                    break;
                },
                () = tokio::time::sleep_until(left_at) => {
                    if lock_mutex(&self.last_use).elapsed() >= IDLE_TIMEOUT {
                        break;
                    }
                }
            }
        }
        self.state.send_modify(FollowedState::end);
    }

    /// Sends a line, and waits for a limited time until `is_settled`.
    async fn send_line(&self, line: ClientLine, is_settled: impl Fn(&FollowedState) -> bool) {
        self.touch();
        let mut watched = self.state.subscribe();
        self.state.send_modify(|state| state.refusal = None);
        // The task has ended if the line cannot be sent.
        drop(self.lines.send(line));
        let settled = watched.wait_for(|state| state.is_over || is_settled(state));
        drop(tokio::time::timeout(REACTION_TIMEOUT, settled).await);
    }

    /// Ends the running turn.
    pub async fn interrupt(&self) {
        self.send_line(ClientLine::Interrupt {}, |state| {
            !state.task.is_running || state.refusal.is_some()
        })
        .await;
    }

    /// Answers an approval, unless another front end has answered it before. Returns the reason why
    /// the answer does not count.
    pub async fn answer_approval(&self, id: &str, reply: ApprovalReply) -> Result<(), String> {
        if !self.state.borrow().has_approval(id) {
            return Err(ANSWERED.to_owned());
        }
        let line = ClientLine::Approval {
            id: id.to_owned(),
            answer: reply.into(),
        };
        self.send_line(line, |state| {
            state.refusal.is_some() || !state.has_approval(id)
        })
        .await;
        self.take_refusal()
    }

    /// Sends a message, which joins the running turn or begins the next one. Returns the reason why
    /// the session refused it.
    pub async fn send_message(&self, text: String) -> Result<(), String> {
        let id = RandomIds.new_uuid().to_string();
        let mut answers = None;
        self.state.send_modify(|state| {
            answers = state.idle.take();
            state.sent.push(id.clone());
            state.unstored.push(text.clone());
        });
        let line = ClientLine::User {
            text,
            id: Some(id.clone()),
            answers,
        };
        self.send_line(line, |state| !state.sent.contains(&id))
            .await;
        self.take_refusal()
    }

    /// Returns the last refusal, and forgets it.
    fn take_refusal(&self) -> Result<(), String> {
        let mut refusal = None;
        self.state
            .send_modify(|state| refusal = state.refusal.take());
        refusal.map_or(Ok(()), Err)
    }
}

impl From<TaskState> for FollowedState {
    fn from(task: TaskState) -> Self {
        Self {
            task,
            ..Self::default()
        }
    }
}

impl FollowedState {
    fn new(info: &SessionInfo) -> Self {
        let mut state = Self::default();
        state.task.view.task_id.clone_from(&info.conversation_id);
        state.task.view.cwd.clone_from(&info.cwd);
        state.task.view.model.clone_from(&info.model);
        match info.state {
            AttachState::Running | AttachState::Asking => state.task.begin_run(),
            // The lines that follow tell how the last turn ended.
            AttachState::Idle | AttachState::Closed => state.task.view.status = TaskStatus::Waiting,
        }
        state
    }

    fn has_approval(&self, id: &str) -> bool {
        let approvals = &self.task.view.approvals;
        approvals.iter().any(|one| one.approval_id == id)
    }

    fn end(&mut self) {
        self.is_over = true;
        self.task.is_running = false;
        self.task.view.approvals.clear();
    }

    fn apply_line(&mut self, line: ReceivedLine, client: u64) {
        match line {
            ReceivedLine::Event(event) => {
                self.task.apply_event(&event);
                if let EventBody::Result(result) = event.body
                    && event.agent == MAIN_AGENT
                {
                    self.task.finish_run(result);
                }
            }
            ReceivedLine::Control(line) => self.apply_control(*line, client),
            ReceivedLine::Unknown => {}
        }
    }

    fn apply_control(&mut self, line: AttachLine, client: u64) {
        match line {
            AttachLine::TurnBegan {} => {
                self.idle = None;
                self.allowed_elsewhere = None;
                self.task.begin_run();
            }
            AttachLine::TurnEnded {} => self.task.is_running = false,
            AttachLine::User { id, .. } => self.forget_message(id.as_deref()),
            AttachLine::Idle { prompt } => self.idle = Some(prompt),
            AttachLine::ApprovalRequest { id, approval } => {
                self.allowed_elsewhere = None;
                self.task.open_approval(id, &approval);
            }
            AttachLine::ApprovalAnswered {
                id,
                client: by,
                answer,
            } => {
                let is_denied = matches!(answer, ApprovalAnswer::Deny { .. });
                self.allowed_elsewhere = (by != Some(client)).then_some(!is_denied);
                self.task.close_approval(&id);
            }
            AttachLine::FormRequest { id, from, .. } => {
                self.open_forms.push(id);
                self.forms.push(from);
            }
            AttachLine::FormAnswered { id, .. } => self.close_form(&id),
            AttachLine::Withdrawn { id } => {
                self.task.close_approval(&id);
                self.close_form(&id);
            }
            AttachLine::Refused { id, message } => {
                self.forget_message(id.as_deref());
                self.refusal = Some(message);
            }
            AttachLine::Attach(_)
            | AttachLine::Skipped { .. }
            | AttachLine::Live {}
            | AttachLine::Mode { .. }
            | AttachLine::Detached { .. } => {}
        }
    }

    fn forget_message(&mut self, id: Option<&str>) {
        if let Some(at) = self.sent.iter().position(|sent| Some(sent.as_str()) == id) {
            self.sent.remove(at);
            self.unstored.remove(at);
        }
    }

    fn close_form(&mut self, id: &str) {
        if let Some(at) = self.open_forms.iter().position(|open| open == id) {
            self.open_forms.remove(at);
            self.forms.remove(at);
        }
    }
}
