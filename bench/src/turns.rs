//! Measures haft's overhead between two requests as the conversation grows: from the last byte of
//! reply k to the first byte of request k+1.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use haft_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use crate::figures;
use crate::subject::{self, Workspace};

/// The number of turns, the goal for the overhead in milliseconds, and the goal for the peak memory
/// in megabytes.
const LENGTHS: [(usize, Option<f64>, Option<f64>); 3] = [
    (10, None, None),
    (100, Some(1.5), Some(25.0)),
    (1000, Some(3.0), Some(35.0)),
];

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    figures::print_line(
        "Every turn is one `read_file` of 20 lines. Overhead is the median over the last tenth of the turns.",
    );
    for (turns, overhead_goal, memory_goal) in LENGTHS {
        // Each call reads other lines, since a repeated call with an unchanged result ends a turn.
        let read =
            |turn: usize| json!({"path": "notes.txt", "start_line": turn, "end_line": turn + 19});
        let replies = (1..=turns)
            .map(|turn| Reply::call("read_file", read(turn)).with_text("I will read the notes."));
        let script = Script::replies(replies.chain([Reply::text("Done.")]))?;
        let server = ScriptedServer::builder(script).lean().start_in_thread()?;
        let place = Workspace::new(&server)?;
        let ran = subject::run_measured(place.task_command(haft, "read the notes, page by page"))?;

        let timings = server.timings();
        ensure!(
            timings.len() == turns + 1,
            "{} requests arrived, {} were expected",
            timings.len(),
            turns + 1
        );
        let gaps = timings
            .windows(2)
            .filter_map(|pair| Some(pair[1].received - pair[0].replied?));
        let mut gaps: Vec<Duration> = gaps.collect();
        let mut late = gaps.split_off(gaps.len() - (turns / 10).max(1));
        let name = |what: &str| format!("{what} at {turns} turns");
        figures::print_figure(
            &name("overhead, median"),
            figures::median_ms(&mut late),
            "ms",
            overhead_goal,
        );
        figures::print_figure(
            &name("overhead, 95th percentile"),
            figures::quantile_ms(&mut late, 0.95),
            "ms",
            None,
        );
        figures::print_figure(&name("peak memory"), ran.peak_mb, "MB", memory_goal);
    }
    Ok(())
}
