//! Interactive commands, each at its own terminal.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::terminal::Master;
use crate::waiting::{InputWait, Terminals};
use crate::{AwaitedInput, Background, CapturedOutput, Ending};

/// The interval between checks of a command that writes nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time without output after which a command that has written something counts as quiet.
const QUIET_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of bytes in a line while the terminal is in line mode; the kernel silently
/// drops the rest.
pub const MAX_LINE_BYTES: usize = 4_095;

/// A command at its own terminal. Dropping the session ends the command and everything it started.
#[derive(Debug)]
pub struct TerminalSession {
    command: Background,
    master: Arc<Master>,
}

/// The reason why a wait for a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The command has ended.
    Ended,
    /// The command is waiting for input.
    Awaits(AwaitedInput),
    /// The command has written output and is quiet now.
    Quiet,
    /// The time ran out while the command was still working.
    Busy,
}

/// The reason why input could not be typed into a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypingError {
    /// A line is longer than the terminal accepts; the rest would be lost.
    #[error(
        "a line of {bytes} bytes is too long for the terminal, which takes at most {MAX_LINE_BYTES}; put the text in a file"
    )]
    LongLine { bytes: usize },
    /// The command did not read the input in time.
    #[error("the command did not read what was typed in time")]
    NotRead,
    /// The terminal is closed.
    #[error("nothing could be typed: {0}")]
    Gone(io::Error),
}

impl TerminalSession {
    pub(crate) fn new(command: Background, master: Arc<Master>) -> Self {
        Self { command, master }
    }

    /// Types `bytes` unchanged, then waits until the command ends, waits for input or is quiet, or
    /// until `timeout` has passed. If `bytes` is empty, only waits.
    pub async fn type_and_wait(
        &self,
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<WaitEnd, TypingError> {
        let deadline = Instant::now() + timeout;
        let before = if bytes.is_empty() {
            None
        } else {
            self.input_wait()
        };
        if !bytes.is_empty() && self.command.ending().is_none() {
            self.check_line_length(bytes)?;
            match timeout_at(deadline, self.master.write_all(bytes)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(TypingError::Gone(error)),
                Err(_elapsed) => return Err(TypingError::NotRead),
            }
        }
        Ok(self.wait_until_idle(before, deadline).await)
    }

    fn check_line_length(&self, bytes: &[u8]) -> Result<(), TypingError> {
        let lines = bytes.split(|byte| matches!(byte, b'\r' | b'\n'));
        match lines.map(<[u8]>::len).max() {
            Some(bytes) if bytes > MAX_LINE_BYTES && self.master.is_in_line_mode() => {
                Err(TypingError::LongLine { bytes })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the command ends, blocks on input or is quiet, or until `deadline`.
    ///
    /// `before` is the input wait that was seen before text was typed. While the command is still
    /// in this wait, it has not read the new text, so the wait is ignored.
    async fn wait_until_idle(&self, before: Option<InputWait>, deadline: Instant) -> WaitEnd {
        let live = self.command.live();
        let mut has_written = false;
        let mut seen = live.written_bytes();
        let mut since = Instant::now();
        let mut last = None;
        loop {
            if self.command.ending().is_some() {
                return WaitEnd::Ended;
            }
            if Instant::now() >= deadline {
                return WaitEnd::Busy;
            }
            tokio::select! {
                _ = self.command.wait_for_end() => continue,
                () = live.wait_for_more_bytes(seen) => {
                    (has_written, seen, since, last) = (true, live.written_bytes(), Instant::now(), None);
                    // Programs write line by line; checking after each line would be wasted work.
                    sleep(POLL_INTERVAL).await;
                    continue;
                }
                () = sleep(POLL_INTERVAL) => {}
            }
            let waiting = self
                .input_wait()
                .filter(|waiting| before.as_ref() != Some(waiting));
            if let Some(waiting) = waiting
                && last == Some(waiting)
                && live.written_bytes() == seen
            {
                return WaitEnd::Awaits(waiting.input);
            }
            last = waiting;
            if has_written && since.elapsed() >= QUIET_TIMEOUT {
                return WaitEnd::Quiet;
            }
        }
    }

    fn input_wait(&self) -> Option<InputWait> {
        self.command
            .live()
            .find_input_wait(Terminals::One(&self.master.as_own_terminal()))
    }

    /// Returns the output since the previous call.
    pub fn take_new_output(&self) -> CapturedOutput {
        self.command.live().take_unread()
    }

    /// Returns the output since the start of the command.
    pub fn full_output(&self) -> CapturedOutput {
        self.command.live().stdout()
    }

    /// Returns the result of the command, or `None` while it is running.
    pub fn ending(&self) -> Option<Ending> {
        self.command.ending()
    }

    /// Waits for the command to end. Returns `None` if the task that runs the command was aborted
    /// first.
    pub async fn wait_for_end(&self) -> Option<Ending> {
        self.command.wait_for_end().await
    }

    /// Asks the command and everything it started to end. Does not wait:
    /// [`TerminalSession::wait_for_end`] returns when all of them are gone.
    pub fn stop(&self) {
        self.command.stop();
    }
}
