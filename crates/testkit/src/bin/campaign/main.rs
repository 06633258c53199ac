//! `campaign NAME --count N --seed S`: tests one property on a large number of generated cases.
//!
//! A failure prints the seed that reproduces it. The exit code is 0 if every case held, 1 if one
//! didn't, 2 for invalid usage.
#![expect(
    clippy::disallowed_methods,
    reason = "a campaign starts programs of its own"
)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use haft_testkit::support::{Campaign, CampaignError, Setup};

mod attach;
mod chunking;
mod faults;
mod kill;
mod output;
mod replays;
mod swaps;

const CAMPAIGNS: &[Campaign] = &[
    attach::CAMPAIGN,
    chunking::CAMPAIGN,
    faults::CAMPAIGN,
    kill::CAMPAIGN,
    output::CAMPAIGN,
    replays::CAMPAIGN,
    swaps::CAMPAIGN,
];

fn parse_arguments(given: impl Iterator<Item = String>) -> Result<(Campaign, Setup), String> {
    let mut name = None;
    let mut setup = Setup {
        count: 100,
        seed: 1,
        haft: None,
        size: None,
    };
    let mut given = given;
    while let Some(argument) = given.next() {
        let mut value = |what| {
            given
                .next()
                .ok_or_else(|| format!("`{argument}` needs {what}"))
        };
        match argument.as_str() {
            "--count" => setup.count = parse_number(&value("a number")?)?,
            "--seed" => setup.seed = parse_number(&value("a number")?)?,
            "--size" => setup.size = Some(parse_number(&value("a number of bytes")?)?),
            "--haft" => setup.haft = Some(resolve_binary(&value("the path of the haft binary")?)?),
            flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`")),
            _ if name.is_none() => name = Some(argument),
            _ => {
                return Err(format!(
                    "unexpected argument `{argument}`; one campaign is run at a time"
                ));
            }
        }
    }
    let name = name.ok_or("no campaign named")?;
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let campaign = *campaign.ok_or_else(|| format!("there is no campaign `{name}`"))?;
    Ok((campaign, setup))
}

fn parse_number(value: &str) -> Result<u64, String> {
    value
        .parse()
        .map_err(|_| format!("`{value}` is not a number"))
}

/// Makes the path of the binary absolute, because cases run it in their own folders.
fn resolve_binary(value: &str) -> Result<PathBuf, String> {
    PathBuf::from(value)
        .canonicalize()
        .map_err(|error| format!("`--haft {value}`: {error}"))
}

fn format_usage() -> String {
    let list: Vec<String> = CAMPAIGNS
        .iter()
        .map(|campaign| format!("  {:<12} {}", campaign.name, campaign.about))
        .collect();
    format!(
        "usage: campaign NAME [--count N] [--seed S] [--haft PATH] [--size BYTES]\n\n{}",
        list.join("\n")
    )
}

fn main() -> io::Result<ExitCode> {
    let complain = |complaint: &str| {
        writeln!(io::stderr(), "campaign: {complaint}\n\n{}", format_usage())?;
        Ok(ExitCode::from(2))
    };
    let (campaign, setup) = match parse_arguments(std::env::args().skip(1)) {
        Ok(given) => given,
        Err(complaint) => return complain(&complaint),
    };
    match campaign.run(&setup, &mut io::stdout()) {
        Ok(summary) => Ok(if summary.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }),
        Err(error @ CampaignError::NoHaft { .. }) => complain(&error.to_string()),
        Err(CampaignError::Output(error)) => Err(error),
    }
}
