//! Interactive commands, each at its own terminal.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::terminal::Master;
use crate::waiting::{InputWait, Terminals};
use crate::{AwaitedInput, Background, CapturedOutput, Ending};

/// The interval between checks of a command that writes nothing.
const GLANCE: Duration = Duration::from_millis(50);
/// A command that has written something counts as quiet after this time without output.
const QUIET: Duration = Duration::from_secs(2);
/// Maximum bytes of a line while the terminal is in line mode; the kernel silently drops the rest.
pub const LONGEST_LINE: usize = 4_095;

/// A command at its own terminal. Dropping the session ends the command and everything it started.
#[derive(Debug)]
pub struct TerminalSession {
    command: Background,
    master: Arc<Master>,
}

/// The reason why a wait for a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The command has ended.
    Ended,
    /// The command waits for input.
    Awaits(AwaitedInput),
    /// The command has written output and is quiet now.
    Quiet,
    /// The time ran out while the command was still working.
    Busy,
}

/// The reason why input could not be typed into a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A line is longer than the terminal accepts; the rest would be lost.
    #[error(
        "a line of {bytes} bytes is too long for the terminal, which takes at most {LONGEST_LINE}; put the text in a file"
    )]
    LongLine {
        bytes: usize,
    },
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

    /// Types `bytes` unchanged, then waits until the command has ended, waits for input, or is
    /// quiet, but not longer than `timeout`. With no bytes, only waits.
    pub async fn interact(&self, bytes: &[u8], patience: Duration) -> Result<Pause, TypeError> {
        let deadline = Instant::now() + patience;
        let before = if bytes.is_empty() {
            None
        } else {
            self.waiting()
        };
        if !bytes.is_empty() && self.command.ending().is_none() {
            self.check(bytes)?;
            match timeout_at(deadline, self.master.write_all(bytes)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(TypeError::Gone(error)),
                Err(_elapsed) => return Err(TypeError::NotRead),
            }
        }
        Ok(self.settle(before, deadline).await)
    }

    fn check(&self, bytes: &[u8]) -> Result<(), TypeError> {
        let lines = bytes.split(|byte| matches!(byte, b'\r' | b'\n'));
        match lines.map(<[u8]>::len).max() {
            Some(bytes) if bytes > LONGEST_LINE && self.master.collects_lines() => {
                Err(TypeError::LongLine { bytes })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until the command has ended, waits for input, is quiet, or `deadline` passes.
    ///
    /// An input wait equal to `before`, the one from before typing, does not count: the command has
    /// not read the new input yet.
    async fn settle(&self, before: Option<InputWait>, deadline: Instant) -> Pause {
        let live = self.command.live();
        let mut spoken = false;
        let mut seen = live.bytes();
        let mut since = Instant::now();
        let mut last = None;
        loop {
            if self.command.ending().is_some() {
                return Pause::Ended;
            }
            if Instant::now() >= deadline {
                return Pause::Busy;
            }
            tokio::select! {
                _ = self.command.ended() => continue,
                () = live.wrote_more_than(seen) => {
                    (spoken, seen, since, last) = (true, live.bytes(), Instant::now(), None);
                    // Programs write line by line; checking after each line would be wasted work.
                    sleep(GLANCE).await;
                    continue;
                }
                () = sleep(GLANCE) => {}
            }
            let waiting = self
                .waiting()
                .filter(|waiting| before.as_ref() != Some(waiting));
            if let Some(waiting) = waiting
                && last == Some(waiting)
                && live.bytes() == seen
            {
                return Pause::Awaits(waiting.what);
            }
            last = waiting;
            if spoken && since.elapsed() >= QUIET {
                return Pause::Quiet;
            }
        }
    }

    fn waiting(&self) -> Option<InputWait> {
        self.command
            .live()
            .waiting(Terminals::One(&self.master.own()))
    }

    /// Returns the output since the previous call.
    pub fn take_output(&self) -> CapturedOutput {
        self.command.live().take_fresh()
    }

    /// Returns the output since the start of the command.
    pub fn output(&self) -> CapturedOutput {
        self.command.live().stdout()
    }

    /// Returns how the command ended, or `None` while it runs.
    pub fn ending(&self) -> Option<Ending> {
        self.command.ending()
    }

    /// Waits for the command to end. Returns `None` if the task that runs the command was aborted
    /// first.
    pub async fn ended(&self) -> Option<Ending> {
        self.command.ended().await
    }

    /// Asks the command and everything it started to end; [`TerminalSession::wait_for_end`] returns
    /// when that is done.
    pub fn stop(&self) {
        self.command.stop();
    }
}
