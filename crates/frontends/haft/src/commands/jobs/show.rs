//! `haft jobs list` and `haft jobs show`: print background runs.

use haft_agent::WallClock;
use haft_types::{Clock, Timestamp};
use serde_json::{Value, json};

use super::{death_message, open_job_folder};
use crate::cli::options::JsonArgs;
use crate::commands::jobs::ShowJobArgs;
use crate::haft::Haft;
use crate::jobs::{BackgroundJob, JobState};
use crate::output::{self, TextTable};

pub(super) fn list_jobs(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let all = open_job_folder(haft, &args.common)?.list_jobs()?;
    if args.json {
        return output::print_json(
            &all.iter()
                .map(|job| job_to_json(job, &job.state()))
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
            output::localize_text(state.name()),
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
    let job = open_job_folder(haft, &args.output.common)?.find_job(&args.id)?;
    let state = job.state();
    if args.output.json {
        return output::print_json(&job_to_json(&job, &state));
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

fn job_to_json(job: &BackgroundJob, state: &JobState) -> Value {
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
