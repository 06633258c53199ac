//! Recovers conversations from a damaged database without SQLite: every row whose own pages are
//! intact, whatever the state of the others.
//!
//! SQLite finds a row through the header, the schema, and the inner pages of a tree; if one of them
//! is lost, so is everything below. Here every page is read on its own. A row is recognized by the
//! shape of its columns, and a message also by its hash, so nothing is mistaken for a message that
//! was not stored as one.
//!
//! Nothing is written: conversations are returned as documents, which can be imported into another
//! store.

mod pages;
mod record;
mod rows;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use haft_store::{ConversationDocument, DEFAULT_NAMESPACE, StoreError};
use haft_types::{ConversationId, Message, Metadata, Timestamp};
use serde_json::json;

use self::pages::Pages;
use self::rows::{
    ConversationHeading, SalvagedLineage, SalvagedMessage, SalvagedRevision, SalvagedRows,
};

/// The metadata key under which a salvaged conversation lists its missing messages.
const SALVAGED_KEY: &str = "salvaged";

/// A recovered conversation, with the number of messages that were lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Salvaged {
    /// The recovered conversation, which can be imported into a store.
    pub document: ConversationDocument,
    pub namespace: String,
    /// The number of messages of the conversation that could not be read.
    pub lost: u64,
}

/// The total numbers of conversations and messages that were recovered from a database or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The number of recovered conversations.
    pub conversations: u64,
    /// The number of recovered messages in all conversations. A message shared by forks counts once
    /// for each fork.
    pub messages: u64,
    /// The number of messages that are missing from the recovered conversations.
    pub lost: u64,
}

/// Recovers all readable conversations from the damaged database at `path`, and calls `each` with
/// each of them.
pub fn salvage_conversations<E: From<StoreError>>(
    path: &Path,
    mut each: impl FnMut(Salvaged) -> Result<(), E>,
) -> Result<SalvageReport, E> {
    let failed = |source| StoreError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let pages = Pages::open(path).map_err(failed)?;
    let found = rows::find_rows(&pages).map_err(failed)?;
    let mut report = SalvageReport::default();
    let mut keys: Vec<i64> = found
        .headings
        .keys()
        .chain(found.messages.keys())
        .copied()
        .collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let salvaged = rebuild_conversation(&pages, &found, key);
        // The key belongs to an empty conversation or is a random number in a damaged row.
        if salvaged.document.messages.is_empty() && !found.headings.contains_key(&key) {
            continue;
        }
        report.conversations += 1;
        report.messages += salvaged.document.messages.len() as u64;
        report.lost += salvaged.lost;
        each(salvaged)?;
    }
    Ok(report)
}

/// Rebuilds a conversation from its own messages and from those that it shares with other
/// conversations.
fn rebuild_conversation(pages: &Pages, found: &SalvagedRows, key: i64) -> Salvaged {
    let own = [SalvagedLineage {
        step: i64::MAX,
        of: key,
        last_position: i64::MAX,
        last_revision: i64::MAX,
    }];
    let sources = match found.lineage.get(&key) {
        Some(sources) if sources.iter().any(|source| source.of == key) => sources.as_slice(),
        // The row in which the conversation is its own source is lost. Its own messages are still
        // valid.
        Some(_) | None => &own,
    };
    let mut messages: BTreeMap<i64, Message> = BTreeMap::new();
    for source in sources {
        let rows = found.messages.get(&source.of).into_iter().flatten();
        let shared = rows.filter(|(position, _)| **position <= source.last_position);
        messages.extend(
            shared.filter_map(|(position, at)| Some((*position, read_message(pages, at)?))),
        );
        let revisions = found
            .revisions
            .get(&source.of)
            .map_or(&[][..], Vec::as_slice);
        let seen = |one: &&SalvagedRevision| {
            one.key <= source.last_revision && one.position <= source.last_position
        };
        for revision in revisions.iter().filter(seen) {
            messages.extend(
                read_message(pages, &revision.at).map(|message| (revision.position, message)),
            );
        }
    }
    build_document(key, found.headings.get(&key), messages)
}

fn read_message(pages: &Pages, at: &SalvagedMessage) -> Option<Message> {
    rows::read_message(pages, at)
}

fn build_document(
    key: i64,
    heading: Option<&ConversationHeading>,
    messages: BTreeMap<i64, Message>,
) -> Salvaged {
    let last = messages.keys().next_back().copied().unwrap_or(0);
    let expected = heading.map_or(0, |heading| heading.messages).max(last);
    let lost = u64::try_from(expected)
        .unwrap_or(0)
        .saturating_sub(messages.len() as u64);
    let missing: Vec<i64> = (1..=expected)
        .filter(|position| !messages.contains_key(position))
        .take(100)
        .collect();
    let first_time = messages
        .values()
        .next()
        .map_or(Timestamp::UNIX_EPOCH, |message| message.created_at);
    let last_time = messages
        .values()
        .next_back()
        .map_or(first_time, |message| message.created_at);
    let messages: Vec<Message> = messages.into_values().collect();
    let mut document = match heading {
        Some(heading) => ConversationDocument {
            id: ConversationId::new(&heading.id),
            name: heading.name.clone(),
            description: heading.description.clone(),
            created_at: heading.created_at,
            updated_at: heading.updated_at,
            metadata: heading.metadata.clone(),
            messages,
        },
        None => ConversationDocument {
            id: ConversationId::new(format!("salvaged-{key}")),
            name: format!("Salvaged conversation {key}"),
            description: String::new(),
            created_at: first_time,
            updated_at: last_time,
            metadata: Metadata::new(),
            messages,
        },
    };
    if lost > 0 || heading.is_none() {
        document.metadata.insert(
            SALVAGED_KEY.into(),
            json!({ "lost": lost, "missing": missing }),
        );
    }
    let namespace = heading
        .map_or(DEFAULT_NAMESPACE, |heading| heading.namespace.as_str())
        .to_owned();
    Salvaged {
        document,
        namespace,
        lost,
    }
}

/// A map from a conversation's key to the rows that belong to the conversation.
type ByConversation<T> = HashMap<i64, T>;

#[cfg(test)]
mod tests;
