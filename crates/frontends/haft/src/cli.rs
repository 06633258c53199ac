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
use crate::commands::reference;
use crate::commands::review::ReviewArgs;
use crate::commands::sandbox::SandboxArgs;
use crate::commands::tools::ToolsArgs;
use crate::commands::useful::UsefulArgs;
#[cfg(feature = "workflows")]
use crate::commands::workflows::WorkflowsArgs;

/// The commands of extensions, each with the feature that brings it, and whether this build has it.
const EXTENSION_COMMANDS: [(&[&str], &str, bool); 6] = [
    (&["conversations", "import"], "imports", cfg!(feature = "imports")),
    (&["context", "replay"], "lab", cfg!(feature = "lab")),
    (&["mcp"], "mcp", cfg!(feature = "mcp")),
    (&["rag"], "rag", cfg!(feature = "rag")),
    (&["workflow"], "workflows", cfg!(feature = "workflows")),
    (&["workflows"], "workflows", cfg!(feature = "workflows")),
];

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
#[command(
    name = "haft",
    version,
    override_usage = "haft [PROMPT]\n       haft <COMMAND>\n       haft -p <PROMPT>",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    /// Run a task and exit, same as `haft run PROMPT`.
    #[arg(short = 'p', long = "print")]
    pub(crate) print: bool,

    /// Use plain lines of text, nothing redrawn: for screen readers.
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
        let command = Self::command().mut_args(|arg| {
            let shown = ["print", "plain", "help", "version"].contains(&arg.get_id().as_str());
            arg.hide(!shown)
        });
        let template = reference::help_template(&command);
        command.help_template(template)
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
    /// Run a task with the model and print its answer.
    ///
    /// Without a prompt, the task is read from standard input; with one, piped standard input is attached to it.
    Run(Box<RunArgs>),
    /// Review a change: uncommitted work, a branch or a commit.
    Review(Box<ReviewArgs>),
    /// Run workflows of agent steps; list, show, add and remove them.
    ///
    /// Workflows lie in `.haft/workflows` of the project and in your own `workflows` folder, as YAML. `docs/workflows.md` describes them.
    #[cfg(feature = "workflows")]
    #[command(visible_alias = "workflow")]
    Workflows(WorkflowsArgs),
    /// List, show, follow and stop background runs.
    ///
    /// `haft run --bg` starts a run in the background.
    Jobs(JobsArgs),
    /// Run a demo that fixes a bug, without a key or network.
    ///
    /// A scripted model drives the real agent.
    Demo(DemoArgs),
    /// List, show, search, fork, export, import and back up conversations.
    Conversations(ConversationsArgs),
    /// Inspect, replay and edit what is sent to the model.
    Context(ContextArgs),
    /// Manage rules the model follows.
    ///
    /// Rules lie in `.haft/rules` of the project and in your own `rules` folder, as Markdown. The front matter says when a rule is
    /// sent: `alwaysApply: true` in every request, `globs` once a matching file is touched, neither when the model reads it.
    Rules(CatalogueArgs),
    /// Manage skills: instructions for kinds of tasks.
    Skills(CatalogueArgs),
    /// Manage slash commands: prompts you call by name.
    ///
    /// `haft run "/review src/main.rs"` calls the command `review`.
    Commands(CatalogueArgs),
    /// Manage sub-agents: roles the model can delegate tasks to.
    Agents(CatalogueArgs),
    /// Manage library documentation that is sent with every request.
    ///
    /// It comes from a git repository laid out `domain/user/library`, a public one unless `haft lib proxy` names another.
    Lib(LibArgs),
    /// Manage, query and serve collections of documents (RAG).
    #[cfg(feature = "rag")]
    Rag(RagArgs),
    /// Manage file ranges that stay in the context of a conversation.
    Useful(UsefulArgs),
    /// Manage notes on folders and files of this project.
    Notes(NotesArgs),
    /// List and show tools, and add programs of your own.
    Tools(ToolsArgs),
    /// Manage MCP servers: list, add, remove, test and log in.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
    /// Show which files a conversation changed.
    Changes(ChangesArgs),
    /// Undo file changes.
    ///
    /// By default it undoes the last call that changed files; options name another call, a message, or everything. Only what haft
    /// changed is touched. A file that something else changed since is left as it is, and reported; the exit code is 3 then.
    Undo(UndoArgs),
    /// Redo file changes that were undone.
    Redo(RedoArgs),
    /// Rewind a conversation to a message, with or without the files.
    ///
    /// The conversation itself is kept; a fork that ends at the message becomes the current one. Files that something else changed
    /// since are left as they are, and reported; the exit code is 3 then.
    Rewind(RewindArgs),
    /// List, add and explain permission rules.
    Permissions(PermissionsArgs),
    /// Show sandbox status, and test the sandbox.
    Sandbox(SandboxArgs),
    /// List hooks: your commands that haft runs at points of a run.
    ///
    /// Hooks come from your configuration and from the project.
    Hooks(HooksArgs),
    /// List, show, add and test models.
    Models(ModelsArgs),
    /// Count the tokens of files.
    Count(CountArgs),
    /// Trust a folder, or show what it would run.
    ///
    /// Instruction files of a trusted folder are sent to the model, and what it configures (hooks, MCP servers, tools) may run.
    Trust(TrustArgs),
    /// Show the configuration and where each value comes from.
    Config(ConfigArgs),
    /// Check the store and the environment, and repair what can be repaired.
    ///
    /// Exit code 0 when the store is sound, whatever the network; 1 when damage was found.
    Doctor(DoctorArgs),
    /// Show or follow the log.
    ///
    /// The log records what went wrong without stopping a run. It lies in `state/log`, a file a day for two weeks; `log_level` sets how much is in it.
    Logs(LogArgs),
    /// Describe the JSON events that programs read and write.
    ///
    /// `--output-format stream-json` prints them, `--input-format stream-json` reads them.
    Events(EventsArgs),
    /// Print shell completions.
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
    /// Only show whether it is trusted and what it would run.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Revoke the trust.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON, with `--show`.
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The task; read from standard input when absent.
    pub(crate) prompt: Option<String>,

    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Use the role, tools and model of this agent (see `haft agents list`).
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Continue the current conversation of this project; without a prompt, resume its interrupted turn.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) resume_current: bool,

    /// Continue this conversation: an id, the beginning of one, or a name. At a terminal, without a value: choose from a list.
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

    /// Ask for permission instead of denying it: on the terminal, or with `--input-format stream-json` the
    /// program that writes the input.
    #[arg(long)]
    pub(crate) ask: bool,

    /// Run in the background: print the job's id once the task is stored, and exit. See `haft jobs`.
    #[arg(long, conflicts_with = "ask")]
    pub(crate) bg: bool,

    /// Be this job.
    #[arg(long, value_name = "ID", hide = true, conflicts_with = "bg")]
    pub(crate) job: Option<String>,

    /// Offer only these tools: names, groups or profiles (see `haft tools list`), `*` or `none`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,

    /// Treat the task as a goal: continue until the model reports it reached; needs a limit (`--max-…`).
    #[arg(long)]
    pub(crate) goal: bool,

    /// Require an answer in JSON that matches this schema: the schema itself, or a file that holds it. The answer is in
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

    /// Let tools access this folder, too; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Add a focus file for the task; may be repeated.
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

/// Programs whose JSON formats haft supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// The messages Claude Code's SDK reads and writes.
    Claude,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The wire protocol: openai-chat, openai-responses, anthropic or gemini.
    #[arg(long, default_value = "anthropic")]
    pub(crate) api: Api,

    /// Keep the sample project and print its path.
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
    /// Print JSON schemas.
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
    /// Show every setting.
    Show {
        /// Show where each value comes from.
        #[arg(long)]
        origin: bool,
        /// Print JSON.
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
