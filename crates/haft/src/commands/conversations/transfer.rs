//! `haft conversations export`: one conversation on stdout, or all of them as files.

use std::collections::BTreeMap;
use std::path::Path;

use haft_store::{Conversation, Scope, Store};
use haft_types::ConversationId;

use super::{find, open};
use crate::cli::ExportArgs;
use crate::exit::mistake;
use crate::output;

/// Which conversation is current in each namespace.
pub(super) const CURRENT: &str = "current_conversations.json";

pub(super) async fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let store = open(&args.common)?;
    match (&args.id, &args.all) {
        (_, Some(folder)) => export_all(store.as_ref(), folder).await,
        (Some(id), None) => {
            let conversation = find(store.as_ref(), id).await?;
            print_document(store.as_ref(), &conversation).await
        }
        // The command line does not let this through.
        (None, None) => Err(mistake("which conversation? Give an id, or `--all DIR`")),
    }
}

/// Prints a whole conversation as JSON.
pub(super) async fn print_document(store: &dyn Store, conversation: &Conversation) -> anyhow::Result<()> {
    output::print(&document(store, &conversation.id).await?)
}

async fn document(store: &dyn Store, id: &ConversationId) -> anyhow::Result<String> {
    let unknown = || mistake(format!("there is no conversation `{id}`"));
    let document = store.export(id).await?.ok_or_else(unknown)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

async fn export_all(store: &dyn Store, folder: &Path) -> anyhow::Result<()> {
    let failed = |path: &Path, error: &std::io::Error| mistake(format!("cannot write `{}`: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let listed = store.list(Scope::Everywhere).await?;
    for one in &listed {
        let path = folder.join(file_name(&one.id));
        let document = document(store, &one.id).await?;
        write_private(&path, &document).map_err(|error| failed(&path, &error))?;
    }
    let namespaces = store.namespaces().await?;
    let current: BTreeMap<_, _> =
        namespaces.into_iter().filter_map(|namespace| Some((namespace.namespace, namespace.current?))).collect();
    let path = folder.join(CURRENT);
    let text = serde_json::to_string_pretty(&current)? + "\n";
    write_private(&path, &text).map_err(|error| failed(&path, &error))?;
    output::print(&format!("exported {} conversations to {}\n", listed.len(), folder.display()))
}

/// A file name for any id: what is not a plain letter is written as its code.
fn file_name(id: &ConversationId) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let safe: String =
        id.as_str().chars().map(|c| if plain(c) { c.to_string() } else { format!("%{:x}", c as u32) }).collect();
    format!("{}.json", safe.strip_prefix('.').map_or(safe.clone(), |rest| format!("%2e{rest}")))
}

/// Conversations are for their owner only.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_file_name_inside_the_folder() {
        let name = |id: &str| file_name(&ConversationId::new(id));
        assert_eq!(name("0a1b-2c_3"), "0a1b-2c_3.json");
        assert_eq!(name("../up"), "%2e.%2fup.json");
        assert_eq!(name("短い"), "%77ed%3044.json");
    }
}
