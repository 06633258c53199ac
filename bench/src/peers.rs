//! Compares haft with other agents. Each runs equal turns of one shell command against a scripted
//! model; the agents alternate.
//!
//! The other agents are looked up in `PATH`. The program found there is measured itself, so it
//! should not be a wrapper script.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use haft_testkit::{Reply, Script, ScriptedServer, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::figures;
use crate::subject::{self, Workspace};

const TURNS: usize = 100;
const RUNS: usize = 5;
const TASK: &str = "count";

/// An agent: its command line, and the name and argument of its shell tool.
struct Peer {
    name: &'static str,
    tool: &'static str,
    argument: &'static str,
    command: fn(&Path, &Workspace, &ScriptedServer) -> Command,
}

const PEERS: [Peer; 4] = [
    Peer {
        name: "haft, confined",
        tool: "execute_command",
        argument: "command",
        command: build_confined_haft_command,
    },
    Peer {
        name: "haft, unconfined",
        tool: "execute_command",
        argument: "command",
        command: build_unconfined_haft_command,
    },
    Peer {
        name: "codex",
        tool: "exec_command",
        argument: "cmd",
        command: build_codex_command,
    },
    Peer {
        name: "goose",
        tool: "shell",
        argument: "command",
        command: build_goose_command,
    },
];

/// Builds a command that runs haft like the other agents, without approvals and without a sandbox.
fn build_unconfined_haft_command(program: &Path, place: &Workspace, _: &ScriptedServer) -> Command {
    place.task_command(program, TASK)
}

fn build_confined_haft_command(program: &Path, place: &Workspace, _: &ScriptedServer) -> Command {
    let mut command = place.haft_command(program, &["run", "--permission-mode", "auto", TASK]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn build_codex_command(program: &Path, place: &Workspace, server: &ScriptedServer) -> Command {
    let url = server.base_url(Api::OpenaiResponses);
    let provider =
        format!("model_providers.mock={{name=\"mock\",base_url=\"{url}\",wire_api=\"responses\"}}");
    let mut command = place.other_agent_command(program);
    command.args([
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ]);
    command.args([
        "-c",
        &provider,
        "-c",
        "model_provider=\"mock\"",
        "-c",
        "model=\"mock\"",
        TASK,
    ]);
    command
}

fn build_goose_command(program: &Path, place: &Workspace, server: &ScriptedServer) -> Command {
    let mut command = place.other_agent_command(program);
    command.args([
        "run",
        "--no-profile",
        "--with-builtin",
        "developer",
        "--max-turns",
        "1000",
        "-t",
        TASK,
    ]);
    command
        .env("OPENAI_HOST", format!("http://{}", server.address()))
        .env("OPENAI_API_KEY", "none");
    command
        .env("GOOSE_PROVIDER", "openai")
        .env("GOOSE_MODEL", "mock");
    command
        .env("GOOSE_MODE", "auto")
        .env("GOOSE_DISABLE_KEYRING", "1");
    command
}

/// The measurements of one agent.
#[derive(Default)]
struct Measurements {
    first: Vec<Duration>,
    between: Vec<Duration>,
    processor: Vec<Duration>,
    peak_mb: f64,
}

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    figures::print_line(&format!(
        "{TURNS} turns of one `echo` each, {RUNS} runs in turn: medians, and the most memory."
    ));
    let found: Vec<_> = PEERS
        .iter()
        .filter_map(|peer| Some((peer, find_program(peer.name, haft)?)))
        .collect();
    let mut taken: Vec<Measurements> = found.iter().map(|_| Measurements::default()).collect();
    for _ in 0..RUNS {
        for ((peer, program), taken) in found.iter().zip(&mut taken) {
            measure_run(peer, program, taken).with_context(|| format!("{} failed", peer.name))?;
        }
    }
    for ((peer, program), mut taken) in found.into_iter().zip(taken) {
        let said = Command::new(program)
            .arg("--version")
            .stderr(Stdio::null())
            .output()?
            .stdout;
        figures::print_line(&format!(
            "{}: {}",
            peer.name,
            String::from_utf8_lossy(&said).trim()
        ));
        figures::print_figure(
            "  start to the first request with the task",
            figures::median_ms(&mut taken.first),
            "ms",
            None,
        );
        figures::print_figure(
            "  between two requests, all turns",
            figures::median_ms(&mut taken.between),
            "ms",
            None,
        );
        figures::print_figure(
            "  processor time, its commands included",
            figures::median_ms(&mut taken.processor),
            "ms",
            None,
        );
        figures::print_figure("  peak memory", taken.peak_mb, "MB", None);
    }
    Ok(())
}

fn find_program(name: &str, haft: &Path) -> Option<PathBuf> {
    if name.starts_with("haft") {
        return Some(haft.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        figures::print_line(&format!("{name}: not installed"));
    }
    found?.canonicalize().ok()
}

fn measure_run(peer: &Peer, program: &Path, taken: &mut Measurements) -> anyhow::Result<()> {
    let turn = |turn: usize| {
        let arguments: Value = json!({peer.argument: format!("echo {turn}")});
        let when = When {
            tool_offered: Some(peer.tool.into()),
            assistant_messages: Some(turn),
            ..When::default()
        };
        Reply::call(peer.tool, arguments).when(when)
    };
    // Requests besides the task, such as for a title, get the last reply.
    let script = Script::replies(
        (0..TURNS)
            .map(turn)
            .chain([Reply::text("Done.").when(When::default())]),
    )?;
    let server = ScriptedServer::builder(script).lean().start_in_thread()?;
    let place = Workspace::new(&server)?;
    let ran = subject::run_measured((peer.command)(program, &place, &server))?;
    let timings = server.timings();
    ensure!(
        timings.len() > TURNS,
        "{} requests arrived, more than {TURNS} were expected",
        timings.len()
    );
    let turns = &timings[timings.len() - TURNS - 1..];
    taken.first.push(turns[0].received - ran.started);
    taken.between.extend(
        turns
            .windows(2)
            .filter_map(|pair| Some(pair[1].received - pair[0].replied?)),
    );
    taken.processor.push(ran.processor);
    taken.peak_mb = taken.peak_mb.max(ran.peak_mb);
    Ok(())
}
