//! What was typed before a question stood on the screen answers no question about safety.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::termios::{QueueSelector, isatty, tcflush};

/// How long a question is on the screen before it can be answered.
const READING: Duration = Duration::from_millis(600);

/// Gives the user time to read what was just shown, and throws away what was typed until then. Call it before the prompt that
/// asks for the answer.
pub(crate) fn discard(terminal: impl AsFd) {
    if isatty(&terminal) {
        std::thread::sleep(READING);
        // What is still there would be read as the answer; a terminal that cannot forget it was closed.
        let _ = tcflush(terminal, QueueSelector::IFlush);
    }
}
