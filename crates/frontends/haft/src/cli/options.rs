//! Options that several commands share, and the options of a run.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use haft_claude::ClaudeOptions;
use haft_types::PermissionMode;

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Set a configuration value, such as `retry.attempts=2`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// The commands that write or describe config.toml, which accept no `--set`.
const COMMANDS_WITHOUT_SET: [[&str; 2]; 8] = [
    ["config", "edit"],
    ["config", "path"],
    ["config", "schema"],
    ["config", "set"],
    ["config", "unset"],
    ["models", "add"],
    ["permissions", "add"],
    ["permissions", "remove"],
];

/// Returns true if the command of these arguments accepts `--set`.
pub(crate) fn accepts_set(arguments: &[String]) -> bool {
    match arguments {
        [noun, verb, ..] => !COMMANDS_WITHOUT_SET.contains(&[noun.as_str(), verb.as_str()]),
        _ => true,
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The task; read from standard input when absent or `-`.
    pub(crate) prompt: Option<String>,

    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Use the role, tools and model of this agent (see `haft agents list`).
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Continue the current conversation of this project; without a prompt, resume its interrupted
    /// turn.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) resume_current: bool,

    /// Continue this conversation: an id, the beginning of one, or a name. At a terminal, without
    /// a value: choose from a list.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// With `-c` or `-r`: continue in a copy, and leave the conversation unchanged.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// The format of standard input.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) input_format: InputFormat,

    /// Read and print JSON in the format of another program.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,

    /// With `--compat claude`: print text while it arrives, as `stream_event`.
    #[arg(long, requires = "compat")]
    pub(crate) include_partial_messages: bool,

    /// The permission mode: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Allow what this rule matches, in this run only; may be repeated. See `haft permissions add
    /// --help`.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Deny what this rule matches, in this run only; may be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,

    /// Ask for permission instead of denying it: on the terminal, or with `--input-format
    /// stream-json` the program that writes the input.
    #[arg(long)]
    pub(crate) ask: bool,

    /// Run in the background: print the job's id once the task is stored, and exit. See `haft
    /// jobs`.
    #[arg(long, conflicts_with = "ask")]
    pub(crate) bg: bool,

    /// Wait at a question for an answer through `haft attach`, instead of ending; and retry however
    /// long the provider asks to wait.
    #[arg(long)]
    pub(crate) stay: bool,

    /// Run as the process of the background job with this id (passed by `--bg`).
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "bg")]
    pub(crate) job: Option<String>,

    /// Offer only these tools: names, groups or profiles (see `haft tools list`), `*` or `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,

    /// Treat the task as a goal: continue until the model reports it reached; needs a limit
    /// (`--max-…`).
    #[arg(long)]
    pub(crate) goal: bool,

    /// Require an answer in JSON that matches this schema: the schema itself, or a file that holds
    /// it. The answer is in `structured_output` of the result.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Stop after this many replies of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when this many tokens are used, input and output together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_total_tokens: Option<u64>,

    /// Stop when this much money is spent.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_wall_time: Option<Duration>,

    /// Use this system prompt in place of the built-in role.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// Read the system prompt from a file.
    #[arg(long, value_name = "PATH")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Add this text as the last section of the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,

    /// Work in this folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Let tools access this folder, too; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Add a focus file for the task; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<String>,

    /// Send this picture with the prompt: PNG, JPEG, GIF or WebP; may be repeated.
    #[arg(short = 'i', long, value_name = "PATH")]
    pub(crate) image: Vec<PathBuf>,

    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,

    /// Further options of a Claude Code command line.
    #[arg(skip)]
    pub(crate) claude: ClaudeOptions,
}

/// Formats that `haft run` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer on stdout, progress on stderr.
    #[default]
    Text,
    /// The result as one JSON object.
    Json,
    /// One JSON event a line.
    StreamJson,
}

/// Formats that `haft run` reads from standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// The task, or an attachment to it.
    #[default]
    Text,
    /// One JSON object a line: messages, interrupts and approvals, until the input ends. `haft
    /// events` describes them.
    StreamJson,
}

/// Programs whose JSON formats haft supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// The messages Claude Code's SDK reads and writes.
    Claude,
}

pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| text!("cli-not-positive").into())
}

/// Parses an input of a workflow, `NAME=VALUE`.
#[cfg(any(feature = "postgres", feature = "workflows"))]
pub(crate) fn parse_workflow_input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or(text!("workflows-bad-input"))?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_positive(text)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()))
}

/// Returns true if both stdin and stdout are terminals.
pub(crate) fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
