//! Shows a session that runs in another process of this user: an editor follows it, answers its
//! questions and sends it prompts.
//!
//! Invariant: an attached session holds no conversation. If the editor ends, the session goes on.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentChunk, CurrentModeUpdate, NoticeSeverity, PromptResponse, SessionUpdate,
};
use haft_agent::{Approval, ApprovalReply, Approver, EventSink, MAIN_AGENT, RandomIds};
use haft_attach::{
    AttachLine, Attachable, AttachedSession, ClientLine, ReceivedLine, SessionInfo, find_sessions,
};
use haft_types::{
    ConversationId, CostSum, EventBody, Form, IdSource, Message, Origin, PermissionMode, Role,
    TurnResult,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};
use tokio_util::sync::CancellationToken;

use crate::approval::EditorApprover;
use crate::live_session::{invalid_request, to_prompt_response};
use crate::updates::TurnUpdates;

/// The time limit for the lines of the running turn, which a session sends at once.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(5);

/// A session to which the process has attached, and whose events the editor does not get yet.
pub(crate) struct NewAttachment {
    session: AttachedSession,
    /// The lines of the current or last turn.
    backlog: Vec<ReceivedLine>,
}

impl NewAttachment {
    /// Attaches to the session of a conversation. Returns `None` if no running session accepts this
    /// process.
    pub(crate) async fn find(folder: &Path, id: &ConversationId) -> Option<Self> {
        let found = find_sessions(folder).await.ok()?;
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
        let mut session = AttachedSession::connect(folder, &socket).await.ok()?;
        let reading = read_backlog(&mut session);
        let backlog = tokio::time::timeout(BACKLOG_TIMEOUT, reading)
            .await
            .ok()??;
        Some(Self { session, backlog })
    }

    /// Returns the messages that the lines of the turn do not repeat: those before the turn.
    pub(crate) fn select_history(&self, mut messages: Vec<Message>) -> Vec<Message> {
        let repeats_turn = self.backlog.iter().any(|line| match line {
            ReceivedLine::Control(line) => matches!(**line, AttachLine::TurnBegan {}),
            ReceivedLine::Event(_) | ReceivedLine::Unknown => false,
        });
        let begin = messages
            .iter()
            .rposition(|one| one.role == Role::User && one.origin() == Origin::User);
        if repeats_turn && let Some(begin) = begin {
            messages.truncate(begin);
        }
        messages
    }

    /// Returns the state of the session when this process attached.
    pub(crate) fn info(&self) -> &SessionInfo {
        &self.session.info
    }
}

/// Reads the lines of the current or last turn. Returns `None` if the session has ended.
async fn read_backlog(session: &mut AttachedSession) -> Option<Vec<ReceivedLine>> {
    let mut backlog = Vec::new();
    loop {
        let line = ReceivedLine::parse(&session.next_text().await.ok()??);
        let is_last = match &line {
            ReceivedLine::Control(line) => matches!(**line, AttachLine::Live {}),
            ReceivedLine::Event(_) | ReceivedLine::Unknown => false,
        };
        if is_last {
            return Some(backlog);
        }
        backlog.push(line);
    }
}

/// The connection between an editor and a session of another process.
pub(crate) struct EditorAttachment {
    approver: Rc<EditorApprover>,
    /// The number of this process among the clients of the session.
    client: u64,
    lines: UnboundedSender<ClientLine>,
    /// A token that is canceled when the editor leaves.
    left: CancellationToken,
    state: watch::Sender<AttachmentState>,
    mode: Cell<PermissionMode>,
    /// The requests that the editor has open, by id. Aborting one withdraws it.
    questions: RefCell<HashMap<String, JoinHandle<()>>>,
}

#[derive(Clone, Debug, Default)]
struct AttachmentState {
    /// The reactions of the session to the editor's prompts, by id. `None` means that the prompt is
    /// stored.
    reactions: HashMap<String, Option<String>>,
    /// The number of the wait that the next prompt answers.
    idle: Option<u64>,
    is_running: bool,
    /// The result of the last turn.
    result: Option<TurnResult>,
    /// True once the connection has ended.
    is_over: bool,
}

impl EditorAttachment {
    /// Starts to follow a session. If `repeats_turn` is set, the editor gets the turn from its
    /// beginning.
    pub(crate) fn start(
        new: NewAttachment,
        approver: EditorApprover,
        repeats_turn: bool,
    ) -> Rc<Self> {
        let (lines, wanted) = unbounded_channel();
        let this = Rc::new(Self {
            approver: Rc::new(approver),
            client: new.session.info.client,
            lines,
            left: CancellationToken::new(),
            state: watch::Sender::default(),
            mode: Cell::new(new.session.info.mode),
            questions: RefCell::default(),
        });
        let following = follow_session(Rc::clone(&this), new, wanted, repeats_turn);
        spawn_local(following);
        this
    }

    /// True once the session has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.state.borrow().is_over
    }

    pub(crate) fn mode(&self) -> PermissionMode {
        self.mode.get()
    }

    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        self.mode.set(mode);
        self.send_line(ClientLine::Mode { mode });
    }

    /// Ends the connection; the session goes on.
    pub(crate) fn leave(&self) {
        self.left.cancel();
    }

    /// Sends a line. If the session has ended, the line has no effect, and the state says so.
    fn send_line(&self, line: ClientLine) {
        drop(self.lines.send(line));
    }

    /// Sends a prompt, which joins the running turn or begins the next one, and waits until that
    /// turn has ended. If `cancel` is canceled, the turn is interrupted.
    pub(crate) async fn run_prompt(
        &self,
        text: String,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let id = RandomIds.new_uuid().to_string();
        let mut answers = None;
        self.state.send_modify(|state| answers = state.idle.take());
        self.send_line(ClientLine::User {
            text,
            id: Some(id.clone()),
            answers,
        });
        let mut watched = self.state.subscribe();
        let ended = async {
            let reacted = watched
                .wait_for(|state| state.is_over || state.reactions.contains_key(&id))
                .await
                .ok()?
                .reactions
                .get(&id)
                .cloned();
            match reacted {
                Some(None) => {}
                Some(Some(refusal)) => return Some(Err(refusal)),
                None => return None,
            }
            let ended = watched.wait_for(|state| state.is_over || !state.is_running);
            let result = ended.await.ok()?.result.clone();
            result.map(Ok)
        };
        let mut ended = std::pin::pin!(ended);
        let ended = if let Some(ended) = cancel.run_until_cancelled(&mut ended).await {
            ended
        } else {
            self.send_line(ClientLine::Interrupt {});
            ended.await
        };
        match ended {
            Some(Ok(result)) => to_prompt_response(&result),
            Some(Err(refusal)) => Err(invalid_request(&refusal)),
            None => Err(invalid_request(
                "the session in the other process has ended; send the prompt again to go on here",
            )),
        }
    }

    fn handle_line(&self, line: AttachLine, updates: &mut FollowedTurn) {
        match line {
            AttachLine::TurnBegan {} => {
                self.state.send_modify(|state| {
                    state.is_running = true;
                    state.idle = None;
                    state.result = None;
                });
            }
            AttachLine::TurnEnded {} => {
                updates.finish();
                self.state.send_modify(|state| state.is_running = false);
            }
            AttachLine::User {
                text, client, id, ..
            } => {
                if client == Some(self.client) {
                    self.note_reaction(id, None);
                } else if updates.is_shown {
                    let chunk = ContentChunk::new(text.into());
                    self.approver
                        .sender
                        .send_update(SessionUpdate::UserMessageChunk(chunk));
                }
            }
            AttachLine::Idle { prompt } => {
                self.state.send_modify(|state| state.idle = Some(prompt));
            }
            AttachLine::ApprovalRequest { id, approval } => self.ask_approval(id, *approval),
            AttachLine::FormRequest {
                id,
                from,
                message,
                fields,
            } => {
                let form = Form {
                    requester: from,
                    message,
                    fields,
                };
                self.ask_form(id, form);
            }
            AttachLine::ApprovalAnswered { id, client, answer } => {
                self.withdraw_question(&id);
                if client != Some(self.client) {
                    let answered = match ApprovalReply::from(answer) {
                        ApprovalReply::No { .. } => "denied",
                        ApprovalReply::Once
                        | ApprovalReply::Always
                        | ApprovalReply::AlwaysBy { .. }
                        | ApprovalReply::Changed { .. }
                        | ApprovalReply::Session => "allowed",
                    };
                    self.notify(&format!("The question was answered elsewhere: {answered}."));
                }
            }
            AttachLine::FormAnswered { id, .. } | AttachLine::Withdrawn { id } => {
                self.withdraw_question(&id);
            }
            AttachLine::Mode { mode, client } => {
                self.mode.set(mode);
                if client != self.client {
                    let now = CurrentModeUpdate::new(mode.name());
                    self.approver
                        .sender
                        .send_update(SessionUpdate::CurrentModeUpdate(now));
                }
            }
            AttachLine::Refused { id, message } => {
                if !self.note_reaction(id, Some(message.clone())) {
                    self.notify(&format!("Not accepted: {message}."));
                }
            }
            AttachLine::Attach(_)
            | AttachLine::Skipped { .. }
            | AttachLine::Live {}
            | AttachLine::Detached { .. } => {}
        }
    }

    fn notify(&self, text: &str) {
        self.approver.sender.send_notice(NoticeSeverity::Info, text);
    }

    /// Records the reaction to a prompt. Returns false if the line was no prompt.
    fn note_reaction(&self, id: Option<String>, refusal: Option<String>) -> bool {
        // The ids of questions are numbers.
        let Some(id) = id.filter(|id| id.parse::<u64>().is_err()) else {
            return false;
        };
        self.state.send_modify(|state| {
            state.reactions.insert(id, refusal);
        });
        true
    }

    fn ask_approval(&self, id: String, approval: Approval) {
        let approver = Rc::clone(&self.approver);
        let lines = self.lines.clone();
        let asked = id.clone();
        let question = spawn_local(async move {
            let answer = approver.ask(&approval).await.into();
            drop(lines.send(ClientLine::Approval { id: asked, answer }));
        });
        self.questions.borrow_mut().insert(id, question);
    }

    fn ask_form(&self, id: String, form: Form) {
        if !self.approver.sender.features.forms {
            let from = &form.requester;
            return self.notify(&format!(
                "{from} asks for a form, which this editor cannot show; `haft attach` can."
            ));
        }
        let approver = Rc::clone(&self.approver);
        let lines = self.lines.clone();
        let asked = id.clone();
        let question = spawn_local(async move {
            let answer = approver.fill_form(&form).await.into();
            drop(lines.send(ClientLine::Form { id: asked, answer }));
        });
        self.questions.borrow_mut().insert(id, question);
    }

    fn withdraw_question(&self, id: &str) {
        if let Some(question) = self.questions.borrow_mut().remove(id) {
            question.abort();
        }
    }
}

/// The updates of the turn that the editor sees.
struct FollowedTurn {
    updates: Option<TurnUpdates>,
    cost: CostSum,
    /// False while lines are read that the editor does not get.
    is_shown: bool,
}

impl FollowedTurn {
    fn finish(&mut self) {
        if let Some(updates) = self.updates.take() {
            self.cost = updates.finish();
        }
    }
}

/// Passes the lines of a session to the editor and those of the editor to the session, until either
/// ends.
async fn follow_session(
    this: Rc<EditorAttachment>,
    new: NewAttachment,
    mut wanted: UnboundedReceiver<ClientLine>,
    repeats_turn: bool,
) {
    let mut session = new.session;
    let mut turn = FollowedTurn {
        updates: None,
        cost: CostSum::zero(),
        is_shown: repeats_turn,
    };
    for line in new.backlog {
        apply_line(&this, line, &mut turn);
    }
    turn.is_shown = true;
    loop {
        tokio::select! {
            line = session.next_text() => match line {
                Ok(Some(line)) => apply_line(&this, ReceivedLine::parse(&line), &mut turn),
                Ok(None) | Err(_) => break,
            },
            // The sender is in `this`.
            Some(line) = wanted.recv() => if session.send(&line).await.is_err() {
                break;
            },
            () = this.left.cancelled() => break,
        }
    }
    turn.finish();
    for (_, question) in this.questions.borrow_mut().drain() {
        question.abort();
    }
    this.state.send_modify(|state| {
        state.is_over = true;
        state.is_running = false;
    });
    if !this.left.is_cancelled() {
        this.notify("The session in the other process has ended. The next prompt goes on here.");
    }
}

fn apply_line(this: &EditorAttachment, line: ReceivedLine, turn: &mut FollowedTurn) {
    match line {
        ReceivedLine::Control(line) => this.handle_line(*line, turn),
        ReceivedLine::Event(event) => {
            if let EventBody::Result(result) = &event.body
                && event.agent == MAIN_AGENT
            {
                this.state
                    .send_modify(|state| state.result = Some(result.clone()));
            }
            if turn.is_shown {
                let EditorApprover { sender, calls, .. } = &*this.approver;
                let cost = turn.cost;
                turn.updates
                    .get_or_insert_with(|| TurnUpdates::new(sender.clone(), calls.clone(), cost))
                    .event(&event);
            }
        }
        ReceivedLine::Unknown => {}
    }
}
