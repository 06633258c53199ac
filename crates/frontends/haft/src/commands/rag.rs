//! `haft rag`: collections of documents that a model can query.

mod answer_model;
mod change;
mod list;
mod query;
mod serve;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haft_rag::{Collection, ConfiguredCollections};

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct RagArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RagCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RagCommand {
    /// List the collections.
    List(JsonArgs),
    /// Add a collection made of folders, or one that a server answers for.
    Add(RagAddArgs),
    /// Remove a collection and its index, but not the folders.
    Remove {
        /// The collection's name.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Query a collection, as the model would.
    Query(RagQueryArgs),
    /// Serve collections to other programs of this machine, as models of a chat server.
    Serve(RagServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RagAddArgs {
    /// The collection's name: ASCII letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// The folders.
    #[arg(
        value_name = "DIR",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    pub(crate) folders: Vec<PathBuf>,
    /// The URL of a chat server, up to and including `/v1`.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// With `--url`: the model name to send to the server; the collection's name when absent. With
    /// folders: the model, as `provider/model`, that writes the answers of `haft rag serve`.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The environment variable that holds the server's key.
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) api_key_env: Option<String>,
    /// A sentence that tells the model what the collection is about.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct RagQueryArgs {
    /// The collection.
    pub(crate) name: String,
    /// The question.
    pub(crate) question: String,
    /// The maximum number of passages.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) top: u16,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RagServeArgs {
    /// The collections; all that are made of folders when absent.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The model, as `provider/model`, that writes answers from the passages, instead of that of
    /// each collection. Without a model, the answers are the passages.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The local address to listen on; port 0 chooses a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8107")]
    pub(crate) listen: std::net::SocketAddr,
    /// The environment variable that holds the token clients must send; generated and printed when
    /// absent.
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: Option<RagCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or_else(|| RagCommand::List(JsonArgs::default())) {
        RagCommand::List(args) => list::run(haft, &args)?,
        RagCommand::Add(args) => change::add_collection(haft, &args)?,
        RagCommand::Remove { name, common } => change::remove_collection(haft, &name, &common)?,
        RagCommand::Query(args) => query::run(haft, &args)?,
        RagCommand::Serve(args) => serve::run(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}

/// Returns the collection with this name. The error describes a problem with the collection, or
/// lists the known names.
fn find_collection<'a>(
    rag: &'a ConfiguredCollections,
    name: &str,
) -> anyhow::Result<&'a Collection> {
    rag.collections
        .iter()
        .find(|one| one.name == name)
        .ok_or_else(|| {
            // A problem with the collection is more useful than an error that it does not exist.
            if let Some(problem) = rag
                .problems
                .iter()
                .find(|problem| problem.contains(&format!("`{name}`")))
            {
                return usage_error(output::localize_text(problem));
            }
            let names: Vec<_> = rag
                .collections
                .iter()
                .map(|one| format!("`{}`", one.name))
                .collect();
            let there = if names.is_empty() {
                text!("rag-there-are-none").to_owned()
            } else {
                text!("rag-there-are", names = output::join_names(&names))
            };
            usage_error(text!("rag-unknown", name, there))
        })
}
