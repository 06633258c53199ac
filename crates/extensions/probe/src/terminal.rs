//! Attempts to type for the user, and to write to terminals outside.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys::make_syscall;
use crate::{
    Attempt, AttemptResult, attempt_for_anyone, attempt_for_some_machines, ensure, not_applicable,
};

/// The `ioctl` request that inserts a character into a terminal's input, as if the user had typed
/// it.
const TYPE_REQUEST: u64 = libc::TIOCSTI;
/// The `ioctl` request that pastes the selection on a virtual console.
const PASTE_REQUEST: i64 = 0x541C;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("write to a terminal outside", |g| {
        Ok(open_terminal(&g.terminal)?.write_all(g.mark.as_bytes())?)
    }),
    attempt_for_anyone("read the settings of a terminal outside", |g| {
        let mut settings = [0_u8; 64];
        let terminal = open_terminal(&g.terminal)?;
        make_syscall(
            libc::SYS_ioctl,
            [
                terminal.as_raw_fd().into(),
                libc::TCGETS.cast_signed().into(),
                (&mut settings).into(),
            ],
        )?;
        Ok(())
    }),
    attempt_for_anyone("see a terminal outside", |g| {
        use std::os::unix::fs::MetadataExt;
        let number = g
            .terminal
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.parse::<u32>().ok());
        let device = std::fs::metadata(&g.terminal)?.rdev();
        // Another terminal inside may have this number, so the terminal is also opened by its path.
        ensure(
            Some(libc::minor(device)) == number && open_terminal(&g.terminal).is_ok(),
            "it is another one",
        )
    }),
    attempt_for_some_machines("type at a terminal outside", |g| {
        type_newline(&open_terminal(&g.terminal)?, TYPE_REQUEST.cast_signed())
    }),
    attempt_for_some_machines("type at its own terminal", |_| {
        type_newline(&open_own_terminal()?, TYPE_REQUEST.cast_signed())
    }),
    attempt_for_some_machines("type at its own terminal with a longer number", |_| {
        // The kernel uses 32 bits of the request; a filter may compare 64.
        type_newline(&open_own_terminal()?, TYPE_REQUEST.cast_signed() | 1 << 32)
    }),
    attempt_for_some_machines("paste at its own terminal", |_| {
        type_newline(&open_own_terminal()?, PASTE_REQUEST)
    }),
    attempt_for_some_machines("open the console", |_| open_console("/dev/console")),
    attempt_for_some_machines("open a virtual console", |_| open_console("/dev/tty1")),
    attempt_for_some_machines("open the memory of a virtual console", |_| {
        open_console("/dev/vcs1")
    }),
    attempt_for_some_machines("send the console's output elsewhere", |_| {
        let terminal = open_own_terminal()?;
        make_syscall(
            libc::SYS_ioctl,
            [
                terminal.as_raw_fd().into(),
                libc::TIOCCONS.cast_signed().into(),
            ],
        )?;
        Ok(())
    }),
];

fn open_terminal(path: &Path) -> Result<File, super::AttemptFailure> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    Ok(OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)?)
}

/// Makes a new pseudoterminal the terminal of this process, so that no attempt types into the
/// user's terminal.
fn open_own_terminal() -> Result<File, super::AttemptFailure> {
    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let terminal = ioctl_tiocgptpeer(&master, flags)?;
    // The master stays open, because closing it would hang up the terminal.
    std::mem::forget(master);
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Ok(terminal.into())
}

fn type_newline(terminal: &File, request: i64) -> AttemptResult {
    let mut character = [b'\n'];
    match make_syscall(
        libc::SYS_ioctl,
        [
            terminal.as_raw_fd().into(),
            request.into(),
            (&mut character).into(),
        ],
    ) {
        Err(error) if error.raw_os_error() == Some(libc::EIO) => {
            not_applicable("this kernel does not type for others")
        }
        typed => {
            typed?;
            Ok(())
        }
    }
}

fn open_console(path: &str) -> AttemptResult {
    if !Path::new(path).exists() {
        return not_applicable(format!("there is no {path}"));
    }
    open_terminal(Path::new(path))?;
    Ok(())
}
