//! Measures how fifty MCP servers, most of which hang, delay the first request.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script, ScriptedServer};

use crate::figures;
use crate::subject::{self, Workspace};

const RUNS: usize = 20;
const GOOD: usize = 5;
const HANGING: usize = 45;

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let mut with = Vec::with_capacity(RUNS);
    let mut without = Vec::with_capacity(RUNS);
    // Alternating, so that other load on the machine affects both equally.
    for _ in 0..RUNS {
        without.push(time_first_request(haft, Connected::None)?);
        with.push(time_first_request(haft, Connected::Fifty)?);
    }
    let without = figures::median_ms(&mut without);
    let with = figures::median_ms(&mut with);
    figures::print_figure(
        "to the first request without MCP servers, median of 20",
        without,
        "ms",
        None,
    );
    figures::print_figure("with 50 MCP servers, 45 of them hanging", with, "ms", None);
    figures::print_figure("ratio", with / without, "x", Some(1.2));
    Ok(())
}

/// The servers in the configuration.
#[derive(Clone, Copy)]
enum Connected {
    None,
    Fifty,
}

/// Returns the time from the start of the process to the first request.
fn time_first_request(haft: &Path, connected: Connected) -> anyhow::Result<Duration> {
    let server = ScriptedServer::builder(Script::replies([Reply::text("Done.")])?)
        .lean()
        .start_in_thread()?;
    let place = Workspace::new(&server)?;
    // Servers are sandboxed and can't see haft's own folder.
    let script = place.project().join("server.sh");
    std::fs::write(&script, SHELL_MCP_SERVER)?;
    let (good, hanging) = match connected {
        Connected::None => (0, 0),
        Connected::Fifty => (GOOD, HANGING),
    };
    let mut config = String::new();
    for number in 0..good {
        let script = script.display();
        write!(
            config,
            "[mcp_servers.good{number}]\ncommand = \"sh\"\nargs = [\"{script}\"]\n"
        )?;
    }
    place.append_config(&config)?;
    if good > 0 {
        // Fills the cache of the servers' tools.
        let status = place
            .haft_command(haft, &["mcp", "test"])
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "haft mcp test failed");
    }
    let mut config = String::new();
    for number in 0..hanging {
        write!(
            config,
            "[mcp_servers.hang{number}]\ncommand = \"sleep\"\nargs = [\"1000\"]\n"
        )?;
    }
    place.append_config(&config)?;
    let ran = subject::run_measured(place.task_command(haft, "say done"))?;
    let timing = *server.timings().first().context("no request arrived")?;
    Ok(timing.received - ran.started)
}
