//! Switches the terminal to raw mode, with single keys, marked pastes and no echo, and restores it.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal;

static IS_RAW: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// Enables bracketed paste, and the keyboard protocol that distinguishes Shift-Enter from Enter.
const ENTER_SEQUENCE: &[u8] = b"\x1b[?2004h\x1b[>1u";
/// Undoes [`ENTER_SEQUENCE`], and resets all states that an interrupted frame may leave:
/// synchronized output, no wrapping, no cursor, a color.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[<u\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?2004l";

/// A guard for raw mode. The terminal is restored on drop and on a panic.
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

/// Enters raw mode again after [`restore_terminal`]. The existing [`RawTerminal`] still restores
/// the terminal when it is dropped.
pub(crate) fn enter_again() -> io::Result<()> {
    IS_RAW.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    out.write_all(ENTER_SEQUENCE)?;
    out.flush()
}

/// Returns true if the terminal is in raw mode, so that haft can draw.
pub(crate) fn is_raw() -> bool {
    IS_RAW.load(Ordering::SeqCst)
}

/// Restores the terminal if it is in raw mode. Errors are ignored, because they can be neither
/// repaired nor reported.
pub(crate) fn restore_terminal() {
    if !IS_RAW.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    drop(out.write_all(LEAVE_SEQUENCE).and_then(|()| out.flush()));
    drop(terminal::disable_raw_mode());
}

/// Returns true if another line is waiting in a terminal in line mode. Returns false for pipes and
/// files.
pub fn has_pending_line(terminal: impl AsFd) -> bool {
    rustix::termios::isatty(&terminal)
        && rustix::io::ioctl_fionread(&terminal).is_ok_and(|bytes| bytes > 0)
}
