//! Whether a process waits for somebody to type.
//!
//! A thread that sleeps in a read of a terminal waits for a line; one that sleeps in a poll while
//! its terminal hands out single keys waits for a key. What a process may not show, such as one of
//! another user, is told by the terminal: it asks for a password when it does not echo.

#[cfg(target_os = "linux")]
mod linux;

use std::os::fd::BorrowedFd;

use rustix::fs::Dev;
use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::find;

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedInput {
    /// A line, ended by Enter.
    Line,
    /// A line that is not shown while it is typed, such as a password.
    Hidden,
    /// A single key.
    Key,
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputWait {
    pub(crate) what: AwaitedInput,
    thread: Pid,
    /// How often it was scheduled: the same number is the same wait.
    switches: u64,
}

/// At which terminals a wait counts.
#[derive(Clone, Copy)]
pub(crate) enum Terminals<'a> {
    /// Every pseudo-terminal.
    Any,
    /// This one.
    One(&'a OwnTerminal<'a>),
}

/// A terminal of ours.
#[derive(Clone, Copy)]
pub(crate) struct OwnTerminal<'a> {
    pub(crate) master: BorrowedFd<'a>,
    /// The other side's device number.
    pub(crate) device: Dev,
}

/// Only Linux shows what another process waits for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn find(_root: Pid, _terminals: Terminals<'_>) -> Option<InputWait> {
    None
}
