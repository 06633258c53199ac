//! Shows the output of a running command to the user, and detects that it waits for input.

use std::time::{Duration, Instant};

use haft_sandbox::{AwaitedInput, LiveCommand};
use haft_text::CutLimits;
use haft_tool::CallProgress;

/// The interval between polls of a running command.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum size of new output that is shown at once.
pub(super) const PROGRESS_LIMITS: CutLimits = CutLimits {
    lines: 20,
    bytes: 2_000,
};
/// The minimum time between two updates. The actual time grows with the running time of the
/// command.
const MIN_UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the output and the awaited input of one command.
pub(super) struct ProgressWatcher {
    started: Instant,
    shown: Instant,
    bytes: u64,
    /// The input that the command waited for at the last poll.
    pub(super) awaits: Option<AwaitedInput>,
}

impl ProgressWatcher {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            shown: now,
            bytes: 0,
            awaits: None,
        }
    }

    /// Shows new output if an update is due.
    pub(super) fn poll_output(&mut self, live: &LiveCommand, progress: &CallProgress) {
        let bytes = live.written_bytes();
        let quiet = bytes == self.bytes;
        self.bytes = bytes;
        // A command that produces output is not waiting.
        let awaits = if quiet { live.awaited_input() } else { None };
        if awaits.is_some() && self.awaits.is_none() {
            progress("[It waits for input at a terminal that nobody can type at.]".to_owned());
        }
        self.awaits = awaits;
        let pause = MIN_UPDATE_INTERVAL.max(self.started.elapsed() / 60);
        if self.shown.elapsed() >= pause {
            let text = live.take_unread().text(PROGRESS_LIMITS).text;
            if !text.trim().is_empty() {
                self.shown = Instant::now();
                progress(text);
            }
        }
    }
}
