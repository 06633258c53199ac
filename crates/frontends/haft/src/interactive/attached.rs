//! The interface of `haft attach`: it shows a session that another process runs, and sends it the
//! user's messages and answers.

use std::collections::HashMap;

use haft_attach::{
    AttachError, AttachLine, AttachState, AttachedSession, ClientLine, ReceivedLine,
};
use haft_engine::{ApprovalReply, Approver, MAIN_AGENT};
use haft_tui::{
    Ended, HostActions, Operation, Palette, Setup, TerminalSide, TuiConfig, UiHandle, UiMessage,
};
use haft_types::{Event, EventBody, Form, FormOutcome, IdSource};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::{InterfaceStyle, side_editor, start_screen};
use crate::exit::ProcessExit;
use crate::haft::Settings;
use crate::output;

/// The end of an attachment.
pub(crate) struct AttachmentEnd {
    /// The outcome of the session's last turn, once the session has ended.
    pub(crate) exit: ProcessExit,
    pub(crate) cause: EndCause,
    /// The messages that the session did not confirm, oldest first.
    pub(crate) unconfirmed: Vec<String>,
}

/// The reason why an attachment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCause {
    /// The user left.
    Left,
    /// The session has ended, or it closed the connection.
    Detached,
    /// The connection ended without a farewell: the session's process was killed.
    Lost,
}

/// Runs the interface until the user leaves it or the session ends.
pub(crate) async fn run(
    settings: &Settings,
    session: AttachedSession,
    looks: InterfaceStyle,
) -> anyhow::Result<AttachmentEnd> {
    let tui: TuiConfig = settings.config.read_section("tui")?;
    let palette = output::choose_palette();
    let plain = looks == InterfaceStyle::Plain || tui.plain || palette == Palette::Plain;
    let setup = build_setup(settings, &session, &tui);
    let environment = settings.places.environment.clone();
    let folder = std::path::PathBuf::from(&session.info.cwd);
    let host = HostActions {
        image: Box::new(|_| Ok(None)),
        edit: Box::new(move |text, ending| side_editor::edit_text(&environment, text, ending)),
        read: Box::new(move |path| std::fs::read_to_string(folder.join(path)).ok()),
        keep: Box::new(|_| {}),
    };
    let (ui, wanted, side) = haft_tui::create_link();
    let terminal = start_terminal(setup, side, host, palette, plain);
    let attached = AttachedTui::new(session, ui);
    let end = attached.run(wanted).await;
    // The interface ends when its last handle is dropped. A panic was printed by the hook.
    match terminal.await {
        Ok(Ok(Ended::Left | Ended::Signalled)) => end,
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(Ended::Panicked)) | Err(_) => Ok(AttachmentEnd {
            exit: ProcessExit::Failed,
            ..end?
        }),
    }
}

fn build_setup(settings: &Settings, session: &AttachedSession, tui: &TuiConfig) -> Setup {
    let info = &session.info;
    let knows_sequences = start_screen::accepts_escape_sequences();
    Setup {
        mode: info.mode,
        model: info.model.clone(),
        history: Vec::new(),
        editing: tui.editing,
        commands: Vec::new(),
        resources: Vec::new(),
        first: None,
        greeting: text!(
            "attach-greeting",
            id = info.conversation_id.chars().take(8).collect::<String>(),
            name = info.name,
            folder = info.cwd,
            process = info.process.to_string(),
            model = info.model
        ),
        bell: tui.notifications,
        notifies: tui.notifications && knows_sequences,
        links: knows_sequences.then(|| info.cwd.clone()),
        rules_file: settings.places.config_file().display().to_string(),
        animates: output::choose_palette() == Palette::Colour,
        is_attached: true,
    }
}

fn start_terminal(
    setup: Setup,
    side: TerminalSide,
    host: HostActions,
    palette: Palette,
    plain: bool,
) -> JoinHandle<Result<Ended, haft_tui::TuiError>> {
    tokio::task::spawn_blocking(move || {
        if plain {
            haft_tui::run_plain(setup, side, host)
        } else {
            haft_tui::run_screen(setup, palette, side, host)
        }
    })
}

/// A message that the session has not confirmed.
struct SentMessage {
    id: String,
    text: String,
}

struct AttachedTui {
    session: AttachedSession,
    ui: UiHandle,
    /// The questions that the interface shows, by id. Aborting a task withdraws its question.
    questions: HashMap<String, JoinHandle<()>>,
    answers: UnboundedSender<ClientLine>,
    given: UnboundedReceiver<ClientLine>,
    sent: Vec<SentMessage>,
    /// The number of the wait that the next message answers.
    idle: Option<u64>,
    /// True while a turn is running.
    is_running: bool,
    exit: ProcessExit,
}

/// The decision whether the attachment goes on.
type Next = Option<EndCause>;

impl AttachedTui {
    fn new(session: AttachedSession, ui: UiHandle) -> Self {
        let (answers, given) = unbounded_channel();
        Self {
            session,
            ui,
            questions: HashMap::new(),
            answers,
            given,
            sent: Vec::new(),
            idle: None,
            is_running: false,
            exit: ProcessExit::Failed,
        }
    }

    async fn run(
        mut self,
        mut wanted: UnboundedReceiver<Operation>,
    ) -> anyhow::Result<AttachmentEnd> {
        let cause = loop {
            let next = tokio::select! {
                biased;
                operation = wanted.recv() => self.handle_operation(operation).await,
                Some(line) = self.given.recv() => self.send(&line).await,
                line = self.session.next_text() => match line {
                    Ok(Some(line)) => Ok(self.handle_line(&line)),
                    Ok(None) => Ok(Some(EndCause::Lost)),
                    Err(error) => Err(error),
                },
            };
            match next {
                Ok(None) => {}
                Ok(Some(cause)) => break cause,
                // Writing fails before the end was read; the lines before the end still count.
                Err(AttachError::Connection(_)) => break self.read_rest().await,
                Err(error) => return Err(error.into()),
            }
        };
        for (_, question) in self.questions.drain() {
            question.abort();
        }
        let exit = match cause {
            EndCause::Left => ProcessExit::Completed,
            EndCause::Detached => self.exit,
            EndCause::Lost => ProcessExit::Failed,
        };
        Ok(AttachmentEnd {
            exit,
            cause,
            unconfirmed: self.sent.into_iter().map(|sent| sent.text).collect(),
        })
    }

    /// Handles the lines that arrived before the connection broke.
    async fn read_rest(&mut self) -> EndCause {
        while let Ok(Some(line)) = self.session.next_text().await {
            if let Some(cause) = self.handle_line(&line) {
                return cause;
            }
        }
        EndCause::Lost
    }

    async fn send(&mut self, line: &ClientLine) -> Result<Next, AttachError> {
        self.session.send(line).await?;
        Ok(None)
    }

    async fn handle_operation(
        &mut self,
        operation: Option<Operation>,
    ) -> Result<Next, AttachError> {
        match operation {
            Some(Operation::Submit(text)) => {
                // A message that was sent to join the last turn begins this one.
                if self.sent.iter().any(|sent| sent.text == text) {
                    return Ok(None);
                }
                let answers = self.idle.take();
                self.send_message(text, answers).await
            }
            Some(Operation::Join(text)) => self.send_message(text, None).await,
            Some(Operation::Interrupt) => self.send(&ClientLine::Interrupt {}).await,
            Some(Operation::Mode(mode)) => self.send(&ClientLine::Mode { mode }).await,
            Some(Operation::Quit) | None => Ok(Some(EndCause::Left)),
            Some(Operation::Compact(_)) => {
                self.show_text(text!("attach-unavailable"));
                self.ui.send_message(UiMessage::Idle);
                Ok(None)
            }
            Some(
                Operation::New
                | Operation::Resume(_)
                | Operation::Fork(_)
                | Operation::Await(_)
                | Operation::Attach(_)
                | Operation::Inspect
                | Operation::Offer(_)
                | Operation::Rewind { .. }
                | Operation::Model(_)
                | Operation::Agent(_)
                | Operation::Useful(_)
                | Operation::Notes(_)
                | Operation::View(_)
                | Operation::Undo
                | Operation::Redo
                | Operation::Diff
                | Operation::Context
                | Operation::EditContext(_)
                | Operation::Focus(_)
                | Operation::Trust
                | Operation::Side(_),
            ) => {
                self.show_text(text!("attach-unavailable"));
                Ok(None)
            }
        }
    }

    async fn send_message(
        &mut self,
        text: String,
        answers: Option<u64>,
    ) -> Result<Next, AttachError> {
        let id = haft_agent::RandomIds.new_uuid().to_string();
        self.sent.push(SentMessage {
            id: id.clone(),
            text: text.clone(),
        });
        let id = Some(id);
        self.send(&ClientLine::User { text, id, answers }).await
    }

    fn handle_line(&mut self, line: &str) -> Next {
        match ReceivedLine::parse(line) {
            ReceivedLine::Event(event) => {
                self.note_result(&event);
                self.ui.send_message(UiMessage::Event(event));
            }
            ReceivedLine::Control(line) => return self.handle_control(*line),
            ReceivedLine::Unknown => {}
        }
        None
    }

    fn note_result(&mut self, event: &Event) {
        if let EventBody::Result(result) = &event.body
            && event.agent == MAIN_AGENT
        {
            self.exit = result.outcome.into();
        }
    }

    fn handle_control(&mut self, line: AttachLine) -> Next {
        match line {
            AttachLine::Attach(_) => {}
            AttachLine::Skipped { lines } => {
                self.show_text(&text!("attach-skipped", count = lines));
            }
            AttachLine::Live {} => {
                if self.session.info.state == AttachState::Closed {
                    self.show_text(text!("attach-follows"));
                }
            }
            AttachLine::TurnBegan {} => {
                self.idle = None;
                self.is_running = true;
                self.ui.send_message(UiMessage::Begun);
            }
            AttachLine::User {
                text,
                client,
                id,
                begins_turn,
            } => self.note_stored(text, client, id.as_deref(), begins_turn),
            AttachLine::TurnEnded {} => {
                self.is_running = false;
                self.ui.send_message(UiMessage::Idle);
            }
            AttachLine::Idle { prompt } => self.idle = Some(prompt),
            AttachLine::ApprovalRequest { id, approval } => {
                let approver = self.ui.create_approver(Box::new(|_| Ok(())));
                let answers = self.answers.clone();
                let asked = id.clone();
                let question = tokio::spawn(async move {
                    let answer = approver.ask(&approval).await.into();
                    // Fails if the attachment has ended.
                    drop(answers.send(ClientLine::Approval { id: asked, answer }));
                });
                self.questions.insert(id, question);
            }
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
                self.open_form(id, form);
            }
            AttachLine::ApprovalAnswered { id, client, answer } => {
                if self.close_question(&id, client) {
                    let reply: ApprovalReply = answer.into();
                    self.ui.send_message(UiMessage::AnsweredElsewhere { reply });
                }
            }
            AttachLine::FormAnswered { id, client } => {
                if self.close_question(&id, client) {
                    self.show_text(text!("attach-form-answered"));
                }
            }
            AttachLine::Withdrawn { id } => {
                self.close_question(&id, None);
            }
            AttachLine::Mode { mode, client } => {
                if client != self.session.info.client {
                    self.ui.send_message(UiMessage::Mode(mode));
                }
            }
            AttachLine::Refused { id, message } => self.handle_refusal(id.as_deref(), &message),
            AttachLine::Detached { message } => {
                self.show_text(&output::localize_text(message));
                return Some(EndCause::Detached);
            }
        }
        None
    }

    fn open_form(&mut self, id: String, form: Form) {
        let approver = self.ui.create_approver(Box::new(|_| Ok(())));
        let answers = self.answers.clone();
        let asked = id.clone();
        let question = tokio::spawn(async move {
            let outcome: FormOutcome = approver.fill_form(&form).await;
            let answer = outcome.into();
            drop(answers.send(ClientLine::Form { id: asked, answer }));
        });
        self.questions.insert(id, question);
    }

    /// Closes a question. Returns true if the user of another front end answered it.
    fn close_question(&mut self, id: &str, client: Option<u64>) -> bool {
        if let Some(question) = self.questions.remove(id) {
            question.abort();
        }
        client != Some(self.session.info.client)
    }

    /// Shows that a message is in the store.
    fn note_stored(
        &mut self,
        text: String,
        client: Option<u64>,
        id: Option<&str>,
        begins_turn: bool,
    ) {
        if client != Some(self.session.info.client) {
            self.ui.send_message(UiMessage::Said { text });
            return;
        }
        self.sent.retain(|sent| Some(sent.id.as_str()) != id);
        // A message that began a turn was printed when it was sent.
        if !begins_turn {
            self.ui.send_message(UiMessage::Joined);
        }
    }

    /// Shows why a line had no effect. The text of a refused message can be edited again.
    fn handle_refusal(&mut self, id: Option<&str>, why: &str) {
        self.show_text(&text!("attach-refused", why = output::localize_text(why)));
        let Some(at) = self
            .sent
            .iter()
            .position(|sent| Some(sent.id.as_str()) == id)
        else {
            return;
        };
        let text = self.sent.remove(at).text;
        if !self.is_running {
            // The interface no longer waits for the turn that the message would have begun.
            self.ui.send_message(UiMessage::Idle);
        }
        self.ui.send_message(UiMessage::Typed { text });
    }

    fn show_text(&self, text: &str) {
        self.ui.send_message(UiMessage::Told {
            text: text.to_owned(),
        });
    }
}
