//! What is kept of a run of a workflow, so that another process can go on with it.
//!
//! Invariant: a step is noted as done only after its conversation holds its answer, and the file is replaced whole: whenever
//! the process is killed, the steps that are noted as done are done, and the others can be gone on with.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use haft_agent::{RandomIds, WallClock};
use haft_project::workflows::Workflow;
use haft_types::{Clock, ContentHash, ConversationId, IdSource, Outcome, Timestamp, TurnResult};
use serde::{Deserialize, Serialize};

use crate::exit::mistake;

/// So many runs are kept.
const KEPT: usize = 200;

/// All runs of one user.
pub(super) struct Records {
    folder: PathBuf,
}

/// A run that this process has for itself.
pub(super) struct Held {
    pub(super) record: Record,
    file: PathBuf,
    _lock: File,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) workflow: String,
    /// The namespace of its project.
    project: String,
    /// Of the file as it was when the run began.
    hash: ContentHash,
    pub(super) inputs: BTreeMap<String, String>,
    started_at: Timestamp,
    /// The steps that were begun, by name.
    pub(super) steps: BTreeMap<String, StepRecord>,
}

/// How far a step has come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StepRecord {
    /// The conversation it works in, once there is one.
    pub(super) conversation: Option<ConversationId>,
    /// How it ended.
    pub(super) result: Option<TurnResult>,
}

impl StepRecord {
    pub(super) fn is_done(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.outcome == Outcome::Completed)
    }
}

impl Records {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// A new run.
    pub(super) fn begin(
        &self,
        workflow: &Workflow,
        project: &str,
        inputs: BTreeMap<String, String>,
    ) -> anyhow::Result<Held> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.with_context(|| format!("cannot make `{}`", self.folder.display()))?;
        self.sweep();
        let record = Record {
            id: RandomIds.uuid().simple().to_string()[..8].to_owned(),
            workflow: workflow.name.clone(),
            project: project.to_owned(),
            hash: ContentHash::of(workflow.text.as_bytes()),
            inputs,
            started_at: WallClock.now(),
            steps: BTreeMap::new(),
        };
        let mut held = self.hold(record)?;
        held.note(|_| {})?;
        Ok(held)
    }

    /// The last run of a workflow in a project, to go on with.
    pub(super) fn newest(&self, workflow: &Workflow, project: &str) -> anyhow::Result<Held> {
        let name = &workflow.name;
        let known = self.all().into_iter().find(|record| record.workflow == *name && record.project == project);
        let Some(record) = known else {
            return Err(mistake(format!(
                "there is no run of `{name}` here to go on with; start one with `haft workflows run {name}`"
            )));
        };
        if record.hash != ContentHash::of(workflow.text.as_bytes()) {
            return Err(mistake(format!(
                "`{}` was changed since the run `{}` began; start a new one with `haft workflows run {name}`",
                workflow.path.display(),
                record.id
            )));
        }
        self.hold(record)
    }

    /// Every run, newest first.
    fn all(&self) -> Vec<Record> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"));
        let mut all: Vec<Record> =
            files.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect();
        all.sort_by(|one, other| other.started_at.cmp(&one.started_at).then(one.id.cmp(&other.id)));
        all
    }

    fn file(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }

    fn hold(&self, record: Record) -> anyhow::Result<Held> {
        let file = self.file(&record.id, "lock");
        let lock = private(&file).with_context(|| format!("cannot open `{}`", file.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(mistake(format!("another process works on the run `{}`; wait for its end", record.id)));
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot hold the run"),
        }
        Ok(Held { file: self.file(&record.id, "json"), record, _lock: lock })
    }

    /// Removes old runs. What cannot be removed is for the next time.
    fn sweep(&self) {
        for old in self.all().into_iter().skip(KEPT) {
            drop(fs::remove_file(self.file(&old.id, "json")));
            drop(fs::remove_file(self.file(&old.id, "lock")));
        }
    }
}

impl Held {
    /// Changes the record and writes it down.
    pub(super) fn note(&mut self, change: impl FnOnce(&mut Record)) -> anyhow::Result<()> {
        change(&mut self.record);
        let written = replace(&self.file, &serde_json::to_vec(&self.record)?);
        written.with_context(|| format!("cannot write `{}`", self.file.display()))
    }
}

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)
}
