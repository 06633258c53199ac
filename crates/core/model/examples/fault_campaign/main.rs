//! Every fault a model's server can have, done to recorded replies of all four APIs; what comes of
//! it must be as the table has it.
//!
//! `cargo run --release -p haft-model --example fault_campaign -- [--count N] [--seed S]`. Without
//! `--count` every case is tried; with it, so many of them, chosen by the seed. Exit code 0 when
//! every case held, 1 when one did not, 2 on wrong usage.
//!
//! The cases go through the scripted server and the real client, in this process: spawning haft for
//! each would take hours. `table.rs` is what must hold; `docs/faults.md` says it in words.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints what it found"
)]

mod attempt;
mod recorded;
mod table;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use futures::{StreamExt, stream};
use haft_testkit::support::Random;
use haft_testkit::{Garbage, Reply};

use crate::table::Case;

/// How many cases are under way at once: those of a silent server wait for seconds.
const AT_ONCE: usize = 64;
/// How many failures are told in full.
const TOLD: usize = 20;

struct Arguments {
    count: Option<usize>,
    seed: u64,
}

fn arguments(given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        count: None,
        seed: 1,
    };
    let mut given = given;
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
            "--count" => arguments.count = Some(number()? as usize),
            "--seed" => arguments.seed = number()?,
            _ => {
                return Err(format!(
                    "unexpected `{argument}`; usage: fault_campaign [--count N] [--seed S]"
                ));
            }
        }
    }
    Ok(arguments)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            eprintln!("fault_campaign: {complaint}");
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(&arguments))
}

async fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let recorded = recorded::all()?;
    let mut baselines = Vec::new();
    for reply in &recorded {
        let garbage = Garbage {
            body: reply.bytes(),
            content_type: "text/event-stream".into(),
        };
        let untouched = Reply {
            garbage: Some(garbage),
            ..Reply::default()
        };
        baselines.push(attempt::baseline(reply.api, untouched).await?);
    }
    let baselines = Arc::new(baselines);
    let all = table::all(&recorded);
    let there_are = all.len();
    let cases = chosen(all, arguments);
    let count = cases.len();

    let tried = stream::iter(cases).map(|case| {
        let baselines = Arc::clone(&baselines);
        async move {
            let kind = case.kind;
            let phase = case.phase;
            let detail = case.detail.clone();
            // In a task of its own, so that a panic is one case's and is counted.
            let result = tokio::spawn(async move {
                match baselines.get(case.recorded) {
                    Some(baseline) => attempt::attempt(&case, baseline).await,
                    None => Err("no recorded reply".to_owned()),
                }
            });
            let result = result
                .await
                .unwrap_or_else(|error| Err(format!("PANIC: {error}")));
            (
                kind,
                phase,
                result.map_err(|what| format!("{kind} {phase}, {detail}: {what}")),
            )
        }
    });
    let mut tried = tried.buffer_unordered(AT_ONCE);
    let mut tally = BTreeMap::<_, u64>::new();
    let mut failures = Vec::new();
    while let Some((kind, phase, result)) = tried.next().await {
        *tally.entry((kind, phase)).or_default() += 1;
        failures.extend(result.err());
    }
    for ((kind, phase), count) in &tally {
        println!("{count:>6} {kind}, {phase}");
    }
    for failure in failures.iter().take(TOLD) {
        println!("FAILED  {failure}");
    }
    println!(
        "faults seed {}: {count} of {there_are} cases, {} failed",
        arguments.seed,
        failures.len()
    );
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// So many cases as were asked for, chosen by the seed; one kind after the other has its turn, so
/// that a few hold them all.
fn chosen(cases: Vec<Case>, arguments: &Arguments) -> Vec<Case> {
    let Some(count) = arguments.count else {
        return cases;
    };
    let mut random = Random::new(arguments.seed);
    let mut kinds = BTreeMap::<&str, Vec<Case>>::new();
    for case in cases {
        kinds.entry(case.kind).or_default().push(case);
    }
    let mut chosen = Vec::new();
    while chosen.len() < count && !kinds.is_empty() {
        for cases in kinds.values_mut() {
            chosen.push(cases.swap_remove(random.below(cases.len())));
        }
        kinds.retain(|_, cases| !cases.is_empty());
    }
    chosen.truncate(count);
    chosen
}
