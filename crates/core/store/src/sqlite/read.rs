//! Everything that only reads, but the request log.

use std::collections::BTreeMap;

use haft_types::{ConversationId, Message};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::failure::Failure;
use super::lineage::{self, Span};
use super::rows::{self, LISTED};
use crate::conversation::{Conversation, Found, Listed, Namespace, namespace_name};
use crate::document::ConversationDocument;
use crate::fact::Fact;
use crate::message::{Page, PageEnd};
use crate::statistics::Totals;

/// A [`Scope`](crate::Scope) that can be sent to another thread.
#[derive(Clone, Debug)]
pub(super) enum Where {
    Namespace(String),
    Everywhere,
    Trash,
}

impl Where {
    /// The condition on a conversation; `?1` is [`Self::namespace`].
    pub(super) fn condition(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "namespace = ?1 AND deleted_at IS NULL",
            Self::Everywhere => "?1 IS NULL AND deleted_at IS NULL",
            Self::Trash => "?1 IS NULL AND deleted_at IS NOT NULL",
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Namespace(namespace) => Some(namespace),
            Self::Everywhere | Self::Trash => None,
        }
    }
}

/// The conversation with this id.
pub(super) fn get(connection: &Connection, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
    Ok(rows::conversation(connection, id)?.map(|(_, conversation)| conversation))
}

/// The conversations of a namespace, of all, or of the trash.
pub(super) fn list(connection: &Connection, place: &Where) -> Result<Vec<Listed>, Failure> {
    let sql =
        format!("SELECT {LISTED} FROM conversations WHERE {} ORDER BY updated_at DESC, key DESC", place.condition());
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then([place.namespace()], rows::listed)?.collect()
}

/// What a person means by this text.
pub(super) fn find(connection: &mut Connection, text: &str, place: &Where) -> Result<Found, Failure> {
    if text.is_empty() {
        return Ok(Found::Nothing);
    }
    let transaction = connection.transaction()?;
    let exactly = |id: &ConversationId| {
        let found = match place {
            Where::Namespace(_) | Where::Everywhere => rows::conversation(&transaction, id),
            Where::Trash => rows::trashed(&transaction, id),
        };
        found.map(|found| found.map(|(_, conversation)| Found::One(Box::new(conversation))))
    };
    if let Some(exact) = exactly(&ConversationId::new(text))? {
        return Ok(exact);
    }
    let sql = format!(
        "SELECT {LISTED} FROM conversations
         WHERE {} AND (name = ?2 OR substr(id, 1, length(?2)) = ?2)
         ORDER BY updated_at DESC, key DESC",
        place.condition()
    );
    let candidates: Vec<Listed> = transaction
        .prepare_cached(&sql)?
        .query_and_then((place.namespace(), text), rows::listed)?
        .collect::<Result<_, _>>()?;
    match candidates.as_slice() {
        [] => Ok(Found::Nothing),
        [one] => Ok(exactly(&one.id)?.unwrap_or(Found::Nothing)),
        [..] => Ok(Found::Several(candidates)),
    }
}

/// The messages of a conversation.
pub(super) fn messages(connection: &mut Connection, id: &ConversationId) -> Result<Vec<Message>, Failure> {
    let transaction = connection.transaction()?;
    let Some(key) = rows::find_key(&transaction, id)? else { return Ok(Vec::new()) };
    lineage::messages(&transaction, (key, id), Span::ALL)
}

/// Some messages of a conversation.
pub(super) fn page(
    connection: &mut Connection,
    id: &ConversationId,
    end: PageEnd,
    most: usize,
) -> Result<Page, Failure> {
    let transaction = connection.transaction()?;
    let Some((key, conversation)) = rows::conversation(&transaction, id)? else { return Ok(Page::default()) };
    let last = end.last(conversation.messages);
    let first = last.saturating_sub(most as u64) + 1;
    let span = Span { first: position(first), last: position(last) };
    Ok(Page { first, messages: lineage::messages(&transaction, (key, id), span)? })
}

fn position(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// What was noted of a conversation.
pub(super) fn facts(connection: &Connection, id: &ConversationId) -> Result<Vec<Fact>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT facts.body FROM conversations CROSS JOIN lineage ON lineage.conversation = conversations.key
         CROSS JOIN facts ON facts.conversation = lineage.source AND facts.position <= lineage.last_position
            AND facts.key <= lineage.last_fact
         WHERE conversations.id = ?1 AND deleted_at IS NULL ORDER BY lineage.step, facts.key",
    )?;
    let read = |row: &rusqlite::Row<'_>| rows::decode(|| format!("a fact of conversation `{id}`"), rows::text(row, 0)?);
    statement.query_and_then([id.as_str()], read)?.collect()
}

/// A document.
pub(super) fn state(connection: &Connection, id: &ConversationId, name: &str) -> Result<Option<Value>, Failure> {
    let text: Option<String> = connection
        .prepare_cached(
            "SELECT value FROM states
             WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL) AND name = ?2",
        )?
        .query_row((id.as_str(), name), |row| row.get(0))
        .optional()?;
    text.map(|text| rows::decode(|| format!("the state `{name}` of conversation `{id}`"), &text)).transpose()
}

/// The documents kept under these names.
pub(super) fn states(
    connection: &Connection,
    id: &ConversationId,
    names: &[String],
) -> Result<BTreeMap<String, Value>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT name, value FROM states
         WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL)",
    )?;
    let mut found = BTreeMap::new();
    for row in statement.query_map((id.as_str(),), |row| Ok((row.get(0)?, row.get(1)?)))? {
        let (name, text): (String, String) = row?;
        if names.contains(&name) {
            let value = rows::decode(|| format!("the state `{name}` of conversation `{id}`"), &text)?;
            found.insert(name, value);
        }
    }
    Ok(found)
}

/// A document of a namespace.
pub(super) fn project_state(connection: &Connection, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM project_states WHERE namespace = ?1 AND name = ?2")?
        .query_row((namespace, name), |row| row.get(0))
        .optional()?;
    text.map(|text| rows::decode(|| format!("the state `{name}` of namespace `{namespace}`"), &text)).transpose()
}

/// The current conversation of a namespace.
pub(super) fn current(connection: &Connection, namespace: &str) -> Result<Option<ConversationId>, Failure> {
    let id: Option<String> = connection
        .prepare_cached(
            "SELECT id FROM current_conversations JOIN conversations ON key = conversation
             WHERE current_conversations.namespace = ?1 AND deleted_at IS NULL",
        )?
        .query_row([namespace_name(namespace)], |row| row.get(0))
        .optional()?;
    Ok(id.map(ConversationId::new))
}

/// The namespaces that are in use.
pub(super) fn namespaces(connection: &mut Connection) -> Result<Vec<Namespace>, Failure> {
    let transaction = connection.transaction()?;
    let mut statement = transaction.prepare_cached(
        "SELECT used.namespace,
                (SELECT count(*) FROM conversations
                 WHERE conversations.namespace = used.namespace AND deleted_at IS NULL)
         FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
               UNION SELECT namespace FROM current_conversations) AS used
         ORDER BY used.namespace",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let namespace: String = row.get(0)?;
        let current = current(&transaction, &namespace)?;
        Ok(Namespace { conversations: rows::read_count(row.get(1)?)?, namespace, current })
    };
    statement.query_and_then([], read)?.collect()
}

/// A whole conversation as it is at one moment.
pub(super) fn export(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<Option<ConversationDocument>, Failure> {
    let transaction = connection.transaction()?;
    let Some((key, conversation)) = rows::conversation(&transaction, id)? else { return Ok(None) };
    Ok(Some(ConversationDocument {
        id: conversation.id,
        name: conversation.name,
        description: conversation.description,
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        metadata: conversation.metadata,
        messages: lineage::messages(&transaction, (key, id), Span::ALL)?,
    }))
}

/// What the database holds.
pub(super) fn totals(connection: &mut Connection) -> Result<Totals, Failure> {
    let transaction = connection.transaction()?;
    let count = |sql: &str| -> Result<u64, Failure> {
        rows::read_count(transaction.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    };
    Ok(Totals {
        conversations: count("SELECT count(*) FROM conversations WHERE deleted_at IS NULL")?,
        in_trash: count("SELECT count(*) FROM conversations WHERE deleted_at IS NOT NULL")?,
        namespaces: count(
            "SELECT count(*) FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
                                   UNION SELECT namespace FROM current_conversations)",
        )?,
        messages: count("SELECT count(*) FROM messages")?,
        revisions: count("SELECT count(*) FROM revisions")?,
        requests: count("SELECT count(*) FROM requests")?,
        bytes: count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
    })
}
