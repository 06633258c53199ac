//! Edits that must not go wrong, in very many cases.
//!
//! `edit_campaign NAME [--count N] [--seed S]`, NAME being
//!
//! - `stale`: a file changed since it was read, in the same second, with the same size and time, is
//!   never overwritten;
//! - `swap`: someone else writes a file while it is edited, and nothing they write is lost;
//! - `folders`: a folder and a link change places while files in it are edited, and nothing outside
//!   is touched;
//! - `kill`: the process dies at any of its system calls, and the next start makes everything old
//!   or everything new (needs `strace`; without `--count` every call is tried).
//!
//! Files lie in the folder for temporary files; with `TMPDIR=/dev/shm` nothing waits for a disk.
//! Exit code 0 when every case held, 1 when one did not, 2 on wrong usage.
#![expect(
    clippy::disallowed_methods,
    reason = "a campaign starts programs of its own"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints what it found"
)]
#![expect(clippy::unwrap_used, reason = "in a campaign, a panic is a report")]

mod folders;
mod kill;
mod stale;
mod swap;
#[expect(
    dead_code,
    reason = "what the crate's own tests use of it is not used here"
)]
#[path = "../../src/testing.rs"]
mod testing;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use haft_testkit::support::Random;
use haft_tool::{Tool, ToolOutput};
use haft_tools::{
    KeptDocument, LimitsConfig, ModelTokens, Readers, Running, StoredNotes, StoredTodo,
    StoredTranscript, StoredUseful, TodoItems, builtin_tools,
};
use serde_json::Value;

use crate::testing::Bench;

/// How many failures are told in full.
const TOLD: usize = 20;

/// What a campaign found.
#[derive(Default)]
struct Findings {
    tally: BTreeMap<String, u64>,
    failures: Vec<String>,
    tried: u64,
}

impl Findings {
    fn count(&mut self, what: impl Into<String>) {
        *self.tally.entry(what.into()).or_default() += 1;
    }

    /// Takes in one case: what it met, or why it failed.
    fn take(&mut self, result: Result<String, String>) {
        self.tried += 1;
        match result {
            Ok(met) => self.count(met),
            Err(failure) => self.failures.push(failure),
        }
    }
}

/// Which cases to try.
struct Setup {
    count: Option<u64>,
    seed: u64,
}

/// The tools, and a runtime to call them in.
struct Caller {
    tools: Vec<Arc<dyn Tool>>,
    runtime: tokio::runtime::Runtime,
}

impl Caller {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        Self {
            tools: testing::builtin(),
            runtime,
        }
    }

    fn call(&self, bench: &Bench, name: &str, arguments: Value) -> ToolOutput {
        let tool = self
            .tools
            .iter()
            .find(|tool| tool.spec().name == name)
            .unwrap();
        self.runtime.block_on(bench.run(tool.as_ref(), arguments))
    }

    /// Calls a tool and gives the code of its error, or `done`.
    fn outcome(&self, bench: &Bench, name: &str, arguments: Value) -> String {
        self.call(bench, name, arguments)
            .envelope
            .error
            .map_or_else(|| "done".to_owned(), |error| error.code)
    }
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<(String, Setup), String> {
    let mut name = None;
    let mut setup = Setup {
        count: None,
        seed: 1,
    };
    while let Some(argument) = given.next() {
        let mut number = || {
            let value = given
                .next()
                .ok_or_else(|| format!("`{argument}` needs a number"))?;
            value
                .parse::<u64>()
                .map_err(|_| format!("`{value}` is not a number"))
        };
        match argument.as_str() {
            "--count" => setup.count = Some(number()?),
            "--seed" => setup.seed = number()?,
            _ if name.is_none() && !argument.starts_with('-') => name = Some(argument),
            _ => return Err(format!("unexpected `{argument}`")),
        }
    }
    Ok((name.ok_or("no campaign named")?, setup))
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    // The process that is killed is this program again.
    if let [role, scenario, folder] = given.as_slice()
        && role == "victim"
    {
        return kill::victim(scenario, Path::new(folder));
    }
    let (name, setup) = match arguments(given.into_iter()) {
        Ok(given) => given,
        Err(complaint) => return complain(&complaint),
    };
    let mut random = Random::new(setup.seed);
    let findings = match name.as_str() {
        "stale" => stale::run(setup.count.unwrap_or(10_000), &mut random),
        "swap" => swap::run(setup.count.unwrap_or(2_000), &mut random),
        "folders" => folders::run(setup.count.unwrap_or(100_000), &mut random),
        "kill" => {
            let Some(findings) = kill::run(setup.count, &mut random) else {
                println!("skipped: `strace` is not there, or may not trace");
                return ExitCode::SUCCESS;
            };
            findings
        }
        _ => return complain(&format!("there is no campaign `{name}`")),
    };
    for (what, count) in &findings.tally {
        println!("{count:>7} {what}");
    }
    for failure in findings.failures.iter().take(TOLD) {
        println!("FAILED  {failure}");
    }
    println!(
        "{name} seed {}: {} cases, {} failed",
        setup.seed,
        findings.tried,
        findings.failures.len()
    );
    if findings.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn complain(complaint: &str) -> ExitCode {
    eprintln!(
        "edit_campaign: {complaint}; usage: edit_campaign stale|swap|folders|kill [--count N] [--seed S]"
    );
    ExitCode::from(2)
}
