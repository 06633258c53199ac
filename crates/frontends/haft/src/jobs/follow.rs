//! Reads the events of a job while the job writes them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::Context;

use super::BackgroundJob;

/// Passes every event line to `show`: the existing lines, and with `wait` also new lines until the
/// job ends.
pub(crate) fn follow_events(
    job: &BackgroundJob,
    wait: bool,
    mut show: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let path = job.events_file();
    let file =
        File::open(&path).with_context(|| text!("jobs-unreadable", path = path.display()))?;
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    loop {
        // Checked before reading, so that lines written before the end are still read.
        let running = wait && job.is_running();
        while lines.read_line(&mut line)? > 0 {
            // The rest of a half-written line is read in the next iteration.
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
