//! `haft context`: shows, explains and edits the contents of requests: requests that were sent, and
//! the request that would be sent next.
//!
//! Past requests come from the log and are never guessed: bodies are encoded again with the
//! settings they were sent with. Showing a request writes nothing; `edit` stores a list of edits
//! with the conversation.

mod compact;
mod diff;
mod edit;
#[cfg(feature = "imports")]
mod from_file;
mod next;
mod opened_log;
#[cfg(feature = "serve")]
mod page_actions;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haft_types::Api;

use crate::cli::options::{Common, JsonArgs};
use crate::commands::context::edit::EditCommand;
#[cfg(feature = "lab")]
use crate::commands::context::replay::ReplayArgs;
use crate::haft::Haft;

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Show a request by segment: layer, owner, message, tokens, cache boundaries.
    Show(ShowArgs),
    /// Show where the tokens of a request go, layer by layer.
    Report(ReportArgs),
    /// Show what changed from one request to another.
    Diff(DiffArgs),
    /// Show every break of the cached prefix: its cause, its place and its price.
    Why(WhyArgs),
    /// Print the body of a request, byte for byte.
    ///
    /// Without `--request` it is the body that would be sent next, under the present configuration.
    Render(RenderArgs),
    /// Print a message as it was stored, by the id that a summary or a notice names.
    Recall(RecallArgs),
    /// Archive everything but the newest step behind a summary now.
    ///
    /// What the user said in the running round stays. Nothing is deleted: `recall` brings every
    /// message back.
    Compact(CompactArgs),
    /// Replay a recorded conversation under other policies: tokens, cache, cost, regret
    ///
    /// Nothing is sent: every request is built again as the policy would have built it, and priced by a simulated cache.
    ///
    /// A policy is a place of the reminders, then changes of the rest:
    ///
    ///   default               the configuration as it is
    ///   none                  no reminders
    ///   front, tail, after-tool-result:N, before-assistant:N, from-end:N, cache-aware
    ///   recorded              what was really sent, by the provider's count
    ///
    ///   +prune:off            clear nothing
    ///   +prune:ZONE           clear above this safe zone (64k, 0.5)
    ///   +prune:ZONE:TO        … down to this share of it at once
    ///   +prune:ZONE:TO:KEEP   … but never the newest KEEP results
    ///   +compress:round-end, +compress:when-free, +compress:never
    ///   +archive:off          archive nothing
    ///   +archive:SHARE        archive from this share of the usable window on
    ///   +view:layered, +view:execute
    ///
    /// Regret counts what was left out and asked for again: the same lines read, the same command run, a recall. Must-keep
    /// counts what the last request still holds of the user's rules, changed files and failing commands. An archive holds
    /// the must-keeps, word for word: no model is asked for a summary, but asking for one is priced.
    #[cfg(feature = "lab")]
    #[command(verbatim_doc_comment)]
    Replay(ReplayArgs),
    /// Check what `.haft/context-tests/*.toml` states of this project's context, without a model
    ///
    /// Rules that are sent for a file, the size of the fixed prefix, breaks in a recorded
    /// conversation. Exits with 0 if all hold, 1 if some do not, 2 if a file is wrong. It runs
    /// nothing of the project, which need not be trusted.
    Test(JsonArgs),
    /// Edit what is sent: drop, pin, mask or summarize messages, and undo edits.
    ///
    /// Stored messages never change. Every edit shows first what it costs: the prefix behind it is
    /// written to the provider's cache again.
    #[command(subcommand)]
    Edit(EditCommand),
}

/// Selects the request to show.
#[derive(Debug, Default, Args)]
pub(crate) struct LookArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// The number of the request, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["input", "model"])]
    pub(crate) request: Option<u64>,

    /// Take the conversation from a file (`-` is standard input): `{"messages": […]}` or `[…]`, in
    /// the form of an export or of OpenAI's chat messages.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["conversation", "request"])]
    pub(crate) from_file: Option<PathBuf>,

    /// The user's next prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,

    /// The model that would be asked next, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The wire protocol: openai-chat, openai-responses, anthropic or gemini.
    #[arg(long)]
    pub(crate) api: Option<Api>,

    /// The folder of the conversation's project, if haft was started in another one.
    #[arg(skip)]
    pub(crate) cwd: Option<PathBuf>,

    /// If true, nothing is printed beside the result.
    #[arg(skip)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,

    /// The request that would be sent next.
    #[arg(long, conflicts_with = "request")]
    pub(crate) next: bool,

    /// Show whole texts instead of their beginnings.
    #[arg(long)]
    pub(crate) full: bool,

    /// Print the request body itself, byte for byte; secrets are masked.
    #[arg(long, conflicts_with_all = ["full", "json"])]
    pub(crate) raw: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,

    /// The request that would be sent next.
    #[arg(long, conflicts_with = "request")]
    pub(crate) next: bool,

    /// Write a picture of all requests of the conversation to this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_file", "next", "input"])]
    pub(crate) svg: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The numbers of two requests, after the conversation if it is not the current one. One
    /// number is compared with the request before it; without any, the last two are compared.
    #[arg(value_name = "[CONVERSATION] [A] [B]", num_args = 0..=3)]
    pub(crate) what: Vec<String>,

    /// Compare this request with the one before.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) request: Option<u64>,

    /// Show changes of texts, line by line.
    #[arg(long)]
    pub(crate) full: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// Show only the break at this request.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) request: Option<u64>,

    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// The 8 digits of its id, or its full UUID.
    #[arg(value_name = "ID")]
    pub(crate) message: String,

    /// The conversation: an id, the beginning of one, or a name; the current one when absent.
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,

    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// The content that the summary must keep.
    #[arg(long, value_name = "TEXT")]
    pub(crate) focus: Option<String>,

    /// The model that is asked, unless one is configured for summaries.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,

    /// Accepted on every command; a body is JSON anyway.
    #[arg(long)]
    pub(crate) json: bool,
}

mod checks;
mod recall;
mod render;
#[cfg(feature = "lab")]
mod replay;
mod report;
mod show;
#[cfg(feature = "mcp")]
mod tool_change_quote;
mod why;

#[cfg(feature = "serve")]
pub(crate) use page_actions::build_inspector;
#[cfg(feature = "mcp")]
pub(super) use tool_change_quote::quote_tool_change;

use crate::exit::ProcessExit;
use crate::wiring;

pub(crate) fn run(haft: &Haft, command: ContextCommand) -> anyhow::Result<ProcessExit> {
    wiring::build_runtime()?.block_on(async {
        match command {
            ContextCommand::Show(args) => show::run(haft, &args).await,
            ContextCommand::Report(args) => report::run(haft, &args).await,
            ContextCommand::Diff(args) => diff::run(haft, &args).await,
            ContextCommand::Why(args) => why::run(haft, &args).await,
            ContextCommand::Render(args) => render::run(haft, &args).await,
            ContextCommand::Recall(args) => recall::run(haft, &args).await,
            ContextCommand::Compact(args) => compact::run(haft, &args).await,
            #[cfg(feature = "lab")]
            ContextCommand::Replay(args) => replay::run(haft, &args).await,
            ContextCommand::Test(args) => return checks::run(haft, &args).await,
            ContextCommand::Edit(command) => edit::run(haft, &command).await,
        }?;
        Ok(ProcessExit::Completed)
    })
}
