//! `haft conversations export`: prints one conversation to stdout, or writes all of them as files
//! to a folder.
//!
//! ```text
//! DIR/ID.json                       each conversation
//! DIR/namespaces.json               the namespace of each, by id
//! DIR/current_conversations.json    the current conversation of each namespace
//! ```
//!
//! `export_atif.rs` exports in another format.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use haft_store::{Conversation, ConversationDocument, ConversationScope, Store};
use haft_types::ConversationId;
use serde::Serialize;

#[cfg(feature = "imports")]
use super::{ExportFormat, export_atif};
use super::{find_conversation, open_store};
use crate::commands::conversations::ExportArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// The file that maps each namespace to its current conversation.
pub(super) const CURRENT_FILE: &str = "current_conversations.json";
/// The file that maps each conversation to its namespace.
pub(super) const NAMESPACES_FILE: &str = "namespaces.json";

pub(super) async fn export_conversations(haft: &Haft, args: &ExportArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    #[cfg(feature = "imports")]
    if args.format == ExportFormat::Atif {
        return export_atif::export_conversations(store.as_ref(), args).await;
    }
    match (&args.id, &args.all) {
        (_, Some(folder)) => export_all(store.as_ref(), folder).await,
        (Some(id), None) => {
            let conversation = find_conversation(store.as_ref(), id).await?;
            print_document(store.as_ref(), &conversation).await
        }
        // The command line parser rejects this case.
        (None, None) => Err(usage_error(text!("conversations-export-which"))),
    }
}

/// Prints a whole conversation as JSON.
pub(super) async fn print_document(
    store: &dyn Store,
    conversation: &Conversation,
) -> anyhow::Result<()> {
    let document = load_document(store, &conversation.id).await?;
    output::print_exact(&haft_text::escape_json(
        &(serde_json::to_string_pretty(&document)? + "\n"),
    ))
}

pub(super) async fn load_document(
    store: &dyn Store,
    id: &ConversationId,
) -> anyhow::Result<ConversationDocument> {
    store
        .export(id)
        .await?
        .ok_or_else(|| usage_error(text!("conversations-export-unknown", id)))
}

async fn export_all(store: &dyn Store, folder: &Path) -> anyhow::Result<()> {
    let target = ExportFolder::create(folder)?;
    let listed = store.list(ConversationScope::Everywhere).await?;
    let mut namespaces = BTreeMap::new();
    for one in &listed {
        target.write(&load_document(store, &one.id).await?)?;
        namespaces.insert(one.id.clone(), one.namespace.clone());
    }
    target.write_namespaces(&namespaces)?;
    let current: BTreeMap<_, _> = store
        .namespaces()
        .await?
        .into_iter()
        .filter_map(|one| Some((one.namespace, one.current?)))
        .collect();
    target.write_json(CURRENT_FILE, &current)?;
    output::print_text_line(&text!(
        "conversations-exported",
        count = listed.len(),
        folder = folder.display()
    ))
}

/// A folder for exported conversations.
pub(crate) struct ExportFolder(PathBuf);

impl ExportFolder {
    /// Creates the folder, readable only for its owner, unless it exists.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        haft_files::create_folder(path).map_err(|error| write_error(path, &error))?;
        Ok(Self(path.to_owned()))
    }

    /// Writes a conversation to a file of its own.
    pub(crate) fn write(&self, document: &ConversationDocument) -> anyhow::Result<()> {
        self.write_json(&document_file_name(&document.id), document)
    }

    /// Writes the file that maps each conversation to its namespace.
    pub(crate) fn write_namespaces(
        &self,
        namespaces: &BTreeMap<ConversationId, String>,
    ) -> anyhow::Result<()> {
        self.write_json(NAMESPACES_FILE, namespaces)
    }

    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let text =
            haft_text::escape_json(&serde_json::to_string_pretty(value)?).into_owned() + "\n";
        self.write_file(name, text.as_bytes())
    }

    /// Writes a file that is readable only for its owner. `name` may contain folders, which are
    /// created.
    pub(super) fn write_file(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.0.join(name);
        path.parent()
            .map_or(Ok(()), haft_files::create_folder)
            .and_then(|()| haft_files::replace_file(&path, content, Durability::Process))
            .map_err(|error| write_error(&path, &error))
    }
}

fn write_error(path: &Path, error: &io::Error) -> anyhow::Error {
    usage_error(text!(
        "conversations-export-unwritable",
        path = path.display(),
        error
    ))
}

/// Returns the name of a conversation's file, which never equals [`CURRENT_FILE`] or
/// [`NAMESPACES_FILE`].
pub(super) fn document_file_name(id: &ConversationId) -> String {
    let name = format!("{}.json", id.file_name());
    if name == CURRENT_FILE || name == NAMESPACES_FILE {
        format!("%{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_stays_inside_the_folder_for_every_id() {
        let name = |id: &str| document_file_name(&ConversationId::new(id));
        assert_eq!(name("0a1b-2c_3"), "0a1b-2c_3.json");
        assert_eq!(name("../up"), "%2e.%2fup.json");
        assert_eq!(name("短い"), "%77ed%3044.json");
        assert_eq!(name("namespaces"), "%namespaces.json");
    }
}
