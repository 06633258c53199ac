//! What files looked like when they were last read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haft_tool::{FileState, ReadLedger};
use haft_types::Entry;
use serde::Deserialize;
use serde_json::Value;

/// What files looked like when they were last read or written, in memory; the results in the store bring it back.
#[derive(Default)]
pub(crate) struct Reads(Mutex<HashMap<PathBuf, FileState>>);

/// What a result says about a file, under `context.file` or as one of `context.files`.
#[derive(Deserialize)]
struct SeenFile {
    path: PathBuf,
    #[serde(flatten)]
    state: FileState,
}

fn seen_in(context: &Value) -> Vec<SeenFile> {
    let several = context.get("files").and_then(Value::as_array).into_iter().flatten();
    several.chain(context.get("file")).filter_map(|file| SeenFile::deserialize(file).ok()).collect()
}

impl Reads {
    /// The ledger as it was when the newest of these messages was stored.
    pub(crate) fn from_history(history: &[Arc<Entry>]) -> Self {
        let seen = history
            .iter()
            .flat_map(|entry| entry.message.tool_results())
            .flat_map(|result| seen_in(&result.envelope.context))
            .map(|file| (file.path, file.state));
        Self(Mutex::new(seen.collect()))
    }

    /// How many files were read or written so far.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The files read or written so far, in order of their paths.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        paths.sort();
        paths
    }
}

impl ReadLedger for Reads {
    fn last_seen(&self, path: &Path) -> Option<FileState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }

    fn saw(&self, path: &Path, state: FileState) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), state);
    }
}
