//! A command at a terminal of its own, with which somebody speaks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::terminal::Master;
use crate::waiting::{InputWait, Terminals};
use crate::{AwaitedInput, Background, CapturedOutput, Ending};

/// How often a command is looked at while nothing else happens.
const GLANCE: Duration = Duration::from_millis(50);
/// A command that has spoken and says nothing more for this long has nothing more to say for now.
const QUIET: Duration = Duration::from_secs(2);
/// The longest line a terminal takes while it collects lines; the kernel drops the rest without a
/// word.
pub const LONGEST_LINE: usize = 4_095;

/// A command at a terminal of its own. Dropping it ends the command and everything it started.
#[derive(Debug)]
pub struct TerminalSession {
    command: Background,
    master: Arc<Master>,
}

/// Why a wait for a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It has ended.
    Ended,
    /// It waits for somebody to type.
    Awaits(AwaitedInput),
    /// It has said something and is quiet now.
    Quiet,
    /// The time was over first.
    Busy,
}

/// Something could not be typed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// The terminal would drop the end of a line.
    #[error(
        "a line of {bytes} bytes is too long for the terminal, which takes at most {LONGEST_LINE}; put the text in a file"
    )]
    LongLine {
        /// How long the line is.
        bytes: usize,
    },
    /// The command does not read.
    #[error("the command did not read what was typed in time")]
    NotRead,
    /// The terminal is gone.
    #[error("nothing could be typed: {0}")]
    Gone(io::Error),
}

impl TerminalSession {
    pub(crate) fn new(command: Background, master: Arc<Master>) -> Self {
        Self { command, master }
    }

    /// Types these bytes as they are, and waits for what comes of it: until the command has ended,
    /// waits for input, or is quiet, but no longer than `patience`. Without bytes it only
    /// waits.
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

    /// Waits until there is nothing to wait for. A wait for input that is still the one from before
    /// what was typed is none: the command has not heard of it yet.
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
                    // A program writes line by line; looking at each of them is no use.
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

    /// What it wrote since this was last called.
    pub fn take_output(&self) -> CapturedOutput {
        self.command.live().take_fresh()
    }

    /// What it has written in all.
    pub fn output(&self) -> CapturedOutput {
        self.command.live().stdout()
    }

    /// How it ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.command.ending()
    }

    /// Waits for its end; none when whoever ran it was ended first.
    pub async fn ended(&self) -> Option<Ending> {
        self.command.ended().await
    }

    /// Asks it to end, and everything it started with it; [`TerminalSession::ended`] tells when
    /// that is done.
    pub fn stop(&self) {
        self.command.stop();
    }
}
