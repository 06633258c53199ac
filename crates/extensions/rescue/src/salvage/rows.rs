//! Recognizes rows of haft's tables by the number and types of their columns.

use std::collections::{BTreeMap, HashSet};
use std::io;

use haft_types::{Message, Metadata, ShortId, Timestamp};

use super::ByConversation;
use super::pages::{PageLocation, PageVersion, Pages};
use super::record::{self, RecordCell, Value};

/// The location of the row of a message or of a message's revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct SalvagedMessage {
    place: PageLocation,
    cell: RecordCell,
    /// The version of the overflow pages with which the row can be read completely.
    overflow: PageVersion,
}

pub(super) struct SalvagedRevision {
    pub(super) key: i64,
    pub(super) position: i64,
    pub(super) at: SalvagedMessage,
}

/// A recovered row of the table of conversations.
pub(super) struct ConversationHeading {
    pub(super) id: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) metadata: Metadata,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) messages: i64,
    /// The counters of messages, requests, and revisions. They show which version of a row is the
    /// newest, because counters only grow.
    age: (i64, i64, i64),
}

/// A recovered row of the table `lineage`, which describes one source of a conversation's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SalvagedLineage {
    pub(super) step: i64,
    /// The key of the conversation that contains the messages of the source.
    pub(super) of: i64,
    pub(super) last_position: i64,
    pub(super) last_revision: i64,
}

/// All rows of haft's tables that were found in a damaged database, by the key of their
/// conversation.
#[derive(Default)]
pub(super) struct SalvagedRows {
    pub(super) headings: ByConversation<ConversationHeading>,
    /// The messages of each conversation, by position.
    pub(super) messages: ByConversation<BTreeMap<i64, SalvagedMessage>>,
    /// The revisions of each conversation, in order of their keys.
    pub(super) revisions: ByConversation<Vec<SalvagedRevision>>,
    /// The message sources of each conversation, in order of their steps.
    pub(super) lineage: ByConversation<Vec<SalvagedLineage>>,
}

/// Reads every version of every page, and collects the rows of haft's tables.
pub(super) fn find_rows(pages: &Pages) -> io::Result<SalvagedRows> {
    let mut found = SalvagedRows::default();
    let mut revisions = HashSet::new();
    for (number, place) in pages.all_versions() {
        let Some(page) = pages.read_page(place)? else {
            continue;
        };
        for cell in record::parse_cells(&page, number, pages.usable_bytes()) {
            let versions = if cell.is_local() {
                &PageVersion::ALL[..1]
            } else {
                &PageVersion::ALL[..]
            };
            for overflow in versions {
                let Some(bytes) = record::read_payload(pages, &page, cell, *overflow)? else {
                    continue;
                };
                let Some(values) = record::parse_values(&bytes) else {
                    continue;
                };
                let at = SalvagedMessage {
                    place,
                    cell,
                    overflow: *overflow,
                };
                if found.add_row(&values, at, &mut revisions) == RowMatch::Yes {
                    break;
                }
            }
        }
    }
    found
        .revisions
        .values_mut()
        .for_each(|revisions| revisions.sort_by_key(|revision| revision.key));
    found
        .lineage
        .values_mut()
        .for_each(|sources| sources.sort_by_key(|source| source.step));
    Ok(found)
}

/// The result of matching a row: whether it belongs to one of haft's tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowMatch {
    Yes,
    No,
}

impl SalvagedRows {
    /// Adds a row if it is valid and belongs to one of haft's tables. `revisions` contains the keys
    /// of the revisions added so far.
    fn add_row(
        &mut self,
        values: &[Value<'_>],
        at: SalvagedMessage,
        revisions: &mut HashSet<i64>,
    ) -> RowMatch {
        let Some(key) = at.cell.key else {
            let Some((conversation, source)) = parse_lineage_row(values) else {
                return RowMatch::No;
            };
            let sources = self.lineage.entry(conversation).or_default();
            if !sources.contains(&source) {
                sources.push(source);
            }
            return RowMatch::Yes;
        };
        if let Some((conversation, position)) = parse_message_row(values) {
            // The first version that is found is kept: it is the newest, and a message is identical
            // in all versions.
            self.messages
                .entry(conversation)
                .or_default()
                .entry(position)
                .or_insert(at);
        } else if let Some((conversation, position)) = parse_revision_row(values) {
            if revisions.insert(key) {
                self.revisions
                    .entry(conversation)
                    .or_default()
                    .push(SalvagedRevision { key, position, at });
            }
        } else if let Some(heading) = parse_heading_row(values) {
            let known = self.headings.get(&key);
            if known.is_none_or(|known| known.age < heading.age) {
                self.headings.insert(key, heading);
            }
        } else {
            return RowMatch::No;
        }
        RowMatch::Yes
    }
}

/// Reads the message at a location. Returns `None` if it cannot be read.
pub(super) fn read_message(pages: &Pages, at: &SalvagedMessage) -> Option<Message> {
    let page = pages.read_page(at.place).ok()??;
    let bytes = record::read_payload(pages, &page, at.cell, at.overflow).ok()??;
    let values = record::parse_values(&bytes)?;
    let Value::Text(body) = values.last()? else {
        return None;
    };
    serde_json::from_str(body).ok()
}

/// Returns the key of a message's conversation and the message's position. Returns `None` if the
/// row is not a message, or if its body does not match its hash and columns.
fn parse_message_row(values: &[Value<'_>]) -> Option<(i64, i64)> {
    let [
        Value::Null,
        Value::Integer(conversation),
        Value::Integer(position),
        Value::Integer(short_id),
        Value::Text(message_id),
        Value::Text(role),
        Value::Blob(hash),
        Value::Text(body),
    ] = values
    else {
        return None;
    };
    let message = verify_message(hash, body)?;
    let same = message.message_id.to_string() == *message_id
        && message.role.to_string() == *role
        && message.message_id.short_id() == ShortId(u32::try_from(*short_id).ok()?)
        && *position > 0;
    same.then_some((*conversation, *position))
}

fn parse_revision_row(values: &[Value<'_>]) -> Option<(i64, i64)> {
    let [
        Value::Null,
        Value::Integer(conversation),
        Value::Integer(position),
        Value::Text(made_at),
        Value::Blob(hash),
        Value::Text(body),
    ] = values
    else {
        return None;
    };
    made_at.parse::<Timestamp>().ok()?;
    verify_message(hash, body)?;
    Some((*conversation, *position))
}

fn verify_message(hash: &[u8], body: &str) -> Option<Message> {
    let message: Message = serde_json::from_str(body).ok()?;
    (message.content_hash().0 == hash).then_some(message)
}

/// Parses a row of the table of conversations. Rows that were written by older versions of haft
/// have fewer columns.
fn parse_heading_row(values: &[Value<'_>]) -> Option<ConversationHeading> {
    let [
        Value::Null,
        Value::Text(id),
        Value::Text(namespace),
        Value::Text(name),
        Value::Text(description),
        Value::Text(metadata),
        Value::Text(created_at),
        Value::Text(updated_at),
        Value::Integer(messages),
        Value::Integer(requests),
        later @ ..,
    ] = values
    else {
        return None;
    };
    let revisions = match later {
        [] => 0,
        [Value::Integer(revisions), ..] => *revisions,
        [..] => return None,
    };
    Some(ConversationHeading {
        id: (*id).to_owned(),
        namespace: (*namespace).to_owned(),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        metadata: serde_json::from_str(metadata).ok()?,
        created_at: created_at.parse().ok()?,
        updated_at: updated_at.parse().ok()?,
        messages: (*messages).max(0),
        age: (*messages, *requests, revisions),
    })
}

fn parse_lineage_row(values: &[Value<'_>]) -> Option<(i64, SalvagedLineage)> {
    let [
        Value::Integer(conversation),
        Value::Integer(step),
        Value::Integer(source),
        Value::Integer(last_position),
        Value::Integer(last_revision),
        Value::Integer(_),
    ] = values
    else {
        return None;
    };
    let source = SalvagedLineage {
        step: *step,
        of: *source,
        last_position: *last_position,
        last_revision: *last_revision,
    };
    Some((*conversation, source))
}
