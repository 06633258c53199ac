//! The background tasks of a conversation.
//!
//! The end of each task is reported exactly once: to observers ([`Tasks::take_changes`]) and to the
//! model ([`Tasks::take_ended`]). If the model itself ended or removed a task, no announcement is
//! needed. Tasks of an earlier haft process that were never announced are reported as lost, because
//! they ended with that process.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use haft_sandbox::{
    Background, Capture, CapturedOutput, CommandExit, Ending, SpillFrom, SpillProblem, Supervisor,
};
use haft_tool::ToolContext;
use haft_types::TaskPhase;

use super::phrases::{self, format_duration, last_lines};
use super::shell::{self, CommandLine};
use super::task_report::TaskReport;
use crate::failure::ToolFailure;
use crate::limits::LimitsConfig;

/// The maximum number of ended tasks that are remembered.
const MAX_ENDED_TASKS: usize = 64;
/// The maximum number of lines and of bytes of a failed task's output that its announcement
/// contains.
const FAILURE_OUTPUT_LIMITS: (usize, usize) = (5, 400);
/// The maximum number of lines and of bytes of a running task's output in its progress.
const PROGRESS_OUTPUT_LIMITS: (usize, usize) = (3, 600);

/// The progress of a running background task, to show to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    pub id: String,
    /// The command line.
    pub command: String,
    pub elapsed: Duration,
    /// The last lines of the output.
    pub last_lines: String,
}

pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) line: CommandLine,
    pub(crate) cwd: String,
    /// The folder that contains the output file.
    folder: Option<PathBuf>,
    started: Instant,
    command: Background,
    /// Set if the task was ended because the run ended.
    left_over: OnceLock<()>,
}

impl Task {
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.command.ending()
    }

    /// Returns the path of the file that receives the output.
    pub(crate) fn output_file(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join("output.log"))
    }

    /// Returns the reason why the output file is missing or incomplete, which is known only after
    /// the end of the task.
    pub(crate) fn file_problem(&self) -> Option<SpillProblem> {
        match self.ending()?.as_ref() {
            Ok(finished) => finished.stdout.spill_problem.clone(),
            Err(_) => None,
        }
    }

    /// Returns the output of the task so far.
    pub(crate) fn output(&self) -> CapturedOutput {
        self.command.live().stdout()
    }

    pub(crate) async fn wait_for_end(&self) -> Option<Ending> {
        self.command.wait_for_end().await
    }

    /// Returns the running time, which stops at the end of the task.
    pub(crate) fn duration(&self) -> Duration {
        match self.ending().as_deref() {
            Some(Ok(finished)) => finished.duration,
            Some(Err(_)) | None => self.started.elapsed(),
        }
    }

    /// Returns the current state of the task.
    pub(crate) fn report(&self) -> TaskReport {
        let output = self.output();
        let mut exit_code = None;
        let after = format_duration(self.duration());
        let (phase, words) = match self.ending().as_deref() {
            None => (TaskPhase::Started, format!("has been running for {after}")),
            Some(Err(error)) => (TaskPhase::Failed, format!("failed: {error}")),
            Some(Ok(finished)) => {
                if let CommandExit::Code(code) = finished.exit {
                    exit_code = Some(code);
                }
                match finished.exit {
                    CommandExit::Code(0) => (
                        TaskPhase::Finished,
                        format!("finished: exit code 0 after {after}"),
                    ),
                    CommandExit::Cancelled if self.left_over.get().is_some() => (
                        TaskPhase::Killed,
                        format!("was killed after {after}: it still ran when the run was over"),
                    ),
                    CommandExit::Cancelled => {
                        (TaskPhase::Killed, format!("was killed after {after}"))
                    }
                    exit @ (CommandExit::Code(_)
                    | CommandExit::Signal(_)
                    | CommandExit::TimedOut) => (
                        TaskPhase::Failed,
                        format!("failed: {} after {after}", phrases::describe_exit(exit)),
                    ),
                }
            }
        };
        let last_lines = match phase {
            TaskPhase::Failed => {
                last_lines(&output, FAILURE_OUTPUT_LIMITS.0, FAILURE_OUTPUT_LIMITS.1).0
            }
            TaskPhase::Started | TaskPhase::Finished | TaskPhase::Killed | TaskPhase::Lost => {
                String::new()
            }
        };
        let id = self.id.clone();
        let command = self.line.text.clone();
        TaskReport {
            id,
            command,
            phase,
            exit_code,
            output: self.output_file(),
            words,
            last_lines,
        }
    }
}

/// A background task, with flags that prevent repeated announcements of its end.
struct TaskEntry {
    task: Arc<Task>,
    /// The phase that was last reported to observers.
    reported: Option<TaskPhase>,
    /// True if the end of the task was announced to the model, or needs no announcement.
    announced: bool,
}

#[derive(Default)]
struct TaskTable {
    newest: u32,
    slots: Vec<TaskEntry>,
    /// Tasks of an earlier haft process whose end has not been announced to the model.
    lost: Vec<TaskReport>,
}

/// All background tasks of a conversation.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<TaskTable>);

impl Tasks {
    pub(crate) fn start_task(
        &self,
        supervisor: &Supervisor,
        limits: &LimitsConfig,
        context: &ToolContext,
        line: CommandLine,
        timeout: Duration,
    ) -> Result<Arc<Task>, ToolFailure> {
        let mut state = self.lock_table();
        let running: Vec<_> = state
            .slots
            .iter()
            .filter(|slot| slot.task.ending().is_none())
            .collect();
        if running.len() >= limits.background_tasks {
            let ids: Vec<_> = running.iter().map(|slot| slot.task.id.as_str()).collect();
            let count = running.len();
            let ids = ids.join(", ");
            let message = format!(
                "{count} background tasks are running, which is the most (`[limits] background_tasks`): {ids}; wait for one to end, or end one with the action `kill`"
            );
            return Err(ToolFailure::new("too_many", message));
        }
        let folder = shell::create_output_folder(context, "task-")
            .ok()
            .map(tempfile::TempDir::keep);
        let spill = folder.as_ref().map(|folder| folder.join("output"));
        let spill_bytes = limits.spill_bytes;
        let spill_from = SpillFrom::Start;
        let capture = Capture {
            limits: context.limits.into(),
            spill,
            max_spill_bytes: spill_bytes,
            spill_from,
        };
        let command = supervisor.start_background(line.to_command_spec(context, timeout), capture);
        state.newest += 1;
        let cwd = line.display_cwd(context);
        let id = format!("t{}", state.newest);
        let task = Arc::new(Task {
            id,
            line,
            cwd,
            folder,
            started: Instant::now(),
            command,
            left_over: OnceLock::new(),
        });
        state.slots.push(TaskEntry {
            task: Arc::clone(&task),
            reported: None,
            announced: false,
        });
        state.drop_old_tasks();
        Ok(task)
    }

    /// Returns all tasks, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Task>> {
        self.lock_table()
            .slots
            .iter()
            .map(|slot| Arc::clone(&slot.task))
            .collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Task>> {
        self.lock_table()
            .slots
            .iter()
            .find(|slot| slot.task.id == id)
            .map(|slot| Arc::clone(&slot.task))
    }

    /// Ends a task at the model's request, and waits until its processes have exited.
    pub(crate) async fn kill(&self, task: &Task) {
        task.command.stop();
        task.wait_for_end().await;
        self.mark_announced(&task.id);
    }

    /// Drops the tasks that have ended, and removes their output. Returns their reports.
    pub(crate) fn remove_ended(&self) -> Vec<TaskReport> {
        let mut state = self.lock_table();
        let (ended, running) = state
            .slots
            .drain(..)
            .partition(|slot: &TaskEntry| slot.task.ending().is_some());
        state.slots = running;
        let ended: Vec<TaskEntry> = ended;
        let remove = |slot: TaskEntry| {
            if let Some(folder) = &slot.task.folder {
                // A leftover folder does no harm: it is private and lies among temporary files.
                let _ = fs::remove_dir_all(folder);
            }
            slot.task.report()
        };
        ended.into_iter().map(remove).collect()
    }

    /// Returns the progress of all running tasks, oldest first.
    pub(crate) fn list_progress(&self) -> Vec<TaskProgress> {
        let (lines, bytes) = PROGRESS_OUTPUT_LIMITS;
        self.list()
            .into_iter()
            .filter(|task| task.ending().is_none())
            .map(|task| TaskProgress {
                id: task.id.clone(),
                command: task.line.text.clone(),
                elapsed: task.duration(),
                last_lines: last_lines(&task.output(), lines, bytes).0,
            })
            .collect()
    }

    /// Returns reports on the tasks that have started or ended since the last call of this method.
    pub(crate) fn take_changes(&self) -> Vec<TaskReport> {
        let mut changes = Vec::new();
        for slot in &mut self.lock_table().slots {
            let report = slot.task.report();
            if slot.reported.is_none() && report.phase != TaskPhase::Started {
                let words = "was started".to_owned();
                changes.push(TaskReport {
                    phase: TaskPhase::Started,
                    exit_code: None,
                    words,
                    ..report.clone()
                });
            }
            if slot.reported != Some(report.phase) {
                slot.reported = Some(report.phase);
                changes.push(report);
            }
        }
        changes
    }

    /// Returns up to `most` tasks whose end has not been announced to the model, oldest first, and
    /// marks them as announced.
    pub(crate) fn take_ended(&self, most: usize) -> Vec<TaskReport> {
        let mut state = self.lock_table();
        let lost = most.min(state.lost.len());
        let mut taken: Vec<_> = state.lost.drain(..lost).collect();
        let ended = state
            .slots
            .iter_mut()
            .filter(|slot| !slot.announced && slot.task.ending().is_some());
        for slot in ended.take(most - lost) {
            slot.announced = true;
            taken.push(slot.task.report());
        }
        taken
    }

    /// Ends all running tasks, and returns all tasks whose end has not been announced to the model.
    pub(crate) async fn end_all(&self) -> Vec<TaskReport> {
        let running: Vec<_> = self
            .list()
            .into_iter()
            .filter(|task| task.ending().is_none())
            .collect();
        for task in &running {
            let _ = task.left_over.set(());
            task.command.stop();
        }
        for task in &running {
            task.wait_for_end().await;
        }
        self.take_ended(usize::MAX)
    }

    /// Restores a task that an earlier haft process started, as a lost task.
    pub(crate) fn restore_lost(&self, id: &str, command: &str, output: Option<PathBuf>) {
        let mut state = self.lock_table();
        if let Some(number) = id.strip_prefix('t').and_then(|number| number.parse().ok()) {
            state.newest = state.newest.max(number);
        }
        let words =
            "was lost: it ended together with the haft that ran it, and nobody knows how far it came".to_owned();
        let id = id.to_owned();
        let command = command.to_owned();
        let output = output.filter(|output| output.exists());
        let phase = TaskPhase::Lost;
        let exit_code = None;
        let last_lines = String::new();
        state.lost.push(TaskReport {
            id,
            command,
            phase,
            exit_code,
            output,
            words,
            last_lines,
        });
    }

    /// Restores the reports that an earlier haft process stored when it ended.
    pub(crate) fn restore_ended(&self, reports: Vec<TaskReport>) {
        let mut state = self.lock_table();
        for report in reports {
            if let Some(lost) = state.lost.iter_mut().find(|lost| lost.id == report.id) {
                *lost = report;
            }
        }
    }

    /// Records that the end of a task was announced to the model or needs no announcement. The task
    /// may belong to an earlier haft process.
    pub(crate) fn mark_announced(&self, id: &str) {
        let mut state = self.lock_table();
        state.lost.retain(|lost| lost.id != id);
        for slot in state.slots.iter_mut().filter(|slot| slot.task.id == id) {
            slot.announced = true;
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, TaskTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskTable {
    /// Drops the oldest tasks whose end was reported and announced, to limit the memory use.
    fn drop_old_tasks(&mut self) {
        let is_over = |slot: &TaskEntry| {
            slot.announced
                && slot
                    .reported
                    .is_some_and(|phase| phase != TaskPhase::Started)
        };
        let mut excess = self
            .slots
            .iter()
            .filter(|slot| is_over(slot))
            .count()
            .saturating_sub(MAX_ENDED_TASKS);
        self.slots.retain(|slot| {
            let forget = excess > 0 && is_over(slot);
            excess -= usize::from(forget);
            !forget
        });
    }
}
