//! `haft undo`, `haft redo`, `haft changes` and `haft rewind`: what a conversation changed in files, and how it is taken back.

mod rewind;
mod show;
mod undo;

pub(super) use rewind::{Scope, go_back};
pub(super) use undo::{Direction, described};

use std::path::Path;
use std::sync::Arc;

use haft_agent::Places;
use haft_agent::config::Config;
use haft_engine::files::ChangeRecord;
use haft_store::versions::CallName;
use haft_store::{Conversation, Store};
use serde_json::{Value, json};

use super::conversations;
use crate::cli::{ChangesArgs, Common, RedoArgs, RewindArgs, UndoArgs};
use crate::exit::Exit;
use crate::wiring;

pub(super) fn undo(args: &UndoArgs) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(undo::undo(args))
}

pub(super) fn redo(args: &RedoArgs) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(undo::redo(args))
}

pub(super) fn rewind(args: &RewindArgs) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(rewind::rewind(args))
}

pub(super) fn changes(args: &ChangesArgs) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(show::show(args))?;
    Ok(Exit::Completed)
}

/// A conversation and what it changed.
pub(super) struct Opened {
    store: Arc<dyn Store>,
    conversation: Conversation,
    pub(super) record: ChangeRecord,
}

impl Opened {
    async fn new(conversation: Option<&str>, common: &Common) -> anyhow::Result<Self> {
        let (places, loaded) = super::configuration(common)?;
        Self::of(conversation, &places, &loaded.config).await
    }

    /// The conversation of that id or name, or the current one.
    pub(super) async fn of(conversation: Option<&str>, places: &Places, config: &Config) -> anyhow::Result<Self> {
        let store = wiring::open_store(places, config)?;
        let conversation = match conversation {
            Some(id) => conversations::find(store.as_ref(), id).await?,
            None => conversations::current(store.as_ref()).await?,
        };
        let record = ChangeRecord::new(haft_agent::versions(places, config), conversation.id.clone());
        Ok(Self { store, conversation, record })
    }

    /// A path as it is shown: relative to the conversation's project where it lies inside.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(Path::new(&self.conversation.namespace)).unwrap_or(path).display().to_string()
    }
}

fn call_as_json(call: &CallName) -> Value {
    json!({ "message_id": call.message_id, "call_id": call.call_id, "tool": call.tool })
}
