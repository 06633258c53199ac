//! `haft doctor --salvage`: exports the readable data of a damaged database as files that can be
//! imported.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft_agent::{Places, WallClock};
use haft_rescue::{SalvageReport, Salvaged, salvage_conversations};
use haft_store::find_damaged_copies;
use haft_types::Clock;
use serde_json::{Value, json};

use super::super::conversations::export::ExportFolder;
use crate::exit::{ProcessExit, usage_error};
use crate::output;

pub(super) fn run(
    places: &Places,
    folder: Option<&Path>,
    as_json: bool,
) -> anyhow::Result<ProcessExit> {
    let database = places.database_file();
    if !database.exists() {
        return Err(usage_error(text!(
            "doctor-salvage-nothing",
            database = database.display()
        )));
    }
    let folder = folder.map_or_else(|| default_folder(places), Path::to_owned);
    let mut all = salvage_into(&database, &folder)?;
    let mut copies = Vec::new();
    for copy in find_damaged_copies(&database) {
        let name = copy.file_name().unwrap_or_default();
        let salvaged = salvage_into(&copy, &folder.join(name))?;
        all.add(&salvaged);
        copies.push(folder.join(name));
    }
    let ok = all.report.lost == 0;
    if as_json {
        output::print_json(&json!({
            "ok": ok, "folder": folder, "conversations": all.report.conversations, "messages": all.report.messages,
            "lost": all.report.lost, "incomplete": all.incomplete, "damaged_copies": copies,
        }))?;
    } else {
        output::print_text(&report_to_text(&all.report, &database, &folder, &copies))?;
    }
    Ok(if ok {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

/// The result of salvaging one or more databases.
struct SalvageOutcome {
    report: SalvageReport,
    incomplete: Vec<Value>,
}

impl SalvageOutcome {
    fn add(&mut self, other: &Self) {
        self.report.conversations += other.report.conversations;
        self.report.messages += other.report.messages;
        self.report.lost += other.report.lost;
        self.incomplete.extend_from_slice(&other.incomplete);
    }
}

fn salvage_into(database: &Path, folder: &Path) -> anyhow::Result<SalvageOutcome> {
    let target = ExportFolder::create(folder)?;
    let mut namespaces = BTreeMap::new();
    let mut incomplete = Vec::new();
    let report = salvage_conversations(
        database,
        |Salvaged {
             document,
             namespace,
             lost,
         }| {
            target.write(&document)?;
            if lost > 0 {
                incomplete.push(json!({ "id": document.id, "lost": lost }));
            }
            namespaces.insert(document.id, namespace);
            anyhow::Ok(())
        },
    )?;
    target.write_namespaces(&namespaces)?;
    Ok(SalvageOutcome { report, incomplete })
}

fn report_to_text(
    report: &SalvageReport,
    database: &Path,
    folder: &Path,
    copies: &[PathBuf],
) -> String {
    let lost = match report.lost {
        0 => text!("doctor-salvage-complete").to_owned(),
        lost => text!("doctor-salvage-lost", lost),
    };
    let mut text = format!(
        "{}\n",
        text!(
            "doctor-salvage-done",
            conversations = report.conversations,
            messages = report.messages,
            folder = folder.display(),
            lost,
            database = database.display()
        )
    );
    for copy in copies {
        let _ = writeln!(
            text,
            "{}",
            text!("doctor-salvage-copy", copy = copy.display())
        );
    }
    text
}

/// Returns the path of a new folder next to the database.
fn default_folder(places: &Places) -> PathBuf {
    places.data.join(format!(
        "salvaged-{}",
        WallClock.now().strftime("%Y%m%dT%H%M%SZ")
    ))
}
