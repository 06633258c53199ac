//! `haft jobs list` and `haft jobs show`: print background runs.

use haft_agent::WallClock;
use haft_types::{Clock, Timestamp};
use serde_json::{Value, json};

use super::{death, jobs};
use crate::cli::options::JsonArgs;
use crate::commands::jobs::ShowJobArgs;
use crate::haft::Haft;
use crate::jobs::{BackgroundJob, JobState};
use crate::output::{self, TextTable};

pub(super) fn list(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let all = jobs(haft, &args.common)?.all()?;
    if args.json {
        return output::print_json(&all.iter().map(|job| as_json(job, &job.state())).collect());
    }
    if all.is_empty() {
        return output::say(text!("jobs-none"));
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
        table.row(vec![
            job.told.id.clone(),
            output::localised(state.word()),
            job.told.started_at.strftime("%Y-%m-%d %H:%M").to_string(),
            time(seconds(job, &state)),
            cost(&state).map_or_else(String::new, |usd| format!("${usd:.4}")),
            job.told
                .cwd
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            job.told
                .task
                .clone()
                .unwrap_or_else(|| text!("jobs-resumes").to_owned()),
        ]);
    }
    output::print(&table.to_string())
}

pub(super) fn show(haft: &Haft, args: &ShowJobArgs) -> anyhow::Result<()> {
    let job = jobs(haft, &args.output.common)?.find(&args.id)?;
    let state = job.state();
    if args.output.json {
        return output::print_json(&as_json(&job, &state));
    }
    let mut lines = vec![
        text!("jobs-show-id", id = job.told.id),
        text!("jobs-show-state", state = output::localised(state.word())),
        text!(
            "jobs-show-task",
            task = job
                .told
                .task
                .as_deref()
                .unwrap_or(text!("jobs-resumes-turn"))
        ),
        text!("jobs-show-folder", folder = job.told.cwd.display()),
        text!(
            "jobs-show-started",
            at = job.told.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        ),
        text!("jobs-show-time", time = time(seconds(&job, &state))),
    ];
    if let Some(id) = job.conversation() {
        lines.push(text!("jobs-show-conversation", id));
    }
    match &state {
        JobState::Running => {
            lines.push(text!(
                "jobs-show-process",
                process = job.process().unwrap_or_default()
            ));
            lines.push(format!(
                "\n{}",
                text!("jobs-keep-watching", id = job.told.id)
            ));
        }
        JobState::Died => lines.push(format!("\n{}", death(&job))),
        JobState::Ended(result) => {
            if let Some(usd) = cost(&state) {
                lines.push(text!("jobs-show-cost", usd = format_args!("{usd:.4}")));
            }
            lines.push(text!(
                "jobs-show-why",
                why = output::localised(&result.message)
            ));
            if !result.text.is_empty() {
                lines.push(format!("\n{}", result.text));
            }
        }
    }
    output::print(&format!("{}\n", haft_text::sanitise(&lines.join("\n"))))
}

fn as_json(job: &BackgroundJob, state: &JobState) -> Value {
    let result = match state {
        JobState::Ended(result) => json!(result),
        JobState::Running | JobState::Died => Value::Null,
    };
    json!({
        "id": job.told.id,
        "state": state.word(),
        "task": job.told.task,
        "cwd": job.told.cwd,
        "started_at": job.told.started_at,
        "seconds": seconds(job, state),
        "conversation_id": job.conversation(),
        "process": matches!(state, JobState::Running).then(|| job.process()),
        "result": result,
    })
}

fn cost(state: &JobState) -> Option<f64> {
    match state {
        JobState::Ended(result) => result.cost.map(|cost| cost.total),
        JobState::Running | JobState::Died => None,
    }
}

/// Returns how many seconds the job has run.
fn seconds(job: &BackgroundJob, state: &JobState) -> i64 {
    let until: Timestamp = match state {
        JobState::Running => WallClock.now(),
        JobState::Ended(_) | JobState::Died => job.last_event_at().unwrap_or(job.told.started_at),
    };
    until.duration_since(job.told.started_at).as_secs().max(0)
}

fn time(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}
