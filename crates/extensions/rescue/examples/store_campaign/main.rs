//! Tries to make the store lose something: `store_campaign NAME [--count N] [--seed S]`.
//!
//! | name | what is done to it |
//! | --- | --- |
//! | `kill` | processes that append, revise, fork, log, back up and search at once are killed at any moment |
//! | `syscalls` | one append is killed at every single call to the system that changes something (needs strace) |
//! | `power` | the writes and syncs of such a process are recorded, and disks as a power cut leaves them are made from them (needs strace) |
//! | `damage` | files are damaged in many ways, then read, looked over and salvaged |
//! | `crowd` | 32 processes write to the same 8 conversations, after one that had them all to itself |
//!
//! Exit code 0 when every case held, 1 when one did not, 2 on wrong usage. What must hold is in
//! `story.rs`, from the view of somebody outside who wrote down what was acknowledged.
#![expect(
    clippy::disallowed_methods,
    reason = "a campaign starts programs of its own"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints what it found"
)]

mod crowd;
mod damage;
mod kill;
mod power;
mod story;
mod strace;
mod syscalls;
mod texts;
mod worker;

use std::process::ExitCode;

/// Why a case did not hold.
type Outcome = Result<(), String>;

/// A campaign: tries so many cases from this seed on, and says what it met.
struct Campaign {
    name: &'static str,
    run: fn(count: u64, seed: u64) -> Vec<(u64, Outcome)>,
}

const CAMPAIGNS: [Campaign; 5] = [
    Campaign {
        name: "kill",
        run: kill::run,
    },
    Campaign {
        name: "syscalls",
        run: syscalls::run,
    },
    Campaign {
        name: "power",
        run: power::run,
    },
    Campaign {
        name: "damage",
        run: damage::run,
    },
    Campaign {
        name: "crowd",
        run: crowd::run,
    },
];

fn arguments(given: &[String]) -> Result<(&'static Campaign, u64, u64), String> {
    let names = || CAMPAIGNS.map(|campaign| campaign.name).join(", ");
    let name = given
        .first()
        .ok_or_else(|| format!("which campaign? There are {}", names()))?;
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign =
        campaign.ok_or_else(|| format!("there is no campaign `{name}`; there are {}", names()))?;
    let mut count = 100;
    let mut seed = 1;
    for pair in given[1..].chunks(2) {
        let [flag, value] = pair else {
            return Err(format!("`{}` needs a number", pair[0]));
        };
        let number = value
            .parse()
            .map_err(|_| format!("`{value}` is not a number"))?;
        match flag.as_str() {
            "--count" => count = number,
            "--seed" => seed = number,
            _ => return Err(format!("unexpected `{flag}`")),
        }
    }
    Ok((campaign, count, seed))
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given.first().is_some_and(|first| first == worker::NAME) {
        return worker::run(&given[1..]);
    }
    let (campaign, count, seed) = match arguments(&given) {
        Ok(arguments) => arguments,
        Err(complaint) => {
            eprintln!("store_campaign: {complaint}");
            return ExitCode::from(2);
        }
    };
    let outcomes = (campaign.run)(count, seed);
    let failed = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_err())
        .count();
    for (seed, outcome) in &outcomes {
        if let Err(problem) = outcome {
            println!(
                "FAILED  {} --count 1 --seed {seed}: {problem}",
                campaign.name
            );
        }
    }
    println!(
        "{} seed {seed}: {} passed, {failed} failed",
        campaign.name,
        outcomes.len() - failed
    );
    ExitCode::from(u8::from(failed > 0))
}

/// Waits for a future: the campaigns themselves need no runtime.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(future))
}
