//! Discards input that was typed before a question about safety was on the screen, because such
//! input must not answer it.

use std::os::fd::AsFd;

use rustix::termios::{QueueSelector, isatty, tcflush};

use crate::READING_DELAY;

/// Waits long enough for the user to read the text that was just shown, then discards all input
/// typed so far. Must be called before the prompt for the answer is printed.
pub fn wait_and_discard_typed_ahead(terminal: impl AsFd) {
    if isatty(&terminal) {
        std::thread::sleep(READING_DELAY);
    }
    discard_typed_ahead_now(terminal);
}

/// Discards all input typed so far, without waiting.
pub fn discard_typed_ahead_now(terminal: impl AsFd) {
    if isatty(&terminal) {
        // Pending input would be read as the answer. If the terminal cannot discard it, the
        // terminal was closed.
        let _ = tcflush(terminal, QueueSelector::IFlush);
    }
}
