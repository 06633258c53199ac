//! The arguments of `haft rules`, `haft agents`, `haft skills` and `haft commands`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct CatalogueArgs {
    #[command(subcommand)]
    pub(crate) command: CatalogueCommand,
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
