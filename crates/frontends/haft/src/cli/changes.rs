//! The arguments of `haft undo`, `haft redo`, `haft rewind` and `haft changes`.

use clap::Args;

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// Take back the changes of this call, as `haft changes` names it.
    #[arg(long, value_name = "ID", conflicts_with_all = ["message", "session"])]
    pub(crate) call: Option<String>,

    /// Take back what came of this message: of one of the model's, or of one of yours up to the next.
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    pub(crate) message: Option<String>,

    /// Take back everything the conversation changed.
    #[arg(long)]
    pub(crate) session: bool,

    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The message, as `haft conversations show` names it. One of yours goes, to be said anew; one of the model's stays, with
    /// the results of its calls.
    pub(crate) message: String,

    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    /// Take back as well what was changed in files since.
    #[arg(long)]
    pub(crate) files: bool,

    #[command(flatten)]
    pub(crate) how: How,
}

/// What undo, redo and rewind share.
#[derive(Debug, Args)]
pub(crate) struct How {
    /// Only say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// Show what each call changed, in order.
    #[arg(long)]
    pub(crate) diff: bool,

    /// Add the newest content of each file to the JSON.
    #[arg(long, requires = "json")]
    pub(crate) content: bool,

    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}
