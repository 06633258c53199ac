//! Campaigns: one property tested on a large number of generated cases.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Random;

/// A property of haft that is tested with generated cases.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of the property, in one sentence.
    pub about: &'static str,
    /// The function that generates and tests one case.
    pub trial: Trial,
}

/// A function that generates and tests one case; its error describes the failure.
#[derive(Clone, Copy, Debug)]
pub enum Trial {
    /// The function needs only random numbers.
    Alone(fn(&mut Random) -> Result<(), String>),
    /// The function needs the haft binary.
    WithHaft(fn(&mut HaftCase<'_>) -> Result<(), String>),
}

/// The inputs of a case that runs the haft binary.
#[derive(Debug)]
pub struct HaftCase<'a> {
    pub haft: &'a Path,
    /// The seed of this case. Consecutive cases have consecutive seeds, so that kinds of cases can
    /// take turns.
    pub seed: u64,
    /// The random numbers for this case.
    pub random: Random,
    /// The size of the case in bytes, if one was given on the command line.
    pub size: Option<u64>,
    /// Counters of events in this case, for the summary.
    pub tally: &'a mut Tally,
}

/// Named counters of events in the cases of a campaign, for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Adds one to the counter `what`.
    pub fn count(&mut self, what: impl Into<String>) {
        self.add(what, 1);
    }

    /// Adds `number` to the counter `what`.
    pub fn add(&mut self, what: impl Into<String>, number: u64) {
        *self.0.entry(what.into()).or_default() += number;
    }
}

/// The cases that a campaign must test, and the inputs that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The number of cases.
    pub count: u64,
    /// The seed of the first case.
    pub seed: u64,
    /// The haft binary, for campaigns that run it.
    pub haft: Option<PathBuf>,
    /// The size of each case in bytes, for campaigns in which cases have a size.
    pub size: Option<u64>,
}

/// The result of running a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of cases for which the property held.
    pub passed: u64,
    /// The number of cases for which the property did not hold.
    pub failed: u64,
}

/// The reason why a campaign could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The campaign needs the haft binary, but no path was given.
    #[error("campaign `{name}` runs the haft binary; say where it is with `--haft PATH`")]
    NoHaft { name: &'static str },
    /// The findings could not be written.
    #[error("cannot write what the campaign found")]
    Output(#[from] io::Error),
}

impl Campaign {
    /// Tests the cases, and writes each failure and the summary to `out`. Case `n` is the first
    /// case of a run with the seed `seed + n`, so a failure can be reproduced with that seed and a
    /// count of one.
    pub fn run(&self, setup: &Setup, out: &mut dyn Write) -> Result<Summary, CampaignError> {
        let mut summary = Summary {
            passed: 0,
            failed: 0,
        };
        let mut tally = Tally::default();
        for index in 0..setup.count {
            let seed = setup.seed.wrapping_add(index);
            let mut random = Random::new(seed);
            let result = match self.trial {
                Trial::Alone(case) => case(&mut random),
                Trial::WithHaft(case) => {
                    let haft = setup
                        .haft
                        .as_deref()
                        .ok_or(CampaignError::NoHaft { name: self.name })?;
                    case(&mut HaftCase {
                        haft,
                        seed,
                        random,
                        size: setup.size,
                        tally: &mut tally,
                    })
                }
            };
            match result {
                Ok(()) => summary.passed += 1,
                Err(what) => {
                    summary.failed += 1;
                    writeln!(out, "FAILED  {} --count 1 --seed {seed}: {what}", self.name)?;
                }
            }
        }
        for (what, count) in &tally.0 {
            writeln!(out, "{count:>6} {what}")?;
        }
        writeln!(
            out,
            "{} seed {}: {} passed, {} failed",
            self.name, setup.seed, summary.passed, summary.failed
        )?;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(count: u64, seed: u64) -> Setup {
        Setup {
            count,
            seed,
            haft: None,
            size: None,
        }
    }

    #[test]
    fn a_failure_names_the_seed_that_repeats_it() {
        let even = Campaign {
            name: "even",
            about: "The first number is even.",
            trial: Trial::Alone(|random| {
                if random.next_u64() % 2 == 0 {
                    Ok(())
                } else {
                    Err("odd".into())
                }
            }),
        };
        let mut told = Vec::new();
        let summary = even.run(&setup(50, 100), &mut told).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert_eq!(summary.passed + summary.failed, 50);
        assert!(told.ends_with(&format!(
            "even seed 100: {} passed, {} failed\n",
            summary.passed, summary.failed
        )));
        let seed = told
            .split("--seed ")
            .nth(1)
            .and_then(|rest| rest.split(':').next())
            .unwrap();
        let again = even
            .run(&setup(1, seed.parse().unwrap()), &mut Vec::new())
            .unwrap();
        assert_eq!(
            again,
            Summary {
                passed: 0,
                failed: 1
            }
        );
    }

    #[test]
    fn a_campaign_with_the_binary_counts_and_needs_it() {
        let met = Campaign {
            name: "met",
            about: "Cases count what they meet.",
            trial: Trial::WithHaft(|case| {
                case.tally
                    .count(if case.seed % 2 == 0 { "even" } else { "odd" });
                Ok(())
            }),
        };
        let mut told = Vec::new();
        met.run(
            &Setup {
                haft: Some("haft".into()),
                ..setup(5, 0)
            },
            &mut told,
        )
        .unwrap();
        let told = String::from_utf8(told).unwrap();
        assert_eq!(
            told,
            "     3 even\n     2 odd\nmet seed 0: 5 passed, 0 failed\n"
        );
        let error = met.run(&setup(1, 0), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("--haft PATH"), "{error}");
    }
}
