//! Finds threads that wait for input, using `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};
use rustix::process::Pid;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use super::{AwaitedInput, InputWait, Terminals};
use crate::proc;

/// Returns the first wait for input of a process below `root` at one of `terminals`.
pub(crate) fn find_input_wait(root: Pid, terminals: Terminals<'_>) -> Option<InputWait> {
    proc::find_descendants(root)
        .into_iter()
        .find_map(|pid| find_wait_of_process(pid, terminals))
}

fn find_wait_of_process(pid: Pid, terminals: Terminals<'_>) -> Option<InputWait> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let threads = threads.filter_map(|entry| {
        entry
            .ok()?
            .file_name()
            .to_str()?
            .parse()
            .ok()
            .and_then(Pid::from_raw)
    });
    let waiting = |thread: Pid| {
        let what = match read_thread_call(pid, thread) {
            ThreadCall::Read(descriptor) => is_terminal_descriptor(pid, descriptor, terminals)
                .then(|| terminals.input_awaited_by_read())?,
            ThreadCall::Poll => terminals.reads_keys(pid).then_some(AwaitedInput::Key)?,
            ThreadCall::Unknown => terminals
                .asks_for_password(pid)
                .then_some(AwaitedInput::Hidden)?,
            ThreadCall::Other => return None,
        };
        Some(InputWait {
            input: what,
            thread,
            context_switches: count_context_switches(pid, thread)?,
        })
    };
    threads.into_iter().find_map(waiting)
}

impl Terminals<'_> {
    fn local_modes(self) -> Option<LocalModes> {
        match self {
            Self::Any => None,
            Self::One(own) => tcgetattr(own.master)
                .ok()
                .map(|settings| settings.local_modes),
        }
    }

    /// Returns the kind of input that a blocked read from the terminal waits for.
    fn input_awaited_by_read(self) -> AwaitedInput {
        match self.local_modes() {
            Some(modes) if !modes.contains(LocalModes::ICANON) => AwaitedInput::Key,
            Some(modes) if !modes.contains(LocalModes::ECHO) => AwaitedInput::Hidden,
            Some(_) | None => AwaitedInput::Line,
        }
    }

    /// True if the process is expected to read single keys from the terminal as soon as its `poll`
    /// returns.
    fn reads_keys(self, pid: Pid) -> bool {
        self.local_modes()
            .is_some_and(|modes| !modes.contains(LocalModes::ICANON))
            && is_terminal_descriptor(pid, 0, self)
            && self.is_in_foreground(pid)
    }

    fn asks_for_password(self, pid: Pid) -> bool {
        let hides = |modes: LocalModes| {
            modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO)
        };
        self.local_modes().is_some_and(hides) && self.is_in_foreground(pid) && is_sleeping(pid)
    }

    /// True if the process is in the foreground group of the terminal, which receives the keys.
    /// Always false if all terminals are searched.
    fn is_in_foreground(self, pid: Pid) -> bool {
        match self {
            Self::Any => false,
            Self::One(own) => {
                let group = |stat: Vec<u8>| {
                    proc::stat_field(&stat, 2)?
                        .parse()
                        .ok()
                        .and_then(Pid::from_raw)
                };
                let process_group = fs::read(format!("/proc/{pid}/stat")).ok().and_then(group);
                process_group.is_some() && tcgetpgrp(own.master).ok() == process_group
            }
        }
    }
}

/// The system call that a thread is blocked in.
#[derive(Debug, PartialEq, Eq)]
enum ThreadCall {
    Read(u64),
    Poll,
    Other,
    /// The system call cannot be read, for example because the process belongs to another user.
    Unknown,
}

fn read_thread_call(pid: Pid, thread: Pid) -> ThreadCall {
    fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"))
        .map_or(ThreadCall::Unknown, |line| parse_thread_call(&line))
}

/// Parses the contents of a thread's `syscall` file: `number argument argument …`, or, for a
/// running thread, a text without a number.
fn parse_thread_call(line: &str) -> ThreadCall {
    let mut words = line.split_ascii_whitespace();
    let Some(number) = words
        .next()
        .and_then(|word| word.parse::<libc::c_long>().ok())
    else {
        return ThreadCall::Other;
    };
    let first = words
        .next()
        .and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    match first {
        Some(descriptor) if READ_CALLS.contains(&number) => ThreadCall::Read(descriptor),
        Some(_) if POLLS.contains(&number) => ThreadCall::Poll,
        Some(_) | None => ThreadCall::Other,
    }
}

const READ_CALLS: &[libc::c_long] = &[libc::SYS_read, libc::SYS_readv];

#[cfg(target_arch = "x86_64")]
const POLLS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];

/// True if the descriptor refers to one of the terminals, or to `/dev/tty`, which is the process's
/// controlling terminal.
fn is_terminal_descriptor(pid: Pid, descriptor: u64, terminals: Terminals<'_>) -> bool {
    let Ok(file) = fs::metadata(format!("/proc/{pid}/fd/{descriptor}")) else {
        return false;
    };
    let device = file.rdev();
    // Device numbers from the kernel's list of devices.
    let is_controlling = (major(device), minor(device)) == (5, 0);
    is_controlling
        || match terminals {
            Terminals::Any => (136..=143).contains(&major(device)),
            Terminals::One(own) => device == own.device,
        }
}

fn is_sleeping(pid: Pid) -> bool {
    fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| proc::stat_field(&stat, 0) == Some("S"))
}

fn count_context_switches(pid: Pid, thread: Pid) -> Option<u64> {
    let status = fs::read(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let counts = status.lines().filter_map(|line| {
        line.split_once("ctxt_switches:")?
            .1
            .trim()
            .parse::<u64>()
            .ok()
    });
    Some(counts.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_call_recognizes_reads_and_polls() {
        let read = libc::SYS_read;
        assert_eq!(
            parse_thread_call(&format!(
                "{read} 0x3 0x7f0c 0x20000 0x0 0x0 0x0 0x7ffd 0x7f0c\n"
            )),
            ThreadCall::Read(3)
        );
        assert_eq!(
            parse_thread_call(&format!(
                "{} 0x7f 0x1 0x0 0x0 0x0 0x0 0x7ffd 0x7f0c",
                libc::SYS_ppoll
            )),
            ThreadCall::Poll
        );
        assert_eq!(parse_thread_call("running\n"), ThreadCall::Other);
        assert_eq!(parse_thread_call("-1 0x7ffd 0x7f0c\n"), ThreadCall::Other);
        assert_eq!(parse_thread_call(""), ThreadCall::Other);
    }
}
