//! `haft conversations`: creates, lists, shows, changes, imports and exports conversations.

mod backup;
mod change;
mod cost;
pub(super) mod export;
#[cfg(feature = "imports")]
mod export_atif;
#[cfg(feature = "imports")]
mod import;
mod list;
mod purge;
mod replay;
mod revise;
mod search;
mod show;
mod stats;

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "imports")]
use clap::ValueEnum;
use clap::{Args, Subcommand};
#[cfg(feature = "imports")]
use haft_imports::ImportFormat;
use haft_store::{Conversation, ConversationMatch, ConversationScope, Store, StoreError};

pub(crate) use cost::cost_of_request;

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::wiring;

pub(super) use change::find_message_id;
#[cfg(all(feature = "imports", feature = "serve"))]
pub(super) use import::find_session_roots;
pub(super) use replay::check_run_file;

#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// Create an empty conversation and make it the current one.
    New(NewArgs),
    /// List the conversations of this project, last used first.
    List(ListConversationsArgs),
    /// Show a conversation, from its newest messages back.
    Show(ShowConversationArgs),
    /// Make a conversation the current one of this project.
    Use(UseArgs),
    /// Show the current conversation of this project.
    Current(CurrentArgs),
    /// Search messages.
    ///
    /// All words must occur, in any order; "words in quotes" follow each other; a word that ends
    /// with * is the beginning of one.
    Search(SearchArgs),
    /// Rename a conversation.
    Rename(RenameArgs),
    /// Move conversations to the trash.
    Delete(DeleteArgs),
    /// Restore conversations from the trash.
    Restore(RestoreArgs),
    /// Purge conversations for good, with their requests, undo steps and copies in backups.
    ///
    /// Conversations of their sub-agents are purged, too. Afterwards no file of haft contains their
    /// text; log lines from the time they were active are removed as well. The command asks for
    /// confirmation twice.
    Purge(PurgeArgs),
    /// Revise a message: change its text or metadata from now on.
    ///
    /// The message as it was stays in the store; what is sent to the model from now on is the
    /// revised one.
    Revise(ReviseArgs),
    /// Fork a conversation: copy it up to a message.
    Fork(ForkArgs),
    /// Export a conversation as JSON, or all of them to a folder.
    Export(ExportArgs),
    /// Replay a recorded run with today's tools, rules and prompts, and name the first difference.
    ///
    /// The model's replies come from the record, so nothing is sent. Compared are the body of each
    /// request, byte for byte, and the decision on each call. The exit code is 0 if all are equal,
    /// 1 if they differ, and 2 if the run cannot be replayed.
    Replay(Box<replay::ReplayRunArgs>),
    /// Import conversations from exports of haft and from files of other agents.
    ///
    /// Importing twice adds only what is new. A folder is read file by file; its
    /// `current_conversations.json` says which conversation is current in each namespace.
    #[cfg(feature = "imports")]
    Import(ImportArgs),
    /// Show statistics of the store.
    Stats(JsonArgs),
    /// List the namespaces (projects) and their current conversations.
    Namespaces(JsonArgs),
    /// Create, list and restore backups of the database.
    Backup(BackupArgs),
}

/// Selects the namespace of the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct NamespaceArgs {
    /// A namespace in place of this project.
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The conversation's name; `Conversation` and the beginning of its id when absent.
    pub(crate) name: Option<String>,
    /// The conversation's id; generated when absent.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The description of the conversation.
    #[arg(long, value_name = "TEXT", default_value_t)]
    pub(crate) description: String,
    /// Metadata; the value is JSON or else a string. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) metadata: Vec<String>,
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListConversationsArgs {
    /// List those of every project.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all: bool,
    /// List those in the trash, of every project.
    #[arg(long, conflicts_with_all = ["all", "namespace"])]
    pub(crate) trash: bool,
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowConversationArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) id: Option<String>,
    /// Show this many of the newest messages.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) last: usize,
    /// Show every message.
    #[arg(long, conflicts_with = "last")]
    pub(crate) all: bool,
    /// Show what each request cost, and the total.
    #[arg(long)]
    pub(crate) cost: bool,
    /// Print the whole conversation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct UseArgs {
    /// An id, the beginning of one, or a name.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct CurrentArgs {
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The words to search for.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Search every project.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all: bool,
    /// Search the trash.
    #[arg(long, conflicts_with_all = ["all", "namespace"])]
    pub(crate) trash: bool,
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    /// The maximum number of results.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// An id, the beginning of one, or a name.
    pub(crate) id: String,
    /// The new name.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Ids, beginnings of ids, or names.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Ids, beginnings of ids, or names, as `list --trash` shows them.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Ids, beginnings of ids, or names; in the trash, too.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Purge the conversations, too, that were forked from them and share their messages.
    #[arg(long)]
    pub(crate) forks: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReviseArgs {
    /// The message, as `show` names it.
    pub(crate) message: String,
    /// The new text; `-` reads it from standard input. Unchanged when absent.
    pub(crate) text: Option<String>,
    /// The conversation: an id, the beginning of one, or a name; the current one when absent.
    #[arg(long = "conversation", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Metadata to add to the message; the value is JSON or else a string. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) metadata: Vec<String>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) id: Option<String>,
    /// The last message to keep, as `show` names it; the newest when absent.
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) at: Option<String>,
    /// The name of the copy.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The id of the copy; generated when absent.
    #[arg(long, value_name = "ID")]
    pub(crate) new_id: Option<String>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// An id, the beginning of one, or a name.
    #[arg(required_unless_present = "all")]
    pub(crate) id: Option<String>,
    /// Write every conversation to a file of its own in this folder, and
    /// `current_conversations.json`.
    #[arg(long, value_name = "DIR", conflicts_with = "id")]
    pub(crate) all: Option<PathBuf>,
    /// The format: document (haft's own, which can be imported without loss), or atif (Harbor's
    /// trajectories).
    #[cfg(feature = "imports")]
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub(crate) format: ExportFormat,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The formats in which conversations are exported.
#[cfg(feature = "imports")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// haft's own JSON.
    #[default]
    Document,
    /// ATIF, the trajectory format of Harbor.
    Atif,
}

#[cfg(feature = "imports")]
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files or folders; `-` is standard input; the name of an agent means its usual folder.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The format: document (haft's export), openai-chat, claude-code, codex, codex-exec,
    /// gemini-cli, opencode, goose, kimi-cli, auto-coder, pi, openhands, swe-agent, cline,
    /// atif or trajectory; detected by content when absent.
    #[arg(long)]
    pub(crate) format: Option<ImportFormat>,
    #[command(flatten)]
    pub(crate) place: NamespaceArgs,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// List the backups, oldest first.
    List(JsonArgs),
    /// Restore a backup; the present database is backed up first.
    Restore {
        /// The name of a backup as `list` shows it, its path, or `newest`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn run(haft: &Haft, command: ConversationsCommand) -> anyhow::Result<ProcessExit> {
    let done = wiring::build_runtime()?.block_on(async {
        match command {
            #[cfg(feature = "imports")]
            ConversationsCommand::Import(args) => return import::run(haft, &args).await,
            ConversationsCommand::Replay(args) => return replay::run(haft, &args).await,
            ConversationsCommand::New(args) => change::new(haft, args).await,
            ConversationsCommand::List(args) => list::list_conversations(haft, &args).await,
            ConversationsCommand::Show(args) if args.cost => cost::show_costs(haft, args).await,
            ConversationsCommand::Show(args) => show::show_conversation(haft, args).await,
            ConversationsCommand::Use(args) => change::use_conversation(haft, &args).await,
            ConversationsCommand::Current(args) => list::show_current(haft, &args).await,
            ConversationsCommand::Search(args) => search::run(haft, &args).await,
            ConversationsCommand::Rename(args) => change::rename_conversation(haft, &args).await,
            ConversationsCommand::Delete(args) => change::delete_conversations(haft, &args).await,
            ConversationsCommand::Restore(args) => change::restore_conversations(haft, &args).await,
            ConversationsCommand::Purge(args) => purge::run(haft, &args).await,
            ConversationsCommand::Revise(args) => revise::run(haft, args).await,
            ConversationsCommand::Fork(args) => change::fork_conversation(haft, args).await,
            ConversationsCommand::Export(args) => export::export_conversations(haft, &args).await,
            ConversationsCommand::Stats(args) => stats::run(haft, &args).await,
            ConversationsCommand::Namespaces(args) => list::list_namespaces(haft, &args).await,
            ConversationsCommand::Backup(args) => backup::run(haft, &args),
        }
        .map(|()| ProcessExit::Completed)
    });
    done.map_err(to_usage_error)
}

/// Converts errors that the user can fix with other arguments into usage errors.
fn to_usage_error(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<StoreError>() {
        Some(
            StoreError::IdTaken { .. }
            | StoreError::InvalidId { .. }
            | StoreError::InvalidName { .. }
            | StoreError::UnknownConversation { .. }
            | StoreError::UnknownMessage { .. }
            | StoreError::EmptySearch { .. },
        ) => usage_error(error.to_string()),
        Some(_) | None => error,
    }
}

fn open_store(haft: &Haft, common: &Common) -> anyhow::Result<Arc<dyn Store>> {
    Ok(haft.load(common)?.open_store()?)
}

/// Returns the namespace given on the command line, or the namespace of this project.
fn resolve_namespace(haft: &Haft, place: &NamespaceArgs) -> anyhow::Result<String> {
    match &place.namespace {
        Some(namespace) => Ok(namespace.clone()),
        None => Ok(haft.project(None)?.namespace()),
    }
}

pub(super) async fn find_named_or_current(
    haft: &Haft,
    store: &dyn Store,
    id: Option<&str>,
) -> anyhow::Result<Conversation> {
    match id {
        Some(id) => find_conversation(store, id).await,
        None => load_current(haft, store).await,
    }
}

pub(super) async fn find_conversation(
    store: &dyn Store,
    text: &str,
) -> anyhow::Result<Conversation> {
    find_in_scope(store, text, ConversationScope::Everywhere).await
}

async fn find_in_scope(
    store: &dyn Store,
    text: &str,
    scope: ConversationScope<'_>,
) -> anyhow::Result<Conversation> {
    let unknown = match scope {
        ConversationScope::Namespace(_) | ConversationScope::Everywhere => {
            text!("conversations-unknown", text)
        }
        ConversationScope::Trash => text!("conversations-unknown-in-trash", text),
    };
    match store.find_conversation(text, scope).await? {
        ConversationMatch::One(conversation) => Ok(*conversation),
        ConversationMatch::Nothing => Err(usage_error(unknown)),
        ConversationMatch::Several(several) => {
            let ids: Vec<_> = several.iter().map(|one| one.id.to_string()).collect();
            Err(usage_error(text!(
                "conversations-ambiguous",
                text,
                ids = crate::output::join_names(&ids)
            )))
        }
    }
}

pub(super) async fn load_current(haft: &Haft, store: &dyn Store) -> anyhow::Result<Conversation> {
    load_current_in_namespace(store, &haft.project(None)?.namespace()).await
}

async fn load_current_in_namespace(
    store: &dyn Store,
    namespace: &str,
) -> anyhow::Result<Conversation> {
    let none = || usage_error(text!("conversations-no-current"));
    find_current(store, namespace).await?.ok_or_else(none)
}

/// Returns the current conversation of a namespace, or `None` before its first prompt.
pub(super) async fn find_current(
    store: &dyn Store,
    namespace: &str,
) -> anyhow::Result<Option<Conversation>> {
    let Some(id) = store.current_conversation(namespace).await? else {
        return Ok(None);
    };
    Ok(store.get(&id).await?)
}
