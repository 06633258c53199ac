//! Looking a store over: what is sound, what was damaged, and what could safely be put right.
//!
//! A check never makes anything worse: what it repairs can be made again from what is left
//! (indexes, counters, the search index, file permissions), and everything else it only names.

mod database;
mod files;
mod others;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_store::StoreConfig;
use haft_types::Clock;
use serde::Serialize;

/// How something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckHealth {
    /// As it should be.
    Ok,
    /// There was nothing to look at.
    Skipped,
    /// It is as it should be now.
    Repaired,
    /// Nothing is lost, but somebody should know.
    Warning,
    /// Something is lost or cannot be read.
    Damaged,
}

/// One thing that was looked at; its JSON form is that of `doctor --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it was found.
    pub health: CheckHealth,
    /// The same, for people.
    pub message: String,
    /// Each single thing that was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Check {
    /// Something that was found in this state.
    pub fn new(name: &'static str, health: CheckHealth, message: impl Into<String>) -> Self {
        Self {
            name,
            health,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// The same with what was found, cut to a number somebody reads.
    #[must_use]
    pub fn with_details(mut self, mut details: Vec<String>) -> Self {
        const MOST: usize = 50;
        if details.len() > MOST {
            let more = details.len() - MOST;
            details.truncate(MOST);
            details.push(format!("… and {more} more"));
        }
        self.details = details;
        self
    }
}

/// Where a store lies.
#[derive(Clone)]
pub struct Patient {
    /// The database.
    pub database: PathBuf,
    /// Its backups.
    pub backups: PathBuf,
    /// The folder of file versions.
    pub versions: PathBuf,
    /// Its settings.
    pub config: StoreConfig,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

/// Looks a store over and repairs what can safely be repaired. Other processes may have it open.
pub fn examine(patient: &Patient) -> Vec<Check> {
    let mut checks = files::check(&patient.database, &patient.backups);
    checks.extend(database::check(patient));
    checks.push(others::search_index(&patient.database));
    checks.push(others::backups(patient));
    checks.push(others::versions(patient));
    checks
}

/// A size for people.
fn megabytes(path: &Path) -> String {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!("{:.1} MB", bytes as f64 / 1e6)
}
