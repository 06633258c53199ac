//! Records the files that one call changes. Also undoes earlier changes on behalf of a call.
//!
//! Invariant: when a call ends, the final version of every file it saved is recorded. Only a killed
//! process leaves a final version unrecorded.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use haft_tool::{
    Access, CallName, ChangeRecords, ChangeUndo, ChangeWatch, FileHistory, FileState, PortError,
    RecordedCall, ToolOutput, UndoOutcome, UndoReport, UndoTarget, UndoneFile, Workspace,
};
use haft_types::ConversationId;

use super::disk::{self, MAX_SAVED_BYTES, inspect_path};
use super::watch::{CommandBaseline, CommandChanges, WorkspaceWatch, format_size};
use super::{ChangeRecord, Mode, Report, ReversedPath, Target, UndoError, unified_diff};
use crate::versions::{FileContent, FileVersion, SqliteVersions, VersionsError};

/// Records the file changes of all conversations in a store of file versions.
pub struct FileChanges(Arc<SqliteVersions>);

impl FileChanges {
    /// Creates the recorder. Earlier file versions are stored in `versions`.
    pub fn new(versions: Arc<SqliteVersions>) -> Self {
        Self(versions)
    }
}

impl ChangeRecords for FileChanges {
    fn open_record(
        &self,
        conversation: &ConversationId,
        workspace: &Workspace,
        private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch> {
        let watch = WorkspaceWatch::new(
            Arc::clone(&self.0),
            conversation.clone(),
            workspace.clone(),
            private,
        );
        Arc::new(SharedWatch(Arc::new(watch)))
    }
}

/// The workspace watch that all calls of a session share.
struct SharedWatch(Arc<WorkspaceWatch>);

#[async_trait]
impl ChangeWatch for SharedWatch {
    async fn begin_call(&self, call: CallName, access: Access) -> Box<dyn RecordedCall> {
        Box::new(
            WatchedCall::begin(
                Arc::new(CallRecorder::new(Arc::clone(&self.0), call)),
                access,
            )
            .await,
        )
    }
}

/// Saves files before one tool call changes them, and undoes earlier changes on behalf of the call.
pub(crate) struct CallRecorder {
    watch: Arc<WorkspaceWatch>,
    call: CallName,
    /// Saved paths whose final version is not recorded yet.
    open_paths: Mutex<BTreeSet<PathBuf>>,
}

impl CallRecorder {
    pub(crate) fn new(watch: Arc<WorkspaceWatch>, call: CallName) -> Self {
        Self {
            watch,
            call,
            open_paths: Mutex::default(),
        }
    }

    fn lock_open_paths(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.open_paths
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the current version of the saved paths at or above `paths`, such as folders that the
    /// call created for a file.
    fn record_outcome(&self, paths: &[&Path]) -> Result<(), VersionsError> {
        let done = |open: &&PathBuf| paths.iter().any(|path| path.starts_with(open));
        let all: BTreeSet<PathBuf> = self
            .lock_open_paths()
            .iter()
            .filter(done)
            .cloned()
            .collect();
        let (versions, contents) = inspect_paths(all.iter().cloned());
        let ChangeRecord {
            versions: store,
            conversation,
        } = &self.watch.record;
        store.save_after(conversation, &self.call, &versions, &contents)?;
        self.lock_open_paths().retain(|path| !all.contains(path));
        Ok(())
    }

    /// After the call has ended, records the final version of each saved path that has none yet.
    /// Returns a message for the user if that fails.
    pub(super) fn record_remaining(&self) -> Option<String> {
        let open: Vec<PathBuf> = self.lock_open_paths().iter().cloned().collect();
        let paths: Vec<&Path> = open.iter().map(PathBuf::as_path).collect();
        let settled = if paths.is_empty() {
            Ok(())
        } else {
            self.record_outcome(&paths)
        };
        settled
            .err()
            .map(|error| warn_not_recorded(&self.call, &error))
    }
}

/// A call whose file changes are being recorded.
struct WatchedCall {
    recorder: Arc<CallRecorder>,
    mode: RecordingMode,
}

enum RecordingMode {
    /// Nothing is recorded, because the call changes no files.
    Off,
    /// Each file is recorded when the tool saves it before changing it.
    Declared,
    /// All changes are recorded by scanning the workspace before and after the call, because the
    /// call runs a program.
    Scanned(CommandBaseline),
}

impl WatchedCall {
    /// Starts recording a call. If the call runs a program, the workspace is scanned first.
    async fn begin(recorder: Arc<CallRecorder>, access: Access) -> Self {
        let how = match access {
            Access::Read | Access::State => RecordingMode::Off,
            Access::Write => RecordingMode::Declared,
            Access::Execute => {
                let watch = Arc::clone(&recorder.watch);
                let looked = tokio::task::spawn_blocking(move || watch.scan_before_command()).await;
                RecordingMode::Scanned(
                    looked.unwrap_or_else(|error| CommandBaseline::Unknown(error.to_string())),
                )
            }
        };
        Self {
            recorder,
            mode: how,
        }
    }
}

#[async_trait]
impl RecordedCall for WatchedCall {
    fn history(&self) -> Arc<dyn FileHistory> {
        Arc::clone(&self.recorder) as _
    }

    fn change_undo(&self) -> Arc<dyn ChangeUndo> {
        Arc::clone(&self.recorder) as _
    }

    async fn finish_call(self: Box<Self>, mut output: ToolOutput) -> ToolOutput {
        let Self {
            recorder,
            mode: how,
        } = *self;
        let call = recorder.call.clone();
        let found = match how {
            RecordingMode::Off => return output,
            RecordingMode::Declared => tokio::task::spawn_blocking(move || CommandChanges {
                notes: recorder.record_remaining().into_iter().collect(),
                ..CommandChanges::default()
            }),
            RecordingMode::Scanned(before) => tokio::task::spawn_blocking(move || {
                recorder.watch.scan_after_command(&recorder.call, before)
            }),
        };
        let CommandChanges { changes, notes } = found.await.unwrap_or_else(|error| {
            let notes = vec![warn_not_recorded(&call, &error)];
            CommandChanges {
                notes,
                ..CommandChanges::default()
            }
        });
        output.changes.extend(changes);
        for note in notes {
            output.envelope.text.push('\n');
            output.envelope.text.push_str(&note);
        }
        output
    }
}

/// Logs that changes of a call could not be recorded, and returns a message for the user.
fn warn_not_recorded(call: &CallName, error: &dyn fmt::Display) -> String {
    tracing::warn!(call = call.call_id, tool = call.tool, %error, "what a call changed is not recorded");
    format!("[Undo may not cover this call: what it changed could not be recorded: {error}.]")
}

/// Returns the current versions of the paths, with their contents for the store.
fn inspect_paths(
    paths: impl IntoIterator<Item = PathBuf>,
) -> (Vec<(PathBuf, FileVersion)>, Vec<FileContent>) {
    let mut versions = Vec::new();
    let mut contents = Vec::new();
    for path in paths {
        let seen = inspect_path(&path, MAX_SAVED_BYTES);
        versions.push((path, seen.version));
        contents.extend(seen.pack());
    }
    (versions, contents)
}

fn store_error(error: &VersionsError) -> PortError {
    PortError::Store(error.to_string())
}

impl FileHistory for CallRecorder {
    fn save_files(&self, _call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.watch
            .hold_versions()
            .map_err(|error| store_error(&error))?;
        // A folder that is created for a file is removed with it.
        let missing = |path: &&Path| path.symlink_metadata().is_err();
        let all: BTreeSet<PathBuf> = paths
            .iter()
            .flat_map(|path| path.ancestors().skip(1).take_while(missing).chain([*path]))
            .map(Path::to_owned)
            .collect();
        let (versions, contents) = inspect_paths(all.iter().cloned());
        if let Some((path, _)) = versions.iter().find(|(_, version)| !version.is_saved()) {
            return Err(PortError::Store(format!(
                "`{}` cannot be saved for undo (unreadable, or more than {}), so it is not changed",
                path.display(),
                format_size(MAX_SAVED_BYTES)
            )));
        }
        let record = &self.watch.record;
        let saved =
            record
                .versions
                .save_before(&record.conversation, &self.call, &versions, &contents);
        saved.map_err(|error| store_error(&error))?;
        self.lock_open_paths().extend(all);
        Ok(())
    }

    fn record_changed(&self, _call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.record_outcome(paths)
            .map_err(|error| store_error(&error))
    }
}

impl ChangeUndo for CallRecorder {
    fn undo(&self, _call: &str, target: &UndoTarget) -> Result<UndoReport, PortError> {
        let target = match target {
            UndoTarget::Last => Target::LastCall,
            UndoTarget::Call(id) => Target::Call(id.clone()),
            UndoTarget::File(path) => Target::File(path.clone()),
        };
        let record = &self.watch.record;
        let report = record.undo(&target, Some(&self.call), Mode::Apply);
        report
            .map(|report| to_undo_report(record, report))
            .map_err(|error| match error {
                UndoError::UnknownCall(id) | UndoError::AlreadyUndone(id) => PortError::Unknown {
                    what: "change by call",
                    id,
                },
                UndoError::UnchangedFile(path) => PortError::Unknown {
                    what: "change of",
                    id: path.display().to_string(),
                },
                UndoError::NothingToUndo | UndoError::NothingToRedo => PortError::Unknown {
                    what: "change",
                    id: "last".to_owned(),
                },
                UndoError::Versions(error) => store_error(&error),
            })
    }
}

fn to_undo_report(record: &ChangeRecord, report: Report) -> UndoReport {
    let tools = report.calls.into_iter().map(|call| call.tool).collect();
    let is_folder = |version: &FileVersion| matches!(version, FileVersion::Folder { .. });
    let files = report.paths.into_iter().filter(|path| {
        let folder_gone = is_folder(&path.before) && matches!(path.after, Ok(FileVersion::Absent));
        !(folder_gone || path.after.as_ref().is_ok_and(is_folder))
    });
    UndoReport {
        tools,
        files: files.map(|path| to_undone_file(record, path)).collect(),
    }
}

fn to_undone_file(record: &ChangeRecord, taken: ReversedPath) -> UndoneFile {
    let ReversedPath {
        path,
        before,
        after,
    } = taken;
    let outcome = match (before, &after) {
        (_, Err(conflict)) => UndoOutcome::Skipped(conflict.to_string()),
        (before, Ok(after)) if before == *after => UndoOutcome::Unchanged,
        (_, Ok(FileVersion::Absent)) => UndoOutcome::Removed,
        (FileVersion::Absent, Ok(_)) => UndoOutcome::Recreated,
        (_, Ok(_)) => UndoOutcome::Restored,
    };
    let content = |version: &FileVersion| {
        record
            .read_content(version)
            .ok()
            .flatten()
            .unwrap_or_default()
    };
    let after = after.unwrap_or(before);
    let diff = if before == after {
        None
    } else {
        unified_diff(("before undo", "now"), &content(&before), &content(&after))
    };
    let state = match after {
        FileVersion::File { size, hash, .. } => {
            let mtime_ns = path
                .symlink_metadata()
                .map_or(0, |metadata| disk::stamp_from_metadata(&metadata).mtime_ns);
            Some(FileState {
                size,
                mtime_ns,
                hash,
            })
        }
        FileVersion::Absent
        | FileVersion::Link { .. }
        | FileVersion::Folder { .. }
        | FileVersion::Unsaved { .. } => None,
    };
    UndoneFile {
        path,
        outcome,
        diff: diff.unwrap_or_default(),
        state,
    }
}

#[cfg(test)]
mod tests {
    use haft_store::StoreConfig;
    use haft_testkit::support::FakeClock;
    use haft_types::{ContentHash, Envelope, MessageId};

    use super::*;

    #[tokio::test]
    async fn recorder_notes_a_change_that_cannot_be_undone() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        // A file in place of the versions folder makes the store fail.
        std::fs::write(base.join("versions"), "").unwrap();
        let clock = Arc::new(FakeClock::default());
        let versions = Arc::new(SqliteVersions::new(
            &base.join("versions"),
            &StoreConfig::default(),
            clock,
        ));
        let workspace = Workspace {
            root: base.clone(),
            extra: Vec::new(),
            cwd: base.clone(),
            spill: base.join("spill"),
            journal: base.join("journal"),
        };
        let watch = Arc::new(WorkspaceWatch::new(
            versions,
            ConversationId::new("c"),
            workspace,
            &[],
        ));
        let message_id = MessageId::from_hash(ContentHash::from_content(b"m"));
        let call = CallName {
            message_id,
            call_id: "1".to_owned(),
            tool: "tool".to_owned(),
        };
        let recorder = Arc::new(CallRecorder::new(watch, call));
        recorder.lock_open_paths().insert(base.join("a"));
        let watched = Box::new(WatchedCall::begin(recorder, Access::Write).await);
        let output = watched.finish_call(Envelope::success("Done.").into()).await;
        let text = output.envelope.text;
        let wanted =
            "Done.\n[Undo may not cover this call: what it changed could not be recorded: ";
        assert!(text.starts_with(wanted) && text.ends_with(".]"), "{text}");
    }
}
