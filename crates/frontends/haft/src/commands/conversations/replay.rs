//! `haft conversations replay`: feeds the replies of a recorded run to today's tools, rules and
//! prompts, and compares each request and each decision with the recorded ones.
//!
//! ```text
//! store or file ─► record ─► drive: a session in a scratch store, whose model is replayed_model
//!                                        │
//!                 report ◄─ comparison ◄─┘ requests, calls, messages
//! ```
//!
//! Nothing is sent, and nothing of the project is changed.

mod comparison;
mod difference;
mod drive;
mod options;
mod project_copy;
mod record;
mod replayed_model;
mod volatile;

use std::path::{Path, PathBuf};

use clap::Args;
use haft_agent::Project;
use serde_json::json;

use self::comparison::{RunComparison, RunDifference};
use self::drive::ReplayPlace;
use self::options::ReplayOptions;
use self::record::StoredRun;
use self::replayed_model::ComparedOutcome;
use super::find_named_or_current;
use crate::cli::options::Common;
use crate::exit::ProcessExit;
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};

#[derive(Debug, Args)]
pub(crate) struct ReplayRunArgs {
    /// The conversation: an id, the beginning of one, or a name; or a file that `--save` wrote; the
    /// current conversation when absent.
    #[arg(value_name = "CONVERSATION")]
    pub(crate) run: Option<String>,
    /// Run the calls again, in a copy of the project, and compare their results, too.
    #[arg(long)]
    pub(crate) live_tools: bool,
    /// Write the run to a file that this command checks anywhere.
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Replay in this folder; by default, the project of the conversation, or for a file, the
    /// current folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) options: ReplayOptions,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The result of a replay.
struct ReplayReport {
    conversation: String,
    comparison: RunComparison,
}

pub(super) async fn run(haft: &Haft, args: &ReplayRunArgs) -> anyhow::Result<ProcessExit> {
    let report = replay(haft, args).await?;
    if args.json {
        output::print_json(&report.to_json())?;
    } else {
        output::print_text(&report.to_text())?;
    }
    Ok(if report.comparison.is_equal() {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

async fn replay(haft: &Haft, args: &ReplayRunArgs) -> anyhow::Result<ReplayReport> {
    let settings = haft.load(&args.common)?;
    let (record, project) = load_run(haft, &settings, args).await?;
    let own = ReplayOptions {
        set: args.common.set.clone(),
        ..args.options.clone()
    };
    let options = own.or_saved(record.options.clone());
    let settings = haft.load(&Common {
        set: options.set.clone(),
    })?;
    replay_record(haft, settings, record, project, &options, args).await
}

/// Finds the run that the arguments name, and the project to replay it in.
async fn load_run(
    haft: &Haft,
    settings: &Settings,
    args: &ReplayRunArgs,
) -> anyhow::Result<(StoredRun, Project)> {
    let file = args
        .run
        .as_ref()
        .map(Path::new)
        .filter(|path| path.is_file());
    if let Some(path) = file {
        let project = haft.project(args.cwd.as_deref())?;
        let record = record::read_run_file(path, &project.root)?;
        return Ok((record, project));
    }
    let store = settings.open_store()?;
    let conversation = find_named_or_current(haft, store.as_ref(), args.run.as_deref()).await?;
    let recorded_in = StoredRun::find_project(&conversation.namespace);
    let current = haft.project(args.cwd.as_deref())?;
    let project = match (&args.cwd, recorded_in) {
        (None, Some(folder)) if folder != current.root => haft.project(Some(&folder))?,
        _ => current,
    };
    let record = record::load_stored_run(settings, store, conversation).await?;
    Ok((record, project))
}

/// Replays a run, compares it, and saves it if the arguments name a file.
async fn replay_record(
    haft: &Haft,
    settings: Settings,
    record: StoredRun,
    project: Project,
    options: &ReplayOptions,
    args: &ReplayRunArgs,
) -> anyhow::Result<ReplayReport> {
    let scratch = tempfile::Builder::new().prefix("haft-replay-").tempdir()?;
    let copy = if args.live_tools {
        Some(project_copy::copy_project(
            &project.root,
            &scratch.path().join("project"),
        )?)
    } else {
        None
    };
    let place = ReplayPlace {
        settings,
        project,
        copy,
        scratch: scratch.path().to_owned(),
    };
    let conversation = record.document.id.to_string();
    let saved = args
        .save
        .as_ref()
        .map(|path| (path, record.to_saved(options)));
    let replayed = Box::pin(drive::replay_run(&place, record, options)).await?;
    if let Some((path, record)) = saved {
        let machine = (replayed.environment.clone(), replayed.trusted);
        record::save_run(path, &record, machine, &place.project.root, &haft.masker())?;
    }
    Ok(ReplayReport {
        conversation,
        comparison: RunComparison::new(replayed, &place),
    })
}

impl ReplayReport {
    fn to_json(&self) -> serde_json::Value {
        let RunComparison {
            requests,
            calls,
            differences,
        } = &self.comparison;
        let requests: Vec<_> = requests
            .iter()
            .map(|one| {
                let (outcome, difference) = match &one.outcome {
                    ComparedOutcome::Equal => ("equal", None),
                    ComparedOutcome::Different(difference) => ("different", Some(difference)),
                    ComparedOutcome::NotSent => ("not_sent", None),
                    ComparedOutcome::Further => ("not_recorded", None),
                };
                json!({
                    "number": one.number,
                    "model": one.model,
                    "outcome": outcome,
                    "difference": difference,
                })
            })
            .collect();
        json!({
            "conversation": self.conversation,
            "equal": differences.is_empty(),
            "requests": requests,
            "calls": calls,
            "first_difference": differences.first(),
            "differences": differences.len(),
        })
    }

    fn to_text(&self) -> String {
        let RunComparison {
            requests,
            calls,
            differences,
        } = &self.comparison;
        let mut table = TextTable::new(&[
            text!("table-request"),
            text!("table-model"),
            text!("conversations-replay-comparison"),
        ]);
        for one in requests {
            let outcome = match &one.outcome {
                ComparedOutcome::Equal => text!("conversations-replay-equal").to_owned(),
                ComparedOutcome::Different(difference) => {
                    text!("conversations-replay-different", field = difference.field)
                }
                ComparedOutcome::NotSent => text!("conversations-replay-not-sent").to_owned(),
                ComparedOutcome::Further => text!("conversations-replay-not-recorded").to_owned(),
            };
            table.add_row(vec![one.number.to_string(), one.model.clone(), outcome]);
        }
        let mut shown = table.to_string();
        let compared = calls.iter().filter(|call| call.result_compared).count();
        shown += &text!("conversations-replay-calls", calls = calls.len(), compared);
        shown.push('\n');
        match differences.first() {
            None => shown += text!("conversations-replay-all-equal"),
            Some(first) => {
                shown += &text!(
                    "conversations-replay-first",
                    count = differences.len(),
                    place = describe_place(first),
                    field = first.difference.field
                );
                for line in first.difference.to_lines() {
                    shown.push('\n');
                    shown += &line;
                }
            }
        }
        shown.push('\n');
        shown
    }
}

fn describe_place(difference: &RunDifference) -> String {
    use comparison::DifferencePlace;
    match &difference.place {
        DifferencePlace::Request { number } => text!("conversations-replay-at-request", number),
        DifferencePlace::Call { tool, id, .. } => text!("conversations-replay-at-call", tool, id),
        DifferencePlace::Message { id, role } => text!("conversations-replay-at-message", id, role),
    }
}

/// Replays a file for `haft context test`. Returns true if everything is equal, and a description
/// of the outcome.
pub(in crate::commands) async fn check_run_file(
    haft: &Haft,
    path: &Path,
    common: &Common,
) -> anyhow::Result<(bool, String)> {
    let args = ReplayRunArgs {
        run: Some(path.display().to_string()),
        live_tools: false,
        save: None,
        cwd: None,
        json: false,
        options: ReplayOptions::default(),
        common: common.clone(),
    };
    let report = Box::pin(replay(haft, &args)).await?;
    let comparison = &report.comparison;
    let found = match comparison.differences.first() {
        None => text!(
            "conversations-replay-test-equal",
            requests = comparison.requests.len(),
            calls = comparison.calls.len()
        ),
        Some(first) => text!(
            "conversations-replay-test-different",
            place = describe_place(first),
            field = first.difference.field
        ),
    };
    Ok((comparison.is_equal(), found))
}
