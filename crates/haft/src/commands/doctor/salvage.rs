//! `haft doctor --salvage`: what can still be read of a damaged database, as files that can be imported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_store::{Salvaged, salvage};
use haft_types::Clock;
use serde_json::json;

use super::super::conversations::transfer::Folder;
use crate::clock::WallClock;
use crate::exit::{Exit, mistake};
use crate::output;
use crate::places::Places;

pub(super) fn run(folder: Option<&Path>, as_json: bool) -> anyhow::Result<Exit> {
    let places = Places::from_environment()?;
    let database = places.database();
    if !database.exists() {
        return Err(mistake(format!("there is nothing to salvage: {} does not exist", database.display())));
    }
    let folder = folder.map_or_else(|| beside(&places), Path::to_owned);
    let target = Folder::create(&folder)?;
    let (mut namespaces, mut incomplete) = (BTreeMap::new(), Vec::new());
    let report = salvage(&database, |Salvaged { document, namespace, lost }| {
        target.write(&document)?;
        if lost > 0 {
            incomplete.push(json!({ "id": document.id, "lost": lost }));
        }
        namespaces.insert(document.id, namespace);
        anyhow::Ok(())
    })?;
    target.write_namespaces(&namespaces)?;
    let ok = report.lost == 0;
    if as_json {
        output::print_json(&json!({
            "ok": ok, "folder": folder, "conversations": report.conversations, "messages": report.messages,
            "lost": report.lost, "incomplete": incomplete,
        }))?;
    } else {
        let lost = match report.lost {
            0 => "nothing is missing".to_owned(),
            lost => format!("{lost} messages could not be read"),
        };
        output::print(&format!(
            "{} conversations with {} messages are in {}; {lost}.\n\
             To go on with them, move {} away and run `haft conversations import {}`.\n",
            report.conversations,
            report.messages,
            folder.display(),
            database.display(),
            folder.display()
        ))?;
    }
    Ok(if ok { Exit::Completed } else { Exit::Failed })
}

/// A new folder beside the database.
fn beside(places: &Places) -> PathBuf {
    places.data.join(format!("salvaged-{}", WallClock.now().strftime("%Y%m%dT%H%M%SZ")))
}
