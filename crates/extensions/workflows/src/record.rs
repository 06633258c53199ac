//! Stores the state of workflow runs, so that another process can resume them.
//!
//! Invariant: a step is recorded as done only after its conversation contains its answer, and the
//! file is replaced atomically. Whenever the process is killed, the recorded steps are done and the
//! others can be resumed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_files::{Durability, LockFile};
use haft_types::{Clock, ContentHash, ConversationId, IdSource, Outcome, Timestamp, TurnResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::WorkflowError;
use crate::workflow::Workflow;

/// The maximum number of runs whose records are kept. If there are more, the oldest records are
/// removed.
const MAX_RUNS: usize = 200;

/// The records of all workflow runs of one user, stored in a folder.
pub struct WorkflowRuns {
    folder: PathBuf,
    listener: Option<RecordListener>,
}

/// A function that is called with the content of a run's record each time the record is written.
pub type RecordListener = Arc<dyn Fn(&[u8]) -> io::Result<()> + Send + Sync>;

/// A workflow run that this process has locked, so that no other process can resume it.
pub struct HeldRun {
    pub(crate) record: RunRecord,
    file: PathBuf,
    listener: Option<RecordListener>,
    _lock: LockFile,
}

/// The stored state of one workflow run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the run, which its events also contain.
    pub id: String,
    /// The name of the workflow that is run.
    pub workflow: String,
    /// The namespace of the project in which the run was started.
    project: String,
    /// The hash of the workflow file at the start of the run.
    hash: ContentHash,
    /// The values of all inputs, including defaults.
    pub inputs: BTreeMap<String, String>,
    started_at: Timestamp,
    /// The steps that have been started, by name.
    pub steps: BTreeMap<String, StepRecord>,
}

/// The recorded state of one step of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StepRecord {
    /// The id of the step's conversation. Set when the step starts.
    pub conversation: Option<ConversationId>,
    /// The result of the step. Set when the step has ended.
    pub result: Option<TurnResult>,
}

impl StepRecord {
    /// True if the step was completed, so that other steps can use its answer.
    pub fn is_done(&self) -> bool {
        self.result
            .as_ref()
            .is_some_and(|result| result.outcome == Outcome::Completed)
    }
}

impl RunRecord {
    /// Adds the id of the run and the state of every step to `result`, the result of the run as
    /// JSON.
    #[must_use]
    pub fn add_to_result(&self, mut result: Value, workflow: &Workflow) -> Value {
        result["workflow"] = json!(self.workflow);
        result["run"] = json!(self.id);
        result["steps"] = workflow
            .steps
            .iter()
            .map(|step| self.step_to_json(&step.name))
            .collect();
        result
    }

    fn step_to_json(&self, name: &str) -> Value {
        match self.steps.get(name) {
            Some(StepRecord {
                conversation,
                result: Some(result),
            }) => json!({
                "name": name,
                "outcome": result.outcome,
                "code": result.code,
                "message": result.message,
                "text": result.text,
                "conversation_id": conversation,
                "turns": result.turns,
                "usage": result.usage,
                "cost": result.cost,
            }),
            Some(StepRecord { result: None, .. }) | None => {
                json!({ "name": name, "outcome": null })
            }
        }
    }
}

impl WorkflowRuns {
    /// Creates a handle for the runs that are stored in `folder`. The folder need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            listener: None,
        }
    }

    /// Sets a function that is called with each record after it is written.
    #[must_use]
    pub fn with_listener(self, listener: RecordListener) -> Self {
        Self {
            listener: Some(listener),
            ..self
        }
    }

    /// Begins a new run of a workflow and locks the run.
    pub fn begin_run(
        &self,
        workflow: &Workflow,
        project: &str,
        inputs: BTreeMap<String, String>,
        clock: &dyn Clock,
        ids: &dyn IdSource,
    ) -> Result<HeldRun, WorkflowError> {
        haft_files::create_folder(&self.folder)
            .map_err(|error| file_error("make", &self.folder, error))?;
        self.remove_old_runs();
        let record = RunRecord {
            id: ids.new_uuid().simple().to_string()[..8].to_owned(),
            workflow: workflow.name.clone(),
            project: project.to_owned(),
            hash: ContentHash::from_content(workflow.text.as_bytes()),
            inputs,
            started_at: clock.now(),
            steps: BTreeMap::new(),
        };
        let mut held = self.lock_run(record)?;
        held.update_record(|_| {})?;
        Ok(held)
    }

    /// Locks the newest run of a workflow in a project so that it can be resumed. Fails if the file
    /// of the workflow has changed since the run began.
    pub fn resume_newest(
        &self,
        workflow: &Workflow,
        project: &str,
    ) -> Result<HeldRun, WorkflowError> {
        let name = &workflow.name;
        let known = self
            .load_all()
            .into_iter()
            .find(|record| record.workflow == *name && record.project == project);
        let record = known.ok_or_else(|| WorkflowError::NoRun(name.clone()))?;
        if record.hash != ContentHash::from_content(workflow.text.as_bytes()) {
            return Err(WorkflowError::Changed {
                path: workflow.path.clone(),
                run: record.id,
            });
        }
        self.lock_run(record)
    }

    /// Loads the records of all runs, newest first.
    fn load_all(&self) -> Vec<RunRecord> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"));
        let mut all: Vec<RunRecord> = files
            .filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok())
            .collect();
        all.sort_by(|one, other| {
            other
                .started_at
                .cmp(&one.started_at)
                .then(one.id.cmp(&other.id))
        });
        all
    }

    fn file_path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }

    fn lock_run(&self, record: RunRecord) -> Result<HeldRun, WorkflowError> {
        let file = self.file_path(&record.id, "lock");
        let lock =
            LockFile::try_acquire(&file).map_err(|error| file_error("lock", &file, error))?;
        let lock = lock.ok_or_else(|| WorkflowError::Busy(record.id.clone()))?;
        Ok(HeldRun {
            file: self.file_path(&record.id, "json"),
            record,
            listener: self.listener.clone(),
            _lock: lock,
        })
    }

    /// Removes the oldest runs beyond [`MAX_RUNS`]. Errors are ignored, because the next run
    /// repeats the removal.
    fn remove_old_runs(&self) {
        for old in self.load_all().into_iter().skip(MAX_RUNS) {
            drop(fs::remove_file(self.file_path(&old.id, "json")));
            drop(fs::remove_file(self.file_path(&old.id, "lock")));
        }
    }
}

impl HeldRun {
    /// Changes the record of the run with `change`, then writes the record to its file.
    pub(crate) fn update_record(
        &mut self,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<(), WorkflowError> {
        change(&mut self.record);
        let bytes = serde_json::to_vec(&self.record).map_err(io::Error::other);
        let written = bytes.and_then(|bytes| {
            haft_files::replace_file(&self.file, &bytes, Durability::PowerCut)?;
            self.listener.as_ref().map_or(Ok(()), |told| told(&bytes))
        });
        written.map_err(|error| file_error("write", &self.file, error))
    }
}

fn file_error(verb: &'static str, path: &Path, source: io::Error) -> WorkflowError {
    WorkflowError::File {
        verb,
        path: path.to_owned(),
        source,
    }
}
