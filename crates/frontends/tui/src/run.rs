//! Runs the interface at a terminal: reads keys, draws, and restores the terminal in every case.
//!
//! Responsible for time and signals, of which [`App`] is independent. Invariant: a key is drawn at
//! once; the model's text is drawn at most every [`FRAME_INTERVAL`], however fast it arrives.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event as TerminalEvent, EventStream};
use futures::StreamExt;
use haft_agent::{Approval, ApprovalReply};
use haft_types::FormOutcome;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::READING_DELAY;
use crate::app::{App, AppInput, Effect, Setup};
use crate::image_paste::{ImageSource, PastedImage};
use crate::line::StyledLine;
use crate::link::{Incoming, Operation, TerminalSide, UiMessage};
use crate::proposed_files::{LostNames, ProposedFiles};
use crate::screen::{Palette, TerminalScreen};
use crate::terminal::{self, RawTerminal};

/// The minimum interval between two frames, except for frames that follow a key.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// The extension of the temporary file in which a prompt is edited.
const PROMPT_EXTENSION: &str = ".md";
/// The maximum time between two keys that were pasted or sent by a program. It must not be zero, or
/// `event::poll` ignores keys that were already read.
const BURST_TIMEOUT: Duration = Duration::from_millis(30);
/// The maximum number of messages that are handled before the next frame.
const MAX_BATCH: usize = 512;

/// The reason why the interface failed.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// The terminal could not be read or written.
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// The reason why the interface ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user left the interface.
    Left,
    /// A signal arrived, or the terminal was closed.
    Signalled,
    /// A thread panicked. The panic hook has already printed the message.
    Panicked,
}

/// A function that opens the user's editor with a text, in a file with the given extension. Returns
/// the edited text, or an error message.
pub type EditText = Box<dyn Fn(&str, &str) -> Result<String, String> + Send>;

/// A function that returns the content of a file, or `None` if the file isn't text.
pub type ReadFile = Box<dyn Fn(&str) -> Option<String> + Send>;

/// A function that finds an image and creates its label. Returns `None` if the source isn't an
/// image.
pub type FindImage = Box<dyn Fn(&ImageSource) -> Result<Option<PastedImage>, String> + Send>;

/// Actions that need files and programs. They are provided by the program that embeds the
/// interface.
pub struct HostActions {
    /// Opens the user's editor, which uses the terminal until it is closed.
    pub edit: EditText,
    /// Reads a project file, given by its path in a call. Returns `None` if the file isn't text.
    pub read: ReadFile,
    /// Finds an image that was pasted or is on the clipboard.
    pub image: FindImage,
    /// Saves submitted input for the next session. Must be fast, because keys are not handled until
    /// it returns.
    pub keep: Box<dyn Fn(&str) + Send>,
}

/// Runs the interface on the calling thread until the user leaves it. The call blocks, so it needs
/// a thread of its own.
pub fn run_screen(
    setup: Setup,
    palette: Palette,
    side: TerminalSide,
    host: HostActions,
) -> Result<Ended, TuiError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { ScreenDriver::start(setup, palette, side, host)?.run().await })
}

struct ScreenDriver {
    app: App,
    screen: TerminalScreen<io::Stdout>,
    side: TerminalSide,
    _taken: RawTerminal,
    /// The terminal's events. `None` while an editor reads them.
    keys: Option<EventStream>,
    host: HostActions,
    /// The rows that will be printed with the next frame.
    finished: Vec<StyledLine>,
    dirty: bool,
    began: Instant,
    drawn: Instant,
    /// The sender for the answer to the open question or form. Keys can answer from the time
    /// `armed_at` on.
    waiting: Option<PendingReply>,
    armed_at: Option<Instant>,
    /// True while haft is suspended and the shell uses the terminal.
    suspended: bool,
    /// True if the bell rings for alerts. The field `notifies` is true if the terminal supports
    /// notifications and titles.
    bell: bool,
    notifies: bool,
    title: &'static str,
    ended: Option<Ended>,
}

/// The sender for the answer to a question or a form.
enum PendingReply {
    Question(oneshot::Sender<ApprovalReply>),
    Form(oneshot::Sender<FormOutcome>),
}

/// Receives the signals that end or suspend haft.
pub(crate) struct Signals {
    pub(crate) end: [Signal; 3],
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let end = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
        ];
        let [terminate, hangup, interrupt] = end.map(signal);
        // tokio has no names for the signals SIGTSTP and SIGCONT.
        let number = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            end: [terminate?, hangup?, interrupt?],
            stop: signal(number(rustix::process::Signal::TSTP))?,
            go_on: signal(number(rustix::process::Signal::CONT))?,
        })
    }

    pub(crate) async fn wait_for_any(end: &mut [Signal; 3]) {
        let [terminate, hangup, interrupt] = end;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

impl ScreenDriver {
    fn start(
        setup: Setup,
        palette: Palette,
        side: TerminalSide,
        host: HostActions,
    ) -> io::Result<Self> {
        let (columns, rows) = crossterm::terminal::size()?;
        let taken = RawTerminal::enter()?;
        let bell = setup.bell;
        let notifies = setup.notifies;
        let screen = TerminalScreen::new(io::stdout(), palette);
        let screen = if setup.links.is_some() {
            screen
        } else {
            screen.without_links()
        };
        let (app, effects) = App::new(setup, columns.into(), rows.into());
        let mut driver = Self {
            app,
            screen,
            side,
            _taken: taken,
            keys: Some(EventStream::new()),
            host,
            finished: Vec::new(),
            dirty: true,
            began: Instant::now(),
            drawn: Instant::now(),
            waiting: None,
            armed_at: None,
            suspended: false,
            bell,
            notifies,
            title: "",
            ended: None,
        };
        driver.run_effects(effects)?;
        Ok(driver)
    }

    async fn run(mut self) -> Result<Ended, TuiError> {
        let mut signals = Signals::new()?;
        self.draw_frame()?;
        let ended = loop {
            if let Some(ended) = self.ended {
                break ended;
            }
            let due = self.drawn + FRAME_INTERVAL;
            tokio::select! {
                biased;
                () = Signals::wait_for_any(&mut signals.end) => self.ended = Some(Ended::Signalled),
                _ = signals.stop.recv() => self.suspend_process()?,
                _ = signals.go_on.recv() => self.resume_terminal()?,
                key = next_terminal_event(&mut self.keys) => self.handle_keys(key)?,
                () = wait_until_withdrawn(&mut self.waiting) => {
                    (self.waiting, self.armed_at) = (None, None);
                    self.update_app(AppInput::Withdrawn)?;
                }
                () = wait_until(self.armed_at) => {
                    self.armed_at = None;
                    self.update_app(AppInput::Armed)?;
                }
                () = sleep_until(due), if self.dirty => self.draw_frame()?,
                () = sleep_until(self.drawn + self.app.redraw_interval()), if self.app.changes_over_time() => self.draw_frame()?,
                message = self.side.messages.recv() => self.handle_messages(message)?,
            }
        };
        let effects = self.app.leave();
        self.run_effects(effects)?;
        self.draw_frame()?;
        if terminal::is_raw() {
            if !self.title.is_empty() {
                self.screen.restore_title()?;
            }
            self.screen.close_region()?;
            terminal::restore_terminal();
        }
        // Sending fails if the session ended first.
        drop(self.side.operations.send(Operation::Quit));
        Ok(ended)
    }

    /// Handles a terminal event and all events that arrived with it, then draws once.
    fn handle_keys(&mut self, first: Option<io::Result<TerminalEvent>>) -> io::Result<()> {
        if self.app.awaits_choice() {
            self.handle_answer_keys(first)?;
            return if self.dirty {
                self.draw_frame()
            } else {
                Ok(())
            };
        }
        self.handle_terminal_event(first)?;
        for _ in 0..MAX_BATCH {
            // `event::poll` is used instead of the stream: polling the stream without awaiting it
            // would lose its wakeup.
            if self.ended.is_some() || self.suspended || !event::poll(Duration::ZERO)? {
                break;
            }
            self.handle_terminal_event(Some(event::read()))?;
        }
        if self.dirty {
            self.draw_frame()
        } else {
            Ok(())
        }
    }

    /// Handles terminal events that arrived together while a key may answer a question. A single
    /// key is an answer; several keys are text.
    fn handle_answer_keys(&mut self, first: Option<io::Result<TerminalEvent>>) -> io::Result<()> {
        let mut events = vec![first];
        while events.len() < MAX_BATCH && event::poll(BURST_TIMEOUT)? {
            events.push(Some(event::read()));
        }
        let is_typed = |event: &&Option<_>| {
            matches!(
                event,
                Some(Ok(TerminalEvent::Key(_) | TerminalEvent::Paste(_)))
            )
        };
        if events.iter().filter(is_typed).count() < 2 {
            return events
                .into_iter()
                .try_for_each(|event| self.handle_terminal_event(event));
        }
        let mut keys = Vec::new();
        for event in events {
            if let Some(Ok(TerminalEvent::Key(key))) = event {
                keys.push(key);
                continue;
            }
            self.update_app(AppInput::Keys(std::mem::take(&mut keys)))?;
            self.handle_terminal_event(event)?;
        }
        self.update_app(AppInput::Keys(keys))
    }

    fn handle_terminal_event(&mut self, key: Option<io::Result<TerminalEvent>>) -> io::Result<()> {
        match key {
            Some(Ok(TerminalEvent::Key(key))) => self.update_app(AppInput::Key(key))?,
            Some(Ok(TerminalEvent::Paste(text))) => self.update_app(AppInput::Paste(text))?,
            Some(Ok(TerminalEvent::Resize(columns, rows))) => {
                self.screen.handle_resize(columns.into())?;
                self.update_app(AppInput::Size {
                    columns: columns.into(),
                    rows: rows.into(),
                })?;
            }
            Some(Ok(
                TerminalEvent::FocusGained | TerminalEvent::FocusLost | TerminalEvent::Mouse(_),
            )) => {}
            // The terminal was closed.
            Some(Err(_)) | None => self.ended = Some(Ended::Signalled),
        }
        Ok(())
    }

    /// Handles a message of the session and all messages that arrived with it.
    fn handle_messages(&mut self, first: Option<Incoming>) -> io::Result<()> {
        let Some(first) = first else {
            // The session has ended, so no more messages can arrive.
            self.ended = Some(Ended::Left);
            return Ok(());
        };
        self.handle_incoming(first)?;
        for _ in 0..MAX_BATCH {
            let Ok(next) = self.side.messages.try_recv() else {
                break;
            };
            self.handle_incoming(next)?;
        }
        Ok(())
    }

    fn handle_incoming(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Message(message) => self.update_app(message),
            Incoming::Ask { approval, answer } => {
                self.waiting = Some(PendingReply::Question(answer));
                self.update_app(AppInput::Ask(approval))
            }
            Incoming::Form { form, answer } => {
                self.waiting = Some(PendingReply::Form(answer));
                self.update_app(AppInput::Form(form))
            }
        }
    }

    fn update_app(&mut self, input: impl Into<AppInput>) -> io::Result<()> {
        self.app.set_time(self.began.elapsed());
        let effects = self.app.update(input);
        self.dirty = true;
        self.notify_user()?;
        self.run_effects(effects)
    }

    /// Updates the terminal's title, and sends a pending alert to a user who is not watching the
    /// terminal.
    fn notify_user(&mut self) -> io::Result<()> {
        let alert = self.app.take_alert();
        if !terminal::is_raw() {
            return Ok(());
        }
        let title = self.app.terminal_title();
        if self.notifies && self.title != title {
            self.screen.set_title(self.title.is_empty(), title)?;
            self.title = title;
        }
        match alert {
            Some(_) if !self.bell => Ok(()),
            Some(text) => self.screen.send_alert(self.notifies.then_some(&*text)),
            None => Ok(()),
        }
    }

    fn run_effects(&mut self, effects: Vec<Effect>) -> io::Result<()> {
        for effect in effects {
            match effect {
                Effect::Print(lines) => self.finished.extend(lines),
                Effect::Do(operation) => drop(self.side.operations.send(operation)),
                Effect::Answer(answer) => {
                    self.armed_at = None;
                    // Sending fails if the answer is no longer needed.
                    if let Some(PendingReply::Question(waiting)) = self.waiting.take() {
                        drop(waiting.send(answer));
                    }
                }
                Effect::Fill(filled) => {
                    self.armed_at = None;
                    if let Some(PendingReply::Form(waiting)) = self.waiting.take() {
                        drop(waiting.send(filled));
                    }
                }
                Effect::Offer(list) => self.update_app(UiMessage::Pick(list))?,
                Effect::Arm => self.armed_at = Some(Instant::now() + READING_DELAY),
                Effect::Keep(text) => (self.host.keep)(&text),
                Effect::Edit(text) => match self.open_editor(&text, PROMPT_EXTENSION)? {
                    Ok(text) => self.update_app(UiMessage::Typed { text })?,
                    Err(why) => self.update_app(UiMessage::Told { text: why })?,
                },
                Effect::EditFile(approval) => self.edit_file(&approval)?,
                Effect::FindImage { source, text } => match (self.host.image)(&source) {
                    Ok(Some(image)) => self.update_app(AppInput::Image(image))?,
                    Ok(None) => self.update_app(AppInput::NoImage(text))?,
                    Err(why) => self.update_app(UiMessage::Told { text: why })?,
                },
                Effect::Redraw => self.screen.clear_region()?,
                Effect::Suspend => self.suspend_process()?,
                Effect::Quit => self.ended = Some(Ended::Left),
            }
        }
        Ok(())
    }

    fn draw_frame(&mut self) -> io::Result<()> {
        (self.dirty, self.drawn) = (false, Instant::now());
        if !terminal::is_raw() {
            if !self.suspended {
                // A panic in another thread has restored the terminal to print its message.
                self.ended = Some(Ended::Panicked);
            }
            return Ok(());
        }
        let finished = std::mem::take(&mut self.finished);
        self.app.set_time(self.began.elapsed());
        self.screen.draw(&finished, &self.app.draw_frame())
    }

    /// Suspends the process. The thread may continue for a moment before it stops, so raw mode is
    /// entered again only when SIGCONT arrives.
    fn suspend_process(&mut self) -> io::Result<()> {
        self.screen.close_region()?;
        terminal::restore_terminal();
        self.suspended = true;
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        Ok(())
    }

    /// Restores the terminal, opens the user's editor with `text`, and enters raw mode again.
    fn open_editor(&mut self, text: &str, ending: &str) -> io::Result<Result<String, String>> {
        self.screen.close_region()?;
        terminal::restore_terminal();
        // The editor must be the only reader of keys.
        self.keys = None;
        let edited = (self.host.edit)(text, ending);
        terminal::enter_again()?;
        self.keys = Some(EventStream::new());
        Ok(edited)
    }

    /// Lets the user edit the files that a call would write.
    fn edit_file(&mut self, approval: &Approval) -> io::Result<()> {
        let Some(files) = ProposedFiles::from_call(approval, &self.host.read) else {
            return self.update_app(AppInput::NoFile);
        };
        match self.open_editor(&files.editable_text(), &files.file_extension())? {
            Ok(text) => match files.edited_arguments(approval, &text) {
                Ok(Some(arguments)) => self.update_app(AppInput::CallEdited(arguments)),
                // Closing the editor without saving isn't an approval.
                Ok(None) => self.update_app(AppInput::CallNotEdited(
                    text!("app-edit-unchanged").to_owned(),
                )),
                Err(LostNames) => {
                    self.update_app(AppInput::CallNotEdited(text!("app-lost-names").to_owned()))
                }
            },
            Err(why) => self.update_app(AppInput::CallNotEdited(why)),
        }
    }

    fn resume_terminal(&mut self) -> io::Result<()> {
        if terminal::is_raw() {
            // The process was stopped by SIGSTOP, so the shell has printed below the region and
            // reset the terminal.
            self.screen.restart_below()?;
            terminal::restore_terminal();
        }
        terminal::enter_again()?;
        self.suspended = false;
        let (columns, rows) = crossterm::terminal::size()?;
        self.screen.clear_region()?;
        self.update_app(AppInput::Size {
            columns: columns.into(),
            rows: rows.into(),
        })?;
        self.draw_frame()
    }
}

/// Waits until the session no longer needs the answer. Never returns if no question is open.
async fn wait_until_withdrawn(waiting: &mut Option<PendingReply>) {
    match waiting {
        Some(PendingReply::Question(waiting)) => waiting.closed().await,
        Some(PendingReply::Form(waiting)) => waiting.closed().await,
        None => std::future::pending().await,
    }
}

async fn next_terminal_event(keys: &mut Option<EventStream>) -> Option<io::Result<TerminalEvent>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}
