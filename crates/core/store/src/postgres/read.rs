//! Everything that only reads, but the request log.

use std::collections::BTreeMap;

use haft_types::{ConversationId, Message, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use super::failure::Failure;
use super::lineage::{self, Span};
use crate::conversation::{Conversation, Found, Listed, Namespace};
use crate::document::ConversationDocument;
use crate::error::StoreError;
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
    /// The condition on a conversation; `$1` is [`Self::namespace`].
    pub(super) fn condition(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "namespace = $1 AND deleted_at IS NULL",
            Self::Everywhere => "$1::text IS NULL AND deleted_at IS NULL",
            Self::Trash => "$1::text IS NULL AND deleted_at IS NOT NULL",
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Namespace(namespace) => Some(namespace),
            Self::Everywhere | Self::Trash => None,
        }
    }
}

/// A value from the JSON form we wrote.
pub(super) fn decode<T: DeserializeOwned>(what: impl FnOnce() -> String, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Damaged(format!("{} cannot be read: {error}", what())))
}

/// A stored time.
pub(super) fn read_time(text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|_| Failure::Damaged(format!("`{text}` is not a time")))
}

/// A counter, which the server keeps signed.
pub(super) fn read_count(count: i64) -> Result<u64, Failure> {
    u64::try_from(count).map_err(|_| Failure::Damaged(format!("{count} is not a count")))
}

/// The columns of a [`ListedRow`].
pub(super) const LISTED: &str = "id, name, namespace, created_at, updated_at, messages";

pub(super) type ListedRow = (String, String, String, String, String, i64);

pub(super) fn listed((id, name, namespace, created_at, updated_at, messages): ListedRow) -> Result<Listed, Failure> {
    Ok(Listed {
        id: ConversationId::new(id),
        name,
        namespace,
        created_at: read_time(&created_at)?,
        updated_at: read_time(&updated_at)?,
        messages: read_count(messages)?,
    })
}

/// Whether a conversation in the trash is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trashed {
    No,
    Yes,
}

/// The key and the whole row of a conversation that is not in the trash.
pub(super) async fn conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, Failure> {
    read_conversation(connection, id, Trashed::No).await
}

async fn read_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
    trashed: Trashed,
) -> Result<Option<(i64, Conversation)>, Failure> {
    type Row = (i64, String, String, String, String, String, String, String, i64, i64);
    let sql = "SELECT key, id, name, namespace, description, metadata, created_at, updated_at, messages, revisions
               FROM conversations WHERE id = $1 AND (deleted_at IS NOT NULL) = $2";
    let query = sqlx::query_as::<_, Row>(sql).bind(id.as_str()).bind(trashed == Trashed::Yes);
    let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
    let (key, id, name, namespace, description, metadata, created_at, updated_at, messages, revisions) = row;
    let conversation = Conversation {
        metadata: decode(|| format!("the metadata of conversation `{id}`"), &metadata)?,
        id: ConversationId::new(id),
        name,
        namespace,
        description,
        created_at: read_time(&created_at)?,
        updated_at: read_time(&updated_at)?,
        messages: read_count(messages)?,
        revisions: read_count(revisions)?,
    };
    Ok(Some((key, conversation)))
}

/// The key of a conversation.
pub(super) async fn find_key(connection: &mut PgConnection, id: &ConversationId) -> Result<Option<i64>, Failure> {
    let sql = "SELECT key FROM conversations WHERE id = $1 AND deleted_at IS NULL";
    Ok(sqlx::query_scalar(sql).bind(id.as_str()).fetch_optional(connection).await?)
}

/// The key of a conversation, which must exist and which nobody else changes until the transaction ends.
pub(super) async fn own_key(connection: &mut PgConnection, id: &ConversationId) -> Result<i64, Failure> {
    let sql = "SELECT key FROM conversations WHERE id = $1 AND deleted_at IS NULL FOR UPDATE";
    let key = sqlx::query_scalar(sql).bind(id.as_str()).fetch_optional(connection).await?;
    key.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// The conversation with this id.
pub(super) async fn get(connection: &mut PgConnection, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
    Ok(conversation(connection, id).await?.map(|(_, conversation)| conversation))
}

/// The conversations of a namespace, of all, or of the trash.
pub(super) async fn list(connection: &mut PgConnection, place: &Where) -> Result<Vec<Listed>, Failure> {
    let sql =
        format!("SELECT {LISTED} FROM conversations WHERE {} ORDER BY updated_at DESC, key DESC", place.condition());
    let rows: Vec<ListedRow> = sqlx::query_as(AssertSqlSafe(sql)).bind(place.namespace()).fetch_all(connection).await?;
    rows.into_iter().map(listed).collect()
}

/// What a person means by this text.
pub(super) async fn find(connection: &mut PgConnection, text: &str, place: &Where) -> Result<Found, Failure> {
    if text.is_empty() || text.contains('\0') {
        return Ok(Found::Nothing);
    }
    let trashed = match place {
        Where::Namespace(_) | Where::Everywhere => Trashed::No,
        Where::Trash => Trashed::Yes,
    };
    let one = |found: Option<(i64, Conversation)>| found.map(|(_, conversation)| Found::One(Box::new(conversation)));
    if let Some(exact) = one(read_conversation(connection, &ConversationId::new(text), trashed).await?) {
        return Ok(exact);
    }
    let sql = format!(
        "SELECT {LISTED} FROM conversations WHERE {} AND (name = $2 OR left(id, length($2)) = $2)
         ORDER BY updated_at DESC, key DESC",
        place.condition()
    );
    let query = sqlx::query_as(AssertSqlSafe(sql)).bind(place.namespace()).bind(text);
    let rows: Vec<ListedRow> = query.fetch_all(&mut *connection).await?;
    let candidates = rows.into_iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    match candidates.as_slice() {
        [] => Ok(Found::Nothing),
        [single] => Ok(one(read_conversation(connection, &single.id, trashed).await?).unwrap_or(Found::Nothing)),
        [..] => Ok(Found::Several(candidates)),
    }
}

/// The messages of a conversation.
pub(super) async fn messages(connection: &mut PgConnection, id: &ConversationId) -> Result<Vec<Message>, Failure> {
    match find_key(connection, id).await? {
        Some(key) => lineage::messages(connection, (key, id), Span::ALL).await,
        None => Ok(Vec::new()),
    }
}

/// Some messages of a conversation.
pub(super) async fn page(
    connection: &mut PgConnection,
    id: &ConversationId,
    end: PageEnd,
    most: usize,
) -> Result<Page, Failure> {
    let Some((key, conversation)) = conversation(connection, id).await? else { return Ok(Page::default()) };
    let last = end.last(conversation.messages);
    let first = last.saturating_sub(most as u64) + 1;
    let position = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
    let span = Span { first: position(first), last: position(last) };
    Ok(Page { first, messages: lineage::messages(connection, (key, id), span).await? })
}

/// What was noted of a conversation.
pub(super) async fn facts(connection: &mut PgConnection, id: &ConversationId) -> Result<Vec<Fact>, Failure> {
    let sql = "SELECT facts.body FROM conversations JOIN lineage ON lineage.conversation = conversations.key
               JOIN facts ON facts.conversation = lineage.source AND facts.position <= lineage.last_position
                  AND facts.key <= lineage.last_fact
               WHERE conversations.id = $1 AND deleted_at IS NULL ORDER BY lineage.step, facts.key";
    let bodies: Vec<String> = sqlx::query_scalar(sql).bind(id.as_str()).fetch_all(connection).await?;
    bodies.iter().map(|body| decode(|| format!("a fact of conversation `{id}`"), body)).collect()
}

/// A document.
pub(super) async fn state(
    connection: &mut PgConnection,
    id: &ConversationId,
    name: &str,
) -> Result<Option<Value>, Failure> {
    let sql = "SELECT value FROM states JOIN conversations ON key = conversation
               WHERE id = $1 AND deleted_at IS NULL AND states.name = $2";
    let text: Option<String> = sqlx::query_scalar(sql).bind(id.as_str()).bind(name).fetch_optional(connection).await?;
    text.map(|text| decode(|| format!("the state `{name}` of conversation `{id}`"), &text)).transpose()
}

/// The documents kept under these names.
pub(super) async fn states(
    connection: &mut PgConnection,
    id: &ConversationId,
    names: &[String],
) -> Result<BTreeMap<String, Value>, Failure> {
    let sql = "SELECT states.name, value FROM states JOIN conversations ON key = conversation
               WHERE id = $1 AND deleted_at IS NULL AND states.name = ANY($2)";
    let rows: Vec<(String, String)> = sqlx::query_as(sql).bind(id.as_str()).bind(names).fetch_all(connection).await?;
    let decoded = rows.into_iter().map(|(name, text)| {
        let value = decode(|| format!("the state `{name}` of conversation `{id}`"), &text)?;
        Ok((name, value))
    });
    decoded.collect()
}

/// A document of a namespace.
pub(super) async fn project_state(
    connection: &mut PgConnection,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Failure> {
    let sql = "SELECT value FROM project_states WHERE namespace = $1 AND name = $2";
    let text: Option<String> = sqlx::query_scalar(sql).bind(namespace).bind(name).fetch_optional(connection).await?;
    text.map(|text| decode(|| format!("the state `{name}` of namespace `{namespace}`"), &text)).transpose()
}

/// The current conversation of a namespace.
pub(super) async fn current(connection: &mut PgConnection, namespace: &str) -> Result<Option<ConversationId>, Failure> {
    let sql = "SELECT id FROM current_conversations JOIN conversations ON key = conversation
               WHERE current_conversations.namespace = $1 AND deleted_at IS NULL";
    let id: Option<String> = sqlx::query_scalar(sql).bind(namespace).fetch_optional(connection).await?;
    Ok(id.map(ConversationId::new))
}

/// The namespaces that are in use.
pub(super) async fn namespaces(connection: &mut PgConnection) -> Result<Vec<Namespace>, Failure> {
    let sql = "SELECT used.namespace,
                      (SELECT count(*) FROM conversations
                       WHERE conversations.namespace = used.namespace AND deleted_at IS NULL),
                      (SELECT id FROM current_conversations JOIN conversations ON key = conversation
                       WHERE current_conversations.namespace = used.namespace AND deleted_at IS NULL)
               FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
                     UNION SELECT namespace FROM current_conversations) AS used
               ORDER BY used.namespace";
    let rows: Vec<(String, i64, Option<String>)> = sqlx::query_as(sql).fetch_all(connection).await?;
    let read = |(namespace, conversations, current): (String, i64, Option<String>)| {
        let current = current.map(ConversationId::new);
        Ok(Namespace { namespace, conversations: read_count(conversations)?, current })
    };
    rows.into_iter().map(read).collect()
}

/// A whole conversation as it is at one moment.
pub(super) async fn export(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Option<ConversationDocument>, Failure> {
    let Some((key, conversation)) = conversation(connection, id).await? else { return Ok(None) };
    Ok(Some(ConversationDocument {
        id: conversation.id,
        name: conversation.name,
        description: conversation.description,
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        metadata: conversation.metadata,
        messages: lineage::messages(connection, (key, id), Span::ALL).await?,
    }))
}

/// What the database holds.
pub(super) async fn totals(connection: &mut PgConnection) -> Result<Totals, Failure> {
    let sql = "SELECT (SELECT count(*) FROM conversations WHERE deleted_at IS NULL),
                      (SELECT count(*) FROM conversations WHERE deleted_at IS NOT NULL),
                      (SELECT count(*) FROM (SELECT namespace FROM conversations WHERE deleted_at IS NULL
                                             UNION SELECT namespace FROM current_conversations) AS used),
                      (SELECT count(*) FROM messages),
                      (SELECT count(*) FROM revisions),
                      (SELECT count(*) FROM requests),
                      pg_database_size(current_database())";
    let row: (i64, i64, i64, i64, i64, i64, i64) = sqlx::query_as(sql).fetch_one(connection).await?;
    Ok(Totals {
        conversations: read_count(row.0)?,
        in_trash: read_count(row.1)?,
        namespaces: read_count(row.2)?,
        messages: read_count(row.3)?,
        revisions: read_count(row.4)?,
        requests: read_count(row.5)?,
        bytes: read_count(row.6)?,
    })
}
