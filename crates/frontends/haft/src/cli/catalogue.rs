//! The arguments of `haft rules`, `haft agents`, `haft skills`, `haft commands` and `haft lib`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct CatalogueArgs {
    /// A list when absent.
    #[command(subcommand)]
    pub(crate) command: Option<CatalogueCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogueCommand {
    /// List what there is, and where it comes from.
    List {
        /// Show what is not used because another of the same name comes first, and the folders that are looked through.
        #[arg(short, long)]
        verbose: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show one whole.
    Show {
        /// Its name.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Add one to this project, or to your own with `--user`.
    Add {
        /// Its name.
        name: String,
        /// A Markdown file to copy; standard input when absent.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Add it for all your projects.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove one that lies in a folder of haft's.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LibArgs {
    /// A list when absent.
    #[command(subcommand)]
    pub(crate) command: Option<LibCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibCommand {
    /// Send the documentation of a library with every request in this project.
    Add {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Send it no longer.
    Remove {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// List the libraries this project uses, with what they cost in tokens.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print the documentation of a library as it is sent.
    #[command(visible_alias = "show")]
    Docs {
        /// `library` or `user/library`.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Fetch the newest documentation.
    Refresh {
        #[command(flatten)]
        common: Common,
    },
    /// Show where the documentation comes from, or take it from somewhere else.
    Proxy {
        /// The URL or path of a git repository laid out `domain/user/library`.
        source: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}
