//! Everything the interface knows, and what each input does to it.
//!
//! Responsible for what is shown and what is asked for; `keys` says what keys do, `events` what the
//! engine's events do, `view` how it looks. Invariant: a row that was printed is never thought of
//! again; all that is kept is what the live region shows, and the last result and thoughts for
//! those who want to see them.

mod activity;
mod events;
mod keys;
mod panes;
mod reply_rows;
mod submit;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::KeyEvent;
use haft_agent::{Approval, ApprovalReply};
use haft_types::{Filled, Form, PermissionMode, ToolStatus};
use serde_json::Value;

use crate::approval::{ApprovalDialog, ApprovalStage};
use crate::call::{DIFF_ROWS, OmittedEnd, ToolCallView, about, cut, text_rows};
use crate::complete::CompletionMenu;
use crate::config::Editing;
use crate::diff;
use crate::editor::Editor;
use crate::form::FormDialog;
use crate::image_paste::{ImageSource, PastedImage};
use crate::line::{StyledLine, TextStyle};
use crate::link::{EarlierMessage, Operation, UiMessage};
use crate::markdown;
use crate::picker::{Picker, PickerAction, PickerList};
use crate::status::StatusLine;
use crate::viewer::{ResultList, ResultViewer};
use crate::wrap::wrap;

use activity::Activity;
pub(crate) use activity::elapsed;
pub use events::worded;
use panes::Panes;
use reply_rows::ReplyRows;

/// What the interface begins with.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How much may happen without asking.
    pub mode: PermissionMode,
    /// The model, as `provider/model`.
    pub model: String,
    /// What was sent in earlier sessions, oldest first.
    pub history: Vec<String>,
    /// Whose keys edit what is typed.
    pub editing: Editing,
    /// The user's own commands: name and what it is for.
    pub commands: Vec<(String, String)>,
    /// What servers offer to be mentioned, as `server:uri`.
    pub resources: Vec<String>,
    /// What to begin with, as if it had been typed.
    pub first: Option<String>,
    /// What to say before anything else.
    pub greeting: String,
    /// Whether the bell rings when a question waits or a long turn ends.
    pub bell: bool,
    /// Whether the terminal is known to take a title and notifications, which are sent then.
    pub notifies: bool,
    /// The project's folder, where the terminal is known to take links to its files.
    pub links: Option<String>,
    /// The file that rules of approvals are saved in, as it is shown.
    pub rules_file: String,
}

/// Something that happens to the interface.
#[derive(Debug)]
pub enum AppInput {
    /// A key.
    Key(KeyEvent),
    /// Keys that were read at once.
    Keys(Vec<KeyEvent>),
    /// Text from the clipboard.
    Paste(String),
    /// A picture that was pasted.
    Image(PastedImage),
    /// What was pasted is no picture that can be read.
    NoImage(String),
    /// The terminal has this size.
    Size {
        /// Characters a row.
        columns: usize,
        /// Rows.
        rows: usize,
    },
    /// The session has something to show.
    Message(UiMessage),
    /// A call waits for an answer.
    Ask(Box<Approval>),
    /// The question is not to be answered any more.
    Withdrawn,
    /// The question has been on the screen long enough to be read.
    Armed,
    /// A server wants a form filled in.
    Form(Box<Form>),
    /// A row of a list was chosen elsewhere.
    Chosen(PickerAction),
    /// The call that is asked about is to run with these arguments.
    CallEdited(Value),
    /// The user left the editor, and nothing of the edit is used, for this reason: the question
    /// stays open.
    CallNotEdited(String),
    /// Its arguments are to be edited as they are: there is no file to edit.
    NoFile,
}

impl From<UiMessage> for AppInput {
    fn from(message: UiMessage) -> Self {
        Self::Message(message)
    }
}

/// Something the interface wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// These rows are finished: they go to the terminal's own scrollback.
    Print(Vec<StyledLine>),
    /// The session does something.
    Do(Operation),
    /// The open question has this answer.
    Answer(ApprovalReply),
    /// The open form comes back like this.
    Fill(Filled),
    /// [`AppInput::Armed`] is wanted in a moment, counted from now.
    Arm,
    /// This is to be chosen from; [`UiMessage::Pick`] is what shows it.
    Offer(PickerList),
    /// This was typed and sent: it is kept for the next session.
    Keep(String),
    /// The user's editor is opened on this text; [`UiMessage::Typed`] is what comes of it.
    Edit(String),
    /// The file that this call would leave behind is opened in the user's editor;
    /// [`AppInput::CallEdited`] is what comes of it.
    EditFile(Box<Approval>),
    /// A picture is looked for; [`AppInput::Image`] is what comes of it, or [`AppInput::NoImage`]
    /// with the text.
    FindImage {
        /// Where it may be.
        source: ImageSource,
        /// What was pasted.
        text: String,
    },
    /// Everything is drawn again.
    Redraw,
    /// To the shell, until it brings haft back.
    Suspend,
    /// The end.
    Quit,
}

/// The live region: what is drawn again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveRegion {
    /// Its rows.
    pub rows: Vec<StyledLine>,
    /// Row and column of the cursor.
    pub cursor: (usize, usize),
    /// Whether the cursor shows.
    pub shows_cursor: bool,
}

/// What the interface knows.
#[derive(Debug)]
pub struct App {
    columns: usize,
    rows: usize,
    editor: Editor,
    status: StatusLine,
    /// Whether a turn runs.
    busy: bool,
    /// Whether the user wants it to end.
    interrupted: bool,
    /// What was typed while it ran.
    queue: VecDeque<Queued>,
    answer: markdown::MarkdownStream,
    /// What of it is on the screen.
    reply: ReplyRows,
    /// What is printed once the text that is arriving is whole.
    held: Vec<StyledLine>,
    activity: Activity,
    /// The conversation that is open, once something was sent in it.
    conversation: Option<String>,
    /// The last error, which the result of the turn repeats.
    last_error: Option<String>,
    /// Whether the model's text was printed last; a blank row goes between it and a call.
    after_words: bool,
    /// Reasoning that is arriving.
    thinking: String,
    calls: Vec<ToolCallView>,
    /// Ids of calls that were shown as cancelled.
    cancelled: Vec<String>,
    /// The tool whose change was just allowed as it is on the screen.
    shown_change: Option<String>,
    /// The calls with their results, and thoughts, to be opened.
    results: ResultList,
    viewer: Option<ResultViewer>,
    /// The project's folder, where a click opens its files.
    links: Option<String>,
    /// The file that rules of approvals are saved in.
    rules_file: String,
    /// What a user who looks elsewhere is to know.
    alert: Option<String>,
    asking: Option<ApprovalDialog>,
    form: Option<FormDialog>,
    picker: Option<Picker>,
    /// What was being typed when a question took the editor.
    draft: Option<String>,
    /// Answers of the model's question, to be chosen by their number.
    options: Vec<String>,
    /// Whether a plan waits for the user's word.
    has_plan: bool,
    panes: Panes,
    menu: Option<CompletionMenu>,
    /// Whether the keys are shown below the input.
    shows_keys: bool,
    /// Pictures that were pasted and not sent yet.
    images: Vec<PastedImage>,
    /// Whether an empty input says what it is for.
    has_placeholder: bool,
    /// What was typed to open a list: printed once something is chosen in it.
    echo: Option<Vec<StyledLine>>,
    search: Option<HistorySearch>,
    files: Vec<String>,
    resources: Vec<String>,
    commands: Vec<(String, String)>,
    /// The mode haft was started in.
    began_with: PermissionMode,
    hint: Option<Hint>,
    last_break: Option<String>,
    /// What this input has printed.
    printed: Vec<StyledLine>,
}

/// Input that waits until it can join the turn or start another.
#[derive(Debug)]
struct Queued {
    text: String,
    /// Whether they were sent to join the turn that runs.
    joins: bool,
}

/// A search in what was sent before.
#[derive(Debug, Default)]
struct HistorySearch {
    query: String,
    skip: usize,
}

/// A sentence below the input, until the next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    QuitAgain,
    RewindAgain,
    Mode(PermissionMode),
    Interrupting,
    NothingToOpen,
    /// The last result was just opened; nothing is said.
    Opened,
}

impl App {
    /// The interface as it is at first, and what it wants then.
    pub fn new(setup: Setup, columns: usize, rows: usize) -> (Self, Vec<Effect>) {
        let (columns, rows) = room(columns, rows);
        let began_with = setup.mode;
        let status = StatusLine {
            mode: setup.mode,
            model: setup.model,
            ..StatusLine::default()
        };
        let mut app = Self {
            columns,
            rows,
            editor: Editor::with_history(setup.history),
            status,
            busy: false,
            interrupted: false,
            queue: VecDeque::new(),
            answer: markdown::MarkdownStream::default(),
            reply: ReplyRows::default(),
            held: Vec::new(),
            activity: Activity::default(),
            conversation: None,
            last_error: None,
            after_words: false,
            thinking: String::new(),
            calls: Vec::new(),
            cancelled: Vec::new(),
            shown_change: None,
            results: ResultList::default(),
            viewer: None,
            links: setup.links,
            rules_file: setup.rules_file,
            alert: None,
            asking: None,
            form: None,
            picker: None,
            draft: None,
            options: Vec::new(),
            has_plan: false,
            panes: Panes::default(),
            menu: None,
            shows_keys: false,
            images: Vec::new(),
            has_placeholder: !setup.greeting.is_empty(),
            echo: None,
            search: None,
            files: Vec::new(),
            resources: setup.resources,
            commands: setup.commands,
            began_with,
            hint: None,
            last_break: None,
            printed: Vec::new(),
        };
        match setup.editing {
            Editing::Shell => {}
            Editing::Vim => app.editor.use_vim(),
        }
        app.status.editing = app.editor.vim_mode();
        app.print(text_rows(&setup.greeting, TextStyle::Dim, columns));
        let mut effects = Vec::new();
        if let Some(first) = setup.first {
            app.said(first, &mut effects);
        }
        app.collect(&mut effects);
        (app, effects)
    }

    /// Takes an input in; gives what is to be done, in order.
    pub fn update(&mut self, input: impl Into<AppInput>) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input.into() {
            AppInput::Key(key) => self.key(key, &mut effects),
            AppInput::Keys(keys) => self.keys_at_once(&keys, &mut effects),
            AppInput::Paste(text) => self.paste(&text, &mut effects),
            AppInput::Image(image) => {
                self.editor.insert(&image.label);
                self.images.push(image);
            }
            AppInput::NoImage(text) => self.editor.paste(&text),
            AppInput::Size { columns, rows } => (self.columns, self.rows) = room(columns, rows),
            AppInput::Message(message) => self.message(message, &mut effects),
            AppInput::Ask(approval) => self.ask(*approval, &mut effects),
            AppInput::Withdrawn => self.end_question(),
            AppInput::Armed => {
                if let Some(asking) = &mut self.asking {
                    asking.armed = true;
                    asking.pause();
                }
                if let Some(filling) = &mut self.form {
                    filling.armed = true;
                }
                if let Some(picker) = &mut self.picker {
                    picker.arm();
                }
            }
            AppInput::Form(form) => self.show_form(*form, &mut effects),
            AppInput::Chosen(action) => self.chosen(action, &mut effects),
            AppInput::CallEdited(arguments) => {
                self.answer(ApprovalReply::Changed { arguments }, &mut effects);
            }
            AppInput::CallNotEdited(why) => {
                self.note(&why, TextStyle::Warning);
                self.ask_again(&mut effects);
            }
            AppInput::NoFile => {
                if let Some(text) = self.asking.as_ref().map(ApprovalDialog::editable) {
                    self.begin_typing(ApprovalStage::Change, &text);
                    effects.push(Effect::Arm);
                }
            }
        }
        self.status.editing = self.editor.vim_mode();
        self.collect(&mut effects);
        effects
    }

    fn message(&mut self, message: UiMessage, effects: &mut Vec<Effect>) {
        match message {
            UiMessage::Event(event) => self.event(&event),
            UiMessage::Joined => self.joined(),
            UiMessage::Idle => self.idle(effects),
            // Whoever has begun a turn in the meantime wants that.
            UiMessage::Pick(_) if self.busy => {}
            UiMessage::Pick(list) => {
                self.picker = Some(Picker::new(list));
                self.rearm(effects);
            }
            UiMessage::Model { name } => self.status.model = name,
            UiMessage::Told { text } => self.told(&text),
            UiMessage::Running { id, line } => self.activity.shell_started(id, line),
            UiMessage::Ran { id, text } => {
                self.activity.shell_ended(id);
                self.told(&text);
                if self.held.is_empty() {
                    self.activity.forget_ended();
                }
            }
            UiMessage::Context(parts) => self.context(parts.as_deref()),
            UiMessage::Sandbox(layer) => self.status.sandbox = Some(layer),
            UiMessage::Files(files) => {
                self.files = files;
                self.offer();
            }
            UiMessage::Typed { text } => {
                self.menu = None;
                self.editor.set(text.trim_end_matches('\n'));
            }
            UiMessage::Earlier(messages) => {
                for message in messages {
                    match message {
                        EarlierMessage::User(text) => {
                            self.print_apart(view::said(&text, self.columns));
                        }
                        EarlierMessage::Model(text) => {
                            self.print_apart(markdown::render(&text, self.columns));
                        }
                        EarlierMessage::Result {
                            tool,
                            arguments,
                            text,
                        } => {
                            let call = ToolCallView {
                                about: about(&arguments),
                                ..ToolCallView::new("", &tool)
                            };
                            self.results.push(call, &text);
                        }
                    }
                }
            }
            UiMessage::Opened { text } => {
                self.last_break = None;
                self.results = ResultList::default();
                self.panes = Panes::default();
                self.status.forget_request();
                self.print(vec![StyledLine::of(text, TextStyle::Dim).cut(self.columns)]);
            }
        }
    }

    /// It is this long since the interface began.
    pub fn set_time(&mut self, now: Duration) {
        self.activity.set_time(now);
    }

    /// Whether something is shown that changes with time.
    pub fn is_timed(&self) -> bool {
        self.busy || self.activity.is_timed()
    }

    /// What the title of the terminal says.
    pub(crate) fn title(&self) -> &'static str {
        match self.busy {
            _ if self.asking.is_some() || self.form.is_some() => text!("app-title-question"),
            true => text!("app-title-working"),
            false => "haft",
        }
    }

    /// What a user who looks elsewhere is to know, once.
    pub(crate) fn take_alert(&mut self) -> Option<String> {
        self.alert.take()
    }

    /// Opens a question about a call, in the mode there is now.
    pub(crate) fn dialog(&self, approval: Approval) -> ApprovalDialog {
        ApprovalDialog::new(approval, self.status.mode, &self.rules_file)
    }

    /// The command in the user's shell that was started last and still runs.
    pub(crate) fn newest_shell(&self) -> Option<u64> {
        self.activity.newest_shell()
    }

    /// What was still arriving is finished as it is.
    pub(crate) fn flush(&mut self) -> Vec<Effect> {
        self.finish_text();
        let mut effects = Vec::new();
        self.collect(&mut effects);
        effects
    }

    /// The end: what was still arriving is finished as it is.
    pub fn leave(&mut self) -> Vec<Effect> {
        self.finish_text();
        if let Some(id) = &self.conversation {
            let requests = self.status.requests;
            let money = self.status.money().unwrap_or_default();
            let line = text!("app-resume", id, requests);
            let line = if money.is_empty() {
                line
            } else {
                format!("{line}{}{money}", text!("app-comma"))
            };
            self.print_apart(wrap(&StyledLine::of(line, TextStyle::Dim), self.columns));
        }
        let mut effects = Vec::new();
        self.collect(&mut effects);
        effects
    }

    /// What was printed by this input comes before what is wanted because of it.
    fn collect(&mut self, effects: &mut Vec<Effect>) {
        if !self.printed.is_empty() {
            effects.insert(0, Effect::Print(std::mem::take(&mut self.printed)));
        }
    }

    fn print(&mut self, rows: Vec<StyledLine>) {
        self.print_echo();
        self.printed.extend(rows);
    }

    /// What was typed before what follows from it.
    fn print_echo(&mut self) {
        if let Some(rows) = self.echo.take() {
            self.print_apart(rows);
        }
    }

    /// Finished output that is set apart from what was before it.
    fn print_apart(&mut self, rows: Vec<StyledLine>) {
        if !rows.is_empty() {
            self.print_echo();
            self.printed.push(StyledLine::empty());
            self.printed.extend(rows);
        }
    }

    /// Text that is no event; a change of files is shown as one.
    fn told(&mut self, text: &str) {
        let text = text.trim_end();
        let rows = if diff::is_diff(text) {
            let rows = diff::numbered("", text.lines(), self.columns);
            if rows.len() > DIFF_ROWS {
                self.results
                    .push(ToolCallView::new("", text!("app-changes")), text);
            }
            cut(&rows, DIFF_ROWS, OmittedEnd::Last)
        } else {
            text_rows(text, TextStyle::Plain, self.columns)
        };
        self.print_aside(rows);
    }

    /// Output that has nothing to do with the text that is arriving: it waits until that is whole.
    fn print_aside(&mut self, rows: Vec<StyledLine>) {
        if self.answer.is_idle() && self.thinking.is_empty() {
            self.print(rows);
        } else {
            self.held.extend(rows);
        }
    }

    fn show_form(&mut self, form: Form, effects: &mut Vec<Effect>) {
        self.finish_text();
        (self.picker, self.viewer) = (None, None);
        let filling = FormDialog::new(form);
        self.alert = Some(text!("app-alert-form").to_owned());
        self.print_apart(filling.subject(self.columns));
        self.form = Some(filling);
        self.draft = Some(self.editor.whole());
        self.editor.clear();
        self.menu = None;
        effects.push(Effect::Arm);
    }

    fn ask(&mut self, approval: Approval, effects: &mut Vec<Effect>) {
        self.finish_text();
        (self.picker, self.viewer) = (None, None);
        self.alert = Some(text!("app-alert-question", tool = approval.tool));
        let mut asking = self.dialog(approval);
        self.print_apart(asking.subject(self.columns));
        self.asking = Some(asking);
        effects.push(Effect::Arm);
    }

    /// The question is open again, after the screen showed something else: keys answer it once it
    /// could be read.
    fn ask_again(&mut self, effects: &mut Vec<Effect>) {
        if let Some(asking) = &mut self.asking {
            asking.armed = false;
            effects.push(Effect::Arm);
        }
    }

    /// The question is gone; the editor is given back what it held.
    fn end_question(&mut self) {
        let types = self.asking.take().is_some_and(|asking| match asking.stage {
            ApprovalStage::Choose | ApprovalStage::Confirm(_) => false,
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => true,
        });
        if types || self.form.take().is_some() {
            self.editor.clear();
        }
        if let Some(draft) = self.draft.take() {
            self.editor.set(&draft);
        }
    }

    /// The turn is over: what was typed in the meantime begins the next.
    fn idle(&mut self, effects: &mut Vec<Effect>) {
        self.finish_text();
        if self.busy && !self.interrupted && self.activity.turn_time() >= LONG_TURN {
            self.alert = Some(text!("app-alert-done").to_owned());
        }
        self.busy = false;
        self.hint = None;
        self.end_question();
        // A call without a result was interrupted: that belongs here, not where the engine says so,
        // after the next prompt.
        for call in std::mem::take(&mut self.calls) {
            let rows = call.finished(
                ToolStatus::Error,
                text!("app-call-cancelled"),
                self.activity.now(),
                self.columns,
            );
            self.print(rows);
            self.cancelled.push(call.id);
        }
        if std::mem::take(&mut self.interrupted) && !self.queue.is_empty() {
            // What waited to be sent was meant for a turn that went on: it comes back to be looked
            // at. Not before now: until the turn was over, it could still become part
            // of it.
            let mut query: Vec<_> = self.queue.drain(..).map(|queued| queued.text).collect();
            query.extend(Some(self.editor.whole()).filter(|text| !text.is_empty()));
            return self.editor.set(&query.join("\n"));
        }
        let has_plan = std::mem::take(&mut self.has_plan);
        if let Some(next) = self.queue.pop_front() {
            self.begin(next.text, effects);
        } else if has_plan && self.editor.is_empty() && self.status.mode == PermissionMode::Plan {
            effects.push(Effect::Offer(self.plan_choices()));
        }
    }
}

/// Whoever waits so long looks elsewhere.
const LONG_TURN: Duration = Duration::from_secs(5);

/// The room there is to lay things out in. In a terminal that is smaller still, rows are cut off at
/// its edge.
fn room(columns: usize, rows: usize) -> (usize, usize) {
    (columns.max(16), rows.max(4))
}

#[cfg(test)]
mod tests;
