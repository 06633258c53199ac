//! The state of the interface, and the effect of each input on it.
//!
//! [`App`] dispatches inputs to its parts: [`TurnView`] shows the running turn, [`Dialogs`] holds
//! what opens over the input line, [`Composer`] is the input line. `keys` handles keys, `events`
//! the engine's events, `submit` submitted input, and `view` lays the screen out. Invariant: a
//! printed row belongs to the terminal and is forgotten; the state holds only what the live region
//! shows, and the results and reasoning that can be opened.

mod activity;
mod call_list;
mod choices;
mod completions;
mod composer;
mod dialogs;
mod events;
mod help;
mod keys;
mod panes;
mod reply;
mod reply_rows;
mod scrollback;
mod submit;
mod turn_view;
mod update;
mod view;

use std::time::Duration;

use haft_agent::{Approval, ApprovalReply};
use haft_messages::CallHeadline;
use haft_types::{Form, PermissionMode};

use crate::approval::ApprovalDialog;
use crate::call::wrap_text;
use crate::line::{StyledLine, TextStyle};
use crate::link::UiMessage;
use crate::status::StatusLine;
use crate::wrap::wrap_line;

use choices::{list_answers, list_plan_options, list_quit_options};
use completions::Completions;
use composer::Composer;
use dialogs::Dialogs;
use scrollback::Scrollback;
use turn_view::{Awaited, TurnView};

use activity::FRAME_TIME;
pub use activity::format_elapsed;
pub use turn_view::translate_message;
pub use update::{AppInput, Effect, LiveRegion, Setup};

/// The interval at which times on the screen are updated.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the interface, independent of any terminal.
#[derive(Debug)]
pub struct App {
    /// The height of the terminal in rows.
    rows: usize,
    scrollback: Scrollback,
    status: StatusLine,
    turn: TurnView,
    dialogs: Dialogs,
    composer: Composer,
    /// The short id of the open conversation, or `None` before the first prompt of the
    /// conversation.
    conversation: Option<String>,
    /// The permission mode in which haft was started.
    started_in: PermissionMode,
    /// True if an empty input shows a placeholder text.
    has_placeholder: bool,
    hint: Option<Hint>,
    /// A pending notification for a user who isn't watching the terminal.
    alert: Option<String>,
    /// The note to show with the choices after a plan.
    plan_note: Option<String>,
    /// True if another process runs the session.
    is_attached: bool,
    /// True if the user has interrupted the turn in order to send the queued input at once.
    sends_queue: bool,
}

/// A hint that is shown below the input until the next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    QuitAgain,
    RewindAgain,
    Mode(PermissionMode),
    Interrupting,
    NothingToOpen,
}

impl App {
    /// Creates the interface and returns its first effects.
    pub fn new(setup: Setup, columns: usize, rows: usize) -> (Self, Vec<Effect>) {
        let (columns, rows) = layout_size(columns, rows);
        let completions = Completions::new(setup.resources, setup.commands);
        let mut app = Self {
            rows,
            scrollback: Scrollback::new(columns),
            status: StatusLine {
                mode: setup.mode,
                model: setup.model,
                ..StatusLine::default()
            },
            turn: TurnView::new(setup.links),
            dialogs: Dialogs::new(setup.rules_file),
            composer: Composer::new(setup.history, setup.editing, completions),
            conversation: None,
            started_in: setup.mode,
            has_placeholder: !setup.greeting.is_empty(),
            hint: None,
            alert: None,
            plan_note: None,
            is_attached: setup.is_attached,
            sends_queue: false,
        };
        if setup.animates {
            app.turn.enable_animation();
        }
        app.status.editing = app.composer.vim_mode();
        app.scrollback
            .print_rows(wrap_text(&setup.greeting, TextStyle::Dim, columns));
        let mut effects = Vec::new();
        if let Some(first) = setup.first {
            app.dispatch_input(first, &mut effects);
        }
        app.prepend_printed_rows(&mut effects);
        (app, effects)
    }

    /// Handles an input and returns the effects that the driver must carry out, in order.
    pub fn update(&mut self, input: impl Into<AppInput>) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input.into() {
            AppInput::Key(key) => self.handle_key(key, &mut effects),
            AppInput::Keys(keys) => self.handle_key_burst(&keys, &mut effects),
            AppInput::Paste(text) => self.handle_paste(&text, &mut effects),
            AppInput::Image(image) => self.composer.attach_image(image),
            AppInput::NoImage(text) => self.composer.insert_paste(&text),
            AppInput::Size { columns, rows } => self.resize(columns, rows),
            AppInput::Message(message) => self.handle_message(message, &mut effects),
            AppInput::Ask(approval) => self.open_approval(*approval, &mut effects),
            AppInput::Withdrawn => self.close_question(),
            AppInput::Armed => self.dialogs.arm_question(),
            AppInput::Form(form) => self.open_form(*form, &mut effects),
            AppInput::Chosen(action) => self.apply_choice(action, &mut effects),
            AppInput::CallEdited(arguments) => {
                self.answer_approval(ApprovalReply::Changed { arguments }, &mut effects);
            }
            AppInput::CallNotEdited(why) => {
                self.scrollback.print_note(&why, TextStyle::Warning);
                self.dialogs.disarm_approval(&mut effects);
            }
            AppInput::NoFile => {
                self.dialogs
                    .edit_arguments(&mut self.composer, &mut effects);
            }
        }
        self.status.editing = self.composer.vim_mode();
        self.prepend_printed_rows(&mut effects);
        effects
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        let (columns, rows) = layout_size(columns, rows);
        self.scrollback.set_columns(columns);
        self.rows = rows;
    }

    fn handle_message(&mut self, message: UiMessage, effects: &mut Vec<Effect>) {
        let out = &mut self.scrollback;
        match message {
            UiMessage::Event(event) => self.handle_event(&event),
            UiMessage::Joined => {
                self.turn.finish_text(out);
                if let Some(text) = self.composer.take_joined_input() {
                    out.print_prompt(&text);
                }
            }
            UiMessage::Begun => {
                self.dialogs.close_list_question();
                self.turn.start_turn_elsewhere();
            }
            UiMessage::Said { text } => {
                self.turn.finish_text(out);
                out.print_prompt(&text);
            }
            UiMessage::AnsweredElsewhere { reply } => {
                self.turn.print_text(describe_reply_elsewhere(&reply), out);
            }
            UiMessage::Mode(mode) => self.status.mode = mode,
            UiMessage::Idle => self.end_turn(effects),
            // A user who has started a turn in the meantime no longer wants the list.
            UiMessage::Pick(list) if self.turn.is_busy() && !list.outlives_turns() => {}
            UiMessage::Pick(list) => {
                self.dialogs.open_picker(list);
                self.dialogs.delay_arming(effects);
            }
            UiMessage::Model { name } => self.status.model = name,
            UiMessage::PlanNote(note) => self.plan_note = note,
            UiMessage::Told { text } => self.turn.print_text(&text, out),
            UiMessage::Running { id, line } => self.turn.add_shell(id, line),
            UiMessage::Ran { id, text } => self.turn.end_shell(id, &text, out),
            UiMessage::Context(parts) => self.print_context(parts.as_deref()),
            UiMessage::Sandbox(layer) => self.status.sandbox = Some(layer),
            UiMessage::Spent { usage, cost } => self.status.add_usage(usage, cost),
            UiMessage::Tasks(tasks) => self.turn.set_tasks(tasks),
            UiMessage::Files(files) => self.composer.set_files(files),
            UiMessage::Names {
                commands,
                resources,
            } => self.composer.set_names(commands, resources),
            UiMessage::Typed { text } => self.composer.set_edited_text(&text),
            UiMessage::Earlier(messages) => self.turn.print_earlier_messages(messages, out),
            UiMessage::Totals(totals) => self.status.set_totals(*totals),
            UiMessage::Opened { text } => {
                self.turn.forget_conversation();
                self.status.forget_conversation();
                let line = StyledLine::new(text, TextStyle::Dim).cut(out.columns());
                out.print_rows(vec![line]);
            }
        }
    }

    /// Sets the time since the interface was started.
    pub fn set_time(&mut self, now: Duration) {
        self.turn.set_time(now);
    }

    /// Returns true if the screen must be redrawn regularly because it shows times.
    pub fn changes_over_time(&self) -> bool {
        self.turn.changes_over_time()
    }

    /// Returns the time after which the screen changes by itself.
    pub(crate) fn redraw_interval(&self) -> Duration {
        if self.turn.is_animated() && !self.dialogs.has_question() {
            FRAME_TIME
        } else {
            CLOCK_INTERVAL
        }
    }

    /// Returns the title for the terminal's window, which shows whether a question is open or a
    /// turn is running.
    pub(crate) fn terminal_title(&self) -> &'static str {
        if self.dialogs.has_question() || self.dialogs.has_list_question() {
            text!("app-title-question")
        } else if self.turn.is_busy() {
            text!("app-title-working")
        } else {
            "haft"
        }
    }

    /// Removes and returns the notification for a user who isn't watching the terminal.
    pub(crate) fn take_alert(&mut self) -> Option<String> {
        self.alert.take()
    }

    /// Creates the dialog for an approval in the current mode, without opening it.
    pub(crate) fn create_approval_dialog(&self, approval: Approval) -> ApprovalDialog {
        self.dialogs
            .create_approval_dialog(approval, self.status.mode)
    }

    /// Updates the calls after the user has answered an approval that isn't open here.
    pub(crate) fn note_approval_answer(&mut self, dialog: &ApprovalDialog, reply: &ApprovalReply) {
        self.turn.note_approval_answer(Some(dialog), reply);
    }

    /// Returns the id of the newest command that is still running in the user's shell.
    pub(crate) fn newest_shell(&self) -> Option<u64> {
        self.turn.newest_shell()
    }

    /// Prints the last result in full. Used where no viewer can be drawn.
    pub(crate) fn print_last_result(&mut self) -> Vec<Effect> {
        let out = &mut self.scrollback;
        match self.turn.results().last() {
            Some((call, text)) => out.print_separated(call.draw_opened(text, out.columns())),
            None => out.print_note(text!("app-nothing-to-open"), TextStyle::Warning),
        }
        let mut effects = Vec::new();
        self.prepend_printed_rows(&mut effects);
        effects
    }

    /// Prints the part of the reply that has arrived so far.
    pub(crate) fn flush_reply(&mut self) -> Vec<Effect> {
        self.turn.finish_text(&mut self.scrollback);
        let mut effects = Vec::new();
        self.prepend_printed_rows(&mut effects);
        effects
    }

    /// Ends the interface: prints the part of the reply that has arrived, and explains how to
    /// resume the conversation, unless another process runs it.
    pub fn leave(&mut self) -> Vec<Effect> {
        self.turn.finish_text(&mut self.scrollback);
        if let Some(id) = self.conversation.as_ref().filter(|_| !self.is_attached) {
            let requests = self.status.requests;
            let money = self.status.format_cost().unwrap_or_default();
            let line = text!("app-resume", id, requests);
            let line = if money.is_empty() {
                line
            } else {
                format!("{line}{}{money}", text!("app-comma"))
            };
            let line = StyledLine::new(line, TextStyle::Dim);
            self.scrollback
                .print_separated(wrap_line(&line, self.scrollback.columns()));
        }
        let mut effects = Vec::new();
        self.prepend_printed_rows(&mut effects);
        effects
    }

    /// Inserts an effect at the front that prints the rows produced by the current input.
    fn prepend_printed_rows(&mut self, effects: &mut Vec<Effect>) {
        let rows = self.scrollback.take_rows();
        if !rows.is_empty() {
            effects.insert(0, Effect::Print(rows));
        }
    }

    fn open_form(&mut self, form: Form, effects: &mut Vec<Effect>) {
        self.turn.finish_text(&mut self.scrollback);
        self.alert = Some(text!("app-alert-form").to_owned());
        self.dialogs.open_form(form, &mut self.scrollback);
        self.turn.note_printed_question();
        self.composer.lend_editor("");
        self.composer.close_menu();
        effects.push(Effect::Arm);
    }

    fn open_approval(&mut self, approval: Approval, effects: &mut Vec<Effect>) {
        self.turn.finish_text(&mut self.scrollback);
        let call = CallHeadline::new(&approval.tool, &approval.arguments).to_line();
        self.alert = Some(text!("app-alert-question", call));
        self.dialogs
            .open_approval(approval, self.status.mode, &mut self.scrollback);
        self.turn.note_printed_question();
        effects.push(Effect::Arm);
    }

    /// Closes the open question and restores the user's text in the editor.
    fn close_question(&mut self) {
        if self.dialogs.close_question() {
            self.composer.clear_text();
        }
        self.composer.restore_draft();
    }

    /// Ends the turn and starts another one with the next queued input, if any.
    fn end_turn(&mut self, effects: &mut Vec<Effect>) {
        self.turn.finish_text(&mut self.scrollback);
        if self.turn.is_long() {
            self.alert = Some(text!("app-alert-done").to_owned());
        }
        self.hint = None;
        self.close_question();
        let was_interrupted = self.turn.end_turn(&mut self.scrollback);
        let sends_queue = std::mem::take(&mut self.sends_queue);
        // Queued input was meant for a turn that went on, so the user may change it, unless they
        // interrupted the turn to send it. It is recalled only now: until the turn ended, it could
        // still join the turn.
        if was_interrupted && !sends_queue && self.composer.recall_queue() {
            return;
        }
        let awaited = self.turn.take_awaited();
        if let Some(text) = self.composer.take_next_input() {
            self.start_turn(text, effects);
        } else {
            self.offer_reactions(awaited, effects);
        }
    }

    /// Offers the reactions that the end of a turn calls for: the choices after a plan, or the
    /// answers that the model proposes. In plan mode, every answer of the model is a plan, whether
    /// or not the model had the tool to present one.
    fn offer_reactions(&mut self, awaited: Awaited, effects: &mut Vec<Effect>) {
        let options = self.turn.options();
        let list = match awaited {
            Awaited::Reaction | Awaited::Decision if self.status.mode == PermissionMode::Plan => {
                Some(list_plan_options(options, self.plan_note.clone()))
            }
            Awaited::Answer | Awaited::Decision if !options.is_empty() => {
                Some(list_answers(options))
            }
            Awaited::Nothing | Awaited::Answer | Awaited::Decision | Awaited::Reaction => None,
        };
        if awaited == Awaited::Answer || list.is_some() {
            self.alert = Some(text!("app-alert-asks").to_owned());
        }
        // A user who is typing answers in own words.
        match list.filter(|_| self.composer.is_empty()) {
            Some(list) => effects.push(Effect::Offer(list)),
            None => self.turn.print_options(&mut self.scrollback),
        }
    }

    /// Leaves the interface, or first asks if commands would be ended.
    fn request_quit(&mut self, effects: &mut Vec<Effect>) {
        let running = self.turn.running_commands();
        effects.push(if running.is_empty() {
            Effect::Quit
        } else {
            Effect::Offer(list_quit_options(&running))
        });
    }
}

/// Describes an answer that was given in another front end.
fn describe_reply_elsewhere(reply: &ApprovalReply) -> &'static str {
    match reply {
        ApprovalReply::No { .. } => text!("app-denied-elsewhere"),
        ApprovalReply::Once
        | ApprovalReply::Changed { .. }
        | ApprovalReply::Always
        | ApprovalReply::AlwaysBy { .. }
        | ApprovalReply::Session => text!("app-allowed-elsewhere"),
    }
}

/// Returns the size for which the screen is laid out. In a smaller terminal, rows are cut off at
/// the edge.
fn layout_size(columns: usize, rows: usize) -> (usize, usize) {
    (columns.max(16), rows.max(4))
}

#[cfg(test)]
mod tests;
