//! The state of files when they were last read or written.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_tool::{FileState, ReadLedger};
use haft_types::Entry;
use serde::Deserialize;
use serde_json::Value;

/// The state of files when they were last read or written, in memory. A resumed conversation
/// restores it from the stored tool results.
#[derive(Default)]
pub(crate) struct Reads {
    seen: Mutex<HashMap<PathBuf, FileState>>,
    /// Files whose names were given to the model without their content.
    named: Mutex<HashSet<PathBuf>>,
}

/// The state of one file in a result's context, under `file` or in the list `files`.
#[derive(Deserialize)]
struct SeenFile {
    path: PathBuf,
    #[serde(flatten)]
    state: FileState,
}

fn seen_in(context: &Value) -> Vec<SeenFile> {
    let several = context
        .get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    several
        .chain(context.get("file"))
        .filter_map(|file| SeenFile::deserialize(file).ok())
        .collect()
}

impl Reads {
    /// Restores the ledger from the tool results of a conversation.
    pub(crate) fn from_history(history: &[Arc<Entry>]) -> Self {
        let seen = history
            .iter()
            .flat_map(|entry| entry.message.tool_results())
            .flat_map(|result| seen_in(&result.envelope.context))
            .map(|file| (file.path, file.state));
        let results = history
            .iter()
            .flat_map(|entry| entry.message.tool_results());
        let named = results
            .filter_map(|result| Some(result.envelope.context.get("named")?.as_str()?.into()));
        Self {
            seen: Mutex::new(seen.collect()),
            named: Mutex::new(named.collect()),
        }
    }

    /// Returns the number of files read or written so far.
    pub(crate) fn count(&self) -> usize {
        lock(&self.seen).len()
    }

    /// Returns the files read or written so far, sorted by path.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = lock(&self.seen).keys().cloned().collect();
        paths.sort();
        paths
    }
}

impl ReadLedger for Reads {
    fn last_seen(&self, path: &Path) -> Option<FileState> {
        lock(&self.seen).get(path).copied()
    }

    fn saw(&self, path: &Path, state: FileState) {
        lock(&self.seen).insert(path.to_owned(), state);
    }

    fn name_once(&self, path: &Path) -> bool {
        lock(&self.named).insert(path.to_owned())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
