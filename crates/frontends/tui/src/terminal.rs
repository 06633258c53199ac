//! The terminal in raw mode: no echo, single keys, marked pastes. Restored on drop.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal;

static IS_RAW: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// Enables bracketed paste, and the keyboard protocol that distinguishes Shift-Enter from Enter.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?2004h\x1b[>1u";
/// Undoes [`ENTER_SEQUENCE`], and resets what an interrupted frame may leave behind: synchronized
/// output, no wrapping, no cursor, a color.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[<u\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?2004l";

/// The terminal in raw mode. It is restored on drop and on a panic.
pub(crate) struct RawTerminal(());

impl RawTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore_terminal();
                before(panic);
            }));
        });
        let taken = Self(());
        enter_again()?;
        Ok(taken)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Enters raw mode again after [`restore_terminal`]. The first [`RawTerminal`] still restores the
/// terminal.
pub(crate) fn enter_again() -> io::Result<()> {
    IS_RAW.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    out.write_all(ENTER_SEQUENCE)?;
    out.flush()
}

/// Returns true if the terminal is in raw mode, so that we may draw.
pub(crate) fn is_raw() -> bool {
    IS_RAW.load(Ordering::SeqCst)
}

/// Restores the terminal if it is in raw mode. Errors can be neither repaired nor reported.
pub(crate) fn restore_terminal() {
    if !IS_RAW.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    drop(out.write_all(LEAVE_SEQUENCE).and_then(|()| out.flush()));
    drop(terminal::disable_raw_mode());
}

/// Returns true if a terminal in line mode has another line waiting. False for pipes and files.
pub fn has_pending_line(terminal: impl AsFd) -> bool {
    rustix::termios::isatty(&terminal)
        && rustix::io::ioctl_fionread(&terminal).is_ok_and(|bytes| bytes > 0)
}
