//! Compares the first outline in a language, which unpacks its grammar and compiles its query, with
//! a later one.

use std::time::{Duration, Instant};

use haft_outline::{OutlineLimits, SourceLanguage, outline_source};

use crate::figures;

const GOAL_MS: f64 = 50.0;

pub(crate) fn run_benchmark() -> anyhow::Result<()> {
    for language in SourceLanguage::ALL {
        let timed = || -> anyhow::Result<Duration> {
            let begin = Instant::now();
            outline_source(*language, "x", OutlineLimits::default(), &|| false)?;
            Ok(begin.elapsed())
        };
        let mut first = [timed()?];
        let mut second = [timed()?];
        let name = format!(
            "{}: first use (a later one {:.2} ms)",
            language.name(),
            figures::median_ms(&mut second)
        );
        figures::print_figure(&name, figures::median_ms(&mut first), "ms", Some(GOAL_MS));
    }
    Ok(())
}
