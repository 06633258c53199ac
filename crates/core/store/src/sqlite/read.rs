//! All queries that only read, except for those of the request log.

use std::collections::BTreeMap;

use haft_types::{ConversationId, Message};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::failure::SqliteFailure;
use super::lineage;
use super::rows::{self, LISTED_COLUMNS};
use crate::conversation::{
    Conversation, ConversationMatch, ConversationRow, Namespace, OwnedScope, namespace_name,
};
use crate::document::ConversationDocument;
use crate::fact::Fact;
use crate::message::{MessagePage, MessageSpan, PageEnd};
use crate::statistics::Totals;

/// The placeholder in SQL statements that is bound to the namespace of a scope.
pub(super) const NAMESPACE_PARAMETER: &str = "?1";

/// Returns the conversation with this id; `None` if it does not exist or is in the trash.
pub(super) fn get_conversation(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Option<Conversation>, SqliteFailure> {
    Ok(rows::find_conversation(connection, id)?.map(|(_, conversation)| conversation))
}

/// Returns the conversations of a scope, most recently used first.
pub(super) fn list_conversations(
    connection: &Connection,
    place: &OwnedScope,
) -> Result<Vec<ConversationRow>, SqliteFailure> {
    let sql = format!(
        "SELECT {LISTED_COLUMNS} FROM conversations WHERE {} ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_and_then([place.namespace()], rows::read_listed_conversation)?
        .collect()
}

/// Finds conversations by id, id prefix or name.
pub(super) fn find_conversation(
    connection: &mut Connection,
    text: &str,
    place: &OwnedScope,
) -> Result<ConversationMatch, SqliteFailure> {
    if text.is_empty() {
        return Ok(ConversationMatch::Nothing);
    }
    let transaction = connection.transaction()?;
    let exactly = |id: &ConversationId| {
        let found = match place {
            OwnedScope::Namespace(_) | OwnedScope::Everywhere => {
                rows::find_conversation(&transaction, id)
            }
            OwnedScope::Trash => rows::find_trashed(&transaction, id),
        };
        found.map(|found| {
            found.map(|(_, conversation)| ConversationMatch::One(Box::new(conversation)))
        })
    };
    if let Some(exact) = exactly(&ConversationId::new(text))? {
        return Ok(exact);
    }
    let sql = format!(
        "SELECT {LISTED_COLUMNS} FROM conversations
         WHERE {} AND (name = ?2 OR substr(id, 1, length(?2)) = ?2)
         ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let candidates: Vec<ConversationRow> = transaction
        .prepare_cached(&sql)?
        .query_and_then((place.namespace(), text), rows::read_listed_conversation)?
        .collect::<Result<_, _>>()?;
    match candidates.as_slice() {
        [] => Ok(ConversationMatch::Nothing),
        [one] => Ok(exactly(&one.id)?.unwrap_or(ConversationMatch::Nothing)),
        [..] => Ok(ConversationMatch::Several(candidates)),
    }
}

/// Returns the messages of a conversation, in order, each in its newest revision.
pub(super) fn load_messages(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<Vec<Message>, SqliteFailure> {
    let transaction = connection.transaction()?;
    let Some(key) = rows::find_key(&transaction, id)? else {
        return Ok(Vec::new());
    };
    lineage::load_messages(&transaction, (key, id), MessageSpan::ALL)
}

/// Returns the page of at most `most` messages that ends at `end`.
pub(super) fn load_page(
    connection: &mut Connection,
    id: &ConversationId,
    end: PageEnd,
    most: usize,
) -> Result<MessagePage, SqliteFailure> {
    let transaction = connection.transaction()?;
    let Some((key, conversation)) = rows::find_conversation(&transaction, id)? else {
        return Ok(MessagePage::default());
    };
    let (first, span) = MessageSpan::for_page(end, most, conversation.messages);
    Ok(MessagePage {
        first,
        messages: lineage::load_messages(&transaction, (key, id), span)?,
    })
}

/// Returns the recorded facts of a conversation.
pub(super) fn load_facts(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Vec<Fact>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT facts.body FROM conversations CROSS JOIN lineage ON lineage.conversation = conversations.key
         CROSS JOIN facts ON facts.conversation = lineage.source AND facts.position <= lineage.last_position
            AND facts.key <= lineage.last_fact
         WHERE conversations.id = ?1 AND deleted_at IS NULL ORDER BY lineage.step, facts.key",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        rows::decode_json(
            || format!("a fact of conversation `{id}`"),
            rows::text_column(row, 0)?,
        )
    };
    statement.query_and_then([id.as_str()], read)?.collect()
}

/// Returns the state that a conversation stores under `name`.
pub(super) fn load_state(
    connection: &Connection,
    id: &ConversationId,
    name: &str,
) -> Result<Option<Value>, SqliteFailure> {
    let text: Option<String> = connection
        .prepare_cached(
            "SELECT value FROM states
             WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL) AND name = ?2",
        )?
        .query_row((id.as_str(), name), |row| row.get(0))
        .optional()?;
    text.map(|text| {
        rows::decode_json(
            || format!("the state `{name}` of conversation `{id}`"),
            &text,
        )
    })
    .transpose()
}

/// Returns the states that a conversation stores under these names. Names without a state are
/// omitted.
pub(super) fn load_states(
    connection: &Connection,
    id: &ConversationId,
    names: &[String],
) -> Result<BTreeMap<String, Value>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT name, value FROM states
         WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL)",
    )?;
    let mut found = BTreeMap::new();
    for row in statement.query_map((id.as_str(),), |row| Ok((row.get(0)?, row.get(1)?)))? {
        let (name, text): (String, String) = row?;
        if names.contains(&name) {
            let value = rows::decode_json(
                || format!("the state `{name}` of conversation `{id}`"),
                &text,
            )?;
            found.insert(name, value);
        }
    }
    Ok(found)
}

/// Returns the project state that is stored under a name in a namespace.
pub(super) fn load_project_state(
    connection: &Connection,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, SqliteFailure> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM project_states WHERE namespace = ?1 AND name = ?2")?
        .query_row((namespace, name), |row| row.get(0))
        .optional()?;
    text.map(|text| {
        rows::decode_json(
            || format!("the state `{name}` of namespace `{namespace}`"),
            &text,
        )
    })
    .transpose()
}

/// Returns the current conversation of a namespace.
pub(super) fn current_conversation(
    connection: &Connection,
    namespace: &str,
) -> Result<Option<ConversationId>, SqliteFailure> {
    let id: Option<String> = connection
        .prepare_cached(
            "SELECT id FROM current_conversations JOIN conversations ON key = conversation
             WHERE current_conversations.namespace = ?1 AND deleted_at IS NULL",
        )?
        .query_row([namespace_name(namespace)], |row| row.get(0))
        .optional()?;
    Ok(id.map(ConversationId::new))
}

/// Returns the namespaces that contain a conversation or have a current conversation.
pub(super) fn list_namespaces(
    connection: &mut Connection,
) -> Result<Vec<Namespace>, SqliteFailure> {
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
        let current = current_conversation(&transaction, &namespace)?;
        Ok(Namespace {
            conversations: rows::decode_count(row.get(1)?)?,
            namespace,
            current,
        })
    };
    statement.query_and_then([], read)?.collect()
}

/// Returns a whole conversation, read in a consistent snapshot.
pub(super) fn export_conversation(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<Option<ConversationDocument>, SqliteFailure> {
    let transaction = connection.transaction()?;
    let Some((key, conversation)) = rows::find_conversation(&transaction, id)? else {
        return Ok(None);
    };
    let messages = lineage::load_messages(&transaction, (key, id), MessageSpan::ALL)?;
    Ok(Some(conversation.into_document(messages)))
}

/// Returns the number of items of each kind in the database.
pub(super) fn count_totals(connection: &mut Connection) -> Result<Totals, SqliteFailure> {
    let transaction = connection.transaction()?;
    let count = |sql: &str| -> Result<u64, SqliteFailure> {
        Ok(rows::decode_count(
            transaction
                .prepare_cached(sql)?
                .query_row([], |row| row.get(0))?,
        )?)
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
