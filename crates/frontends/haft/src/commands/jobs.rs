//! `haft jobs`: lists, shows, follows and stops background runs.

mod kill;
mod show;

use clap::{Args, Subcommand};
use haft_engine::EventSink;
use haft_types::Event;

use crate::cli::options::{Common, JsonArgs, OutputFormat, is_at_terminal};
use crate::commands::attach::{self, RunningSessions};
use crate::exit::ProcessExit;
use crate::haft::{Haft, Settings};
use crate::interactive::InterfaceStyle;
use crate::jobs::{BackgroundJob, JobFolder, JobState, follow_events};
use crate::output::{self, Printer};
use crate::wiring;

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List background runs, newest first.
    List(JsonArgs),
    /// Show a job: its state, task and answer.
    Show(ShowJobArgs),
    /// Print the output of a job so far.
    Logs(LogsArgs),
    /// Follow a job to its end; at a terminal, answer its questions and send it messages.
    ///
    /// Like `haft attach`. Leaving does not end the job. The exit code is that of the run.
    Attach(AttachJobArgs),
    /// Stop jobs; their conversations can be resumed.
    Kill(KillArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowJobArgs {
    /// The job's id, or a prefix of it.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job's id, or a prefix of it.
    pub(crate) id: String,
    /// Follow the output until the job ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The events, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct AttachJobArgs {
    /// The job's id, or a prefix of it.
    pub(crate) id: String,
    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The jobs' ids, or prefixes of them.
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: JobsCommand) -> anyhow::Result<ProcessExit> {
    match command {
        JobsCommand::List(args) => show::list_jobs(haft, &args)?,
        JobsCommand::Show(args) => show::show_job(haft, &args)?,
        JobsCommand::Logs(args) => print_logs(haft, &args)?,
        JobsCommand::Attach(args) => return attach_to_job(haft, &args),
        JobsCommand::Kill(args) => kill::kill_jobs(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}

/// Opens the folder with this user's jobs.
fn open_job_folder(haft: &Haft, common: &Common) -> anyhow::Result<JobFolder> {
    Ok(JobFolder::new(haft.load(common)?.places.jobs_folder()))
}

fn print_logs(haft: &Haft, args: &LogsArgs) -> anyhow::Result<()> {
    let job = open_job_folder(haft, &args.common)?.find_job(&args.id)?;
    if args.json {
        return follow_events(&job, args.follow, |line| {
            output::print_text(&format!("{line}\n"))
        });
    }
    print_events(
        &job,
        args.follow,
        Printer::new(OutputFormat::Text, args.verbose).with_progress_on_stdout(),
    )?;
    report_death(&job);
    Ok(())
}

/// Attaches to the session of a job at a terminal. If the job has ended or there is no terminal,
/// prints its events.
fn attach_to_job(haft: &Haft, args: &AttachJobArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let job = JobFolder::new(settings.places.jobs_folder()).find_job(&args.id)?;
    if is_at_terminal()
        && job.is_running()
        && let Some(exit) = attach_to_session(&settings, &job)?
    {
        return Ok(exit);
    }
    print_events(&job, true, Printer::new(OutputFormat::Text, args.verbose))?;
    report_death(&job);
    Ok(match job.state() {
        JobState::Ended(result) => result.outcome.into(),
        JobState::Running | JobState::Died => ProcessExit::Failed,
    })
}

/// Attaches to the session of a running job. Returns `None` if it has none, or has none yet.
fn attach_to_session(
    settings: &Settings,
    job: &BackgroundJob,
) -> anyhow::Result<Option<ProcessExit>> {
    let Some(conversation) = job.conversation_id() else {
        return Ok(None);
    };
    wiring::build_runtime()?.block_on(async {
        let sessions = RunningSessions::find(settings).await?;
        match sessions.find_conversation(conversation.as_str()) {
            Some(session) => {
                attach::attach_at_terminal(settings, session, InterfaceStyle::AsConfigured)
                    .await
                    .map(Some)
            }
            None => Ok(None),
        }
    })
}

/// Prints the events of a job as `haft run` would have printed them.
fn print_events(job: &BackgroundJob, wait: bool, mut printer: Printer) -> anyhow::Result<()> {
    follow_events(job, wait, |line| {
        // This version may not know an event that another version of haft wrote.
        if let Ok(event) = serde_json::from_str::<Event>(line) {
            printer.event(&event);
        }
        Ok(())
    })
}

fn report_death(job: &BackgroundJob) {
    match job.state() {
        JobState::Running | JobState::Ended(_) => {}
        JobState::Died => output::print_to_stderr(&format!("haft: {}", death_message(job))),
    }
}

/// Describes why a job ended without a result, and what can be done.
fn death_message(job: &BackgroundJob) -> String {
    let message = job.error_output();
    let why = if message.is_empty() {
        text!("jobs-why-killed").to_owned()
    } else {
        message
    };
    match job.conversation_id() {
        Some(id) => {
            text!(
                "jobs-lost",
                id = job.request.id,
                why,
                conversation = id.short_prefix()
            )
        }
        None => text!("jobs-lost-unstarted", id = job.request.id, why),
    }
}
