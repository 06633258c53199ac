//! Campaigns: one property, tried on very many generated cases.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Random;

/// A property with a generator of cases.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The name on the command line.
    pub name: &'static str,
    /// What must hold, in one sentence.
    pub about: &'static str,
    /// Makes one case and tries it.
    pub trial: Trial,
}

/// How a case is made and tried; the error says what went wrong.
#[derive(Clone, Copy, Debug)]
pub enum Trial {
    /// From random numbers alone.
    Alone(fn(&mut Random) -> Result<(), String>),
    /// With the haft binary.
    WithHaft(fn(&mut HaftCase<'_>) -> Result<(), String>),
}

/// What a case with the haft binary is made of.
#[derive(Debug)]
pub struct HaftCase<'a> {
    /// The binary.
    pub haft: &'a Path,
    /// The seed of this case; neighbours differ by one, so that kinds can be dealt round.
    pub seed: u64,
    /// Its random numbers.
    pub random: Random,
    /// How large it is to be, in bytes, if somebody said so.
    pub size: Option<u64>,
    /// Where it counts what it met.
    pub tally: &'a mut Tally,
}

/// What the cases of a campaign met, by name, for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Counts one more of these.
    pub fn count(&mut self, what: impl Into<String>) {
        self.add(what, 1);
    }

    /// Counts so many more of these.
    pub fn add(&mut self, what: impl Into<String>, number: u64) {
        *self.0.entry(what.into()).or_default() += number;
    }
}

/// Which cases to try, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How many.
    pub count: u64,
    /// The seed of the first.
    pub seed: u64,
    /// The haft binary, for campaigns that run it.
    pub haft: Option<PathBuf>,
    /// How large a case is, in bytes, for campaigns about size.
    pub size: Option<u64>,
}

/// How a campaign went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Cases that held.
    pub passed: u64,
    /// Cases that did not.
    pub failed: u64,
}

/// A campaign could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// It needs the haft binary and was given none.
    #[error("campaign `{name}` runs the haft binary; say where it is with `--haft PATH`")]
    NoHaft {
        /// The campaign.
        name: &'static str,
    },
    /// Its findings could not be written.
    #[error("cannot write what the campaign found")]
    Output(#[from] io::Error),
}

impl Campaign {
    /// Tries the cases and writes each failure and the summary. Case `n` is the first case of seed
    /// `seed + n`, so that a failure is repeated by its own seed and a count of one.
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
                if random.number() % 2 == 0 {
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
