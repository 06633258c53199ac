//! The interface for screen readers, and for terminals that can only write: plain lines, nothing
//! redrawn.
//!
//! Responsible for saying as text what the other interface says by position, colour and symbols.
//! Invariant: what is written is never written over, every line says by itself what it is, and haft
//! changes nothing in how the terminal works.

mod text;

use std::io::{self, BufRead, Write};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft_agent::ApprovalReply;
use haft_types::{CallPhase, Event, EventBody, Filled, PermissionMode};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::READING;
use crate::app::{App, AppInput, Effect, Setup};
use crate::approval::{ApprovalChoice, ApprovalDialog, ApprovalStage, Grant};
use crate::ask::fitted;
use crate::call::about;
use crate::config::Editing;
use crate::form::{FormDialog, FormProgress};
use crate::link::{EarlierMessage, Incoming, Operation, SideAction, TerminalSide, UiMessage};
use crate::picker::{PickerAction, PickerList};
use crate::run::{Ended, HostActions, TuiError};
use crate::terminal;

/// Rows are as long as what they say: whoever reads them aloud needs no breaks.
const COLUMNS: usize = 4_096;
const ROWS: usize = 40;
/// Shows all of the last result or thoughts, as Ctrl-O does elsewhere.
const OPEN: &str = "/open";
/// Declines a form.
const DECLINE: &str = "-";

/// Runs the interface in lines until its user leaves. Blocks; give it a thread of its own.
pub fn run_plain(setup: Setup, side: TerminalSide, host: HostActions) -> Result<Ended, TuiError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { PlainDriver::start(setup, side, host)?.run().await })
}

struct PlainDriver {
    app: App,
    side: TerminalSide,
    host: HostActions,
    /// The question that is open, who waits for its answer, and since when.
    asking: Option<(ApprovalDialog, oneshot::Sender<ApprovalReply>, Instant)>,
    /// The list a number is awaited for.
    picking: Option<(PickerList, Instant)>,
    /// The form that is open, and who waits for it.
    filling: Option<(FormDialog, oneshot::Sender<Filled>)>,
    busy: bool,
    /// Whether the cursor stands behind a prompt for a line.
    prompted: bool,
    /// Whether Ctrl-C was just pressed with nothing to interrupt.
    leaving: bool,
    ended: Option<Ended>,
}

impl PlainDriver {
    fn start(setup: Setup, side: TerminalSide, host: HostActions) -> io::Result<Self> {
        let (app, effects) = App::new(
            Setup {
                editing: Editing::Shell,
                ..setup
            },
            COLUMNS,
            ROWS,
        );
        let mut plain = Self {
            app,
            side,
            host,
            asking: None,
            picking: None,
            filling: None,
            busy: false,
            prompted: false,
            leaving: false,
            ended: None,
        };
        plain.carry_out(effects)?;
        plain.prompt()?;
        Ok(plain)
    }

    async fn run(mut self) -> Result<Ended, TuiError> {
        let mut lines = lines();
        let [mut interrupt, mut terminate, mut hangup] = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        let ended = loop {
            if let Some(ended) = self.ended {
                break ended;
            }
            tokio::select! {
                biased;
                _ = terminate.recv() => self.ended = Some(Ended::Signalled),
                _ = hangup.recv() => self.ended = Some(Ended::Signalled),
                _ = interrupt.recv() => self.interrupt()?,
                line = lines.recv() => match line {
                    Some(line) => self.typed(line)?,
                    None => self.ended = Some(Ended::Left),
                },
                () = withdrawn(&mut self.asking) => {
                    self.asking = None;
                    self.say(text!("plain-withdrawn"))?;
                }
                incoming = self.side.messages.recv() => match incoming {
                    Some(incoming) => self.incoming(incoming)?,
                    None => self.ended = Some(Ended::Left),
                },
            }
        };
        let effects = self.app.leave();
        self.carry_out(effects)?;
        if self.prompted {
            put("\n")?;
        }
        // Nobody listens any more where the session ended first.
        drop(self.side.operations.send(Operation::Quit));
        Ok(ended)
    }

    fn interrupt(&mut self) -> io::Result<()> {
        if let Some(id) = self.app.newest_shell() {
            drop(
                self.side
                    .operations
                    .send(Operation::Side(SideAction::Stop(id))),
            );
            return self.say(text!("plain-interrupting"));
        }
        if self.busy {
            drop(self.side.operations.send(Operation::Interrupt));
            return self.say(text!("plain-interrupting"));
        }
        if std::mem::replace(&mut self.leaving, true) {
            self.ended = Some(Ended::Left);
            return Ok(());
        }
        self.say(text!("plain-quit-again"))?;
        self.prompt()
    }

    fn incoming(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Message(message) => self.message(message),
            Incoming::Ask { approval, answer } => {
                let mut asking = self.app.new_approval(*approval);
                // What was said before it belongs before it.
                let effects = self.app.flush();
                self.carry_out(effects)?;
                for row in asking.subject(COLUMNS) {
                    self.say(&text::of(&row))?;
                }
                self.say(&text::question(&asking))?;
                self.asking = Some((asking, answer, Instant::now()));
                self.ask(text!("plain-answer"))
            }
            Incoming::Form { form, answer } => {
                let filling = FormDialog::new(*form);
                let effects = self.app.flush();
                self.carry_out(effects)?;
                for row in filling.subject(COLUMNS) {
                    self.say(&text::of(&row))?;
                }
                self.fill(filling, answer)
            }
        }
    }

    fn message(&mut self, message: UiMessage) -> io::Result<()> {
        match message {
            UiMessage::Event(event) => {
                let what = told(&event);
                self.take(UiMessage::Event(event))?;
                what.iter().try_for_each(|line| self.say(line))
            }
            UiMessage::Idle => {
                self.busy = false;
                (self.asking, self.filling) = (None, None);
                self.take(UiMessage::Idle)?;
                self.prompt()
            }
            UiMessage::Earlier(messages) => {
                messages.into_iter().try_for_each(|message| match message {
                    EarlierMessage::User(text) => self.say(&text::clean(&format!(
                        "{} {}",
                        text!("plain-prompt"),
                        text.replace('\n', " ")
                    ))),
                    silent @ (EarlierMessage::Model(_) | EarlierMessage::Result { .. }) => {
                        self.take(UiMessage::Earlier(vec![silent]))
                    }
                })
            }
            UiMessage::Pick(list) => self.offer(list),
            UiMessage::Typed { text } => {
                self.say(&text::clean(&text!(
                    "plain-typed",
                    text = text.replace('\n', " ")
                )))?;
                self.prompt()
            }
            message @ (UiMessage::Told { .. }
            | UiMessage::Ran { .. }
            | UiMessage::Opened { .. }
            | UiMessage::Context(_)) => {
                self.take(message)?;
                self.prompt()
            }
            message @ (UiMessage::Joined
            | UiMessage::Running { .. }
            | UiMessage::Model { .. }
            | UiMessage::Sandbox(_)) => self.take(message),
            // Nothing is completed here.
            UiMessage::Files(_) => Ok(()),
        }
    }

    /// Takes a line as the terminal gave it. Lines that came together were pasted, and answer no
    /// question.
    fn typed(&mut self, line: TypedLine) -> io::Result<()> {
        if line.came_with_others && self.asking.is_some() {
            (self.prompted, self.leaving) = (false, false);
            self.say(text!("plain-several-lines"))?;
            return self.ask(text!("plain-answer"));
        }
        self.line(line.text, line.typed_at)
    }

    fn line(&mut self, line: String, typed_at: Instant) -> io::Result<()> {
        // The user's Enter has ended the row.
        (self.prompted, self.leaving) = (false, false);
        if let Some((asking, answer, since)) = self.asking.take() {
            return self.answer(asking, answer, (since, typed_at), &line);
        }
        if let Some((list, since)) = self.picking.take() {
            return self.choose(list, (since, typed_at), line.trim());
        }
        if let Some((mut filling, answer)) = self.filling.take() {
            let step = if line.trim() == DECLINE {
                FormProgress::Done(Filled::Declined)
            } else {
                filling.typed(&line)
            };
            return match step {
                FormProgress::Next => self.fill(filling, answer),
                FormProgress::Wrong(why) => {
                    self.say(&why)?;
                    self.fill(filling, answer)
                }
                // Whoever asked may have gone in this very moment.
                FormProgress::Done(filled) => {
                    drop(answer.send(filled));
                    Ok(())
                }
            };
        }
        if line.trim() == OPEN {
            self.take(AppInput::Key(KeyEvent::new(
                KeyCode::Char('o'),
                KeyModifiers::CONTROL,
            )))?;
        } else {
            self.take(AppInput::Paste(line))?;
            self.take(AppInput::Key(KeyEvent::new(
                KeyCode::Enter,
                KeyModifiers::NONE,
            )))?;
        }
        self.prompt()
    }

    /// Reads a list out; its rows are chosen by their numbers.
    fn offer(&mut self, list: PickerList) -> io::Result<()> {
        self.say(&text::clean(&list.title))?;
        for note in &list.notes {
            self.say(&text::clean(note))?;
        }
        for (at, row) in list.rows.iter().enumerate() {
            let about = if row.about.is_empty() {
                String::new()
            } else {
                format!(", {}", row.about)
            };
            self.say(&text::clean(&format!("{}: {}{about}", at + 1, row.text)))?;
        }
        self.picking = Some((list, Instant::now()));
        self.ask(text!("plain-number"))
    }

    fn choose(
        &mut self,
        list: PickerList,
        (since, typed_at): (Instant, Instant),
        typed: &str,
    ) -> io::Result<()> {
        if list.is_question && typed_at < since + READING {
            self.say(text!("plain-too-early"))?;
            self.picking = Some((list, since));
            return self.ask(text!("plain-number"));
        }
        if typed.is_empty() {
            return self.prompt();
        }
        let chosen = typed
            .parse::<usize>()
            .ok()
            .and_then(|number| list.rows.get(number.checked_sub(1)?));
        match chosen.map(|row| row.then.clone()) {
            None if list.is_question && typed.parse::<usize>().is_err() => {
                self.line(typed.to_owned(), typed_at)
            }
            None => {
                self.picking = Some((list, since));
                self.ask(text!("plain-number"))
            }
            Some(PickerAction::Open(inner)) => self.offer(*inner),
            Some(PickerAction::Type(text)) => {
                self.say(&text::clean(&text))?;
                self.prompt()
            }
            // What it says asks for the next line.
            Some(then @ PickerAction::Do(_)) => self.take(AppInput::Chosen(then)),
            Some(then) => {
                self.take(AppInput::Chosen(then))?;
                self.prompt()
            }
        }
    }

    /// Asks for the next field of a form.
    fn fill(&mut self, filling: FormDialog, answer: oneshot::Sender<Filled>) -> io::Result<()> {
        self.say(&text::clean(&filling.wanted()))?;
        self.filling = Some((filling, answer));
        self.ask(text!("plain-field"))
    }

    fn answer(
        &mut self,
        mut asking: ApprovalDialog,
        answer: oneshot::Sender<ApprovalReply>,
        (since, typed_at): (Instant, Instant),
        line: &str,
    ) -> io::Result<()> {
        if typed_at < since + READING {
            self.say(text!("plain-too-early"))?;
            self.asking = Some((asking, answer, since));
            return self.ask(text!("plain-answer"));
        }
        let line = line.trim();
        let given = match asking.stage {
            ApprovalStage::Choose | ApprovalStage::Confirm(_) => {
                self.first_answer(&mut asking, line)?
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule
                if line.is_empty() =>
            {
                asking.stage = ApprovalStage::Choose;
                Err(text!("plain-answer"))
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => {
                match asking.typed(line) {
                    Ok(given) => Ok(given),
                    Err(why) => {
                        self.say(&why)?;
                        Err(if asking.stage == ApprovalStage::Rule {
                            text!("plain-rule")
                        } else {
                            text!("plain-change")
                        })
                    }
                }
            }
        };
        match given {
            Ok(given) => {
                self.say(&text::answered(&given, &asking))?;
                if let ApprovalReply::Changed { arguments } = &given {
                    self.app.show_edited_call(&asking.approval, arguments);
                }
                // Whoever asked may have gone in this very moment.
                drop(answer.send(given));
                Ok(())
            }
            Err(question) => {
                self.asking = Some((asking, answer, since));
                self.ask(question)
            }
        }
    }

    /// The answer that a line is, or what is asked for next. A line is one choice or a reason to
    /// refuse; the question has shown the rules that each choice keeps, and where.
    fn first_answer(
        &mut self,
        asking: &mut ApprovalDialog,
        line: &str,
    ) -> io::Result<Result<ApprovalReply, &'static str>> {
        let line = match (line, haft_messages::agreement(line)) {
            (_, Some(true)) => "y",
            (_, Some(false)) => "n",
            ("始终" | "always", None) => "a",
            _ => line,
        };
        let mut chars = line.chars();
        let choice = chars
            .next()
            .and_then(|c| asking.choice(c))
            .filter(|_| chars.as_str().is_empty());
        Ok(match choice {
            Some(ApprovalChoice::Answer(given)) => Ok(given),
            Some(ApprovalChoice::Confirm(Grant::Always)) => Ok(ApprovalReply::Always),
            Some(ApprovalChoice::Confirm(Grant::Session)) => Ok(ApprovalReply::Session),
            Some(ApprovalChoice::Confirm(Grant::AllEdits)) => {
                let mode = PickerAction::Mode {
                    mode: PermissionMode::AcceptEdits,
                    prompt: None,
                };
                self.take(AppInput::Chosen(mode))?;
                Ok(ApprovalReply::Once)
            }
            Some(ApprovalChoice::Reason) => {
                asking.open_input(ApprovalStage::Reason);
                Err(text!("plain-reason"))
            }
            // Two would read the same keys: a file is edited as the call says it.
            Some(ApprovalChoice::Change(_) | ApprovalChoice::ChangeFile) => {
                asking.open_input(ApprovalStage::Change);
                self.say(&text!(
                    "plain-call-is",
                    text = asking.editable().replace('\n', " ")
                ))?;
                Err(text!("plain-change"))
            }
            Some(ApprovalChoice::Rule(text)) => {
                asking.open_input(ApprovalStage::Rule);
                self.say(&text!("plain-rule-is", text = text.replace('\n', " ")))?;
                Err(text!("plain-rule"))
            }
            // A single word may be a slip: it is asked again.
            None if line.contains(char::is_whitespace) => Ok(ApprovalReply::No {
                reason: line.to_owned(),
            }),
            None => Err(text!("plain-answer")),
        })
    }

    fn take(&mut self, input: impl Into<AppInput>) -> io::Result<()> {
        let effects = self.app.update(input);
        self.carry_out(effects)
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Print(rows) => {
                    for row in &rows {
                        self.say(&text::of(row))?;
                    }
                }
                Effect::Do(operation) => {
                    self.busy |= matches!(operation, Operation::Submit(_) | Operation::Compact(_));
                    drop(self.side.operations.send(operation));
                }
                Effect::Keep(text) => (self.host.keep)(&text),
                Effect::Quit => self.ended = Some(Ended::Left),
                Effect::Offer(list) => self.offer(list)?,
                Effect::FindImage { source, text } => match (self.host.image)(&source) {
                    Ok(Some(image)) => self.take(AppInput::Image(image))?,
                    Ok(None) | Err(_) => self.take(AppInput::NoImage(text))?,
                },
                // No key leads here: questions are asked above, and nothing is drawn.
                Effect::Answer(_)
                | Effect::Fill(_)
                | Effect::Arm
                | Effect::Edit(_)
                | Effect::EditFile(_)
                | Effect::Redraw
                | Effect::Suspend => {}
            }
        }
        Ok(())
    }

    /// Writes a line, unless there is nothing to say.
    fn say(&mut self, line: &str) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let before = if std::mem::take(&mut self.prompted) {
            "\n"
        } else {
            ""
        };
        put(&format!("{before}{}\n", fitted(line)))
    }

    /// Prompts for the next input, unless a turn runs.
    fn prompt(&mut self) -> io::Result<()> {
        if self.busy || self.asking.is_some() || self.picking.is_some() || self.ended.is_some() {
            Ok(())
        } else {
            self.ask(text!("plain-prompt"))
        }
    }

    fn ask(&mut self, question: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.prompted, true) {
            return Ok(());
        }
        put(&format!("{question} "))
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What is printed for an event in addition to what every interface prints.
fn told(event: &Event) -> Vec<String> {
    if let (
        haft_agent::MAIN,
        EventBody::Retry {
            attempt,
            delay_ms,
            reason,
            ..
        },
    ) = (&*event.agent, &event.body)
    {
        let wait = delay_ms.div_ceil(1000);
        return vec![text::clean(&text!("plain-retry", attempt, wait, reason))];
    }
    let EventBody::ToolCall {
        name,
        phase: CallPhase::Finished,
        arguments: Some(arguments),
        ..
    } = &event.body
    else {
        return Vec::new();
    };
    if event.agent != haft_agent::MAIN {
        return vec![text::clean(&text!(
            "plain-call-of",
            agent = event.agent,
            name,
            about = about(arguments)
        ))];
    }
    match name.as_str() {
        "todo_write" => text::todo(arguments),
        _ => vec![text::clean(&text!(
            "plain-call",
            name,
            about = about(arguments)
        ))],
    }
}

/// A line of the input.
struct TypedLine {
    text: String,
    /// Whether it came in one piece with other lines, which nobody types.
    came_with_others: bool,
    /// When it was read: a line typed before a question does not answer it, however long it has
    /// waited.
    typed_at: Instant,
}

/// Lines as they are typed. The thread ends with the process: nothing can wake it.
fn lines() -> UnboundedReceiver<TypedLine> {
    let (send, lines) = unbounded_channel();
    std::thread::spawn(move || {
        let mut follows = false;
        for text in io::stdin().lock().lines() {
            let Ok(text) = text else { break };
            let is_followed = terminal::has_more(io::stdin());
            let came_with_others = std::mem::replace(&mut follows, is_followed) || is_followed;
            if send
                .send(TypedLine {
                    text,
                    came_with_others,
                    typed_at: Instant::now(),
                })
                .is_err()
            {
                break;
            }
        }
    });
    lines
}

async fn withdrawn(asking: &mut Option<(ApprovalDialog, oneshot::Sender<ApprovalReply>, Instant)>) {
    match asking {
        Some((_, answer, _)) => answer.closed().await,
        None => std::future::pending().await,
    }
}
