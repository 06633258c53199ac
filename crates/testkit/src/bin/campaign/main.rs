//! `campaign NAME --count N --seed S`: tries one property on very many generated cases.
//!
//! A failure prints the seed that repeats it; exit code 0 when every case held, 1 when one did not, 2 on wrong usage.

use std::io::{self, Write};
use std::process::ExitCode;

use haft_testkit::test::Campaign;

mod chunking;

/// Every campaign there is.
const CAMPAIGNS: &[Campaign] = &[chunking::CAMPAIGN];

struct Arguments {
    campaign: Campaign,
    count: u64,
    seed: u64,
}

fn arguments(given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut name, mut count, mut seed) = (None, 100, 1);
    let mut given = given;
    while let Some(argument) = given.next() {
        let mut number = || {
            let value = given.next().ok_or_else(|| format!("`{argument}` needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"))
        };
        match argument.as_str() {
            "--count" => count = number()?,
            "--seed" => seed = number()?,
            flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
            _ if name.is_none() => name = Some(argument),
            _ => return Err(format!("unexpected argument `{argument}`; one campaign is run at a time")),
        }
    }
    let name = name.ok_or("no campaign named")?;
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = *campaign.ok_or_else(|| format!("there is no campaign `{name}`"))?;
    Ok(Arguments { campaign, count, seed })
}

fn usage() -> String {
    let list: Vec<String> =
        CAMPAIGNS.iter().map(|campaign| format!("  {:<12} {}", campaign.name, campaign.about)).collect();
    format!("usage: campaign NAME [--count N] [--seed S]\n\n{}", list.join("\n"))
}

fn main() -> io::Result<ExitCode> {
    match arguments(std::env::args().skip(1)) {
        Ok(Arguments { campaign, count, seed }) => {
            let summary = campaign.run(count, seed, &mut io::stdout())?;
            Ok(if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(complaint) => {
            writeln!(io::stderr(), "campaign: {complaint}\n\n{}", usage())?;
            Ok(ExitCode::from(2))
        }
    }
}
