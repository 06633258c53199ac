//! Detects whether a process waits for keyboard input.
//!
//! A thread blocked in a read from a terminal waits for a line. A thread blocked in a poll while
//! its terminal delivers single keys waits for a key. If `/proc` hides the thread's system call, as
//! for a process of another user, the terminal's modes are used instead: a terminal that does not
//! echo is asking for a password.

#[cfg(target_os = "linux")]
mod linux;

use std::os::fd::BorrowedFd;

use rustix::fs::Dev;
use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) use linux::find_input_wait;

/// The kind of input that a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedInput {
    /// A line, which the user ends with Enter.
    Line,
    /// A line that is not echoed while it is typed, such as a password.
    Hidden,
    /// A single key.
    Key,
}

/// A thread that waits for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputWait {
    pub(crate) input: AwaitedInput,
    thread: Pid,
    /// The number of context switches of the thread. While the number is unchanged, the thread has
    /// not left the wait.
    context_switches: u64,
}

/// The terminals to check for processes that wait for input.
#[derive(Clone, Copy)]
pub(crate) enum Terminals<'a> {
    /// Every pseudo-terminal.
    Any,
    /// Only the given terminal.
    One(&'a OwnTerminal<'a>),
}

/// A terminal that haft opened.
#[derive(Clone, Copy)]
pub(crate) struct OwnTerminal<'a> {
    pub(crate) master: BorrowedFd<'a>,
    /// The device number of the terminal side that the command uses.
    pub(crate) device: Dev,
}

/// Returns `None`: only Linux shows the system call in which another process is blocked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn find_input_wait(_root: Pid, _terminals: Terminals<'_>) -> Option<InputWait> {
    None
}
