//! Defines the command line and dispatches its commands.

mod foreign_flags;
mod lone_word;
pub(crate) mod options;
pub(crate) mod reference;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use haft_claude::{ClaudeCommandLine, ClaudeOptions};
use haft_project::KnowledgeKind;

use self::lone_word::LoneWord;
use self::options::{RunArgs, is_at_terminal};
use crate::commands;
use crate::commands::claude;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::interactive::InterfaceStyle;
use crate::output::usage;

/// Commands of optional extensions: the words of the command, the cargo feature that adds the
/// command, and true if this build has the feature.
const EXTENSION_COMMANDS: [(&[&str], &str, bool); 12] = [
    (&["acp"], "acp", cfg!(feature = "acp")),
    (
        &["conversations", "import"],
        "imports",
        cfg!(feature = "imports"),
    ),
    (&["context", "replay"], "lab", cfg!(feature = "lab")),
    (&["man"], "man", cfg!(feature = "man")),
    (&["mcp"], "mcp", cfg!(feature = "mcp")),
    (&["proxy"], "proxy", cfg!(feature = "proxy")),
    (&["queue"], "postgres", cfg!(feature = "postgres")),
    (&["rag"], "rag", cfg!(feature = "rag")),
    (&["serve"], "serve", cfg!(feature = "serve")),
    (&["worker"], "postgres", cfg!(feature = "postgres")),
    (&["workflow"], "workflows", cfg!(feature = "workflows")),
    (&["workflows"], "workflows", cfg!(feature = "workflows")),
];

/// Returns an error message if the arguments are a command of an extension that this build lacks.
/// Without this check, the arguments would be treated as a prompt.
fn explain_absent_command(args: &[OsString]) -> Option<String> {
    let (command, feature, _) = EXTENSION_COMMANDS.iter().find(|(command, _, is_here)| {
        !is_here
            && args.len() >= command.len()
            && command.iter().zip(args).all(|(one, arg)| arg == one)
    })?;
    Some(format!(
        "{}\n",
        text!("cli-not-in-build", command = command.join(" "), feature)
    ))
}

/// Inserts the default command after a noun without a command: `haft models --json` becomes `haft
/// models list --json`.
fn insert_default_command(haft: &clap::Command, mut args: Vec<OsString>) -> Vec<OsString> {
    let noun = args.get(1).and_then(|noun| haft.find_subcommand(noun));
    let default = noun.and_then(|noun| {
        DEFAULT_COMMANDS
            .into_iter()
            .find(|name| noun.find_subcommand(name).is_some())
    });
    let names_none = args.get(2).is_none_or(|next| {
        next.as_encoded_bytes().starts_with(b"-") && next != "-h" && next != "--help"
    });
    if let Some(default) = default.filter(|_| names_none) {
        args.insert(2, default.into());
    }
    args
}

/// The ids of the options that `haft --help` shows: the most used options of `haft run`.
const SHOWN_OPTIONS: [&str; 8] = [
    "print",
    "plain",
    "help",
    "version",
    "resume_current",
    "resume",
    "model",
    "permission_mode",
];

/// Sets the value names of arguments that name a conversation, a message, a call or a job, so that
/// all commands use the same names.
fn set_id_value_names(command: clap::Command, noun: &str) -> clap::Command {
    let is_new = command.get_name() == "new";
    let command = command.mut_args(|arg| match (noun, arg.get_id().as_str()) {
        ("conversations", "id" | "ids") if !is_new => arg.value_name("CONVERSATION"),
        (_, "conversation" | "resume") if arg.get_action().takes_values() => {
            arg.value_name("CONVERSATION")
        }
        ("jobs", "id" | "ids") => arg.value_name("JOB"),
        (_, "message" | "at") => arg.value_name("MESSAGE"),
        (_, "call") => arg.value_name("CALL"),
        _ => arg,
    });
    command.mut_subcommands(|inner| {
        let noun = if noun == "haft" {
            inner.get_name().to_owned()
        } else {
            noun.to_owned()
        };
        set_id_value_names(inner, &noun)
    })
}

/// The possible default commands of a noun such as `haft models`. The first command in this list
/// that the noun has is used.
const DEFAULT_COMMANDS: [&str; 3] = ["list", "show", "status"];

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
    /// Returns clap's definition of the command line. `haft -p` accepts all options of `haft run`,
    /// but only `haft run --help` shows them.
    pub(crate) fn definition() -> clap::Command {
        let command = Self::command().mut_args(|arg| {
            let shown = SHOWN_OPTIONS.contains(&arg.get_id().as_str());
            arg.hide(!shown)
        });
        let command = set_id_value_names(command, "haft");
        let template = reference::help_template(&command, |_| None);
        command.help_template(template)
    }

    /// Parses the arguments of this process.
    pub(crate) fn from_process_args() -> Result<Self, clap::Error> {
        let mut args: Vec<_> = std::env::args_os().collect();
        if let Some(run) = Self::parse_plain_run(&args) {
            return Ok(run);
        }
        // Without a terminal, no interactive session is possible, so a lone `haft` prints the help.
        let mut definition =
            usage::disable_wrapping(Self::definition()).arg_required_else_help(!is_at_terminal());
        let claude = match haft_claude::lower_arguments(&args, &definition) {
            None => None,
            Some(ClaudeCommandLine::Refused(flag)) => {
                return Err(
                    definition.error(ErrorKind::UnknownArgument, claude::rejection_message(&flag))
                );
            }
            Some(ClaudeCommandLine::Lowered {
                args: lowered,
                options,
            }) => {
                args = lowered;
                Some(*options)
            }
        };
        if let Some(absent) = explain_absent_command(args.get(1..).unwrap_or_default()) {
            return Err(definition.error(ErrorKind::InvalidSubcommand, absent));
        }
        let cli = Self::parse_with_definition(&mut definition, args)?;
        Ok(cli.with_claude_options(claude.unwrap_or_default()))
    }

    /// Parses a valid `haft run` without defining the other commands, because their definitions
    /// took a fifth of the time before the first request. Returns `None` for help and errors, which
    /// need the full definition.
    fn parse_plain_run(args: &[OsString]) -> Option<Self> {
        let own = args
            .get(1..)
            .filter(|own| own.first().is_some_and(|command| command == "run"))?;
        if own
            .iter()
            .any(|arg| arg.as_encoded_bytes().starts_with(b"--compat"))
        {
            return None;
        }
        let matches = RunArgs::augment_args(clap::Command::new("run"))
            .try_get_matches_from(own)
            .ok()?;
        let run = RunArgs::from_arg_matches(&matches).ok()?;
        Some(Self {
            print: false,
            plain: false,
            run: RunArgs::default(),
            command: Some(CliCommand::Run(Box::new(run))),
        })
    }

    /// Adds the options of a Claude Code command line to the arguments of the run.
    fn with_claude_options(mut self, options: ClaudeOptions) -> Self {
        match &mut self.command {
            Some(CliCommand::Run(args)) => args.claude = options,
            _ => self.run.claude = options,
        }
        self
    }

    fn parse_with_definition(
        definition: &mut clap::Command,
        args: Vec<OsString>,
    ) -> Result<Self, clap::Error> {
        let args = insert_default_command(definition, args);
        let matches = definition
            .try_get_matches_from_mut(&args)
            .map_err(|error| {
                let error = usage::translate_help(error, &args);
                if let Some(advice) = foreign_flags::suggest_equivalent(
                    definition,
                    args.get(1..).unwrap_or_default(),
                    &error,
                ) {
                    return definition.error(ErrorKind::UnknownArgument, advice);
                }
                let mistyped = lone_word::explain_mistyped_command(
                    definition,
                    args.get(1..).unwrap_or_default(),
                );
                let mistyped = mistyped.filter(|_| {
                    matches!(
                        error.kind(),
                        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict
                    )
                });
                mistyped.map_or(error, |text| {
                    definition.error(ErrorKind::InvalidSubcommand, text)
                })
            })?;
        Self::from_arg_matches(&matches)
    }

    /// Runs the chosen command, or `haft` without a command.
    pub(crate) fn run(self, haft: &Haft) -> anyhow::Result<ProcessExit> {
        match self.command {
            Some(CliCommand::Run(args)) => commands::run::run(haft, &args),
            Some(CliCommand::Chat(args)) => commands::chat::run(haft, *args),
            Some(CliCommand::Review(args)) => commands::review::run(haft, *args),
            Some(CliCommand::Commit(args)) => commands::commit::run(haft, &args),
            #[cfg(feature = "workflows")]
            Some(CliCommand::Workflows(args)) => commands::workflows::run(haft, args.command),
            Some(CliCommand::Attach(args)) => commands::attach::run(haft, &args),
            Some(CliCommand::Jobs(command)) => commands::jobs::run(haft, command),
            #[cfg(feature = "postgres")]
            Some(CliCommand::Queue(args)) => commands::queue::run(haft, args.command),
            #[cfg(feature = "postgres")]
            Some(CliCommand::Worker(args)) => commands::worker::run(haft, *args),
            Some(CliCommand::Demo(args)) => commands::demo::run(haft, &args),
            Some(CliCommand::Conversations(command)) => commands::conversations::run(haft, command),
            Some(CliCommand::Context(command)) => commands::context::run(haft, command),
            #[cfg(feature = "proxy")]
            Some(CliCommand::Proxy(args)) => commands::proxy::run(haft, &args),
            #[cfg(feature = "acp")]
            Some(CliCommand::Acp(args)) => commands::acp::run(haft, args),
            #[cfg(feature = "serve")]
            Some(CliCommand::Serve(args)) => commands::serve::run(haft, &args),
            Some(CliCommand::Rules(args)) => {
                commands::catalogue::run_subcommand(haft, KnowledgeKind::Rules, args.command)
            }
            Some(CliCommand::Skills(args)) => {
                commands::catalogue::run_subcommand(haft, KnowledgeKind::Skills, args.command)
            }
            Some(CliCommand::Commands(args)) => {
                commands::catalogue::run_subcommand(haft, KnowledgeKind::Commands, args.command)
            }
            Some(CliCommand::Agents(args)) => {
                commands::catalogue::run_subcommand(haft, KnowledgeKind::Agents, args.command)
            }
            Some(CliCommand::Worktrees(args)) => commands::worktrees::run(haft, args.command),
            Some(CliCommand::Lib(args)) => commands::lib_command::run(haft, args.command),
            #[cfg(feature = "rag")]
            Some(CliCommand::Rag(args)) => commands::rag::run(haft, args.command),
            Some(CliCommand::Useful(args)) => commands::useful::run(haft, args.command),
            Some(CliCommand::Notes(args)) => commands::notes::run(haft, args.command),
            Some(CliCommand::Tools(args)) => commands::tools::run(haft, args.command),
            #[cfg(feature = "mcp")]
            Some(CliCommand::Mcp(args)) => commands::mcp::run(haft, args.command),
            Some(CliCommand::Changes(args)) => commands::changes::show_changes(haft, &args),
            Some(CliCommand::Undo(args)) => commands::changes::undo(haft, &args),
            Some(CliCommand::Redo(args)) => commands::changes::redo(haft, &args),
            Some(CliCommand::Rewind(args)) => commands::changes::rewind(haft, &args),
            Some(CliCommand::Permissions(command)) => commands::permissions::run(haft, command),
            Some(CliCommand::Sandbox(command)) => commands::sandbox::run(haft, &command),
            Some(CliCommand::Hooks(args)) => commands::hooks::run(haft, args.command),
            Some(CliCommand::Models(args)) => commands::models::run(haft, args.command),
            Some(CliCommand::Count(args)) => commands::count::run(haft, &args),
            Some(CliCommand::Trust(args)) => commands::trust::run(haft, &args),
            Some(CliCommand::Config(command)) => commands::config::run(haft, &command),
            Some(CliCommand::Doctor(args)) => commands::doctor::run(haft, &args),
            Some(CliCommand::Logs(args)) => commands::logs::run(haft, &args),
            Some(CliCommand::Events(args)) => commands::events::describe_events(&args),
            #[cfg(feature = "man")]
            Some(CliCommand::Man(args)) => commands::man::show_or_write_pages(&args),
            Some(CliCommand::Completions { shell }) => commands::completions::print_script(shell),
            None if self.print => commands::run::run(haft, &self.run),
            None => self.run_without_command(haft),
        }
    }

    /// Runs `haft` without a command: starts an interactive session, or treats a lone word as a
    /// mistyped command.
    fn run_without_command(self, haft: &Haft) -> anyhow::Result<ProcessExit> {
        let style = if self.plain {
            InterfaceStyle::Plain
        } else {
            InterfaceStyle::AsConfigured
        };
        // Computed outside the `match`, whose scrutinee would keep all definitions in memory until
        // haft exits.
        let lone_word = lone_word::resolve_lone_word(&Self::definition(), &self.run)?;
        match lone_word {
            LoneWord::Prompt => crate::interactive::run(haft, &self.run, style),
            LoneWord::Command(name) if name == "help" => {
                usage::print_help()?;
                Ok(ProcessExit::Completed)
            }
            LoneWord::Command(name) => {
                match Self::parse_with_definition(
                    &mut Self::definition(),
                    vec!["haft".into(), name.into()],
                ) {
                    Ok(meant) => meant.run(haft),
                    Err(error) => Err(usage_error(error.to_string())),
                }
            }
            LoneWord::Canceled => Ok(ProcessExit::Usage),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run a task with the model and print its answer.
    ///
    /// Without a prompt, the task is read from standard input; with one, piped standard input is
    /// attached to it.
    #[command(alias = "exec")]
    Run(Box<RunArgs>),
    /// Talk with the model without tools.
    ///
    /// The model of the role `chat` answers (`[model_roles]`), the main model when it is not set.
    /// Without a prompt it is a session at the terminal.
    Chat(Box<RunArgs>),
    /// Review a change: uncommitted work, a branch or a commit.
    Review(Box<commands::review::ReviewArgs>),
    /// Write the message for what is staged, and commit.
    ///
    /// The model of the role `commit` words it (`[model_roles]`). It is shown with its cost, and
    /// you are asked before anything is committed. Hooks are not run.
    Commit(Box<commands::commit::CommitArgs>),
    /// Run workflows of agent steps; list, show, add and remove them.
    ///
    /// Workflows lie in `.haft/workflows` of the project and in your own `workflows` folder, as YAML: <https://github.com/haft-agent/haft/blob/main/docs/workflows.md>.
    #[cfg(feature = "workflows")]
    #[command(alias = "workflow")]
    Workflows(commands::workflows::WorkflowsArgs),
    /// Follow a running session, answer its questions and send it messages.
    ///
    /// The session goes on when you leave. The first answer to a question counts, and all others
    /// see it.
    Attach(commands::attach::AttachArgs),
    /// List, show, follow and stop background runs.
    ///
    /// `haft run --bg` starts a run in the background.
    #[command(subcommand, alias = "job")]
    Jobs(commands::jobs::JobsCommand),
    /// Add, list, watch and cancel tasks for workers.
    ///
    /// The queue is in the team's PostgreSQL (`store.url`): <https://github.com/haft-agent/haft/blob/main/docs/workers.md>.
    #[cfg(feature = "postgres")]
    Queue(commands::queue::QueueArgs),
    /// Take tasks from the team's queue and run them.
    ///
    /// Each task works in a clone of its own, in the sandbox, with the keys and rules of this
    /// configuration. A task whose worker is lost is continued by another one.
    #[cfg(feature = "postgres")]
    Worker(Box<commands::worker::WorkerArgs>),
    /// Run a demo that fixes a bug, without a key or network.
    ///
    /// A scripted model drives the real agent.
    Demo(commands::demo::DemoArgs),
    /// List, show, search, revise, fork, purge, export and import conversations.
    #[command(subcommand, alias = "conversation")]
    Conversations(commands::conversations::ConversationsCommand),
    /// Inspect, replay and edit what is sent to the model.
    #[command(subcommand)]
    Context(commands::context::ContextCommand),
    /// Record and explain what another agent sends to its model.
    ///
    /// Requests and replies pass unchanged. Each request is recorded without keys and explained in
    /// one line: what changed since the one before, what the cache should have read and what
    /// was billed. How agents are pointed at it: <https://github.com/haft-agent/haft/blob/main/docs/proxy.md>.
    #[cfg(feature = "proxy")]
    Proxy(commands::proxy::ProxyArgs),
    /// Show conversations and what was sent as a local web page.
    ///
    /// Conversations, their dialogue, their requests as a timeline, and each request with its
    /// segments, its body, its difference to the one before and why; haft's own, imported and
    /// recorded ones. It starts runs and edits what is sent, too; stored messages never change: <https://github.com/haft-agent/haft/blob/main/docs/inspector.md>.
    #[cfg(feature = "serve")]
    Serve(commands::serve::ServeArgs),
    /// Serve editors over the Agent Client Protocol, on standard input and output.
    ///
    /// The editor starts it; the settings for each editor:
    /// <https://github.com/haft-agent/haft/blob/main/docs/editors.md>.
    #[cfg(feature = "acp")]
    Acp(commands::acp::AcpArgs),
    /// Manage rules the model follows.
    ///
    /// Rules lie in `.haft/rules` of the project and in your own `rules` folder, as Markdown. The
    /// front matter says when a rule is sent: `alwaysApply: true` in every request, `globs`
    /// once a matching file is touched, neither when the model reads it.
    #[command(alias = "rule")]
    Rules(commands::catalogue::CatalogueArgs),
    /// Manage skills: instructions for kinds of tasks.
    #[command(alias = "skill")]
    Skills(commands::catalogue::CatalogueArgs),
    /// Manage slash commands: prompts you call by name.
    ///
    /// `haft run "/review src/main.rs"` calls the command `review`.
    #[command(alias = "command")]
    Commands(commands::catalogue::CatalogueArgs),
    /// Manage sub-agents: roles the model can delegate tasks to.
    #[command(alias = "agent")]
    Agents(commands::catalogue::CatalogueArgs),
    /// List and remove the copies of projects that sub-agents worked in.
    ///
    /// A sub-agent with `worktree: true` works in a git worktree, which is kept where it could not
    /// be merged.
    #[command(alias = "worktree")]
    Worktrees(commands::worktrees::WorktreesArgs),
    /// Manage library documentation that is sent with every request.
    ///
    /// It comes from a git repository laid out `domain/user/library`, a public one unless `haft lib
    /// proxy` names another.
    Lib(commands::lib_command::LibArgs),
    /// Manage, query and serve collections of documents (RAG).
    #[cfg(feature = "rag")]
    Rag(commands::rag::RagArgs),
    /// Manage file ranges that stay in the context of a conversation.
    Useful(commands::useful::UsefulArgs),
    /// Manage notes on folders and files of this project.
    #[command(alias = "note")]
    Notes(commands::notes::NotesArgs),
    /// List and show tools, and add programs of your own.
    #[command(alias = "tool")]
    Tools(commands::tools::ToolsArgs),
    /// Manage MCP servers: list, add, remove, test and log in.
    #[cfg(feature = "mcp")]
    Mcp(commands::mcp::McpArgs),
    /// Show which files a conversation changed.
    Changes(commands::changes::ChangesArgs),
    /// Undo file changes.
    ///
    /// By default it undoes the last call that changed files; options name another call, a message,
    /// or everything. Only what haft changed is touched. A file that was changed
    /// by something else in the meantime is left as it is and reported, and the exit code is 3.
    Undo(commands::changes::UndoArgs),
    /// Redo file changes that were undone.
    Redo(commands::changes::RedoArgs),
    /// Rewind a conversation to a message, with or without the files.
    ///
    /// The conversation itself is kept; a fork that ends at the message becomes the current one.
    /// Files that were changed by something else in the meantime are left as they are and
    /// reported, and the exit code is 3.
    Rewind(commands::changes::RewindArgs),
    /// List, add, remove and explain permission rules.
    #[command(subcommand, alias = "permission")]
    Permissions(commands::permissions::PermissionsCommand),
    /// Show sandbox status, and test the sandbox.
    #[command(subcommand)]
    Sandbox(commands::sandbox::SandboxCommand),
    /// List hooks: your commands that haft runs at points of a run.
    ///
    /// Hooks come from your configuration and from the project.
    #[command(alias = "hook")]
    Hooks(commands::hooks::HooksArgs),
    /// List, show, add and test models.
    #[command(alias = "model")]
    Models(commands::models::ModelsArgs),
    /// Count the tokens of files.
    Count(commands::count::CountArgs),
    /// Trust a folder, or show what it would run.
    ///
    /// Instruction files of a trusted folder are sent to the model, and what it configures (hooks,
    /// MCP servers, tools) may run.
    Trust(commands::trust::TrustArgs),
    /// Show and change the configuration.
    #[command(subcommand)]
    Config(commands::config::ConfigCommand),
    /// Check the store and the environment, and repair what can be repaired.
    ///
    /// Exit code 0 when the store is sound, whatever the network; 1 when damage was found.
    Doctor(commands::doctor::DoctorArgs),
    /// Show or follow the log.
    ///
    /// Shows the last run: what it loaded and skipped, its requests, tool calls, approvals, and
    /// what failed. The log is in `state/log`, with one file per day; files are kept for two
    /// weeks. `log_level` sets the level of detail. The log contains no prompts, arguments, file
    /// text or keys.
    #[command(alias = "log")]
    Logs(commands::logs::LogArgs),
    /// Describe the JSON events that programs read and write.
    ///
    /// `--output-format stream-json` prints them, `--input-format stream-json` reads them.
    #[command(alias = "event")]
    Events(commands::events::EventsArgs),
    /// Show man pages, or write them to a folder.
    #[cfg(feature = "man")]
    Man(commands::man::ManArgs),
    /// Print shell completions.
    ///
    /// They know conversations, models, agents, rules and keys of the configuration. For bash:
    /// `source <(haft completions bash)` in `~/.bashrc`; for zsh the same in `~/.zshrc`; for
    /// fish: `haft completions fish | source` in its `config.fish`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use haft_types::PermissionMode;

    use super::*;

    #[test]
    fn cli_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn nouns_are_accepted_in_the_singular() {
        let command = Cli::command();
        let singular_itself = ["changes", "completions"];
        for name in command
            .get_subcommands()
            .map(clap::Command::get_name)
            .filter(|name| name.ends_with('s'))
        {
            let singular = name.trim_end_matches('s');
            let known = command
                .find_subcommand(singular)
                .is_some_and(|found| found.get_name() == name);
            assert!(
                known || singular_itself.contains(&name),
                "`haft {singular}`"
            );
        }
    }

    #[test]
    fn nouns_without_a_verb_list_or_show() {
        let haft = Cli::definition();
        for noun in haft
            .get_subcommands()
            .filter(|command| command.has_subcommands())
        {
            for name in std::iter::once(noun.get_name()).chain(noun.get_all_aliases()) {
                for flags in [&[] as &[&str], &["--json"]] {
                    let args = ["haft", name]
                        .iter()
                        .chain(flags)
                        .map(OsString::from)
                        .collect();
                    let parsed = Cli::parse_with_definition(&mut Cli::definition(), args);
                    assert!(parsed.is_ok(), "haft {name} {flags:?}: {parsed:?}");
                }
            }
        }
    }

    #[test]
    fn nouns_are_commands_of_the_terminal() {
        for noun in Cli::definition()
            .get_subcommands()
            .filter(|command| command.has_subcommands())
        {
            let name = noun.get_name();
            assert!(haft_tui::is_command(name), "/{name} is not in familiar.txt");
        }
    }

    #[test]
    fn accepts_set_is_false_for_commands_without_the_option() {
        for noun in Cli::definition()
            .get_subcommands()
            .filter(|command| command.has_subcommands())
        {
            for verb in noun
                .get_subcommands()
                .filter(|verb| !verb.has_subcommands())
            {
                let arguments = [noun.get_name(), verb.get_name()].map(str::to_owned);
                let has_option = verb
                    .get_arguments()
                    .any(|arg| arg.get_id().as_str() == "set");
                assert_eq!(
                    options::accepts_set(&arguments),
                    has_option,
                    "{arguments:?}"
                );
            }
        }
    }

    #[test]
    fn conversation_arguments_share_a_value_name() {
        fn check(command: &clap::Command, path: &str) {
            for arg in command
                .get_arguments()
                .filter(|arg| arg.get_action().takes_values())
            {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let names = arg.get_value_names().unwrap_or_default();
                let is_conversation = help
                    .to_lowercase()
                    .contains("the beginning of one, or a name")
                    || help.to_lowercase().contains("beginnings of ids, or names");
                assert!(
                    !is_conversation || names == ["CONVERSATION"],
                    "{path} {}: {names:?}",
                    arg.get_id()
                );
            }
            command
                .get_subcommands()
                .for_each(|inner| check(inner, &format!("{path} {}", inner.get_name())));
        }
        Cli::definition()
            .get_subcommands()
            .for_each(|command| check(command, command.get_name()));
    }

    #[test]
    fn help_shows_the_common_options() {
        let help = Cli::definition().render_help().to_string();
        for option in [
            "-c, --continue",
            "-r, --resume",
            "-m, --model",
            "--permission-mode",
            "-p, --print",
        ] {
            assert!(help.contains(option), "{option}: {help}");
        }
        assert!(!help.contains("--max-turns"));
    }

    #[test]
    fn parse_plain_run_matches_the_full_definition() {
        let parsed = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let whole = Cli::parse_with_definition(&mut Cli::definition(), args.clone());
            (
                Cli::parse_plain_run(&args).map(|cli| format!("{:?}", cli.command)),
                whole.map(|cli| format!("{:?}", cli.command)),
            )
        };
        for args in [
            &["haft", "run"][..],
            &["haft", "run", "fix it"],
            &["haft", "run", "-c", "--max-turns", "3", "and now"],
            &[
                "haft",
                "run",
                "--output-format",
                "stream-json",
                "--permission-mode",
                "yolo",
                "--set",
                "a=b",
                "x",
            ],
            &["/usr/bin/haft", "run", "-m", "a/b", "--", "--help"],
        ] {
            let (quick, whole) = parsed(args);
            assert_eq!(quick, Some(whole.unwrap()), "{args:?}");
        }
        for args in [
            &["haft", "run", "--no-such"][..],
            &["haft", "run", "--help"],
            &["haft", "exec", "x"],
            &["haft", "models"],
            &["haft"],
            &["haft", "run it"],
            &["claude", "run", "--compat", "claude", "x"],
        ] {
            assert_eq!(parsed(args).0, None, "{args:?}");
        }
    }

    #[test]
    fn print_flag_is_a_run() {
        let cli = Cli::try_parse_from(["haft", "-p", "fix it", "-m", "a/b"]).unwrap();
        assert!(cli.print && cli.command.is_none());
        assert_eq!(
            (cli.run.prompt.as_deref(), cli.run.model.as_deref()),
            (Some("fix it"), Some("a/b"))
        );
    }

    #[test]
    fn permission_mode_accepts_names_of_other_agents() {
        for name in ["yolo", "bypassPermissions"] {
            let cli = Cli::try_parse_from(["haft", "run", "--permission-mode", name, "x"]).unwrap();
            let Some(CliCommand::Run(run)) = cli.command else {
                panic!("{cli:?}")
            };
            assert_eq!(run.permission_mode, Some(PermissionMode::Yolo));
        }
    }
}
