//! All reads except those of the request log.

use std::collections::BTreeMap;

use haft_store::backend::{LISTED_COLUMNS, ListedRow, MessageSpan, OwnedScope, decode_count};
use haft_store::{
    Conversation, ConversationDocument, ConversationMatch, ConversationRow, Fact, MessagePage,
    Namespace, PageEnd, StoreError, Totals,
};
use haft_types::{ConversationId, Message};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::failure::{PostgresFailure, decode_json};
use crate::lineage;

/// The SQL parameter to which the namespace of a scope is bound.
pub(crate) const NAMESPACE_PARAMETER: &str = "$1::text";

/// The Rust types of the columns in [`LISTED_COLUMNS`], as the database driver returns them.
pub(crate) type ListedColumns = (String, String, String, String, String, i64);

/// Decodes a row of a list of conversations.
pub(crate) fn decode_listed_conversation(
    (id, name, namespace, created_at, updated_at, messages): ListedColumns,
) -> Result<ConversationRow, PostgresFailure> {
    let created_at = created_at.as_str();
    let updated_at = updated_at.as_str();
    Ok(ListedRow {
        id,
        name,
        namespace,
        created_at,
        updated_at,
        messages,
    }
    .decode()?)
}

/// Selects whether a lookup finds conversations in the trash or outside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trashed {
    No,
    Yes,
}

/// Returns the key and the data of a conversation, or `None` if it does not exist or is in the
/// trash.
pub(crate) async fn read_conversation_with_key(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, PostgresFailure> {
    read_conversation(connection, id, Trashed::No).await
}

async fn read_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
    trashed: Trashed,
) -> Result<Option<(i64, Conversation)>, PostgresFailure> {
    type Row = (
        i64,
        String,
        String,
        String,
        String,
        String,
        String,
        String,
        i64,
        i64,
    );
    let sql = "SELECT key, id, name, namespace, description, metadata, created_at, updated_at, messages, revisions
               FROM conversations WHERE id = $1 AND (deleted_at IS NOT NULL) = $2";
    let query = sqlx::query_as::<_, Row>(sql)
        .bind(id.as_str())
        .bind(trashed == Trashed::Yes);
    let Some(row) = query.fetch_optional(connection).await? else {
        return Ok(None);
    };
    let (
        key,
        id,
        name,
        namespace,
        description,
        metadata,
        created_at,
        updated_at,
        messages,
        revisions,
    ) = row;
    let created_at = created_at.as_str();
    let updated_at = updated_at.as_str();
    let listed = ListedRow {
        id,
        name,
        namespace,
        created_at,
        updated_at,
        messages,
    };
    let conversation = listed.decode_conversation(description, &metadata, revisions)?;
    Ok(Some((key, conversation)))
}

/// Returns the key of a conversation, or `None` if it does not exist or is in the trash.
pub(crate) async fn find_key(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<i64>, PostgresFailure> {
    let sql = "SELECT key FROM conversations WHERE id = $1 AND deleted_at IS NULL";
    Ok(sqlx::query_scalar(sql)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?)
}

/// Returns the key of a conversation, and locks its row until the transaction ends. Fails if the
/// conversation does not exist or is in the trash.
pub(crate) async fn find_and_lock_key(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<i64, PostgresFailure> {
    let sql = "SELECT key FROM conversations WHERE id = $1 AND deleted_at IS NULL FOR UPDATE";
    let key = sqlx::query_scalar(sql)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    key.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Returns the conversation with this id, or `None` if it does not exist or is in the trash.
pub(crate) async fn get_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<Conversation>, PostgresFailure> {
    Ok(read_conversation_with_key(connection, id)
        .await?
        .map(|(_, conversation)| conversation))
}

/// Returns the conversations in a scope: in a namespace, in all namespaces, or in the trash. The
/// most recently updated one comes first.
pub(crate) async fn list_conversations(
    connection: &mut PgConnection,
    place: &OwnedScope,
) -> Result<Vec<ConversationRow>, PostgresFailure> {
    let sql = format!(
        "SELECT {LISTED_COLUMNS} FROM conversations WHERE {} ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let rows: Vec<ListedColumns> = sqlx::query_as(AssertSqlSafe(sql))
        .bind(place.namespace())
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(decode_listed_conversation).collect()
}

/// Finds conversations by `text`: the exact id, the name, or the beginning of the id.
pub(crate) async fn find_conversation(
    connection: &mut PgConnection,
    text: &str,
    place: &OwnedScope,
) -> Result<ConversationMatch, PostgresFailure> {
    if text.is_empty() || text.contains('\0') {
        return Ok(ConversationMatch::Nothing);
    }
    let trashed = match place {
        OwnedScope::Namespace(_) | OwnedScope::Everywhere => Trashed::No,
        OwnedScope::Trash => Trashed::Yes,
    };
    let one = |found: Option<(i64, Conversation)>| {
        found.map(|(_, conversation)| ConversationMatch::One(Box::new(conversation)))
    };
    if let Some(exact) =
        one(read_conversation(connection, &ConversationId::new(text), trashed).await?)
    {
        return Ok(exact);
    }
    let sql = format!(
        "SELECT {LISTED_COLUMNS} FROM conversations WHERE {} AND (name = $2 OR id >= $2 AND id < $2 || chr(1114111))
         ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let query = sqlx::query_as(AssertSqlSafe(sql))
        .bind(place.namespace())
        .bind(text);
    let rows: Vec<ListedColumns> = query.fetch_all(&mut *connection).await?;
    let candidates = rows
        .into_iter()
        .map(decode_listed_conversation)
        .collect::<Result<Vec<_>, _>>()?;
    match candidates.as_slice() {
        [] => Ok(ConversationMatch::Nothing),
        [single] => Ok(
            one(read_conversation(connection, &single.id, trashed).await?)
                .unwrap_or(ConversationMatch::Nothing),
        ),
        [..] => Ok(ConversationMatch::Several(candidates)),
    }
}

/// Returns all messages of a conversation, or no messages if it does not exist.
pub(crate) async fn read_messages(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<Message>, PostgresFailure> {
    match find_key(connection, id).await? {
        Some(key) => lineage::read_messages(connection, (key, id), MessageSpan::ALL).await,
        None => Ok(Vec::new()),
    }
}

/// Returns at most `most` messages from the beginning or the end of a conversation.
pub(crate) async fn read_page(
    connection: &mut PgConnection,
    id: &ConversationId,
    end: PageEnd,
    most: usize,
) -> Result<MessagePage, PostgresFailure> {
    let Some((key, conversation)) = read_conversation_with_key(connection, id).await? else {
        return Ok(MessagePage::default());
    };
    let (first, span) = MessageSpan::for_page(end, most, conversation.messages);
    Ok(MessagePage {
        first,
        messages: lineage::read_messages(connection, (key, id), span).await?,
    })
}

/// Returns the facts that were recorded about the messages of a conversation.
pub(crate) async fn read_facts(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<Fact>, PostgresFailure> {
    let sql = "SELECT facts.body FROM conversations JOIN lineage ON lineage.conversation = conversations.key
               JOIN facts ON facts.conversation = lineage.source AND facts.position <= lineage.last_position
                  AND facts.key <= lineage.last_fact
               WHERE conversations.id = $1 AND deleted_at IS NULL ORDER BY lineage.step, facts.key";
    let bodies: Vec<String> = sqlx::query_scalar(sql)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    bodies
        .iter()
        .map(|body| decode_json(|| format!("a fact of conversation `{id}`"), body))
        .collect()
}

/// Returns the state stored under `name` for a conversation, or `None` if it was never set.
pub(crate) async fn read_state(
    connection: &mut PgConnection,
    id: &ConversationId,
    name: &str,
) -> Result<Option<Value>, PostgresFailure> {
    let sql = "SELECT value FROM states JOIN conversations ON key = conversation
               WHERE id = $1 AND deleted_at IS NULL AND states.name = $2";
    let text: Option<String> = sqlx::query_scalar(sql)
        .bind(id.as_str())
        .bind(name)
        .fetch_optional(connection)
        .await?;
    text.map(|text| {
        decode_json(
            || format!("the state `{name}` of conversation `{id}`"),
            &text,
        )
    })
    .transpose()
}

/// Returns the states of a conversation that have the given names.
pub(crate) async fn read_states(
    connection: &mut PgConnection,
    id: &ConversationId,
    names: &[String],
) -> Result<BTreeMap<String, Value>, PostgresFailure> {
    let sql = "SELECT states.name, value FROM states JOIN conversations ON key = conversation
               WHERE id = $1 AND deleted_at IS NULL AND states.name = ANY($2)";
    let rows: Vec<(String, String)> = sqlx::query_as(sql)
        .bind(id.as_str())
        .bind(names)
        .fetch_all(connection)
        .await?;
    let decoded = rows.into_iter().map(|(name, text)| {
        let value = decode_json(
            || format!("the state `{name}` of conversation `{id}`"),
            &text,
        )?;
        Ok((name, value))
    });
    decoded.collect()
}

/// Returns the state with the name `name` of a namespace, or `None` if it was never set.
pub(crate) async fn read_project_state(
    connection: &mut PgConnection,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, PostgresFailure> {
    let sql = "SELECT value FROM project_states WHERE namespace = $1 AND name = $2";
    let text: Option<String> = sqlx::query_scalar(sql)
        .bind(namespace)
        .bind(name)
        .fetch_optional(connection)
        .await?;
    text.map(|text| {
        decode_json(
            || format!("the state `{name}` of namespace `{namespace}`"),
            &text,
        )
    })
    .transpose()
}

/// Returns the id of a namespace's current conversation, or `None` if there is none.
pub(crate) async fn find_current_conversation(
    connection: &mut PgConnection,
    namespace: &str,
) -> Result<Option<ConversationId>, PostgresFailure> {
    let sql = "SELECT id FROM current_conversations JOIN conversations ON key = conversation
               WHERE current_conversations.namespace = $1 AND deleted_at IS NULL";
    let id: Option<String> = sqlx::query_scalar(sql)
        .bind(namespace)
        .fetch_optional(connection)
        .await?;
    Ok(id.map(ConversationId::new))
}

/// Returns the namespaces that have conversations or a current conversation, sorted by name.
pub(crate) async fn list_namespaces(
    connection: &mut PgConnection,
) -> Result<Vec<Namespace>, PostgresFailure> {
    let sql = include_str!("statements/namespaces.sql");
    let rows: Vec<(String, i64, Option<String>)> =
        sqlx::query_as(sql).fetch_all(connection).await?;
    let read = |(namespace, conversations, current): (String, i64, Option<String>)| {
        let current = current.map(ConversationId::new);
        Ok(Namespace {
            namespace,
            conversations: decode_count(conversations)?,
            current,
        })
    };
    rows.into_iter().map(read).collect()
}

/// Returns a conversation together with its messages. Both are read from one snapshot of the
/// database.
pub(crate) async fn export_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<ConversationDocument>, PostgresFailure> {
    let Some((key, conversation)) = read_conversation_with_key(connection, id).await? else {
        return Ok(None);
    };
    let messages = lineage::read_messages(connection, (key, id), MessageSpan::ALL).await?;
    Ok(Some(conversation.into_document(messages)))
}

/// Returns the numbers of conversations, messages and other rows, and the size of the database.
pub(crate) async fn read_totals(connection: &mut PgConnection) -> Result<Totals, PostgresFailure> {
    let sql = include_str!("statements/totals.sql");
    let row: (i64, i64, i64, i64, i64, i64, i64) =
        sqlx::query_as(sql).fetch_one(connection).await?;
    Ok(Totals {
        conversations: decode_count(row.0)?,
        in_trash: decode_count(row.1)?,
        namespaces: decode_count(row.2)?,
        messages: decode_count(row.3)?,
        revisions: decode_count(row.4)?,
        requests: decode_count(row.5)?,
        bytes: decode_count(row.6)?,
    })
}
