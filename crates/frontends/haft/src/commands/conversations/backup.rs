//! `haft conversations backup`: creates, lists and restores copies of the database.

use std::path::PathBuf;
use std::sync::Arc;

use haft_agent::WallClock;
use haft_store::Backups;

use crate::cli::options::{Common, JsonArgs};
use crate::commands::conversations::{BackupArgs, BackupCommand};
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};

pub(super) fn run(haft: &Haft, args: &BackupArgs) -> anyhow::Result<()> {
    match &args.command {
        None => create_backup(haft, &args.output),
        Some(BackupCommand::List(output)) => list_backups(haft, output),
        Some(BackupCommand::Restore { name, common }) => restore_backup(haft, name, common),
    }
}

fn open_backups(settings: &Settings) -> anyhow::Result<Backups> {
    if settings.config.store.url.is_some() {
        return Err(usage_error(text!("conversations-on-server")));
    }
    Ok(Backups::new(
        &settings.places.database_file(),
        &settings.places.backups_folder(),
        &settings.config.store,
        Arc::new(WallClock),
    ))
}

fn create_backup(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let backups = open_backups(&settings)?;
    if !settings.places.database_file().exists() {
        return Err(usage_error(text!("conversations-nothing-to-back-up")));
    }
    let backup = backups.create()?;
    if args.json {
        return output::print_json(&serde_json::to_value(backup)?);
    }
    output::print_text(&format!(
        "{} ({})\n",
        backup.path.display(),
        output::format_bytes(backup.bytes)
    ))
}

fn list_backups(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let backups = open_backups(&haft.load(&args.common)?)?.list()?;
    if args.json {
        return output::print_json(&serde_json::to_value(backups)?);
    }
    if backups.is_empty() {
        return output::print_text_line(text!("conversations-no-backups"));
    }
    let mut table = TextTable::new(&[
        text!("table-name"),
        text!("table-made"),
        text!("table-size"),
    ]);
    for backup in backups {
        let made = backup.made_at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        table.add_row(vec![backup.name, made, output::format_bytes(backup.bytes)]);
    }
    output::print_text(&table.to_string())
}

fn restore_backup(haft: &Haft, name: &str, common: &Common) -> anyhow::Result<()> {
    let backups = open_backups(&haft.load(common)?)?;
    let all = backups.list()?;
    let path = match name {
        "newest" => all.last().map(|backup| backup.path.clone()),
        name => all
            .iter()
            .find(|backup| backup.name == name)
            .map(|backup| backup.path.clone()),
    };
    let path = path.or_else(|| Some(PathBuf::from(name)).filter(|path| path.exists()));
    let path = path.ok_or_else(|| usage_error(text!("conversations-unknown-backup", name)))?;
    backups.restore(&path)?;
    output::print_text_line(&text!("conversations-restored", path = path.display()))
}
