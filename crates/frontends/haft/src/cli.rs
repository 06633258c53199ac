//! The command line, literally: what was typed, not yet what it means.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use haft_types::{Api, PermissionMode};

use crate::commands::catalogue::CatalogueArgs;
use crate::commands::changes::{ChangesArgs, RedoArgs, RewindArgs, UndoArgs};
use crate::commands::context::ContextArgs;
use crate::commands::conversations::ConversationsArgs;
use crate::commands::count::CountArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::hooks::HooksArgs;
use crate::commands::jobs::JobsArgs;
use crate::commands::lib::LibArgs;
use crate::commands::logs::LogArgs;
#[cfg(feature = "mcp")]
use crate::commands::mcp::McpArgs;
use crate::commands::models::ModelsArgs;
use crate::commands::notes::NotesArgs;
use crate::commands::permissions::PermissionsArgs;
#[cfg(feature = "rag")]
use crate::commands::rag::RagArgs;
use crate::commands::review::ReviewArgs;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::tools::ToolsArgs;
use crate::commands::useful::UsefulArgs;
#[cfg(feature = "workflows")]
use crate::commands::workflows::WorkflowsArgs;

/// The top of `haft --help`: commands in groups, in the order people meet them.
const HELP: &str = "\
{about}

{usage-heading} {usage}

Run:
  run            Give the model a task and print what comes of it
  review         Have the model look at a change, without touching anything
  workflows      Run steps for agents, each once what it needs is done
  jobs           List, show, watch and end runs in the background
  demo           Watch the agent fix a bug, with no key and no network

Conversations:
  conversations  List, show, search, fork, export, import and back up
  rewind         Go back to a message, with or without the files

Context:
  context        Look at what was sent: segments, budget, differences, breaks, bytes; what-if replay

Knowledge:
  rules          List, show, add and remove words the model works by
  skills         List, show, add and remove instructions for kinds of tasks
  commands       List, show, add and remove prompts you call by name
  agents         List, show, add and remove roles for sub-agents
  lib            Send the documentation of libraries this project uses
  rag            List, add, remove, ask and serve collections of documents
  useful         Keep file ranges in view of a conversation
  notes          Write and read notes on folders and files of this project

Tools:
  tools          List and show what the model can call, and add programs of your own
  mcp            List, add, remove and test MCP servers, and log in to them

Safety:
  trust          Trust a folder, or show what it would run
  changes        Show what a conversation changed in files
  undo           Take changes of files back
  redo           Bring back what an undo took back
  permissions    Show, add and explain what may happen without asking
  sandbox        Show what holds commands in, and try to leave it
  hooks          List the commands that are run at points of a run

Models:
  models         List, show, declare and test models
  count          Count the tokens of files

System:
  config         Show the configuration and where each value comes from
  doctor         Check what is stored and what haft needs, and repair what can be
  logs           Show the log, or follow it
  events         Describe the lines that programs read and write
  completions    Print completions for a shell
  help           Show help for a command

Options:
{options}

Exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 a person is needed, 4 a limit was reached, 130 cancelled.";

/// The commands of extensions, each with the feature that brings it, and whether this build has it.
const EXTENSION_COMMANDS: [(&[&str], &str, bool); 6] = [
    (&["conversations", "import"], "imports", cfg!(feature = "imports")),
    (&["context", "replay"], "lab", cfg!(feature = "lab")),
    (&["mcp"], "mcp", cfg!(feature = "mcp")),
    (&["rag"], "rag", cfg!(feature = "rag")),
    (&["workflow"], "workflows", cfg!(feature = "workflows")),
    (&["workflows"], "workflows", cfg!(feature = "workflows")),
];

/// The same without the commands of extensions that are not in this build.
fn help() -> String {
    let is_here = |line: &&str| {
        let name = line.strip_prefix("  ").and_then(|line| line.split_once(' ')).map(|(name, _)| name);
        !EXTENSION_COMMANDS.iter().any(|(command, _, is_here)| !is_here && name.is_some_and(|name| *command == [name]))
    };
    HELP.lines().filter(is_here).collect::<Vec<_>>().join("\n")
}

/// Why arguments that name a command of an extension mean nothing in this build: they must not be taken for a prompt.
fn absent_command(args: &[OsString]) -> Option<String> {
    let is_named =
        |command: &[&str]| args.len() >= command.len() && command.iter().zip(args).all(|(one, arg)| arg == one);
    let (command, feature, _) =
        EXTENSION_COMMANDS.iter().find(|(command, _, is_here)| !is_here && is_named(command))?;
    Some(format!("`haft {}` is not in this build; build it with `--features {feature}`\n", command.join(" ")))
}

/// A coding agent for the terminal, built around a context engine.
#[derive(Debug, Parser)]
#[command(name = "haft", version, help_template = help(), override_usage = "haft [PROMPT]\n       haft <COMMAND>\n       haft -p <PROMPT>", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// Same as `haft run PROMPT`, for those who know it by this name.
    #[arg(short = 'p', long = "print")]
    pub(crate) print: bool,

    /// Talk in lines and words only, with nothing drawn twice: for screen readers.
    #[arg(long)]
    pub(crate) plain: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

impl Cli {
    /// The command line as clap knows it. `haft -p` takes what `haft run` takes, but only `haft run --help` shows it.
    pub(crate) fn definition() -> clap::Command {
        Self::command().mut_args(|arg| {
            let shown = ["print", "plain", "help", "version"].contains(&arg.get_id().as_str());
            arg.hide(!shown)
        })
    }

    /// Parses the arguments of this process.
    pub(crate) fn from_process() -> Result<Self, clap::Error> {
        // Without a terminal there is nobody to talk to.
        let mut definition = Self::definition().arg_required_else_help(!at_a_terminal());
        let args: Vec<_> = std::env::args_os().collect();
        if let Some(absent) = absent_command(args.get(1..).unwrap_or_default()) {
            return Err(definition.error(ErrorKind::InvalidSubcommand, absent));
        }
        Self::from_arg_matches(&definition.try_get_matches_from(args)?)
    }
}

/// Whether a person sits in front of this process.
pub(crate) fn at_a_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Give the model a task and print what comes of it.
    ///
    /// Without a prompt, the task is read from standard input; with one, piped standard input is attached to it.
    Run(Box<RunArgs>),
    /// Have the model look at a change, without touching anything: what is not committed, a branch, or a commit.
    Review(Box<ReviewArgs>),
    /// Run steps for agents, each once what it needs is done; list, show, add and remove such workflows.
    ///
    /// They lie in `.haft/workflows` of the project and in your own `workflows` folder, as YAML. `docs/workflows.md` describes them.
    #[cfg(feature = "workflows")]
    #[command(visible_alias = "workflow")]
    Workflows(WorkflowsArgs),
    /// List, show, watch and end runs in the background, which `haft run --bg` starts.
    Jobs(JobsArgs),
    /// Watch the agent fix a bug, with no key and no network: a scripted model drives the real agent.
    Demo(DemoArgs),
    /// List, show, search, fork, export, import and back up.
    Conversations(ConversationsArgs),
    /// Look at what was sent, and at what would be sent next.
    Context(ContextArgs),
    /// List, show, add and remove words the model works by.
    ///
    /// They lie in `.haft/rules` of the project and in your own `rules` folder, as Markdown. The front matter says when they are
    /// sent: `alwaysApply: true` in every request, `globs` once a matching file is touched, neither when the model reads them.
    Rules(CatalogueArgs),
    /// List, show, add and remove instructions for kinds of tasks.
    Skills(CatalogueArgs),
    /// List, show, add and remove prompts you call by name, as in `haft run "/review src/main.rs"`.
    Commands(CatalogueArgs),
    /// List, show, add and remove roles for sub-agents.
    Agents(CatalogueArgs),
    /// Send the documentation of libraries this project uses.
    ///
    /// It comes from a git repository laid out `domain/user/library`, a public one unless `haft lib proxy` names another.
    Lib(LibArgs),
    /// List, add, remove and ask collections of documents the model can search.
    #[cfg(feature = "rag")]
    Rag(RagArgs),
    /// Keep file ranges in view of a conversation.
    Useful(UsefulArgs),
    /// Write and read notes on folders and files of this project.
    Notes(NotesArgs),
    /// List and show what the model can call, and add programs of your own.
    Tools(ToolsArgs),
    /// List, add, remove and test MCP servers, and log in to them.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Show what a conversation changed in files.
    Changes(ChangesArgs),
    /// Take changes of files back: those of the last call, of another one, of a message, or all.
    ///
    /// Only what haft changed is touched. A file someone else changed since is left as it is, and named; the exit code is 3 then.
    Undo(UndoArgs),
    /// Bring back what the last undo took back.
    Redo(RedoArgs),
    /// Go back to a message, with or without the files.
    ///
    /// The conversation stays as it is; a fork that ends at the message becomes the current one. Files that someone else changed
    /// since are left as they are, and named; the exit code is 3 then.
    Rewind(RewindArgs),
    /// Show, add and explain what may happen without asking.
    Permissions(PermissionsArgs),
    /// Show what holds commands in, and try to leave it.
    Sandbox(SandboxArgs),
    /// List the commands that are run at points of a run, yours and those of the project.
    Hooks(HooksArgs),
    /// List, show, declare and test models.
    Models(ModelsArgs),
    /// Count the tokens of files.
    Count(CountArgs),
    /// Trust a folder: obey its instruction files, and run what it configures.
    Trust(TrustArgs),
    /// Show the configuration and where each value comes from.
    Config(ConfigArgs),
    /// Check what is stored and what haft needs, and repair what can be.
    ///
    /// Exit code 0 when the store is sound, whatever the network; 1 when damage was found.
    Doctor(DoctorArgs),
    /// Show what went wrong without stopping a run, or follow it as it happens.
    ///
    /// The log lies in `state/log`, a file a day for two weeks; `log_level` says how much is in it.
    Logs(LogArgs),
    /// Describe what `--output-format stream-json` prints and `--input-format stream-json` reads.
    Events(EventsArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What every command takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Common {
    /// Set a configuration value, such as `retry.attempts=2`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The folder; the project around the current one when absent.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Only show how it stands and what it would run; nothing is changed.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Take the trust back.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// As JSON; with `--show`.
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The task.
    pub(crate) prompt: Option<String>,

    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Take the role, tools and model of this agent (`haft agents list` shows them).
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Go on with the current conversation of this project; without a prompt, with its interrupted turn.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) resume_current: bool,

    /// Go on with this conversation: an id, the beginning of one, or a name. At a terminal, without one: choose it there.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// With `-c` or `-r`: go on in a copy of the conversation, and leave the conversation as it is.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// What to read from standard input.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) input_format: InputFormat,

    /// Read and print JSON in the shape of another program.
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,

    /// With `--compat claude`: print words while they arrive, as `stream_event`.
    #[arg(long, requires = "compat")]
    pub(crate) include_partial_messages: bool,

    /// How much may happen without asking: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Ask before what needs permission, instead of refusing it: on the terminal, or with `--input-format stream-json` whoever
    /// writes that.
    #[arg(long)]
    pub(crate) ask: bool,

    /// Run in the background: print the job's id once the task is stored, and return. `haft jobs` does the rest.
    #[arg(long, conflicts_with = "ask")]
    pub(crate) bg: bool,

    /// Be this job.
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "bg")]
    pub(crate) job: Option<String>,

    /// Offer only these tools: names, groups or profiles (`haft tools list` shows them), `*`, `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,

    /// Work on the task as a goal: go on until the model reports all of it as reached, within a limit (`--max-…`) you give.
    #[arg(long)]
    pub(crate) goal: bool,

    /// The answer must be JSON that fits this schema: the schema itself, or a file that holds it. The answer is in
    /// `structured_output` of the result.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Stop after this many replies of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when this many tokens are used, input and output together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_total_tokens: Option<u64>,

    /// Stop when this much money is spent.
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
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
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Let tools work in this folder too; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Name a file as the focus of the task; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Vec<String>,

    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// What `haft run` prints.
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

/// What `haft run` reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// The task, or an attachment to it.
    #[default]
    Text,
    /// One JSON object a line: messages, interrupts and approvals, until the input ends. `docs/events.md` describes them.
    StreamJson,
}

/// Programs whose shapes haft speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// The messages Claude Code's SDK reads and writes.
    Claude,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The wire protocol to speak: openai-chat, openai-responses, anthropic or gemini.
    #[arg(long, default_value = "anthropic")]
    pub(crate) api: Api,

    /// Keep the sample project and say where it is.
    #[arg(long)]
    pub(crate) keep: bool,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self { api: Api::Anthropic, keep: false }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// As JSON schemas.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value.
    Show {
        /// Say where each value comes from.
        #[arg(long)]
        origin: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "expected a number above 0".into())
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    positive(text).and_then(|seconds| Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_stands_in_a_group_of_the_help() {
        for command in Cli::command().get_subcommands() {
            let line = format!("\n  {:<15}", command.get_name());
            assert!(help().contains(&line), "`{}` is missing from the help", command.get_name());
        }
    }

    #[test]
    fn the_help_names_no_command_that_is_not_here() {
        let command = Cli::command();
        let shown = help();
        let groups = shown.split("\n\nOptions:").next().unwrap_or_default();
        for line in groups.lines().filter_map(|line| line.strip_prefix("  ")) {
            let name = line.split(' ').next().unwrap_or_default();
            assert!(name == "help" || command.find_subcommand(name).is_some(), "{line}");
        }
    }

    #[test]
    fn print_is_run() {
        let cli = Cli::try_parse_from(["haft", "-p", "fix it", "-m", "a/b"]).unwrap();
        assert!(cli.print && cli.command.is_none());
        assert_eq!((cli.run.prompt.as_deref(), cli.run.model.as_deref()), (Some("fix it"), Some("a/b")));
    }

    #[test]
    fn permission_modes_have_the_names_people_know() {
        for name in ["yolo", "bypassPermissions"] {
            let cli = Cli::try_parse_from(["haft", "run", "--permission-mode", name, "x"]).unwrap();
            let Some(CliCommand::Run(run)) = cli.command else { panic!("{cli:?}") };
            assert_eq!(run.permission_mode, Some(PermissionMode::Yolo));
        }
    }
}
