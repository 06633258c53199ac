//! `haft doctor`, literally.

use std::path::PathBuf;

use clap::Args;

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Write out every conversation that can still be read, even from a database that cannot be opened: one file each, into
    /// this folder or into a new one beside the database.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not given, given alone, given with a folder")]
    pub(crate) salvage: Option<Option<PathBuf>>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
