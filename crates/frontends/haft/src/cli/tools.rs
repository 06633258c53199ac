//! The arguments of `haft tools`.

use std::path::PathBuf;

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
    /// Show what the model is told of a tool: description, schema, example, other names; of an external one, its help.
    Show {
        /// The tool, by its name or one of its other names.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Add a program of your own, which the model runs as a command, to this project or to your own with `--user`.
    Add {
        /// Its file name: without an ending, or with the one of its language, such as `lint.py`.
        name: String,
        /// The program to copy; standard input when absent.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Add it for all your projects.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a program that lies in a folder of haft's.
    Remove {
        /// Its file name.
        name: String,
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
    /// Show what is not used because another of the same name comes first, and the folders that are looked through.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The reference as the page of the documentation.
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
