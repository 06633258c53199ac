//! The arguments of `haft tools`.

use clap::{Args, Subcommand};

use super::{Common, OfConversation};

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, where they come from, and how many tokens each costs in every request.
    List(ToolListArgs),
    /// Show what the model is told of a tool: description, schema, example, other names.
    Show {
        /// The tool, by its name or one of its other names.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show how often each tool was called in a conversation, how often it failed, and what its results cost in tokens.
    Stats {
        #[command(flatten)]
        of: OfConversation,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct ToolListArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The reference as the page of the documentation.
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
