//! Measures the time from the start of the process to the output of `--version`, and to the first
//! byte of the first request.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use haft_testkit::{Reply, Script, ScriptedServer};

use crate::figures;
use crate::subject::{self, Workspace};

const RUNS: usize = 20;

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let mut version = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let begin = Instant::now();
        let status = Command::new(haft)
            .arg("--version")
            .stdout(Stdio::null())
            .status()?;
        version.push(begin.elapsed());
        ensure!(status.success(), "haft --version failed");
    }
    figures::print_figure(
        "haft --version, median of 20",
        figures::median_ms(&mut version),
        "ms",
        None,
    );

    let mut first_request = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let server = ScriptedServer::builder(Script::replies([Reply::text("Done.")])?)
            .lean()
            .start_in_thread()?;
        let place = Workspace::new(&server)?;
        let ran = subject::run_measured(place.task_command(haft, "say done"))?;
        let timing = *server.timings().first().context("no request arrived")?;
        first_request.push(timing.received - ran.started);
    }
    figures::print_figure(
        "start to first byte of the first request, median of 20",
        figures::median_ms(&mut first_request),
        "ms",
        Some(12.0),
    );
    Ok(())
}
