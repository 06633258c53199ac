//! What people see of a command while it runs, and whether it waits for them.

use std::time::{Duration, Instant};

use haft_sandbox::{AwaitedInput, LiveCommand};
use haft_text::CutLimits;
use haft_tool::CallProgress;

/// How often a command is looked at.
pub(super) const GLANCE: Duration = Duration::from_millis(500);
/// How much of what is new is shown at once.
pub(super) const SHOWN: CutLimits = CutLimits {
    lines: 20,
    bytes: 2_000,
};
/// The shortest time between two texts; a command that runs for long is shown less often.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks at one command.
pub(super) struct Watcher {
    started: Instant,
    shown: Instant,
    bytes: u64,
    /// What it waited for when it was last looked at.
    pub(super) awaits: Option<AwaitedInput>,
}

impl Watcher {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            shown: now,
            bytes: 0,
            awaits: None,
        }
    }

    /// Shows what is new, if it is time.
    pub(super) fn look(&mut self, live: &LiveCommand, progress: &dyn CallProgress) {
        let bytes = live.bytes();
        let quiet = bytes == self.bytes;
        self.bytes = bytes;
        // A command that writes does not wait.
        let awaits = if quiet { live.awaits_input() } else { None };
        if awaits.is_some() && self.awaits.is_none() {
            progress.show("[It waits for input at a terminal that nobody can type at.]".to_owned());
        }
        self.awaits = awaits;
        let pause = PAUSE.max(self.started.elapsed() / 60);
        if self.shown.elapsed() >= pause {
            let text = live.take_fresh().text(SHOWN).text;
            if !text.trim().is_empty() {
                self.shown = Instant::now();
                progress.show(text);
            }
        }
    }
}
