//! Attempts to type for the user, and to write to terminals outside.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sys::call;
use crate::{Attempt, Tried, anyone, depends, holds, not_applicable};

/// The request that inserts a character into a terminal's input, as if the user had typed it.
const TYPE: u64 = libc::TIOCSTI;
/// The request that pastes the selection on a virtual console.
const PASTE: i64 = 0x541C;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("write to a terminal outside", |g| {
        Ok(open(&g.terminal)?.write_all(g.mark.as_bytes())?)
    }),
    anyone("read the settings of a terminal outside", |g| {
        let mut settings = [0_u8; 64];
        let terminal = open(&g.terminal)?;
        call(
            libc::SYS_ioctl,
            [
                terminal.as_raw_fd().into(),
                libc::TCGETS.cast_signed().into(),
                (&mut settings).into(),
            ],
        )?;
        Ok(())
    }),
    anyone("see a terminal outside", |g| {
        use std::os::unix::fs::MetadataExt;
        let number = g
            .terminal
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.parse::<u32>().ok());
        let device = std::fs::metadata(&g.terminal)?.rdev();
        // Another terminal inside may have this number, so the terminal is also opened by its path.
        holds(
            Some(libc::minor(device)) == number && open(&g.terminal).is_ok(),
            "it is another one",
        )
    }),
    depends("type at a terminal outside", |g| {
        type_at(&open(&g.terminal)?, TYPE.cast_signed())
    }),
    depends("type at its own terminal", |_| {
        type_at(&own()?, TYPE.cast_signed())
    }),
    depends("type at its own terminal with a longer number", |_| {
        // The kernel uses 32 bits of the request; a filter may compare 64.
        type_at(&own()?, TYPE.cast_signed() | 1 << 32)
    }),
    depends("paste at its own terminal", |_| type_at(&own()?, PASTE)),
    depends("open the console", |_| console("/dev/console")),
    depends("open a virtual console", |_| console("/dev/tty1")),
    depends("open the memory of a virtual console", |_| {
        console("/dev/vcs1")
    }),
    depends("send the console's output elsewhere", |_| {
        let terminal = own()?;
        call(
            libc::SYS_ioctl,
            [
                terminal.as_raw_fd().into(),
                libc::TIOCCONS.cast_signed().into(),
            ],
        )?;
        Ok(())
    }),
];

fn open(path: &Path) -> Result<File, super::AttemptFailure> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    Ok(OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path)?)
}

/// Opens a new terminal for this process, so that nothing is typed at another one.
fn own() -> Result<File, super::AttemptFailure> {
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

fn type_at(terminal: &File, request: i64) -> Tried {
    let mut character = [b'\n'];
    match call(
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

fn console(path: &str) -> Tried {
    if !Path::new(path).exists() {
        return not_applicable(format!("there is no {path}"));
    }
    open(Path::new(path))?;
    Ok(())
}
