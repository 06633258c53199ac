//! `haft undo`, `haft redo`, `haft changes` and `haft rewind`: lists the file changes of a
//! conversation and reverts them.

mod rewind;
mod show;
mod undo;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use haft_changes::ChangeRecord;
use haft_store::{Conversation, Store};
use haft_tool::CallName;
use serde_json::{Value, json};

use super::conversations;
use crate::cli::options::Common;
use crate::exit::ProcessExit;
use crate::haft::{Haft, Settings};
use crate::wiring;

pub(crate) use rewind::{RewindScope, rewind_to_message};
pub(crate) use undo::{UndoDirection, preview_undo_or_redo, undo_or_redo_last};

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    /// Undo the changes of this call, as `haft changes` names it.
    #[arg(long, value_name = "ID", conflicts_with_all = ["message", "session"])]
    pub(crate) call: Option<String>,

    /// Undo the changes of this message: a reply of the model, or a prompt of yours up to the next
    /// one.
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    pub(crate) message: Option<String>,

    /// Undo everything the conversation changed.
    #[arg(long)]
    pub(crate) session: bool,

    #[command(flatten)]
    pub(crate) how: ChangeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    pub(crate) conversation: Option<String>,

    #[command(flatten)]
    pub(crate) how: ChangeOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The message, as `haft conversations show` names it. A prompt of yours is removed, to be
    /// entered again; a reply of the model is kept, with the results of its calls.
    pub(crate) message: String,

    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,

    /// Undo the file changes made since, too.
    #[arg(long)]
    pub(crate) files: bool,

    #[command(flatten)]
    pub(crate) how: ChangeOptions,
}

/// The options that undo, redo and rewind share.
#[derive(Debug, Args)]
pub(crate) struct ChangeOptions {
    /// Only show what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON.
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

    /// Show how each file differs from what it was before the conversation, without what was
    /// undone.
    #[arg(long, conflicts_with = "json")]
    pub(crate) net: bool,

    /// Add the newest content of each file to the JSON.
    #[arg(long, requires = "json")]
    pub(crate) content: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn undo(haft: &Haft, args: &UndoArgs) -> anyhow::Result<ProcessExit> {
    wiring::build_runtime()?.block_on(undo::undo(haft, args))
}

pub(crate) fn redo(haft: &Haft, args: &RedoArgs) -> anyhow::Result<ProcessExit> {
    wiring::build_runtime()?.block_on(undo::redo(haft, args))
}

pub(crate) fn rewind(haft: &Haft, args: &RewindArgs) -> anyhow::Result<ProcessExit> {
    wiring::build_runtime()?.block_on(rewind::rewind(haft, args))
}

pub(crate) fn show_changes(haft: &Haft, args: &ChangesArgs) -> anyhow::Result<ProcessExit> {
    wiring::build_runtime()?.block_on(show::show(haft, args))?;
    Ok(ProcessExit::Completed)
}

/// An open conversation, with the record of the file changes made in it.
pub(crate) struct ConversationChanges {
    store: Arc<dyn Store>,
    conversation: Conversation,
    pub(crate) record: ChangeRecord,
}

impl ConversationChanges {
    /// Opens the conversation with this id or name, or the current one.
    async fn find(
        haft: &Haft,
        conversation: Option<&str>,
        common: &Common,
    ) -> anyhow::Result<Self> {
        let settings = haft.load(common)?;
        let store = settings.open_store()?;
        let conversation =
            conversations::find_named_or_current(haft, store.as_ref(), conversation).await?;
        Ok(Self::new(&settings, store, conversation))
    }

    /// Opens the conversation with this id or name.
    pub(crate) async fn for_conversation(
        settings: &Settings,
        conversation: &str,
    ) -> anyhow::Result<Self> {
        let store = settings.open_store()?;
        let conversation = conversations::find_conversation(store.as_ref(), conversation).await?;
        Ok(Self::new(settings, store, conversation))
    }

    fn new(settings: &Settings, store: Arc<dyn Store>, conversation: Conversation) -> Self {
        let record = ChangeRecord::new(settings.open_versions(), conversation.id.clone());
        Self {
            store,
            conversation,
            record,
        }
    }

    /// Formats a path for display: relative to the conversation's project if the path lies inside
    /// it.
    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(Path::new(&self.conversation.namespace))
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

fn call_to_json(call: &CallName) -> Value {
    json!({ "message_id": call.message_id, "call_id": call.call_id, "tool": call.tool })
}
