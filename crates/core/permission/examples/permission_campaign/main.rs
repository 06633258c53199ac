//! Generated command lines, run by bash under strace: whatever the classifier allows, nothing may
//! happen that no rule covers.
//!
//! `cargo run -p haft-permission --example permission_campaign -- [--count N] [--seed S] [--pairs
//! P]`: N lines that were allowed are run (as uid 65534 where this runs as root) in a temporary
//! folder full of decoys, and every program they start, every file they write and every secret
//! their shell opens is held against the rules by code that knows nothing of the classifier
//! (`judge.rs`). Then P pairs of path and root are compared with a reference by components. Exit
//! code 0 when everything was covered, 1 when something was not, 2 on wrong usage; without strace
//! it says so and ends with 0.
#![expect(
    clippy::disallowed_methods,
    reason = "a campaign starts programs of its own"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints what it found"
)]

mod generate;
mod jail;
mod judge;
mod pairs;
mod random;
mod trace;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haft_permission::{
    Confinement, PermissionRequest, PermissionRules, Permissions, PermissionsConfig,
};
use haft_types::{Decision, PermissionMode};

use crate::jail::Jail;
use crate::random::Random;

/// So many lines share one strace and one project.
const BATCH: usize = 250;
/// So many jails are used at once.
const WORKERS: usize = 6;
/// How many failures are told in full.
const TOLD: usize = 20;

struct Arguments {
    count: usize,
    seed: u64,
    pairs: u64,
    /// Only print lines that are allowed.
    show: bool,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        count: 300,
        seed: 1,
        pairs: 100_000,
        show: false,
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
            "--count" => arguments.count = number()? as usize,
            "--seed" => arguments.seed = number()?,
            "--pairs" => arguments.pairs = number()?,
            "--show" => arguments.show = true,
            _ => {
                return Err(format!(
                    "unexpected `{argument}`; usage: permission_campaign [--count N] [--seed S] [--pairs P] [--show]"
                ));
            }
        }
    }
    Ok(arguments)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut given = std::env::args().skip(1).peekable();
    if given.peek().map(String::as_str) == Some(jail::DRIVE) {
        return jail::drive(given.nth(1).ok_or("the driver needs a folder")?.as_ref());
    }
    let arguments = match arguments(given) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            eprintln!("permission_campaign: {complaint}");
            return Ok(ExitCode::from(2));
        }
    };
    if !jail::can_trace() {
        println!("permission_campaign: skipped, `strace` cannot be run here");
        return Ok(ExitCode::SUCCESS);
    }
    run(&arguments)
}

/// What was done so far.
#[derive(Default)]
struct Tally {
    generated: u64,
    ran: usize,
    looked_at: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn with(mut self, other: Self) -> Self {
        self.generated += other.generated;
        self.ran += other.ran;
        self.looked_at += other.looked_at;
        self.wrong.extend(other.wrong);
        self
    }
}

/// Runs so many allowed lines in a jail of their own.
fn run_batch(
    permissions: &Permissions,
    seed: u64,
    count: usize,
    show: bool,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut random = Random::new(seed);
    let jail = Jail::new().map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    while lines.len() < count {
        let line = generate::line(&mut random);
        tally.generated += 1;
        let verdict = permissions.decide(&PermissionRequest::for_command(&line), &jail.workspace());
        if verdict.decision == Decision::Allow {
            if show {
                println!("{line:?}");
            }
            lines.push(line);
        }
    }
    let traces = jail.run(&lines).map_err(|error| error.to_string())?;
    if traces.len() != lines.len() {
        return Err(format!(
            "{} of {} lines left a trace",
            traces.len(),
            lines.len()
        ));
    }
    for (line, events) in lines.iter().zip(&traces) {
        tally.looked_at += events.len();
        tally
            .wrong
            .extend(judge::uncovered(line, events, &jail).map(|what| format!("{line:?}: {what}")));
    }
    tally.ran += lines.len();
    Ok(())
}

fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let config = PermissionsConfig {
        allow: judge::RULES.iter().map(|rule| (*rule).to_owned()).collect(),
        deny: vec![judge::DENIED.to_owned()],
        ..PermissionsConfig::default()
    };
    let permissions = Permissions {
        mode: PermissionMode::Ask,
        rules: PermissionRules::load(&config, None)?,
        confinement: Confinement::None,
    };
    let jail = Jail::new()?;
    let controls = jail.run(&judge::CONTROLS.map(str::to_owned))?;
    for (line, events) in judge::CONTROLS.iter().zip(&controls) {
        if judge::uncovered(line, events, &jail).next().is_none() {
            return Err(format!(
                "`{line}` did nothing that was seen: the campaign would find nothing"
            )
            .into());
        }
    }
    let batches = arguments.count.div_ceil(BATCH);
    let next = AtomicUsize::new(0);
    // Most of the time is spent waiting for processes to end.
    let tallies = thread::scope(|scope| {
        let worker = || {
            let mut tally = Tally::default();
            loop {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                if batch >= batches {
                    return Ok(tally);
                }
                let lines = BATCH.min(arguments.count - batch * BATCH);
                run_batch(
                    &permissions,
                    arguments.seed.wrapping_add(batch as u64),
                    lines,
                    arguments.show,
                    &mut tally,
                )?;
                if batch % 40 == 39 {
                    eprintln!("permission_campaign: {} lines begun", (batch + 1) * BATCH);
                }
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<Tally, String>>| {
            worker
                .join()
                .unwrap_or_else(|_| Err("a worker panicked".to_owned()))
        };
        workers.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    let Tally {
        generated,
        ran,
        looked_at,
        wrong,
    } = tallies.into_iter().fold(Tally::default(), Tally::with);
    for told in wrong.iter().take(TOLD) {
        println!("NOT COVERED {told}");
    }
    println!(
        "permission_campaign: seed {}: {generated} lines generated, {ran} allowed and run, {looked_at} things they did looked at, {} not covered",
        arguments.seed,
        wrong.len()
    );
    let disagreements = pairs::disagreements(&mut Random::new(arguments.seed), arguments.pairs);
    println!(
        "permission_campaign: {} pairs of path and root, {disagreements} disagreements",
        arguments.pairs
    );
    Ok(if wrong.is_empty() && disagreements == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
