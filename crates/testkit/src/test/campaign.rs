//! Campaigns: one property, tried on very many generated cases.

use std::io::{self, Write};

use super::Random;

/// A property with a generator of cases.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The name on the command line.
    pub name: &'static str,
    /// What must hold, in one sentence.
    pub about: &'static str,
    /// Makes one case from random numbers and tries it; the error says what went wrong.
    pub case: fn(&mut Random) -> Result<(), String>,
}

/// How a campaign went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Cases that held.
    pub passed: u64,
    /// Cases that did not.
    pub failed: u64,
}

impl Campaign {
    /// Tries `count` cases and writes each failure and the summary. Case `n` is the first case of seed `seed + n`, so that a
    /// failure is repeated by its own seed and a count of one.
    pub fn run(&self, count: u64, seed: u64, out: &mut dyn Write) -> io::Result<Summary> {
        let mut summary = Summary { passed: 0, failed: 0 };
        for index in 0..count {
            let own = seed.wrapping_add(index);
            match (self.case)(&mut Random::new(own)) {
                Ok(()) => summary.passed += 1,
                Err(what) => {
                    summary.failed += 1;
                    writeln!(out, "FAILED  {} --count 1 --seed {own}: {what}", self.name)?;
                }
            }
        }
        writeln!(out, "{} seed {seed}: {} passed, {} failed", self.name, summary.passed, summary.failed)?;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_seed_that_repeats_it() {
        let even = Campaign {
            name: "even",
            about: "The first number is even.",
            case: |random| if random.number() % 2 == 0 { Ok(()) } else { Err("odd".into()) },
        };
        let mut told = Vec::new();
        let summary = even.run(50, 100, &mut told).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert_eq!(summary.passed + summary.failed, 50);
        assert!(told.ends_with(&format!("even seed 100: {} passed, {} failed\n", summary.passed, summary.failed)));
        let seed = told.split("--seed ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
        assert_eq!(even.run(1, seed.parse().unwrap(), &mut Vec::new()).unwrap(), Summary { passed: 0, failed: 1 });
    }
}
