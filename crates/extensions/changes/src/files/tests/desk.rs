//! A project with its change record, and functions that change it as tools, commands and others do.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_store::StoreConfig;
use haft_testkit::support::FakeClock;
use haft_tool::{CallName, FileHistory, Workspace};
use haft_types::{ContentHash, ConversationId, MessageId};
use tempfile::TempDir;

use crate::files::disk::{replace_path, version_at};
use crate::files::plan::{PlannedUndo, plan_undo};
use crate::files::recorder::CallRecorder;
use crate::files::watch::{CommandChanges, WorkspaceWatch};
use crate::files::{ChangeRecord, Conflict, Disk, Mode, Report, Target, select_changes};
use crate::versions::SqliteVersions;

pub(super) struct Desk {
    _folder: TempDir,
    root: PathBuf,
    versions: Arc<SqliteVersions>,
    watch: Arc<WorkspaceWatch>,
    calls: Cell<u32>,
}

impl Desk {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("project");
        fs::create_dir(&root).unwrap();
        let clock = Arc::new(FakeClock::default());
        let versions = Arc::new(SqliteVersions::new(
            &base.join("versions"),
            &StoreConfig::default(),
            clock,
        ));
        let workspace = Workspace {
            root: root.clone(),
            extra: Vec::new(),
            cwd: root.clone(),
            spill: base.join("spill"),
            journal: base.join("journal"),
        };
        let watch = WorkspaceWatch::new(
            Arc::clone(&versions),
            ConversationId::new("c"),
            workspace,
            &[],
        );
        Self {
            _folder: folder,
            root,
            versions,
            watch: Arc::new(watch),
            calls: Cell::default(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap().display().to_string()
    }

    /// Writes a file and creates its folders. New ones get the default modes, regardless of the
    /// umask.
    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        let missing: Vec<_> = path
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let is_new = !path.exists();
        fs::write(&path, content).unwrap();
        if is_new {
            self.set_mode(name, 0o644);
        }
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns every entry by name.
    pub(super) fn snapshot(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        self.add_to(&self.root, &mut all);
        all
    }

    fn add_to(&self, folder: &Path, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.mode() & 0o7777;
            let held = if metadata.is_symlink() {
                format!("link {}", path.read_link().unwrap().display())
            } else if metadata.is_dir() {
                self.add_to(&path, all);
                format!("folder {mode:o}")
            } else {
                format!("file {mode:o} {}", fs::read_to_string(&path).unwrap())
            };
            all.insert(self.name(&path), held);
        }
    }

    pub(super) fn message(number: u32) -> MessageId {
        MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()))
    }

    pub(super) fn recorder(&self, message: u32, call: &str) -> CallRecorder {
        let call = CallName {
            message_id: Self::message(message),
            call_id: call.to_owned(),
            tool: "tool".to_owned(),
        };
        CallRecorder::new(Arc::clone(&self.watch), call)
    }

    fn next_call_number(&self) -> u32 {
        self.calls.set(self.calls.get() + 1);
        self.calls.get()
    }

    /// Changes files as a tool that names them.
    pub(super) fn edit(&self, call: &str, names: &[&str], act: impl FnOnce(&Self)) {
        self.edit_in(1000 + self.next_call_number(), call, names, act);
    }

    pub(super) fn edit_in(
        &self,
        message: u32,
        call: &str,
        names: &[&str],
        act: impl FnOnce(&Self),
    ) {
        let recorder = self.recorder(message, call);
        let paths: Vec<_> = names.iter().map(|name| self.path(name)).collect();
        let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
        recorder.save_files(call, &paths).unwrap();
        act(self);
        recorder.record_changed(call, &paths).unwrap();
        recorder.record_remaining();
    }

    /// Changes files as a tool that saves them and does not report their new state.
    pub(super) fn silent_edit(&self, call: &str, names: &[&str], act: impl FnOnce(&Self)) {
        let recorder = self.recorder(1000 + self.next_call_number(), call);
        let paths: Vec<_> = names.iter().map(|name| self.path(name)).collect();
        recorder
            .save_files(
                call,
                &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
            )
            .unwrap();
        act(self);
        assert_eq!(recorder.record_remaining(), None);
    }

    /// Changes files as a tool that is killed before the call ends.
    pub(super) fn killed_edit(&self, call: &str, names: &[&str], act: impl FnOnce(&Self)) {
        let recorder = self.recorder(1000 + self.next_call_number(), call);
        let paths: Vec<_> = names.iter().map(|name| self.path(name)).collect();
        recorder
            .save_files(
                call,
                &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>(),
            )
            .unwrap();
        act(self);
    }

    /// Changes files as a command.
    pub(super) fn command(&self, call: &str, act: impl FnOnce(&Self)) -> CommandChanges {
        let before = self.watch.scan_before_command();
        act(self);
        let name = CallName {
            message_id: Self::message(1000 + self.next_call_number()),
            call_id: call.to_owned(),
            tool: "execute_command".to_owned(),
        };
        self.watch.scan_after_command(&name, before)
    }

    pub(super) fn record(&self) -> ChangeRecord {
        ChangeRecord::new(Arc::clone(&self.versions), ConversationId::new("c"))
    }

    pub(super) fn undo(&self, target: &Target) -> Report {
        self.record().undo(target, None, Mode::Apply).unwrap()
    }

    pub(super) fn redo(&self) -> Report {
        self.record().redo(Mode::Apply).unwrap()
    }

    /// Performs an undo of the last call that is killed after `changed` paths.
    pub(super) fn undo_killed_after(&self, changed: usize) {
        let record = self.record();
        let steps = record.steps().unwrap();
        let planned = plan_undo(
            &steps,
            &select_changes(&steps, &Target::LastCall).unwrap(),
            &Disk(self.versions.as_ref()),
        );
        let mut reversals: Vec<_> = planned.iter().filter_map(PlannedUndo::reversal).collect();
        self.versions
            .begin_reversal(
                &ConversationId::new("c"),
                crate::versions::StepKind::Undo,
                None,
                &reversals,
                &[],
            )
            .unwrap();
        reversals.truncate(changed);
        for reversal in reversals {
            let bytes = reversal
                .after
                .hash()
                .map(|hash| self.versions.read_content(hash).unwrap())
                .unwrap_or_default();
            let change = (version_at(&reversal.path), reversal.after);
            replace_path(&reversal.path, change, &bytes, ".temporary-").unwrap();
        }
    }

    pub(super) fn conflicts(&self, report: &Report) -> Vec<(String, Conflict)> {
        let conflict = |path: &crate::files::ReversedPath| {
            Some((self.name(&path.path), path.after.clone().err()?))
        };
        report.paths.iter().filter_map(conflict).collect()
    }
}
