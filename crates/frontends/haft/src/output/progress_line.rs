//! The line at the bottom of a terminal that shows what a headless run is doing: the running call
//! with its last output, or the wait for the model, each with its time.
//!
//! Invariant: the line is erased before anything else is printed, and drawn again by a thread of its
//! own. Without a terminal there is no line.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_text::truncate_to_width;
use haft_tui::format_elapsed;

/// The interval at which the line is drawn again.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);
/// The width of a terminal that does not tell its own.
const DEFAULT_COLUMNS: usize = 80;

/// The line of this process; `None` while there is none.
static LINE: Mutex<Option<LineState>> = Mutex::new(None);

struct LineState {
    /// The call that runs; `None` while haft waits for the model.
    call: Option<RunningCall>,
    /// The start of the wait for the model.
    since: Instant,
    /// True if the line is on the screen.
    drawn: bool,
    /// The number of questions to the user that are open. The line is not drawn meanwhile.
    questions: u32,
}

struct RunningCall {
    /// The tool and its most informative argument.
    title: String,
    since: Instant,
    /// The last line of the output.
    output: String,
}

/// The line of a run. Dropping this value removes the line.
pub(crate) struct ProgressLine(());

/// While this value exists, the line is erased and not drawn.
pub(crate) struct PausedLine(());

/// Keeps the line from being drawn while something else is printed.
pub(super) struct QuietLine {
    _line: MutexGuard<'static, Option<LineState>>,
}

#[expect(
    clippy::unused_self,
    reason = "the line can be changed only through the value that shows it"
)]
impl ProgressLine {
    /// Starts the line if stdout and stderr are terminals that can redraw a line.
    pub(crate) fn start() -> Option<Self> {
        let can_redraw = std::env::var("TERM").is_ok_and(|term| term != "dumb" && !term.is_empty());
        if !can_redraw || !std::io::stdout().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let mut line = lock_line();
        if line.is_some() {
            return None;
        }
        *line = Some(LineState {
            call: None,
            since: Instant::now(),
            drawn: false,
            questions: 0,
        });
        drop(line);
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(DRAW_INTERVAL);
                match &mut *lock_line() {
                    Some(state) => state.draw(),
                    None => return,
                }
            }
        });
        Some(Self(()))
    }

    /// Shows a call that begins to run.
    pub(crate) fn start_call(&self, title: String) {
        if let Some(state) = &mut *lock_line() {
            state.call = Some(RunningCall {
                title,
                since: Instant::now(),
                output: String::new(),
            });
        }
    }

    /// Shows the last line of the running call's output.
    pub(crate) fn set_output(&self, text: &str) {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        if let (Some(last), Some(state)) = (last, &mut *lock_line())
            && let Some(call) = &mut state.call
        {
            last.trim().clone_into(&mut call.output);
        }
    }

    /// Shows that haft waits for the model.
    pub(crate) fn wait_for_model(&self) {
        if let Some(state) = &mut *lock_line() {
            (state.call, state.since) = (None, Instant::now());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        let mut line = lock_line();
        if let Some(state) = &mut *line {
            state.erase();
        }
        *line = None;
    }
}

impl Drop for PausedLine {
    fn drop(&mut self) {
        if let Some(state) = &mut *lock_line() {
            state.questions = state.questions.saturating_sub(1);
        }
    }
}

/// Erases the line while the user is asked something.
pub(crate) fn pause_line() -> PausedLine {
    if let Some(state) = &mut *lock_line() {
        state.erase();
        state.questions += 1;
    }
    PausedLine(())
}

/// Erases the line, and keeps it erased until the returned value is dropped.
pub(super) fn hold_line() -> QuietLine {
    let mut line = lock_line();
    if let Some(state) = &mut *line {
        state.erase();
    }
    QuietLine { _line: line }
}

fn lock_line() -> MutexGuard<'static, Option<LineState>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LineState {
    fn draw(&mut self) {
        if self.questions > 0 {
            return;
        }
        let columns = haft_tui::terminal_columns().unwrap_or(DEFAULT_COLUMNS);
        let text = self.format(columns.saturating_sub(1));
        // A terminal that is gone shows nothing.
        drop(write!(std::io::stderr(), "\r\x1b[K{text}"));
        self.drawn = true;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            drop(write!(std::io::stderr(), "\r\x1b[K"));
        }
    }

    /// Returns the line in at most `columns` columns. The time is always visible.
    fn format(&self, columns: usize) -> String {
        let Some(call) = &self.call else {
            let elapsed = format_elapsed(self.since.elapsed());
            let text = text!("output-waiting-for-model", elapsed);
            return truncate_to_width(&text, columns).into_owned();
        };
        let elapsed = format!("  {}", format_elapsed(call.since.elapsed()));
        let room = columns.saturating_sub(elapsed.len());
        let front = format!("… {}", haft_text::sanitize(&call.title).replace('\n', " "));
        let front = truncate_to_width(&front, room).into_owned();
        let output = if call.output.is_empty() {
            String::new()
        } else {
            format!("  {}", haft_text::sanitize(&call.output))
        };
        truncate_to_width(&format!("{front}{elapsed}{output}"), columns).into_owned()
    }
}
