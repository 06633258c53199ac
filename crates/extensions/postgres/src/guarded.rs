//! The most frequent writes, each as one statement that also makes all checks of a write: the
//! format of the tables, the term of the write lock, and the lease of a task.
//!
//! A statement that changes nothing gives no reason. The caller then makes the write in a
//! transaction with separate checks, whose errors say what is wrong. Nothing but speed depends on
//! this module.

use haft_store::backend::{MessageRow, encode_short_id, encode_time};
use haft_types::{ConversationId, MessageId, Segment, Timestamp};
use sqlx::PgConnection;

use crate::connect::FORMAT_VERSION;
use crate::failure::{self, PostgresFailure};
use crate::queue::TaskLease;

/// The conditions of a write: the term of the conversation's lock, and the lease of the task.
pub(crate) struct WriteGuard<'a> {
    pub(crate) conversation: &'a ConversationId,
    pub(crate) term: i64,
    pub(crate) lease: Option<TaskLease>,
}

/// Builds a statement without and with the check of a lease. The statement begins with the common
/// table expression `allowed`, which has a row if the write is allowed, and uses the parameters
/// from 6 on.
macro_rules! guarded {
    ($rest:literal) => {
        [
            concat!(include_str!("statements/guard.sql"), $rest),
            concat!(include_str!("statements/guard_task.sql"), $rest),
        ]
    };
}

/// Begins a query with the parameters 1 to 5.
macro_rules! guard_query {
    ($function:ident, $guard:expr, $statements:expr) => {{
        let [plain, of_task] = $statements;
        sqlx::$function(if $guard.lease.is_some() {
            of_task
        } else {
            plain
        })
        .bind($guard.conversation.as_str())
        .bind($guard.term)
        .bind(FORMAT_VERSION)
        .bind($guard.lease.map(|lease| lease.task))
        .bind($guard.lease.map(|lease| lease.epoch))
    }};
}

/// Appends a message at the next position. Returns false if nothing was written.
pub(crate) async fn append_message(
    connection: &mut PgConnection,
    guard: &WriteGuard<'_>,
    message: &MessageRow,
    now: Timestamp,
) -> Result<bool, PostgresFailure> {
    let sql = guarded!(
        ", counted AS (
               UPDATE conversations c SET messages = c.messages + 1, updated_at = greatest(c.updated_at, $6::text)
               WHERE c.id = $1::text AND c.deleted_at IS NULL AND EXISTS (SELECT 1 FROM allowed) AND NOT EXISTS (
                   SELECT 1 FROM lineage l JOIN messages m ON m.conversation = l.source AND m.short_id = $7::bigint
                       AND m.position <= l.last_position WHERE l.conversation = c.key)
               RETURNING c.key, c.messages),
           inserted AS (
               INSERT INTO messages (conversation, position, short_id, message_id, role, hash, body)
               SELECT key, messages, $7::bigint, $8::text, $9::text, $10::bytea, $11::text FROM counted RETURNING key)
           INSERT INTO unindexed SELECT key FROM inserted"
    );
    let query = guard_query!(query, guard, sql)
        .bind(encode_time(now))
        .bind(encode_short_id(message.id.short_id()))
        .bind(message.id.to_string())
        .bind(&message.role)
        .bind(&message.hash.0[..])
        .bind(&message.body);
    match query.execute(connection).await {
        Ok(done) => Ok(done.rows_affected() == 1),
        Err(error) if failure::is_duplicate(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Stores a fact about a message. Returns false if nothing was written.
pub(crate) async fn insert_fact(
    connection: &mut PgConnection,
    guard: &WriteGuard<'_>,
    about: MessageId,
    fact: &str,
    now: Timestamp,
) -> Result<bool, PostgresFailure> {
    let sql = guarded!(
        " INSERT INTO facts (conversation, position, noted_at, body)
          SELECT c.key, m.position, $8::text, $9::text FROM conversations c
          JOIN lineage l ON l.conversation = c.key
          JOIN messages m ON m.conversation = l.source AND m.short_id = $6::bigint AND m.position <= l.last_position
          WHERE c.id = $1::text AND c.deleted_at IS NULL AND m.message_id = $7::text AND EXISTS (SELECT 1 FROM allowed)"
    );
    let query = guard_query!(query, guard, sql)
        .bind(encode_short_id(about.short_id()))
        .bind(about.to_string())
        .bind(encode_time(now))
        .bind(fact);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// Sets a state of a conversation. Returns false if nothing was written.
pub(crate) async fn set_state(
    connection: &mut PgConnection,
    guard: &WriteGuard<'_>,
    name: &str,
    value: &str,
) -> Result<bool, PostgresFailure> {
    let sql = guarded!(
        " INSERT INTO states SELECT c.key, $6::text, $7::text FROM conversations c
          WHERE c.id = $1::text AND c.deleted_at IS NULL AND EXISTS (SELECT 1 FROM allowed)
          ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value"
    );
    let query = guard_query!(query, guard, sql).bind(name).bind(value);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// A request of a conversation that is to be logged.
pub(crate) struct RequestRow<'a> {
    pub(crate) number: i64,
    pub(crate) sent_at: Timestamp,
    pub(crate) is_self_contained: bool,
    pub(crate) body: &'a str,
    /// The texts that the request refers to and that may not be stored yet, by hash.
    pub(crate) texts: &'a [(Vec<u8>, String)],
}

/// Logs a request. Returns false if nothing was written, for example because another process has
/// logged a request since.
pub(crate) async fn insert_request(
    connection: &mut PgConnection,
    guard: &WriteGuard<'_>,
    row: &RequestRow<'_>,
) -> Result<bool, PostgresFailure> {
    let sql = guarded!(
        ", counted AS (
               UPDATE conversations c SET requests = c.requests + 1
               WHERE c.id = $1::text AND c.deleted_at IS NULL AND c.requests = $6::bigint - 1::bigint AND EXISTS (SELECT 1 FROM allowed)
               RETURNING c.key, c.requests),
           stored AS (
               INSERT INTO texts (hash, body) SELECT t.hash, t.body FROM unnest($10::bytea[], $11::text[]) AS t (hash, body)
               WHERE EXISTS (SELECT 1 FROM counted) ON CONFLICT DO NOTHING)
           INSERT INTO requests (conversation, number, sent_at, whole, body)
           SELECT key, requests, $7::text, $8::boolean, $9::text FROM counted"
    );
    let hashes: Vec<_> = row.texts.iter().map(|(hash, _)| hash.as_slice()).collect();
    let bodies: Vec<_> = row.texts.iter().map(|(_, body)| body.as_str()).collect();
    let query = guard_query!(query, guard, sql)
        .bind(row.number)
        .bind(encode_time(row.sent_at))
        .bind(row.is_self_contained)
        .bind(row.body)
        .bind(hashes)
        .bind(bodies);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

/// Returns for each segment whether its content is stored as a message of the conversation `key`,
/// and the hashes in `hashes` that are not stored as texts.
pub(crate) async fn find_stored(
    connection: &mut PgConnection,
    key: i64,
    segments: &[Segment],
    hashes: &[&[u8]],
) -> Result<(Vec<bool>, Vec<Vec<u8>>), PostgresFailure> {
    let sql = "SELECT ARRAY(SELECT EXISTS (
                       SELECT 1 FROM lineage l JOIN messages m ON m.conversation = l.source AND m.short_id = s.short_id
                           AND m.position <= l.last_position
                       WHERE l.conversation = $1::bigint AND m.message_id = s.message_id AND m.hash = s.hash)
                   FROM unnest($2::bigint[], $3::text[], $4::bytea[]) WITH ORDINALITY AS s (short_id, message_id, hash, n) ORDER BY s.n),
                   ARRAY(SELECT h.hash FROM unnest($5::bytea[]) AS h (hash)
                         WHERE NOT EXISTS (SELECT 1 FROM texts t WHERE t.hash = h.hash))";
    let short: Vec<_> = segments
        .iter()
        .map(|one| encode_short_id(one.entry.message.message_id.short_id()))
        .collect();
    let ids: Vec<_> = segments
        .iter()
        .map(|one| one.entry.message.message_id.to_string())
        .collect();
    let contents: Vec<_> = segments.iter().map(|one| &one.entry.hash.0[..]).collect();
    Ok(sqlx::query_as(sql)
        .bind(key)
        .bind(short)
        .bind(ids)
        .bind(contents)
        .bind(hashes)
        .fetch_one(connection)
        .await?)
}
