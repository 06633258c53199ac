//! `haft review`: lets the model review a change, with tools that only read.

pub(super) mod diff;

use clap::Args;
use haft_agent::{find_knowledge_and_trust, set_up_sandbox};
use haft_sandbox::{Git, GitProgram};
use haft_types::PermissionMode;

use super::run;
use crate::cli::options::{Common, OutputFormat, RunArgs, parse_positive};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// What to focus on.
    pub(crate) instructions: Option<String>,

    #[command(flatten)]
    pub(crate) of: ReviewTarget,

    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// Stop after this many replies of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when this much money is spent.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// The change to review: a branch or a commit, or else uncommitted work.
#[derive(Debug, Args)]
pub(crate) struct ReviewTarget {
    /// Review everything since this branch diverged from another one.
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    pub(crate) base: Option<String>,

    /// Review one commit.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
}

const PROMPT: &str = include_str!("review/prompt.md");

/// The tools of a reviewer. Commands are not included, because plan mode denies them.
const REVIEW_TOOLS: [&str; 7] = [
    "read_file",
    "list_files",
    "glob",
    "search_files",
    "list_code_definition_names",
    "recall",
    "count_tokens",
];

pub(crate) fn run(haft: &Haft, args: ReviewArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let project = haft.project(None)?;
    // git runs programs that a repository configures, so it must not run in an untrusted
    // repository.
    let (_, trust_state) = find_knowledge_and_trust(&settings.places, &project)?;
    if !trust_state.is_trusted() {
        let root = project.root.display();
        return Err(usage_error(text!("review-untrusted", root)));
    }
    let mode = PermissionMode::Plan;
    let sandbox = wiring::build_runtime()?.block_on(set_up_sandbox(
        &settings.places,
        &settings.config.sandbox,
        mode,
        Vec::new(),
    ))?;
    let host = haft.environment();
    let root = project.root.as_path();
    let git = GitProgram::find(
        &host.supervisor(),
        &sandbox,
        &host.child_environment(),
        &[root],
    )
    .and_then(|program| Git::open(program, root, &settings.places.git_folder()))
    .map_err(|error| usage_error(error.to_string()))?;
    let change = diff::load_change(&git, root, &args.of)?;
    let wishes = args
        .instructions
        .as_deref()
        .map(str::trim)
        .filter(|wishes| !wishes.is_empty());
    let wishes = wishes.map_or_else(String::new, |wishes| {
        format!("\n\nLook at this above all: {wishes}")
    });
    let task = format!(
        "{}{wishes}\n\nThe change: {}\n\n{}",
        PROMPT.trim_end(),
        change.what,
        change.text
    );
    let asked = RunArgs {
        prompt: Some(task),
        model: args.model,
        output_format: args.output_format,
        permission_mode: Some(mode),
        allowed_tools: Some(REVIEW_TOOLS.map(str::to_owned).to_vec()),
        max_turns: args.max_turns,
        max_budget_usd: args.max_budget_usd,
        verbose: args.verbose,
        common: args.common,
        ..RunArgs::default()
    };
    run::run(haft, &asked)
}
