//! Input typed before a question was on the screen must not answer a question about safety.

use std::os::fd::AsFd;

use rustix::termios::{QueueSelector, isatty, tcflush};

use crate::READING_DELAY;

/// Waits until the user could have read the text that was just shown, then discards the input typed
/// until then. Call this function before the prompt that asks for the answer.
pub fn wait_and_discard_typed_ahead(terminal: impl AsFd) {
    if isatty(&terminal) {
        std::thread::sleep(READING_DELAY);
    }
    discard_typed_ahead_now(terminal);
}

/// Discards the input typed so far, without waiting.
pub fn discard_typed_ahead_now(terminal: impl AsFd) {
    if isatty(&terminal) {
        // Pending input would be read as the answer. A terminal that cannot discard it was closed.
        let _ = tcflush(terminal, QueueSelector::IFlush);
    }
}
