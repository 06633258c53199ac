//! Records the files that one call changes, and undoes earlier changes for it.
//!
//! Invariant: when a call ends, the final version of every file it saved is recorded. Only a killed
//! process leaves that open.

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

use super::disk::{self, LARGEST, look};
use super::watch::{Before, CommandChanges, Watch, bytes};
use super::{ChangeRecord, Mode, Report, TakenBack, Target, UndoError, unified_diff};
use crate::versions::{FileContent, FileVersion, SqliteVersions, VersionsError};

/// Records the file changes of conversations in one store of versions.
pub struct FileChanges(Arc<SqliteVersions>);

impl FileChanges {
    /// Stores earlier file versions in `versions`.
    pub fn new(versions: Arc<SqliteVersions>) -> Self {
        Self(versions)
    }
}

impl ChangeRecords for FileChanges {
    fn open(
        &self,
        conversation: &ConversationId,
        workspace: &Workspace,
        private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch> {
        let watch = Watch::new(
            Arc::clone(&self.0),
            conversation.clone(),
            workspace.clone(),
            private,
        );
        Arc::new(SharedWatch(Arc::new(watch)))
    }
}

/// The watch that all calls of a session share.
struct SharedWatch(Arc<Watch>);

#[async_trait]
impl ChangeWatch for SharedWatch {
    async fn begin(&self, call: CallName, access: Access) -> Box<dyn RecordedCall> {
        Box::new(Watched::begin(Arc::new(Recorder::new(Arc::clone(&self.0), call)), access).await)
    }
}

/// Saves files for one call before the call changes them, and undoes earlier changes.
pub(crate) struct Recorder {
    watch: Arc<Watch>,
    call: CallName,
    /// Saved paths whose final version is not recorded yet.
    open: Mutex<BTreeSet<PathBuf>>,
}

impl Recorder {
    pub(crate) fn new(watch: Arc<Watch>, call: CallName) -> Self {
        Self {
            watch,
            call,
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the current version of saved paths and of the folders the call created for them.
    fn note(&self, paths: &[&Path]) -> Result<(), VersionsError> {
        let done = |open: &&PathBuf| paths.iter().any(|path| path.starts_with(open));
        let all: BTreeSet<PathBuf> = self.open().iter().filter(done).cloned().collect();
        let (versions, contents) = look_at(all.iter().cloned());
        let ChangeRecord {
            versions: store,
            conversation,
        } = &self.watch.record;
        store.changed(conversation, &self.call, &versions, &contents)?;
        self.open().retain(|path| !all.contains(path));
        Ok(())
    }

    /// Records the current version of all saved paths whose outcome is still open, once the call
    /// has ended. Returns a message for the user if that failed.
    pub(super) fn settle(&self) -> Option<String> {
        let open: Vec<PathBuf> = self.open().iter().cloned().collect();
        let paths: Vec<&Path> = open.iter().map(PathBuf::as_path).collect();
        let settled = if paths.is_empty() {
            Ok(())
        } else {
            self.note(&paths)
        };
        settled.err().map(|error| not_recorded(&self.call, &error))
    }
}

/// A call whose file changes are being recorded.
struct Watched {
    recorder: Arc<Recorder>,
    how: RecordingMode,
}

enum RecordingMode {
    /// The call changes no files.
    NotAtAll,
    /// The tool saves each file before it changes it.
    Told,
    /// The call runs a program: the workspace is scanned before and after.
    Scanned(Before),
}

impl Watched {
    /// Scans the workspace first if the call runs a program.
    async fn begin(recorder: Arc<Recorder>, access: Access) -> Self {
        let how = match access {
            Access::Read | Access::State => RecordingMode::NotAtAll,
            Access::Write => RecordingMode::Told,
            Access::Execute => {
                let watch = Arc::clone(&recorder.watch);
                let looked = tokio::task::spawn_blocking(move || watch.before_command()).await;
                RecordingMode::Scanned(
                    looked.unwrap_or_else(|error| Before::Unknown(error.to_string())),
                )
            }
        };
        Self { recorder, how }
    }
}

#[async_trait]
impl RecordedCall for Watched {
    fn history(&self) -> Arc<dyn FileHistory> {
        Arc::clone(&self.recorder) as _
    }

    fn take_back(&self) -> Arc<dyn ChangeUndo> {
        Arc::clone(&self.recorder) as _
    }

    async fn end(self: Box<Self>, mut output: ToolOutput) -> ToolOutput {
        let Self { recorder, how } = *self;
        let call = recorder.call.clone();
        let found = match how {
            RecordingMode::NotAtAll => return output,
            RecordingMode::Told => tokio::task::spawn_blocking(move || CommandChanges {
                notes: recorder.settle().into_iter().collect(),
                ..CommandChanges::default()
            }),
            RecordingMode::Scanned(before) => tokio::task::spawn_blocking(move || {
                recorder.watch.after_command(&recorder.call, before)
            }),
        };
        let CommandChanges { changes, notes } = found.await.unwrap_or_else(|error| {
            let notes = vec![not_recorded(&call, &error)];
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
fn not_recorded(call: &CallName, error: &dyn fmt::Display) -> String {
    tracing::warn!(call = call.call_id, tool = call.tool, %error, "what a call changed is not recorded");
    format!("[Undo may not cover this call: what it changed could not be recorded: {error}.]")
}

/// Returns the current versions of the paths, with their contents for the store.
fn look_at(
    paths: impl IntoIterator<Item = PathBuf>,
) -> (Vec<(PathBuf, FileVersion)>, Vec<FileContent>) {
    let mut versions = Vec::new();
    let mut contents = Vec::new();
    for path in paths {
        let seen = look(&path, LARGEST);
        versions.push((path, seen.version));
        contents.extend(seen.pack());
    }
    (versions, contents)
}

fn failed(error: &VersionsError) -> PortError {
    PortError::Store(error.to_string())
}

impl FileHistory for Recorder {
    fn save(&self, _call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.watch.stay().map_err(|error| failed(&error))?;
        // A folder that is created for a file is removed with it.
        let missing = |path: &&Path| path.symlink_metadata().is_err();
        let all: BTreeSet<PathBuf> = paths
            .iter()
            .flat_map(|path| path.ancestors().skip(1).take_while(missing).chain([*path]))
            .map(Path::to_owned)
            .collect();
        let (versions, contents) = look_at(all.iter().cloned());
        if let Some((path, _)) = versions.iter().find(|(_, version)| !version.is_saved()) {
            return Err(PortError::Store(format!(
                "`{}` cannot be saved for undo (unreadable, or more than {}), so it is not changed",
                path.display(),
                bytes(LARGEST)
            )));
        }
        let record = &self.watch.record;
        let saved = record
            .versions
            .save(&record.conversation, &self.call, &versions, &contents);
        saved.map_err(|error| failed(&error))?;
        self.open().extend(all);
        Ok(())
    }

    fn changed(&self, _call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.note(paths).map_err(|error| failed(&error))
    }
}

impl ChangeUndo for Recorder {
    fn undo(&self, _call: &str, target: &UndoTarget) -> Result<UndoReport, PortError> {
        let target = match target {
            UndoTarget::Last => Target::LastCall,
            UndoTarget::Call(id) => Target::Call(id.clone()),
            UndoTarget::File(path) => Target::File(path.clone()),
        };
        let record = &self.watch.record;
        let report = record.undo(&target, Some(&self.call), Mode::Apply);
        report
            .map(|report| as_told(record, report))
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
                UndoError::Versions(error) => failed(&error),
            })
    }
}

fn as_told(record: &ChangeRecord, report: Report) -> UndoReport {
    let tools = report.calls.into_iter().map(|call| call.tool).collect();
    let is_folder = |version: &FileVersion| matches!(version, FileVersion::Folder { .. });
    let files = report.paths.into_iter().filter(|path| {
        let folder_gone = is_folder(&path.before) && matches!(path.after, Ok(FileVersion::Absent));
        !(folder_gone || path.after.as_ref().is_ok_and(is_folder))
    });
    UndoReport {
        tools,
        files: files.map(|path| as_told_file(record, path)).collect(),
    }
}

fn as_told_file(record: &ChangeRecord, taken: TakenBack) -> UndoneFile {
    let TakenBack {
        path,
        before,
        after,
    } = taken;
    let outcome = match (before, &after) {
        (_, Err(conflict)) => UndoOutcome::Left(conflict.to_string()),
        (before, Ok(after)) if before == *after => UndoOutcome::Unchanged,
        (_, Ok(FileVersion::Absent)) => UndoOutcome::Removed,
        (FileVersion::Absent, Ok(_)) => UndoOutcome::Recreated,
        (_, Ok(_)) => UndoOutcome::Restored,
    };
    let content =
        |version: &FileVersion| record.content(version).ok().flatten().unwrap_or_default();
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
                .map_or(0, |metadata| disk::stamp(&metadata).mtime_ns);
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
    use haft_testkit::test::FakeClock;
    use haft_types::{ContentHash, Envelope, MessageId};

    use super::*;

    #[tokio::test]
    async fn a_change_that_undo_will_not_know_of_is_named_in_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        // A file in place of the versions folder makes the store fail.
        std::fs::write(base.join("versions"), "").unwrap();
        let clock = Arc::new(FakeClock::default());
        let versions = Arc::new(SqliteVersions::at(
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
        let watch = Arc::new(Watch::new(
            versions,
            ConversationId::new("c"),
            workspace,
            &[],
        ));
        let message_id = MessageId::derived(ContentHash::of(b"m"));
        let call = CallName {
            message_id,
            call_id: "1".to_owned(),
            tool: "tool".to_owned(),
        };
        let recorder = Arc::new(Recorder::new(watch, call));
        recorder.open().insert(base.join("a"));
        let watched = Box::new(Watched::begin(recorder, Access::Write).await);
        let output = watched.end(Envelope::success("Done.").into()).await;
        let text = output.envelope.text;
        let wanted =
            "Done.\n[Undo may not cover this call: what it changed could not be recorded: ";
        assert!(text.starts_with(wanted) && text.ends_with(".]"), "{text}");
    }
}
