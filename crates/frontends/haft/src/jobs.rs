//! Background runs. Each run has a folder with its request, its events, and a lock that its process
//! holds until it ends.
//!
//! Invariant: only the lock determines whether a job runs. The system releases the lock however the
//! process ends, so another process that reuses the process id is never mistaken for the job.

mod follow;
mod start;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use haft_files::LockFile;
use haft_types::{ConversationId, Event, EventBody, Outcome, Timestamp, TurnResult};
use serde::{Deserialize, Serialize};

use crate::exit::usage_error;

pub(crate) use follow::follow_events;
pub(crate) use start::{become_job, start_job};

/// The maximum age of an ended job, and the maximum number of ended jobs. Jobs beyond either limit
/// are removed.
const RETENTION_LIMITS: (Duration, usize) = (Duration::from_hours(24 * 30), 200);

/// The folder that contains all background jobs of a user.
pub(crate) struct JobFolder {
    folder: PathBuf,
}

/// A background run of haft, stored in a folder of its own.
pub(crate) struct BackgroundJob {
    folder: PathBuf,
    pub(crate) request: JobRequest,
}

/// The request that started a job, stored as `job.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JobRequest {
    pub(crate) id: String,
    pub(crate) started_at: Timestamp,
    pub(crate) cwd: PathBuf,
    /// The first line of the task; `None` if the job resumes an interrupted turn.
    pub(crate) task: Option<String>,
}

#[derive(Debug)]
pub(crate) enum JobState {
    /// The job's process is running.
    Running,
    /// The job ended with a result.
    Ended(Box<TurnResult>),
    /// The job ended without a result: it was killed, or could not start.
    Died,
}

impl JobState {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Died => "died",
            Self::Ended(result) => match result.outcome {
                Outcome::Completed => "completed",
                Outcome::Waiting => "waiting",
                Outcome::Aborted => "aborted",
                Outcome::Exhausted => "exhausted",
                Outcome::Failed => "failed",
            },
        }
    }
}

impl JobFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns all jobs, newest first. Skips folders that contain no job.
    pub(crate) fn list_jobs(&self) -> anyhow::Result<Vec<BackgroundJob>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries
                .with_context(|| text!("jobs-unreadable-folder", folder = self.folder.display()))?,
        };
        let mut jobs: Vec<_> = entries
            .flatten()
            .filter_map(|entry| BackgroundJob::open(entry.path()))
            .collect();
        jobs.sort_by(|one, other| {
            other
                .request
                .started_at
                .cmp(&one.request.started_at)
                .then(one.request.id.cmp(&other.request.id))
        });
        Ok(jobs)
    }

    /// Returns the job whose id is or begins with `text`. No match and several matches are usage
    /// errors.
    pub(crate) fn find_job(&self, text: &str) -> anyhow::Result<BackgroundJob> {
        let mut fitting = self
            .list_jobs()?
            .into_iter()
            .filter(|job| job.request.id.starts_with(text));
        match (fitting.next(), fitting.next()) {
            (Some(job), None) if !text.is_empty() => Ok(job),
            (Some(_), Some(_)) => Err(usage_error(text!("jobs-ambiguous", text))),
            (Some(_), None) | (None, _) => Err(usage_error(text!("jobs-unknown", text))),
        }
    }

    /// Removes ended jobs beyond [`RETENTION_LIMITS`]. A folder that cannot be removed is tried
    /// again next time.
    fn remove_old_jobs(&self, now: Timestamp) {
        let (age, most) = RETENTION_LIMITS;
        let ended = self
            .list_jobs()
            .unwrap_or_default()
            .into_iter()
            .filter(|job| !job.is_running());
        for (index, job) in ended.enumerate() {
            let old = now.duration_since(job.request.started_at).unsigned_abs() > age;
            if old || index >= most {
                drop(fs::remove_dir_all(&job.folder));
            }
        }
    }
}

impl BackgroundJob {
    fn open(folder: PathBuf) -> Option<Self> {
        let told = serde_json::from_slice(&fs::read(folder.join("job.json")).ok()?).ok()?;
        Some(Self {
            folder,
            request: told,
        })
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the path of the events file, which has one JSON event per line.
    pub(crate) fn events_file(&self) -> PathBuf {
        self.file_path("events.jsonl")
    }

    /// Returns the end of the job's stderr, which explains why the job could not start or how it
    /// died.
    pub(crate) fn error_output(&self) -> String {
        let output = read_tail(&self.file_path("stderr"), 4_096).unwrap_or_default();
        String::from_utf8_lossy(&output).trim().to_owned()
    }

    pub(crate) fn is_running(&self) -> bool {
        LockFile::is_held(&self.file_path("lock")).unwrap_or(false)
    }

    /// Returns the process id in the job's lock file. Meaningful only while the job runs.
    pub(crate) fn process_id(&self) -> Option<i32> {
        fs::read_to_string(self.file_path("lock"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    pub(crate) fn state(&self) -> JobState {
        if self.is_running() {
            return JobState::Running;
        }
        self.result()
            .map_or(JobState::Died, |result| JobState::Ended(Box::new(result)))
    }

    /// Returns the result of the job, which is the content of its last event.
    fn result(&self) -> Option<TurnResult> {
        // A result contains the whole answer. Few results exceed this size; for those, the whole
        // file is read.
        let events = self.events_file();
        let last = |bytes: &[u8]| {
            let line = bytes
                .trim_ascii_end()
                .rsplit(|byte| *byte == b'\n')
                .next()?;
            match serde_json::from_slice::<Event>(line).ok()?.body {
                EventBody::Result(result) => Some(result),
                _ => None,
            }
        };
        last(&read_tail(&events, 1 << 18)?).or_else(|| last(&fs::read(&events).ok()?))
    }

    /// Returns the id of the job's conversation, from its first event.
    pub(crate) fn conversation_id(&self) -> Option<ConversationId> {
        let mut first = String::new();
        BufReader::new(File::open(self.events_file()).ok()?)
            .read_line(&mut first)
            .ok()?;
        Some(serde_json::from_str::<Event>(&first).ok()?.conversation_id)
    }

    /// Returns the time at which the job last wrote an event.
    pub(crate) fn last_event_at(&self) -> Option<Timestamp> {
        Timestamp::try_from(self.events_file().metadata().ok()?.modified().ok()?).ok()
    }
}

/// Returns the last bytes of a file, at most `max_bytes`.
fn read_tail(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(max_bytes)))
        .ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
