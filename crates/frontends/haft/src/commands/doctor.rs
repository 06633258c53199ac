//! `haft doctor`: checks everything that haft stores and needs.

mod installation;
mod salvage;
mod surroundings;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use haft_agent::config::Config;
use haft_agent::{Places, WallClock};
use haft_rescue::{Check, CheckHealth, Patient, examine};
use serde_json::json;

use crate::cli::options::JsonArgs;
use crate::exit::{ProcessExit, in_one_line};
use crate::haft::{Haft, Settings};
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Export every conversation that can still be read, even from a database that cannot be
    /// opened: one file each, into this folder or into a new one next to the database.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(
        clippy::option_option,
        reason = "not given, given alone, given with a folder"
    )]
    pub(crate) salvage: Option<Option<PathBuf>>,
    /// Ask the repository whether there is a newer release, or this address, which answers with
    /// JSON that has `tag_name`. Without this option nothing is asked.
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = installation::RELEASES)]
    pub(crate) newer: Option<String>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

pub(crate) fn run(haft: &Haft, args: &DoctorArgs) -> anyhow::Result<ProcessExit> {
    let places = haft.places()?;
    if let Some(folder) = &args.salvage {
        return salvage::run(&places, folder.as_deref(), args.output.json);
    }
    let (mut checks, settings) = match haft.load_quietly(&args.output.common) {
        Ok(settings) => {
            let message = text!("doctor-config", file = places.config_file().display());
            let checks = vec![
                Check::new("configuration", CheckHealth::Ok, message),
                surroundings::variables(&settings.config.unknown_variables),
            ];
            (checks, settings)
        }
        // The store is checked nevertheless.
        Err(error) => (
            vec![broken_configuration(&error)],
            Settings::new(places, Config::default()),
        ),
    };
    let Settings { places, config } = &settings;
    checks.insert(0, installation::installed());
    if config.store.url.is_none() {
        checks.extend(examine(&patient(places, config)));
    }
    checks.push(surroundings::spill(&places.spill()));
    wiring::runtime()?.block_on(async {
        if config.store.url.is_some() {
            checks.push(surroundings::server(&settings).await);
        }
        checks.push(surroundings::commands(haft.environment()).await);
        checks.push(surroundings::sandbox(places, config).await);
        checks.push(surroundings::provider(&settings).await);
        if let Some(address) = &args.newer {
            checks.push(installation::newer(address).await);
        }
    });
    let ok = checks
        .iter()
        .all(|check| check.health != CheckHealth::Damaged);
    if args.output.json {
        output::print_json(&json!({ "ok": ok, "checks": checks }))?;
    } else {
        output::print(&as_text(&checks))?;
    }
    Ok(if ok {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

/// Returns the check of a configuration that cannot be loaded: its first problem, with the others
/// as details.
fn broken_configuration(error: &anyhow::Error) -> Check {
    let problems = in_one_line(error);
    let mut lines = problems.lines().map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    Check::new("configuration", CheckHealth::Warning, first).with_details(lines.collect())
}

fn patient(places: &Places, config: &Config) -> Patient {
    Patient {
        database: places.database(),
        backups: places.backups(),
        versions: places.versions(),
        config: config.store.clone(),
        clock: Arc::new(WallClock),
    }
}

/// Returns the hint that names the command for a finding.
fn hint(check: &Check) -> Option<&'static str> {
    match (check.name, check.health) {
        ("database", CheckHealth::Damaged) => Some(text!("doctor-hint-damaged")),
        ("log", CheckHealth::Damaged) => Some(text!("doctor-hint-unreadable")),
        ("backups", CheckHealth::Warning) => Some(text!("doctor-hint-backup")),
        _ => None,
    }
}

fn as_text(checks: &[Check]) -> String {
    let names = checks
        .iter()
        .map(|check| haft_text::width(&output::localised(check.name)));
    let width = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for check in checks {
        let health = match check.health {
            CheckHealth::Ok => "ok",
            CheckHealth::Skipped => "skipped",
            CheckHealth::Repaired => "repaired",
            CheckHealth::Warning => "warning",
            CheckHealth::Damaged => "damaged",
        };
        let health = text!("doctor-health", health);
        let blanks = " ".repeat(10_usize.saturating_sub(haft_text::width(&health)));
        let name = output::localised(check.name);
        let rest = " ".repeat(width - haft_text::width(&name));
        lines.push(format!(
            "{health}{blanks}{name}{rest}  {}",
            output::localised(&check.message)
        ));
        lines.extend(hint(check).map(|hint| format!("{:>10}  {hint}", "")));
        lines.extend(
            check
                .details
                .iter()
                .map(|detail| format!("{:>10}  - {}", "", output::localised(detail))),
        );
    }
    lines.join("\n") + "\n"
}
