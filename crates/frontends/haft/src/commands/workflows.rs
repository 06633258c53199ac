//! `haft workflows`: runs workflows of agent steps, each step after the steps that it needs.

pub(crate) mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use haft_agent::{RandomIds, WallClock};
use haft_engine::turn::TurnLimits;
use haft_project::KnowledgeKind;
use haft_types::PermissionMode;
use haft_workflows::{SelectError, WorkflowError, WorkflowRun, WorkflowRuns};
use report::StepPrinter;
use tokio_util::sync::CancellationToken;

use super::catalogue;
use super::run::approve::TerminalApprover;
use super::run::cancel_on_signals;
use crate::cli::options::{
    Common, OutputFormat, parse_positive, parse_seconds, parse_workflow_input,
};
use crate::commands::catalogue::CatalogueCommand;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct WorkflowsArgs {
    /// Lists when absent.
    #[command(subcommand)]
    pub(crate) command: Option<WorkflowsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowsCommand {
    /// Run a workflow, or continue a run of it.
    ///
    /// Steps that do not need each other run at the same time. A step that fails stops those that
    /// need it, and no others.
    Run(Box<WorkflowRunArgs>),
    #[command(flatten)]
    Catalogue(CatalogueCommand),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArgs {
    /// The workflow's name.
    pub(crate) name: String,

    /// Set an input; may be repeated.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = parse_workflow_input)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Continue its last run in this project: only steps that are not done run.
    #[arg(short = 'c', long = "continue", conflicts_with = "inputs")]
    pub(crate) resume: bool,

    /// The model of steps that name none, nor have an agent that does, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// The permission mode: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Ask on the terminal for permission and for answers to questions, instead of denying; one
    /// step at a time.
    #[arg(long)]
    pub(crate) ask: bool,

    /// Stop each step after this many replies of its model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when all steps together have spent this much money.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_wall_time: Option<Duration>,

    /// Work in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Show whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: Option<WorkflowsCommand>) -> anyhow::Result<ProcessExit> {
    match command {
        None => catalogue::run_subcommand(haft, KnowledgeKind::Workflows, None),
        Some(WorkflowsCommand::Catalogue(command)) => {
            catalogue::run_subcommand(haft, KnowledgeKind::Workflows, Some(command))
        }
        Some(WorkflowsCommand::Run(args)) => run_workflow(haft, *args),
    }
}

fn run_workflow(haft: &Haft, args: WorkflowRunArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let project = haft.project(args.cwd.as_deref())?;
    let (workflow, agents) = haft_workflows::select_workflow(
        &settings.places,
        &settings.config,
        &project,
        &args.name,
        args.model.as_deref(),
    )
    .map_err(print_and_convert_error)?;
    for notice in &workflow.notices {
        let notice = output::localize_text(notice);
        output::print_to_stderr(&haft_text::sanitize(&format!("haft: {notice}")));
    }
    let runs = WorkflowRuns::new(settings.places.workflows_folder());
    let namespace = project.namespace();
    let held = if args.resume {
        runs.resume_newest(&workflow, &namespace)
    } else {
        let inputs = workflow
            .fill_inputs(&args.inputs.iter().cloned().collect())
            .map_err(|error| usage_error(output::localize_text(error)))?;
        runs.begin_run(&workflow, &namespace, inputs, &WallClock, &RandomIds)
    };
    let held = held.map_err(|error| explain_run_error(error, &args.name))?;
    let approver = args
        .ask
        .then(|| TerminalApprover::open(&settings.places))
        .transpose()?;
    let run = WorkflowRun {
        agent: settings.build_agent(),
        places: settings.places,
        config: settings.config,
        project,
        workflow: workflow.clone(),
        agents,
        model: args.model,
        mode: args.permission_mode,
        limits: TurnLimits {
            turns: args.max_turns,
            tokens: None,
            budget_usd: args.max_budget_usd,
            wall_time: args.max_wall_time,
        },
        approver: approver.map(|approver| Arc::new(approver) as _),
        cancel: CancellationToken::new(),
    };
    let printer = Box::new(StepPrinter::new(args.output_format, args.verbose));
    let work = async {
        cancel_on_signals(&run.cancel);
        run.run(held, printer).await
    };
    // Steps are not moved between threads: one thread is enough to wait for models.
    let report = wiring::build_runtime()?.block_on(tokio::task::LocalSet::new().run_until(work))?;
    let exit = if report.never_valid {
        ProcessExit::Usage
    } else {
        report.result.outcome.into()
    };
    report::print_result(report, &workflow, args.output_format);
    Ok(exit)
}

/// Converts the error of a workflow run. An error that the user can resolve becomes a usage error
/// with advice.
fn explain_run_error(error: WorkflowError, name: &str) -> anyhow::Error {
    match error {
        WorkflowError::NoRun(_) => usage_error(text!("workflows-none-to-continue", error, name)),
        WorkflowError::Changed { .. } => {
            usage_error(text!("workflows-cannot-continue", error, name))
        }
        WorkflowError::Busy(_) => usage_error(error.to_string()),
        WorkflowError::File { .. } | WorkflowError::Panicked(_) => error.into(),
    }
}

/// Prints the problems of an invalid workflow file, one per line, and converts the error for the
/// caller.
pub(crate) fn print_and_convert_error(error: SelectError) -> anyhow::Error {
    match error {
        SelectError::Setup(error) => return error.into(),
        SelectError::Invalid { ref problems, .. } => {
            for problem in problems {
                output::print_to_stderr(&format!("haft: {}", output::localize_text(problem)));
            }
        }
        SelectError::Unknown { .. } | SelectError::Untrusted { .. } | SelectError::Step { .. } => {}
    }
    usage_error(output::localize_text(error))
}
