//! The terminal while it is ours: no echo, keys one by one, pastes distinguished from typing.
//! Restored on drop.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal;

static OURS: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// Marks pastes, and has terminals that can tell Shift-Enter from Enter do so.
const BEGIN: &[u8] = b"\x1b[?2004h\x1b[>1u";
/// Ends what was begun, and whatever a drawing that was cut off in the middle has left: held-back
/// output, no wrapping, no cursor, a colour.
const END: &[u8] = b"\x1b[<u\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?2004l";

/// Takes the terminal. It is given back when this is dropped, and when anything panics.
pub(crate) struct RawTerminal(());

impl RawTerminal {
    pub(crate) fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let taken = Self(());
        take_again()?;
        Ok(taken)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes it again after [`give_back`]; whoever took it first gives it back.
pub(crate) fn take_again() -> io::Result<()> {
    OURS.store(true, Ordering::SeqCst);
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    out.write_all(BEGIN)?;
    out.flush()
}

/// Whether the terminal is ours to draw on.
pub(crate) fn is_ours() -> bool {
    OURS.load(Ordering::SeqCst)
}

/// Gives the terminal back as it was, if it was taken. What fails here can be neither repaired nor
/// reported.
pub(crate) fn give_back() {
    if !OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    drop(out.write_all(END).and_then(|()| out.flush()));
    drop(terminal::disable_raw_mode());
}

/// Whether a terminal that gives whole lines has another one waiting. False for pipes and files.
pub fn has_more(terminal: impl AsFd) -> bool {
    rustix::termios::isatty(&terminal)
        && rustix::io::ioctl_fionread(&terminal).is_ok_and(|bytes| bytes > 0)
}
