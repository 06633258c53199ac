//! What one call is given: files are saved before it changes them, and it can take earlier changes
//! back.
//!
//! Invariant: when a call is over, how it left every file it saved is recorded; only a killed
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

/// Records of what conversations change in files, kept in one store of versions.
pub struct FileChanges(Arc<SqliteVersions>);

impl FileChanges {
    /// Keeps what files were in `versions`.
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

/// What the calls of a session share.
struct SharedWatch(Arc<Watch>);

#[async_trait]
impl ChangeWatch for SharedWatch {
    async fn begin(&self, call: CallName, access: Access) -> Box<dyn RecordedCall> {
        Box::new(Watched::begin(Arc::new(Recorder::new(Arc::clone(&self.0), call)), access).await)
    }
}

/// What one call is given to save files with, and to take changes back.
pub(crate) struct Recorder {
    watch: Arc<Watch>,
    call: CallName,
    /// Paths that were saved, and of which it is not yet said how the call left them.
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

    /// Notes how the call left paths it saved, and the folders it made for them.
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

    /// Once the call is over: files it saved and said nothing more about were left as they are now.
    /// Gives what is to be said where that could not be recorded.
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

/// A call that is being watched for what it changes.
struct Watched {
    recorder: Arc<Recorder>,
    how: RecordingMode,
}

enum RecordingMode {
    /// It changes no files.
    NotAtAll,
    /// It says what it changes.
    Told,
    /// It runs a program: the workspace is looked at before and after.
    Scanned(Before),
}

impl Watched {
    /// Looks at what there is before the call runs.
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

/// What is said, and logged, of changes that undo will not know of.
fn not_recorded(call: &CallName, error: &dyn fmt::Display) -> String {
    tracing::warn!(call = call.call_id, tool = call.tool, %error, "what a call changed is not recorded");
    format!("[Undo may not cover this call: what it changed could not be recorded: {error}.]")
}

/// What paths hold now, with what is to be stored of it.
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
        // A folder that is made for a file goes again with it.
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
        // Where the versions would be kept there is a file.
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
