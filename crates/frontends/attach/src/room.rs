//! The open questions, the messages of clients, and the lines for them.
//!
//! Invariants: a question has one answer, which is decided under the lock; a message is confirmed
//! after it is in the store, and refused if it will not be; lines reach all clients in one order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_agent::{Approval, ApprovalReply, ModeListener, ModeSwitch};
use haft_types::{Event, Form, FormOutcome, PermissionMode};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::lines::{
    ApprovalAnswer, AttachLine, AttachState, ClientLine, FormFilling, SessionInfo, to_line,
};
use crate::outbox::Outbox;

/// The maximum size of the lines of a turn that are kept for clients that attach later.
const MAX_BACKLOG_BYTES: usize = 4 << 20;
/// The maximum number of messages that wait for the session.
const MAX_WAITING_MESSAGES: usize = 100;
/// The number of ids of messages that are remembered to recognize repetitions.
const MAX_KNOWN_IDS: usize = 1_000;
/// The maximum number of clients of a session.
const MAX_CLIENTS: usize = 32;

/// The state that the session, its approver and the connections share.
#[derive(Default)]
pub(crate) struct Room {
    state: Mutex<RoomState>,
    prompted: Notify,
}

#[derive(Default)]
struct RoomState {
    info: Option<SessionInfo>,
    switch: Option<ModeSwitch>,
    mode_listener: Option<ModeListener>,
    clients: BTreeMap<u64, Arc<Outbox>>,
    last_client: u64,
    /// The lines since the last turn began.
    backlog: VecDeque<Arc<str>>,
    backlog_bytes: usize,
    skipped_lines: u64,
    /// The token that cancels the running turn; `None` if no turn is running.
    turn: Option<CancellationToken>,
    was_interrupted: bool,
    accepts_prompts: bool,
    /// The number of the current wait for a prompt, and true once it is announced.
    wait: u64,
    is_waiting: bool,
    /// The messages that the session has not taken yet.
    inbox: VecDeque<ClientMessage>,
    /// The messages that were taken into the running turn and are not stored yet.
    taken: VecDeque<ClientMessage>,
    /// The message that begins the next turn, or has begun the running one and is not stored yet.
    beginning: Option<ClientMessage>,
    known_ids: VecDeque<String>,
    questions: BTreeMap<u64, OpenQuestion>,
    last_question: u64,
    closed: bool,
}

/// A message of a client.
#[derive(Clone, Debug)]
struct ClientMessage {
    text: String,
    client: u64,
    id: Option<String>,
}

/// A question that no front end has answered yet.
struct OpenQuestion {
    /// The line that asks it.
    line: Arc<str>,
    reply: QuestionReply,
}

enum QuestionReply {
    Approval(oneshot::Sender<ApprovalReply>),
    Form(oneshot::Sender<FormOutcome>),
}

/// A question that is open until its answer is decided. If it is dropped before, the question is
/// withdrawn.
pub(crate) struct PendingQuestion<'a> {
    room: &'a Room,
    number: u64,
}

impl Room {
    fn lock_state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets clients attach.
    pub(crate) fn open(&self, info: SessionInfo, switch: ModeSwitch) {
        let mut state = self.lock_state();
        state.info = Some(info);
        state.switch = Some(switch);
    }

    pub(crate) fn begin_turn(&self, cancel: &CancellationToken) {
        let mut state = self.lock_state();
        state.turn = Some(cancel.clone());
        state.was_interrupted = false;
        state.is_waiting = false;
        state.backlog.clear();
        state.backlog_bytes = 0;
        state.skipped_lines = 0;
        state.send_to_all(&AttachLine::TurnBegan {});
    }

    pub(crate) fn send_event(&self, event: &Event) {
        let line: Arc<str> = to_line(event).into();
        self.lock_state().broadcast(line);
    }

    /// Confirms the input that began the turn.
    pub(crate) fn confirm_first_input(&self, text: &str) {
        let mut state = self.lock_state();
        let message = state.beginning.take();
        let text = text.to_owned();
        state.confirm(message, text, true);
    }

    /// Informs the clients of input that the session's own front end has sent.
    pub(crate) fn confirm_own_input(&self, text: &str) {
        self.lock_state().confirm(None, text.to_owned(), false);
    }

    /// Removes and returns the messages of clients, which join the turn.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        let mut state = self.lock_state();
        let messages = std::mem::take(&mut state.inbox);
        let texts = messages
            .iter()
            .map(|message| message.text.clone())
            .collect();
        state.taken.extend(messages);
        texts
    }

    /// Confirms the oldest message of [`Self::take_messages`] that is not confirmed yet.
    pub(crate) fn confirm_taken_message(&self) {
        let mut state = self.lock_state();
        if let Some(message) = state.taken.pop_front() {
            let text = message.text.clone();
            state.confirm(Some(message), text, false);
        }
    }

    pub(crate) fn end_turn(&self) {
        let mut state = self.lock_state();
        state.turn = None;
        state.wait += 1;
        let unstored: Vec<_> = std::mem::take(&mut state.taken)
            .into_iter()
            .chain(state.beginning.take())
            .collect();
        for message in unstored {
            state.refuse_message(&message, "the turn ended before the message was stored");
        }
        if !state.accepts_prompts {
            state.refuse_waiting_messages("the turn ended before the message was read");
        }
        state.send_to_all(&AttachLine::TurnEnded {});
    }

    /// Accepts messages while no turn is running. A message that was taken before and began no turn
    /// is refused.
    pub(crate) fn accept_prompts(&self) {
        let mut state = self.lock_state();
        state.accepts_prompts = true;
        state.refuse_unused_message();
    }

    pub(crate) async fn next_prompt(&self) -> String {
        loop {
            if let Some(text) = self.take_prompt() {
                return text;
            }
            self.lock_state().announce_wait();
            self.prompted.notified().await;
        }
    }

    pub(crate) fn take_prompt(&self) -> Option<String> {
        self.lock_state().take_beginning()
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.lock_state().was_interrupted
    }

    pub(crate) fn set_mode_listener(&self, listener: ModeListener) {
        self.lock_state().mode_listener = Some(listener);
    }

    /// Returns the first line for a new client, or `None` if no more clients can attach.
    pub(crate) fn greet_client(&self) -> Option<(u64, SessionInfo)> {
        let mut state = self.lock_state();
        if state.closed || state.clients.len() >= MAX_CLIENTS {
            return None;
        }
        state.last_client += 1;
        let client = state.last_client;
        let info = SessionInfo {
            mode: state.current_mode()?,
            state: state.session_state(),
            client,
            ..state.info.clone()?
        };
        Some((client, info))
    }

    /// Adds a client. Its outbox gets the lines of the current turn and the open questions, then all
    /// new lines.
    pub(crate) fn add_client(&self, client: u64, outbox: &Arc<Outbox>) {
        let mut state = self.lock_state();
        let lines = state.skipped_lines;
        if lines > 0 {
            outbox.push_line(&to_line(&AttachLine::Skipped { lines }).into());
        }
        for line in &state.backlog {
            outbox.push_line(line);
        }
        outbox.push_line(&to_line(&AttachLine::Live {}).into());
        for question in state.questions.values() {
            outbox.push_line(&question.line);
        }
        if state.is_waiting {
            let idle = AttachLine::Idle { prompt: state.wait };
            outbox.push_line(&to_line(&idle).into());
        }
        if state.closed {
            outbox.close();
        } else {
            state.clients.insert(client, Arc::clone(outbox));
        }
    }

    pub(crate) fn remove_client(&self, client: u64) {
        self.lock_state().clients.remove(&client);
    }

    /// Handles a line of a client.
    pub(crate) fn handle_line(&self, client: u64, line: ClientLine) {
        let mut state = self.lock_state();
        match line {
            ClientLine::Attach { .. } => state.refuse(client, None, "already attached"),
            ClientLine::User { text, id, answers } => {
                let message = ClientMessage { text, client, id };
                match state.accept_message(&message, answers) {
                    Ok(Accepted::New) => {
                        state.inbox.push_back(message);
                        drop(state);
                        self.prompted.notify_one();
                    }
                    Ok(Accepted::Known) => {}
                    Err(why) => state.refuse_message(&message, why),
                }
            }
            ClientLine::Interrupt {} => match state.turn.clone() {
                Some(turn) => {
                    state.was_interrupted = true;
                    drop(state);
                    turn.cancel();
                }
                None => state.refuse(client, None, "no turn is running"),
            },
            ClientLine::Approval { id, answer } => state.answer_approval(client, id, answer),
            ClientLine::Form { id, answer } => state.answer_form(client, id, answer),
            ClientLine::Mode { mode } => state.set_mode(client, mode),
        }
    }

    /// Opens an approval for the clients. The receiver yields the answer of the client that wins.
    pub(crate) fn open_approval(
        &self,
        approval: &Approval,
    ) -> (PendingQuestion<'_>, oneshot::Receiver<ApprovalReply>) {
        let (sender, receiver) = oneshot::channel();
        let approval = Box::new(approval.clone());
        let question = self.open_question(QuestionReply::Approval(sender), |id| {
            AttachLine::ApprovalRequest { id, approval }
        });
        (question, receiver)
    }

    /// Like [`Self::open_approval`], for a form.
    pub(crate) fn open_form(
        &self,
        form: &Form,
    ) -> (PendingQuestion<'_>, oneshot::Receiver<FormOutcome>) {
        let (sender, receiver) = oneshot::channel();
        let question = self.open_question(QuestionReply::Form(sender), |id| {
            AttachLine::for_form(id, form)
        });
        (question, receiver)
    }

    fn open_question(
        &self,
        reply: QuestionReply,
        line: impl FnOnce(String) -> AttachLine,
    ) -> PendingQuestion<'_> {
        let mut state = self.lock_state();
        state.last_question += 1;
        let number = state.last_question;
        let line: Arc<str> = to_line(&line(number.to_string())).into();
        state.send_line(&line);
        state.questions.insert(number, OpenQuestion { line, reply });
        PendingQuestion { room: self, number }
    }

    /// Ends all connections, and returns the outboxes that may still hold lines.
    pub(crate) fn close(&self) -> Vec<Arc<Outbox>> {
        let mut state = self.lock_state();
        if state.closed {
            return Vec::new();
        }
        state.refuse_waiting_messages("the session has ended before it read the message");
        let message = "the session has ended".to_owned();
        state.send_to_all(&AttachLine::Detached { message });
        state.closed = true;
        let outboxes: Vec<_> = std::mem::take(&mut state.clients).into_values().collect();
        for outbox in &outboxes {
            outbox.close();
        }
        outboxes
    }
}

/// The result of accepting a message.
enum Accepted {
    New,
    /// A message with its id was accepted before.
    Known,
}

impl RoomState {
    /// Sends a line to all clients.
    fn send_line(&mut self, line: &Arc<str>) {
        self.clients.retain(|_, outbox| outbox.push_line(line));
    }

    /// Sends a line to all clients and keeps it for clients that attach later.
    fn broadcast(&mut self, line: Arc<str>) {
        self.send_line(&line);
        self.backlog_bytes += line.len();
        self.backlog.push_back(line);
        while self.backlog_bytes > MAX_BACKLOG_BYTES {
            let Some(oldest) = self.backlog.pop_front() else {
                return;
            };
            self.backlog_bytes -= oldest.len();
            self.skipped_lines += 1;
        }
    }

    fn send_to_all(&mut self, line: &AttachLine) {
        self.broadcast(to_line(line).into());
    }

    fn send_to(&mut self, client: u64, line: &AttachLine) {
        if let Some(outbox) = self.clients.get(&client) {
            outbox.push_line(&to_line(line).into());
        }
    }

    fn refuse(&mut self, client: u64, id: Option<String>, why: &str) {
        let message = why.to_owned();
        self.send_to(client, &AttachLine::Refused { id, message });
    }

    fn refuse_message(&mut self, message: &ClientMessage, why: &str) {
        // A refused message may be sent again.
        self.known_ids.retain(|id| Some(id) != message.id.as_ref());
        self.refuse(message.client, message.id.clone(), why);
    }

    fn refuse_waiting_messages(&mut self, why: &str) {
        for message in std::mem::take(&mut self.inbox) {
            self.refuse_message(&message, why);
        }
    }

    /// Informs all clients that a message is in the store. `message` is `None` for input of the
    /// session's own front end.
    fn confirm(&mut self, message: Option<ClientMessage>, text: String, begins_turn: bool) {
        let client = message.as_ref().map(|message| message.client);
        let id = message.and_then(|message| message.id);
        self.send_to_all(&AttachLine::User {
            text,
            client,
            id,
            begins_turn,
        });
    }

    /// Checks whether a message can be accepted, and remembers its id.
    fn accept_message(
        &mut self,
        message: &ClientMessage,
        answers: Option<u64>,
    ) -> Result<Accepted, &'static str> {
        if self.closed {
            return Err("the session has ended");
        }
        if message
            .id
            .as_ref()
            .is_some_and(|id| self.known_ids.contains(id))
        {
            return Ok(Accepted::Known);
        }
        if message.text.trim().is_empty() {
            return Err("the message is empty");
        }
        let is_first = self.turn.is_none() && self.beginning.is_none() && self.inbox.is_empty();
        if answers.is_some_and(|wait| wait != self.wait || !is_first) {
            return Err("another answer came first");
        }
        if self.turn.is_none() && !self.accepts_prompts {
            return Err("no turn is running, and the session's own front end begins the next one");
        }
        if self.inbox.len() >= MAX_WAITING_MESSAGES {
            return Err("too many messages are waiting for the session");
        }
        if let Some(id) = &message.id {
            self.known_ids.push_back(id.clone());
            if self.known_ids.len() > MAX_KNOWN_IDS {
                self.known_ids.pop_front();
            }
        }
        Ok(Accepted::New)
    }

    /// Removes the oldest message, with which the session begins a turn. A message that was removed
    /// before and began none is refused.
    fn take_beginning(&mut self) -> Option<String> {
        if let Some(unused) = self.beginning.take() {
            self.refuse_message(
                &unused,
                "the session could not begin a turn with the message",
            );
        }
        let message = self.inbox.pop_front()?;
        let text = message.text.clone();
        self.beginning = Some(message);
        Some(text)
    }

    fn refuse_unused_message(&mut self) {
        if let Some(unused) = self.beginning.take() {
            self.refuse_message(
                &unused,
                "the session could not begin a turn with the message",
            );
        }
    }

    fn announce_wait(&mut self) {
        if !std::mem::replace(&mut self.is_waiting, true) {
            let line: Arc<str> = to_line(&AttachLine::Idle { prompt: self.wait }).into();
            self.send_line(&line);
        }
    }

    fn answer_approval(&mut self, client: u64, id: String, answer: ApprovalAnswer) {
        let number = id.parse().unwrap_or_default();
        let Some(OpenQuestion {
            reply: QuestionReply::Approval(_),
            ..
        }) = self.questions.get(&number)
        else {
            return self.refuse(
                client,
                Some(id),
                "it has been answered, or is no longer asked",
            );
        };
        if let Some(OpenQuestion {
            reply: QuestionReply::Approval(sender),
            ..
        }) = self.questions.remove(&number)
        {
            let client = Some(client);
            let line = AttachLine::ApprovalAnswered {
                id,
                client,
                answer: answer.clone(),
            };
            self.send_line(&to_line(&line).into());
            // Fails if the turn was canceled at this moment.
            drop(sender.send(answer.into()));
        }
    }

    fn answer_form(&mut self, client: u64, id: String, answer: FormFilling) {
        let number = id.parse().unwrap_or_default();
        let Some(OpenQuestion {
            reply: QuestionReply::Form(_),
            ..
        }) = self.questions.get(&number)
        else {
            return self.refuse(
                client,
                Some(id),
                "it has been answered, or is no longer asked",
            );
        };
        if let Some(OpenQuestion {
            reply: QuestionReply::Form(sender),
            ..
        }) = self.questions.remove(&number)
        {
            let client = Some(client);
            self.send_line(&to_line(&AttachLine::FormAnswered { id, client }).into());
            drop(sender.send(answer.into()));
        }
    }

    fn set_mode(&mut self, client: u64, mode: PermissionMode) {
        let Some(switch) = &self.switch else { return };
        if mode == PermissionMode::Yolo && switch.mode() != PermissionMode::Yolo {
            let why = format!(
                "mode `{}` can only be set where the session was started",
                mode.name()
            );
            return self.refuse(client, None, &why);
        }
        switch.set(mode);
        if let Some(listener) = &self.mode_listener {
            listener(mode);
        }
        self.send_line(&to_line(&AttachLine::Mode { mode, client }).into());
    }

    fn current_mode(&self) -> Option<PermissionMode> {
        self.switch.as_ref().map(ModeSwitch::mode)
    }

    fn session_state(&self) -> AttachState {
        match &self.turn {
            Some(_) if self.questions.is_empty() => AttachState::Running,
            Some(_) => AttachState::Asking,
            None if self.accepts_prompts => AttachState::Idle,
            None => AttachState::Closed,
        }
    }
}

impl PendingQuestion<'_> {
    /// Decides the question with an answer of the session's own front end. Returns false if a client
    /// has answered it before.
    pub(crate) fn answer_approval(&self, reply: &ApprovalReply) -> bool {
        let id = self.number.to_string();
        let answer = reply.clone().into();
        self.decide(&AttachLine::ApprovalAnswered {
            id,
            client: None,
            answer,
        })
    }

    /// Like [`Self::answer_approval`], for a form.
    pub(crate) fn answer_form(&self) -> bool {
        let id = self.number.to_string();
        self.decide(&AttachLine::FormAnswered { id, client: None })
    }

    fn decide(&self, line: &AttachLine) -> bool {
        let mut state = self.room.lock_state();
        let wins = state.questions.remove(&self.number).is_some();
        if wins {
            state.send_line(&to_line(line).into());
        }
        wins
    }
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        let id = self.number.to_string();
        self.decide(&AttachLine::Withdrawn { id });
    }
}

#[cfg(test)]
mod tests;
