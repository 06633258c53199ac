//! The arguments of `haft context edit`.

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(subcommand)]
    pub(crate) command: EditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EditCommand {
    /// List every message: id, layer, tokens, age, cache state, the price of removing it now, and what that saves.
    List(EditHow),
    /// Send these messages no more. A call goes with its results, a result with its call.
    Drop(EditIds),
    /// Never prune, compress or archive these messages.
    Pin(EditIds),
    /// Send only the names of these messages; calls and results stay in their places.
    Mask(EditIds),
    /// Send these messages as they are again.
    Restore(EditIds),
    /// Send a summary in place of these messages.
    ///
    /// The model of summaries is asked, and its words must hold what has to be kept: else that alone stands there, word for word.
    #[command(visible_alias = "summarize")]
    Summarise(SummariseArgs),
    /// Take back the newest edits.
    Undo(UndoEditsArgs),
}

/// Which conversation is edited, and how that is told.
#[derive(Debug, Args)]
pub(crate) struct EditHow {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,

    /// The model that would be asked next, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Only say what it would cost.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct EditIds {
    /// Ids of messages, short or full, or ranges `A..B` with both ends.
    #[arg(required = true, value_name = "ID|A..B")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) how: EditHow,
}

#[derive(Debug, Args)]
pub(crate) struct SummariseArgs {
    /// The range, both ends included; calls and results stay together.
    #[arg(required = true, value_name = "A..B")]
    pub(crate) ids: Vec<String>,

    /// The summary, in your own words.
    #[arg(long, value_name = "WORDS")]
    pub(crate) text: Option<String>,

    /// Ask no model: keep what has to be kept, word for word.
    #[arg(long, conflicts_with = "text")]
    pub(crate) no_model: bool,

    #[command(flatten)]
    pub(crate) how: EditHow,
}

#[derive(Debug, Args)]
pub(crate) struct UndoEditsArgs {
    /// How many.
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) number: u32,

    #[command(flatten)]
    pub(crate) how: EditHow,
}
