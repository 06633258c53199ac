//! Reads the events of a job while it writes them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::Context;

use super::BackgroundJob;

/// Gives every event line to `show`: those there are, and with `wait` those to come until the job
/// ends.
pub(crate) fn follow(
    job: &BackgroundJob,
    wait: bool,
    mut show: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let path = job.events();
    let file =
        File::open(&path).with_context(|| text!("jobs-unreadable", path = path.display()))?;
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    loop {
        // Looked at before reading: what was written before the end is read after it.
        let running = wait && job.is_running();
        while lines.read_line(&mut line)? > 0 {
            // The rest of a line that is half written comes with the next look.
            if line.ends_with('\n') {
                show(line.trim_end())?;
                line.clear();
            }
        }
        if !running {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
