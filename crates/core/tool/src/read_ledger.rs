//! The state of files when they were last read or written.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_types::{ContentHash, Entry};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The state of a file when haft last read or wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The size of the file in bytes.
    pub size: u64,
    /// The modification time of the file in nanoseconds.
    pub mtime_ns: i64,
    /// The hash of the file's content, which decides whether the file has changed.
    pub hash: ContentHash,
}

/// Records the state of each file when it was last read or written in a conversation, so that an
/// edit never overwrites content that the model has not seen. The ledger is kept in memory and
/// rebuilt from the stored results.
#[derive(Default)]
pub struct ReadLedger {
    seen: Mutex<HashMap<PathBuf, FileState>>,
    /// The files whose names the model got without reading them.
    named: Mutex<HashSet<PathBuf>>,
}

/// The key in a message's metadata under which the states of the files stand that are attached to
/// the message in whole.
pub const ATTACHED_FILES_KEY: &str = "attached_files";

/// The state of a file as stored with a result, under `context.file` or as one of `context.files`.
#[derive(Deserialize)]
struct SeenFile {
    path: PathBuf,
    #[serde(flatten)]
    state: FileState,
}

fn parse_seen_files(context: &Value) -> Vec<SeenFile> {
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

impl ReadLedger {
    /// Rebuilds the ledger from stored messages, as it was when the newest of them was stored.
    pub fn from_history(history: &[Arc<Entry>]) -> Self {
        let seen = history
            .iter()
            .flat_map(|entry| {
                let attached = entry.message.metadata.get(ATTACHED_FILES_KEY);
                let attached = attached.and_then(Value::as_array).into_iter().flatten();
                let results = entry.message.tool_results();
                attached
                    .filter_map(|file| SeenFile::deserialize(file).ok())
                    .chain(results.flat_map(|result| parse_seen_files(&result.envelope.context)))
            })
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

    /// Returns the number of files that were read or written so far.
    pub fn count(&self) -> usize {
        lock_mutex(&self.seen).len()
    }

    /// Returns the files that were read or written so far, sorted by path.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = lock_mutex(&self.seen).keys().cloned().collect();
        paths.sort();
        paths
    }

    /// Returns the state of a file when it was last read or written in this conversation; `None` if
    /// it never was.
    pub fn last_seen(&self, path: &Path) -> Option<FileState> {
        lock_mutex(&self.seen).get(path).copied()
    }

    /// Records the current state of a file.
    pub fn record_seen(&self, path: &Path, state: FileState) {
        lock_mutex(&self.seen).insert(path.to_owned(), state);
    }

    /// Records that the model gets the name of a file. Returns true the first time. The caller then
    /// adds the path to the result's `context.named`, from which the ledger is rebuilt.
    pub fn record_named(&self, path: &Path) -> bool {
        lock_mutex(&self.named).insert(path.to_owned())
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
