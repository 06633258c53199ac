//! `haft doctor`: checks the installation, the stored data and the environment of haft.

mod environment;
mod installation;
mod salvage;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use haft_agent::config::Config;
use haft_agent::{Places, WallClock};
use haft_rescue::{Check, CheckHealth, StoreFiles, examine_store};
use serde_json::json;

use crate::cli::options::JsonArgs;
use crate::exit::{ProcessExit, format_failure};
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
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = installation::RELEASE_URL)]
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
                environment::check_variables(&settings.config.unknown_variables),
            ];
            (checks, settings)
        }
        // The store is checked even if the configuration cannot be loaded.
        Err(error) => (
            vec![broken_config_check(&error)],
            Settings::new(places, Config::default()),
        ),
    };
    let Settings { places, config } = &settings;
    checks.insert(0, installation::check_installation());
    if config.store.url.is_none() {
        checks.extend(examine_store(&build_store_files(places, config)));
    }
    checks.push(environment::check_outputs(&places.spill_folder()));
    checks.extend(environment::check_own_servers(config));
    wiring::build_runtime()?.block_on(async {
        if config.store.url.is_some() {
            checks.push(environment::check_server(&settings).await);
        }
        checks.push(environment::check_commands(haft.environment()).await);
        checks.push(environment::check_sandbox(places, config).await);
        checks.push(environment::check_provider(&settings).await);
        if let Some(address) = &args.newer {
            checks.push(installation::check_for_newer(address).await);
        }
    });
    let ok = checks
        .iter()
        .all(|check| check.health != CheckHealth::Damaged);
    if args.output.json {
        output::print_json(&json!({ "ok": ok, "checks": checks }))?;
    } else {
        output::print_text(&checks_to_text(&checks))?;
    }
    Ok(if ok {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

/// Returns the check result for a configuration that cannot be loaded: the first problem, with the
/// other problems as details.
fn broken_config_check(error: &anyhow::Error) -> Check {
    let problems = format_failure(error);
    let mut lines = problems.lines().map(str::to_owned);
    let first = lines.next().unwrap_or_default();
    Check::new("configuration", CheckHealth::Warning, first).with_details(lines.collect())
}

fn build_store_files(places: &Places, config: &Config) -> StoreFiles {
    StoreFiles {
        database: places.database_file(),
        backups: places.backups_folder(),
        versions: places.versions_folder(),
        config: config.store.clone(),
        clock: Arc::new(WallClock),
    }
}

/// Returns the hint that names the command to run after a failed check.
fn find_hint(check: &Check) -> Option<&'static str> {
    match (check.name, check.health) {
        ("database", CheckHealth::Damaged) => Some(text!("doctor-hint-damaged")),
        ("log", CheckHealth::Damaged) => Some(text!("doctor-hint-unreadable")),
        ("backups", CheckHealth::Warning) => Some(text!("doctor-hint-backup")),
        _ => None,
    }
}

fn checks_to_text(checks: &[Check]) -> String {
    let names = checks
        .iter()
        .map(|check| haft_text::display_width(&output::localize_text(check.name)));
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
        let blanks = " ".repeat(10_usize.saturating_sub(haft_text::display_width(&health)));
        let name = output::localize_text(check.name);
        let rest = " ".repeat(width - haft_text::display_width(&name));
        lines.push(format!(
            "{health}{blanks}{name}{rest}  {}",
            output::localize_text(&check.message)
        ));
        lines.extend(find_hint(check).map(|hint| format!("{:>10}  {hint}", "")));
        lines.extend(
            check
                .details
                .iter()
                .map(|detail| format!("{:>10}  - {}", "", output::localize_text(detail))),
        );
    }
    lines.join("\n") + "\n"
}
