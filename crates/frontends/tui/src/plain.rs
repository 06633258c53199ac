//! Runs the interface for screen readers and for terminals that can't move the cursor. It prints
//! plain lines and redraws nothing.
//!
//! Expresses in words what the other interface shows by position, color and symbols. Invariant:
//! output is never overwritten, every line is understandable on its own, and the terminal's
//! settings aren't changed.

mod text;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft_agent::ApprovalReply;
use haft_messages::CallHeadline;
use haft_types::{CallPhase, Event, EventBody, FormOutcome, PermissionMode};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::READING_DELAY;
use crate::app::{App, AppInput, Effect, Setup};
use crate::approval::{ApprovalChoice, ApprovalDialog, ApprovalStage, Grant};
use crate::ask::wrap_to_terminal;
use crate::config::Editing;
use crate::form::{FormDialog, FormProgress};
use crate::link::{EarlierMessage, Incoming, Operation, SideAction, TerminalSide, UiMessage};
use crate::picker::{PickerAction, PickerList};
use crate::run::{Ended, HostActions, TuiError};
use crate::terminal;

/// The width, in columns, for which rows are laid out. It is large because screen readers need no
/// line breaks.
const LAYOUT_COLUMNS: usize = 4_096;
const LAYOUT_ROWS: usize = 40;
/// The command that prints the last result or reasoning completely, like Ctrl-O on the screen.
const OPEN_COMMAND: &str = "/open";
/// The line that declines a form.
const DECLINE_LINE: &str = "-";

/// Runs the plain interface until the user leaves it. The call blocks, so it needs a thread of its
/// own.
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
    /// The open approval, the sender of its answer, and the time at which it was opened.
    asking: Option<(ApprovalDialog, oneshot::Sender<ApprovalReply>, Instant)>,
    /// The open list and the time at which it was opened. The user answers with the number of a
    /// row.
    picking: Option<(PickerList, Instant)>,
    /// The open form and the sender of its answer.
    filling: Option<(FormDialog, oneshot::Sender<FormOutcome>)>,
    busy: bool,
    /// The lines that name the calls of the main agent that wait to run, by the call's id.
    waiting_calls: HashMap<String, String>,
    /// True if a prompt was printed and the cursor is still on its line.
    prompted: bool,
    /// True if Ctrl-C was just pressed while nothing could be interrupted. Pressing Ctrl-C again
    /// ends haft.
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
            LAYOUT_COLUMNS,
            LAYOUT_ROWS,
        );
        let mut plain = Self {
            app,
            side,
            host,
            asking: None,
            picking: None,
            filling: None,
            waiting_calls: HashMap::new(),
            busy: false,
            prompted: false,
            leaving: false,
            ended: None,
        };
        plain.run_effects(effects)?;
        plain.print_prompt()?;
        Ok(plain)
    }

    async fn run(mut self) -> Result<Ended, TuiError> {
        let mut lines = spawn_line_reader();
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
                _ = interrupt.recv() => self.interrupt_turn()?,
                line = lines.recv() => match line {
                    Some(line) => self.handle_input(line)?,
                    None => self.ended = Some(Ended::Left),
                },
                () = wait_until_withdrawn(&mut self.asking) => {
                    self.asking = None;
                    self.print_line(text!("plain-withdrawn"))?;
                }
                incoming = self.side.messages.recv() => match incoming {
                    Some(incoming) => self.handle_incoming(incoming)?,
                    None => self.ended = Some(Ended::Left),
                },
            }
        };
        let effects = self.app.leave();
        self.run_effects(effects)?;
        if self.prompted {
            write_text("\n")?;
        }
        // Sending fails if the session ended first.
        drop(self.side.operations.send(Operation::Quit));
        Ok(ended)
    }

    fn interrupt_turn(&mut self) -> io::Result<()> {
        if let Some(id) = self.app.newest_shell() {
            drop(
                self.side
                    .operations
                    .send(Operation::Side(SideAction::Stop(id))),
            );
            return self.print_line(text!("plain-interrupting"));
        }
        if self.busy {
            drop(self.side.operations.send(Operation::Interrupt));
            return self.print_line(text!("plain-interrupting"));
        }
        if std::mem::replace(&mut self.leaving, true) {
            self.ended = Some(Ended::Left);
            return Ok(());
        }
        self.print_line(text!("plain-quit-again"))?;
        self.print_prompt()
    }

    fn handle_incoming(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Message(message) => self.handle_message(message),
            Incoming::Ask { approval, answer } => {
                let mut asking = self.app.create_approval_dialog(*approval);
                // Text that arrived before the question is printed first.
                let effects = self.app.flush_reply();
                self.run_effects(effects)?;
                for row in asking.draw_heading(LAYOUT_COLUMNS) {
                    self.print_line(&text::row_to_text(&row))?;
                }
                self.print_exactly(&asking.list_exact_lines())?;
                self.print_line(&text::format_question(&asking))?;
                self.asking = Some((asking, answer, Instant::now()));
                self.print_question(text!("plain-answer"))
            }
            Incoming::Form { form, answer } => {
                let filling = FormDialog::new(*form);
                let effects = self.app.flush_reply();
                self.run_effects(effects)?;
                for row in filling.draw_subject(LAYOUT_COLUMNS) {
                    self.print_line(&text::row_to_text(&row))?;
                }
                self.ask_field(filling, answer)
            }
        }
    }

    fn handle_message(&mut self, message: UiMessage) -> io::Result<()> {
        match message {
            UiMessage::Event(event) => {
                let what = self.format_extra_lines(&event);
                self.update_app(UiMessage::Event(event))?;
                what.iter().try_for_each(|line| self.print_line(line))
            }
            UiMessage::Begun => {
                self.busy = true;
                self.picking = None;
                self.update_app(UiMessage::Begun)
            }
            UiMessage::Said { text } => self.print_line(&text::sanitize_text(&format!(
                "{} {}",
                text!("plain-prompt"),
                text.replace('\n', " ")
            ))),
            UiMessage::Idle => {
                self.busy = false;
                (self.asking, self.filling) = (None, None);
                self.waiting_calls.clear();
                self.update_app(UiMessage::Idle)?;
                self.print_prompt()
            }
            UiMessage::Earlier(messages) => {
                messages.into_iter().try_for_each(|message| match message {
                    EarlierMessage::User(text) => self.print_line(&text::sanitize_text(&format!(
                        "{} {}",
                        text!("plain-prompt"),
                        text.replace('\n', " ")
                    ))),
                    other @ (EarlierMessage::Model(_)
                    | EarlierMessage::Result { .. }
                    | EarlierMessage::Call { .. }) => {
                        self.update_app(UiMessage::Earlier(vec![other]))
                    }
                })
            }
            UiMessage::Pick(list) => self.print_list(list),
            UiMessage::Typed { text } => {
                self.print_line(&text::sanitize_text(&text!(
                    "plain-typed",
                    text = text.replace('\n', " ")
                )))?;
                self.print_prompt()
            }
            message @ (UiMessage::Told { .. }
            | UiMessage::AnsweredElsewhere { .. }
            | UiMessage::Ran { .. }
            | UiMessage::Opened { .. }
            | UiMessage::Context(_)) => {
                self.update_app(message)?;
                self.print_prompt()
            }
            // Only the start and the end of a task are printed; the app counts the running ones.
            // Commands of servers are called by name, so the names must be known.
            message @ (UiMessage::Joined
            | UiMessage::Mode(_)
            | UiMessage::Running { .. }
            | UiMessage::Model { .. }
            | UiMessage::PlanNote(_)
            | UiMessage::Totals(_)
            | UiMessage::Sandbox(_)
            | UiMessage::Tasks(_)
            | UiMessage::Spent { .. }
            | UiMessage::Names { .. }) => self.update_app(message),
            // The plain interface has no completion, so it needs no list of files.
            UiMessage::Files(_) => Ok(()),
        }
    }

    /// Handles a line of input. Lines that arrived together were pasted, and therefore don't answer
    /// a question.
    fn handle_input(&mut self, line: TypedLine) -> io::Result<()> {
        if line.came_with_others && self.asking.is_some() {
            (self.prompted, self.leaving) = (false, false);
            self.print_line(text!("plain-several-lines"))?;
            return self.print_question(text!("plain-answer"));
        }
        self.handle_line(line.text, line.typed_at)
    }

    fn handle_line(&mut self, line: String, typed_at: Instant) -> io::Result<()> {
        // The line break that the user typed has ended the prompt's line.
        (self.prompted, self.leaving) = (false, false);
        if let Some((asking, answer, since)) = self.asking.take() {
            return self.answer_question(asking, answer, (since, typed_at), &line);
        }
        if let Some((list, since)) = self.picking.take() {
            return self.choose_row(list, (since, typed_at), line.trim());
        }
        if let Some((mut filling, answer)) = self.filling.take() {
            let step = if line.trim() == DECLINE_LINE {
                FormProgress::Done(FormOutcome::Declined)
            } else {
                filling.fill_field(&line)
            };
            return match step {
                FormProgress::Next => self.ask_field(filling, answer),
                FormProgress::Wrong(why) => {
                    self.print_line(&why)?;
                    self.ask_field(filling, answer)
                }
                // Sending fails if the answer is no longer needed.
                FormProgress::Done(filled) => {
                    drop(answer.send(filled));
                    Ok(())
                }
            };
        }
        if line.trim() == OPEN_COMMAND {
            let effects = self.app.print_last_result();
            self.run_effects(effects)?;
        } else {
            self.update_app(AppInput::Paste(line))?;
            self.update_app(AppInput::Key(KeyEvent::new(
                KeyCode::Enter,
                KeyModifiers::NONE,
            )))?;
        }
        self.print_prompt()
    }

    /// Prints a list. The user chooses a row by its number.
    fn print_list(&mut self, list: PickerList) -> io::Result<()> {
        self.print_line(&text::sanitize_text(&list.title))?;
        for note in &list.notes {
            self.print_line(&text::sanitize_text(note))?;
        }
        for (at, row) in list.rows.iter().enumerate() {
            let about = if row.about.is_empty() {
                String::new()
            } else {
                format!(", {}", row.about)
            };
            self.print_line(&text::sanitize_text(&format!(
                "{}: {}{about}",
                at + 1,
                row.text
            )))?;
        }
        self.picking = Some((list, Instant::now()));
        self.print_question(text!("plain-number"))
    }

    fn choose_row(
        &mut self,
        list: PickerList,
        (since, typed_at): (Instant, Instant),
        typed: &str,
    ) -> io::Result<()> {
        if list.is_question && typed_at < since + READING_DELAY {
            self.print_line(text!("plain-too-early"))?;
            self.picking = Some((list, since));
            return self.print_question(text!("plain-number"));
        }
        if typed.is_empty() {
            return self.print_prompt();
        }
        let chosen = typed
            .parse::<usize>()
            .ok()
            .and_then(|number| list.rows.get(number.checked_sub(1)?));
        match chosen.map(|row| row.then.clone()) {
            None if list.is_question && typed.parse::<usize>().is_err() => {
                self.handle_line(typed.to_owned(), typed_at)
            }
            None => {
                self.picking = Some((list, since));
                self.print_question(text!("plain-number"))
            }
            Some(PickerAction::Open(inner)) => self.print_list(*inner),
            Some(PickerAction::Type(text)) => {
                self.print_line(&text::sanitize_text(&text))?;
                self.print_prompt()
            }
            // A prompt is printed after the output of the operation.
            Some(then @ PickerAction::Do(_)) => self.update_app(AppInput::Chosen(then)),
            Some(then) => {
                self.update_app(AppInput::Chosen(then))?;
                self.print_prompt()
            }
        }
    }

    /// Asks the user for the next field of a form.
    fn ask_field(
        &mut self,
        filling: FormDialog,
        answer: oneshot::Sender<FormOutcome>,
    ) -> io::Result<()> {
        self.print_line(&text::sanitize_text(&filling.field_label()))?;
        self.filling = Some((filling, answer));
        self.print_question(text!("plain-field"))
    }

    fn answer_question(
        &mut self,
        mut asking: ApprovalDialog,
        answer: oneshot::Sender<ApprovalReply>,
        (since, typed_at): (Instant, Instant),
        line: &str,
    ) -> io::Result<()> {
        if typed_at < since + READING_DELAY {
            self.print_line(text!("plain-too-early"))?;
            self.asking = Some((asking, answer, since));
            return self.print_question(text!("plain-answer"));
        }
        let line = line.trim();
        let given = match asking.stage {
            ApprovalStage::Choose | ApprovalStage::Confirm(_) => {
                self.parse_answer(&mut asking, line)?
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule
                if line.is_empty() =>
            {
                asking.stage = ApprovalStage::Choose;
                Err(text!("plain-answer"))
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => {
                match asking.parse_input(line) {
                    Ok(given) => Ok(given),
                    Err(why) => {
                        self.print_line(&why)?;
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
                self.print_line(&text::format_confirmation(&given, &asking))?;
                self.app.note_approval_answer(&asking, &given);
                // Sending fails if the answer is no longer needed.
                drop(answer.send(given));
                Ok(())
            }
            Err(question) => {
                self.asking = Some((asking, answer, since));
                self.print_question(question)
            }
        }
    }

    /// Converts a line to an answer, or asks for more input. A line is either a choice or a reason
    /// to refuse. The question has listed the rules of each choice and the file in which the rules
    /// are saved.
    fn parse_answer(
        &mut self,
        asking: &mut ApprovalDialog,
        line: &str,
    ) -> io::Result<Result<ApprovalReply, &'static str>> {
        let line = match (line, haft_messages::parse_yes_no(line)) {
            (_, Some(true)) => "y",
            (_, Some(false)) => "n",
            ("始终" | "always", None) => "a",
            _ => line,
        };
        let mut chars = line.chars();
        let choice = chars
            .next()
            .and_then(|c| asking.choice_for_key(c))
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
                self.update_app(AppInput::Chosen(mode))?;
                Ok(ApprovalReply::Once)
            }
            Some(ApprovalChoice::Reason) => {
                asking.open_input(ApprovalStage::Reason);
                Err(text!("plain-reason"))
            }
            // An editor would compete for the keys, so the arguments are edited as one line of
            // text.
            Some(ApprovalChoice::Change(_) | ApprovalChoice::ChangeFile) => {
                asking.open_input(ApprovalStage::Change);
                self.print_line(&text!(
                    "plain-call-is",
                    text = asking.editable_arguments().replace('\n', " ")
                ))?;
                Err(text!("plain-change"))
            }
            Some(ApprovalChoice::Rule(text)) => {
                asking.open_input(ApprovalStage::Rule);
                self.print_line(&text!("plain-rule-is", text = text.replace('\n', " ")))?;
                Err(text!("plain-rule"))
            }
            // A single word may be a typo, so the question is asked again.
            None if line.contains(char::is_whitespace) => Ok(ApprovalReply::No {
                reason: line.to_owned(),
            }),
            None => Err(text!("plain-answer")),
        })
    }

    fn update_app(&mut self, input: impl Into<AppInput>) -> io::Result<()> {
        let effects = self.app.update(input);
        self.run_effects(effects)
    }

    fn run_effects(&mut self, effects: Vec<Effect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Print(rows) => {
                    for row in &rows {
                        self.print_line(&text::row_to_text(row))?;
                    }
                }
                Effect::Do(operation) => {
                    self.busy |= matches!(operation, Operation::Submit(_) | Operation::Compact(_));
                    drop(self.side.operations.send(operation));
                }
                Effect::Keep(text) => (self.host.keep)(&text),
                Effect::Quit => self.ended = Some(Ended::Left),
                Effect::Offer(list) => self.print_list(list)?,
                Effect::FindImage { source, text } => match (self.host.image)(&source) {
                    Ok(Some(image)) => self.update_app(AppInput::Image(image))?,
                    Ok(None) | Err(_) => self.update_app(AppInput::NoImage(text))?,
                },
                // These effects do not occur here: questions are asked above, and nothing is drawn.
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

    /// Returns the lines for an event that the plain interface prints in addition to those of the
    /// screen. A call of the main agent is named when it runs, not while it waits for an approval.
    fn format_extra_lines(&mut self, event: &Event) -> Vec<String> {
        let is_main = event.agent == haft_agent::MAIN_AGENT;
        match &event.body {
            EventBody::Retry {
                attempt,
                delay_ms,
                reason,
                ..
            } if is_main => {
                let wait = delay_ms.div_ceil(1000);
                vec![text::sanitize_text(&text!(
                    "plain-retry",
                    attempt,
                    wait,
                    reason
                ))]
            }
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                arguments: Some(arguments),
                ..
            } if is_main && name == "todo_write" => text::format_todo_lines(arguments),
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Finished,
                arguments: Some(arguments),
                ..
            } => {
                let call = CallHeadline::new(name, arguments).to_line();
                if is_main {
                    let line = text::sanitize_text(&text!("plain-call", call));
                    self.waiting_calls.insert(id.clone(), line);
                    return Vec::new();
                }
                let line = text!("plain-call-of", agent = event.agent, call);
                vec![text::sanitize_text(&line)]
            }
            EventBody::ToolCall {
                id,
                phase: CallPhase::Running,
                ..
            } if is_main => self.waiting_calls.remove(id).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Prints a line. An empty line is not printed.
    fn print_line(&mut self, line: &str) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let before = if std::mem::take(&mut self.prompted) {
            "\n"
        } else {
            ""
        };
        write_text(&format!("{before}{}\n", wrap_to_terminal(line)))
    }

    /// Prints lines of an approval without a layout: breaking them would hide spaces, and replacing
    /// symbols would change what the user approves.
    fn print_exactly(&mut self, lines: &[String]) -> io::Result<()> {
        let before = if std::mem::take(&mut self.prompted) {
            "\n"
        } else {
            ""
        };
        write_text(&format!("{before}{}\n", lines.join("\n")))
    }

    /// Prompts for the next input. Prints nothing while a turn runs or a question is open.
    fn print_prompt(&mut self) -> io::Result<()> {
        if self.busy || self.asking.is_some() || self.picking.is_some() || self.ended.is_some() {
            Ok(())
        } else {
            self.print_question(text!("plain-prompt"))
        }
    }

    fn print_question(&mut self, question: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.prompted, true) {
            return Ok(());
        }
        write_text(&format!("{question} "))
    }
}

fn write_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A line that the user typed or pasted.
struct TypedLine {
    text: String,
    /// True if the line arrived together with other lines, so it was pasted.
    came_with_others: bool,
    /// The time at which the line was read. A line that was typed before a question doesn't answer
    /// it.
    typed_at: Instant,
}

/// Starts a thread that reads lines. The thread runs until the process exits, because nothing can
/// wake it.
fn spawn_line_reader() -> UnboundedReceiver<TypedLine> {
    let (send, lines) = unbounded_channel();
    std::thread::spawn(move || {
        let mut follows = false;
        for text in io::stdin().lock().lines() {
            let Ok(text) = text else { break };
            let is_followed = terminal::has_pending_line(io::stdin());
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

async fn wait_until_withdrawn(
    asking: &mut Option<(ApprovalDialog, oneshot::Sender<ApprovalReply>, Instant)>,
) {
    match asking {
        Some((_, answer, _)) => answer.closed().await,
        None => std::future::pending().await,
    }
}
