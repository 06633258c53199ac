//! What was typed before a question stood on the screen answers no question about safety.

use std::os::fd::AsFd;

use rustix::termios::{QueueSelector, isatty, tcflush};

/// Gives the user time to read what was just shown, and throws away what was typed until then. Call
/// it before the prompt that asks for the answer.
pub(crate) fn discard(terminal: impl AsFd) {
    if isatty(&terminal) {
        std::thread::sleep(haft_tui::READING);
    }
    forget(terminal);
}

/// Throws away what was typed so far, where nothing had to be read first.
pub(crate) fn forget(terminal: impl AsFd) {
    if isatty(&terminal) {
        // What is still there would be read as the answer; a terminal that cannot forget it was
        // closed.
        let _ = tcflush(terminal, QueueSelector::IFlush);
    }
}
