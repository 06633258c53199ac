//! `haft jobs list` and `haft jobs show`: print background runs.

use haft_agent::WallClock;
use haft_attach::AttachState;
use haft_types::{Clock, Timestamp};
use serde_json::{Value, json};

use super::death_message;
use crate::cli::options::JsonArgs;
use crate::commands::attach::RunningSessions;
use crate::commands::jobs::ShowJobArgs;
use crate::haft::{Haft, Settings};
use crate::jobs::{BackgroundJob, JobFolder, JobState};
use crate::output::{self, TextTable};
use crate::wiring;

pub(super) fn list_jobs(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let all = JobFolder::new(settings.places.jobs_folder()).list_jobs()?;
    let sessions = find_sessions_of(&settings, &all)?;
    if args.json {
        return output::print_json(
            &all.iter()
                .map(|job| job_to_json(job, &job.state(), sessions.as_ref()))
                .collect(),
        );
    }
    if all.is_empty() {
        return output::print_text_line(text!("jobs-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-id"),
        text!("table-state"),
        text!("table-started"),
        text!("table-time"),
        text!("table-cost"),
        text!("table-folder"),
        text!("table-task"),
    ]);
    for job in &all {
        let state = job.state();
        table.add_row(vec![
            job.request.id.clone(),
            output::localize_text(
                find_question(job, sessions.as_ref()).unwrap_or_else(|| state.name()),
            ),
            job.request
                .started_at
                .strftime("%Y-%m-%d %H:%M")
                .to_string(),
            format_seconds(job_duration_seconds(job, &state)),
            job_cost(&state).map_or_else(String::new, |usd| format!("${usd:.4}")),
            job.request
                .cwd
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            job.request
                .task
                .clone()
                .unwrap_or_else(|| text!("jobs-resumes").to_owned()),
        ]);
    }
    output::print_text(&table.to_string())
}

pub(super) fn show_job(haft: &Haft, args: &ShowJobArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.output.common)?;
    let job = JobFolder::new(settings.places.jobs_folder()).find_job(&args.id)?;
    let sessions = find_sessions_of(&settings, std::slice::from_ref(&job))?;
    let state = job.state();
    if args.output.json {
        return output::print_json(&job_to_json(&job, &state, sessions.as_ref()));
    }
    let mut lines = vec![
        text!("jobs-show-id", id = job.request.id),
        text!(
            "jobs-show-state",
            state = output::localize_text(state.name())
        ),
        text!(
            "jobs-show-task",
            task = job
                .request
                .task
                .as_deref()
                .unwrap_or(text!("jobs-resumes-turn"))
        ),
        text!("jobs-show-folder", folder = job.request.cwd.display()),
        text!(
            "jobs-show-started",
            at = job.request.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        ),
        text!(
            "jobs-show-time",
            time = format_seconds(job_duration_seconds(&job, &state))
        ),
    ];
    if let Some(id) = job.conversation_id() {
        lines.push(text!("jobs-show-conversation", id));
    }
    match &state {
        JobState::Running => {
            lines.push(text!(
                "jobs-show-process",
                process = job.process_id().unwrap_or_default()
            ));
            lines.push(format!(
                "\n{}",
                text!("jobs-keep-watching", id = job.request.id)
            ));
        }
        JobState::Died => lines.push(format!("\n{}", death_message(&job))),
        JobState::Ended(result) => {
            if let Some(usd) = job_cost(&state) {
                lines.push(text!("jobs-show-cost", usd = format_args!("{usd:.4}")));
            }
            lines.push(text!(
                "jobs-show-why",
                why = output::localize_text(&result.message)
            ));
            if !result.text.is_empty() {
                lines.push(format!("\n{}", result.text));
            }
        }
    }
    output::print_text(&format!("{}\n", haft_text::sanitize(&lines.join("\n"))))
}

/// Returns the running sessions of this user, or `None` if no job is running.
fn find_sessions_of(
    settings: &Settings,
    jobs: &[BackgroundJob],
) -> anyhow::Result<Option<RunningSessions>> {
    if !jobs.iter().any(BackgroundJob::is_running) {
        return Ok(None);
    }
    wiring::build_runtime()?
        .block_on(RunningSessions::find(settings))
        .map(Some)
}

/// Returns the state of the job's session, at which `haft jobs attach` attaches.
fn session_state(job: &BackgroundJob, sessions: Option<&RunningSessions>) -> Option<AttachState> {
    let (info, _) = sessions?.find_conversation(job.conversation_id()?.as_str())?;
    Some(info.state)
}

/// Returns the name of the job's state if its session waits for an answer or a message.
fn find_question(job: &BackgroundJob, sessions: Option<&RunningSessions>) -> Option<&'static str> {
    match session_state(job, sessions)? {
        state @ (AttachState::Asking | AttachState::Idle) => Some(state.name()),
        AttachState::Running | AttachState::Closed => None,
    }
}

fn job_to_json(job: &BackgroundJob, state: &JobState, sessions: Option<&RunningSessions>) -> Value {
    let result = match state {
        JobState::Ended(result) => json!(result),
        JobState::Running | JobState::Died => Value::Null,
    };
    json!({
        "id": job.request.id,
        "state": state.name(),
        "task": job.request.task,
        "cwd": job.request.cwd,
        "started_at": job.request.started_at,
        "seconds": job_duration_seconds(job, state),
        "conversation_id": job.conversation_id(),
        "session": session_state(job, sessions).map(AttachState::name),
        "process": matches!(state, JobState::Running).then(|| job.process_id()),
        "result": result,
    })
}

fn job_cost(state: &JobState) -> Option<f64> {
    match state {
        JobState::Ended(result) => result.cost.map(|cost| cost.total),
        JobState::Running | JobState::Died => None,
    }
}

/// Returns the seconds from the job's start until now, or until its last event if it has ended.
fn job_duration_seconds(job: &BackgroundJob, state: &JobState) -> i64 {
    let until: Timestamp = match state {
        JobState::Running => WallClock.now(),
        JobState::Ended(_) | JobState::Died => {
            job.last_event_at().unwrap_or(job.request.started_at)
        }
    };
    until
        .duration_since(job.request.started_at)
        .as_secs()
        .max(0)
}

fn format_seconds(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
