//! Checks a store: finds damage and repairs what can be repaired safely.
//!
//! A check never makes anything worse. It repairs only what can be rebuilt from sound data
//! (indexes, counters, the search index, file permissions) and reports the rest.

mod database;
mod files;
mod side_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_store::StoreConfig;
use haft_types::Clock;
use serde::Serialize;

/// The outcome of one check of a store, from no problem to lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckHealth {
    /// No problem was found.
    Ok,
    /// There was nothing to check.
    Skipped,
    /// A problem was found and repaired.
    Repaired,
    /// Nothing is lost, but there is a problem that the user should know about.
    Warning,
    /// Data is lost or cannot be read.
    Damaged,
}

/// A finding about one part of a store. The JSON form of this type is part of the output of `doctor
/// --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The name of the part of the store that was checked.
    pub name: &'static str,
    pub health: CheckHealth,
    /// The result of the check, as a sentence.
    pub message: String,
    /// The problems that were found, one per entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Check {
    pub fn new(name: &'static str, health: CheckHealth, message: impl Into<String>) -> Self {
        Self {
            name,
            health,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// Sets the list of problems. At most 50 entries are kept, followed by an entry with the number
    /// of omitted entries.
    #[must_use]
    pub fn with_details(mut self, mut details: Vec<String>) -> Self {
        const MAX_DETAILS: usize = 50;
        if details.len() > MAX_DETAILS {
            let more = details.len() - MAX_DETAILS;
            details.truncate(MAX_DETAILS);
            details.push(format!("… and {more} more"));
        }
        self.details = details;
        self
    }
}

/// The paths of a store's database, backups and file versions, and the settings for checking them.
#[derive(Clone)]
pub struct StoreFiles {
    /// The path of the store's database file.
    pub database: PathBuf,
    /// The folder that contains the backups.
    pub backups: PathBuf,
    /// The folder that contains the file versions for undo.
    pub versions: PathBuf,
    pub config: StoreConfig,
    pub clock: Arc<dyn Clock>,
}

/// Checks a store and repairs what can be repaired safely. Other processes may have the store open.
pub fn examine_store(store: &StoreFiles) -> Vec<Check> {
    let mut checks = files::check_files(&store.database, &store.backups);
    checks.extend(database::check_database(store));
    checks.push(side_files::check_search_index(&store.database));
    checks.push(side_files::check_backups(store));
    checks.push(side_files::check_versions(store));
    checks
}

/// Returns the size of a file, formatted in megabytes, or `0.0 MB` if the file cannot be read.
fn format_file_size(path: &Path) -> String {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!("{:.1} MB", bytes as f64 / 1e6)
}
