//! Measures the memory of a sub-agent that waits for its model, by comparing runs with few and with
//! many sub-agents.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::ensure;
use haft_testkit::{Reply, Script, ScriptedServer, When};
use serde_json::json;

use crate::figures;
use crate::subject::{self, Workspace};

const FEW_AGENTS: usize = 2;
const MANY_AGENTS: usize = 32;

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let few = measure_peak_mb(haft, FEW_AGENTS)?;
    let many = measure_peak_mb(haft, MANY_AGENTS)?;
    figures::print_figure("peak memory with 2 sub-agents", few, "MB", None);
    figures::print_figure("peak memory with 32 sub-agents", many, "MB", None);
    figures::print_figure(
        "memory per sub-agent that waits",
        (many - few) / (MANY_AGENTS - FEW_AGENTS) as f64,
        "MB",
        Some(1.0),
    );
    Ok(())
}

/// Returns the peak memory of a run in which `count` sub-agents wait for their model at once.
fn measure_peak_mb(haft: &Path, count: usize) -> anyhow::Result<f64> {
    let mut work = String::from("mode: parallel\nsubagents:\n");
    for _ in 0..count {
        work.push_str("  - {name: waiter, task: Wait.}\n");
    }
    let of_main = |results| When {
        tool_offered: Some("run_named_subagents".into()),
        tool_results: Some(results),
        ..When::default()
    };
    let waits = Reply {
        delay_ms: 3_000,
        ..Reply::text("Waited.")
    };
    let script = Script::replies([
        Reply::call("run_named_subagents", json!({ "subagents": work })).when(of_main(0)),
        Reply::text("Done.").when(of_main(1)),
        waits.times(u32::try_from(count)?),
    ])?;
    let server = ScriptedServer::builder(script).start_in_thread()?;
    let place = Workspace::new(&server)?;
    let folder = place.home().join("agents");
    std::fs::create_dir_all(&folder)?;
    let mut agent = String::new();
    write!(
        agent,
        "---\nname: waiter\ndescription: Waits\n---\nYou wait.\n"
    )?;
    std::fs::write(folder.join("waiter.md"), agent)?;
    let mut command = place.task_command(haft, "wait");
    command.stdout(Stdio::null());
    let ran = subject::run_measured(command)?;
    ensure!(
        server.generation_requests().len() == count + 2,
        "some of the agents did not ask"
    );
    Ok(ran.peak_mb)
}
