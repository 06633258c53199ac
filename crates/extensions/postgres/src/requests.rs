//! The request log, which stores requests in order as deltas, and each text once.
//!
//! Invariant: the texts that a request refers to are stored in its transaction, so every logged
//! request can be reconstructed.

use std::collections::HashMap;

use haft_store::backend::{
    LastRequests, LoggedRow, OutlineReader, RequestDelta, SegmentRef, SegmentSource, apply_delta,
    count_kept, decode_count, encode_json, encode_short_id, encode_time, replay_rows,
};
use haft_store::{LoggedRequest, RequestOutline, RequestSummary, SentRequest, StoreError};
use haft_types::{ContentHash, ConversationId, Segment, Timestamp};
use sqlx::PgConnection;

use crate::failure::PostgresFailure;
use crate::guarded::{self, RequestRow, WriteGuard};
use crate::{lineage, read};

/// A request whose log entry becomes visible when the transaction commits.
pub(crate) struct PendingRequest {
    conversation: i64,
    segments: Vec<SegmentRef>,
    number: i64,
}

impl PendingRequest {
    /// Returns the key of the conversation and the request's number.
    pub(crate) fn place(&self) -> (i64, i64) {
        (self.conversation, self.number)
    }

    /// Returns the request's number, and caches its segments so that the next request can be stored
    /// as a delta. Must be called after the commit.
    pub(crate) fn cache_segments(
        self,
        remembered: &mut LastRequests,
    ) -> Result<u64, PostgresFailure> {
        let number = decode_count(self.number)?;
        remembered.remember(self.conversation, self.number, self.segments);
        Ok(number)
    }
}

/// Logs one request, stored as the difference from the previous request where possible.
pub(crate) async fn log_request(
    connection: &mut PgConnection,
    remembered: &mut LastRequests,
    id: &ConversationId,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<PendingRequest, PostgresFailure> {
    let sql =
        "UPDATE conversations SET requests = requests + 1 WHERE id = $1 AND deleted_at IS NULL
               RETURNING key, requests";
    let counted: Option<(i64, i64)> = sqlx::query_as(sql)
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let (key, number) =
        counted.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() })?;
    let mut segments = match remembered.take_previous(key, number) {
        Some(segments) => segments,
        None => read_segments(connection, key, number - 1)
            .await?
            .map_or_else(Vec::new, |(segments, _)| segments),
    };

    let request = &sent.request;
    let kept = count_kept(&segments, &request.segments);
    let mut added = Vec::with_capacity(request.segments.len() - kept);
    for segment in &request.segments[kept..] {
        added.push(SegmentRef::new(
            segment,
            store_segment(connection, key, segment).await?,
        ));
    }
    store_text(connection, request.tools.hash, || {
        encode_json("a list of tools", &request.tools.specs)
    })
    .await?;
    let delta = RequestDelta::new(&segments, sent, added);
    if let (Some(hash), Some(encoding)) = (delta.encoding(), &sent.encoding) {
        store_text(connection, hash, || Ok(encoding.to_string())).await?;
    }
    let sql = "INSERT INTO requests (conversation, number, sent_at, whole, body) VALUES ($1, $2, $3, $4, $5)";
    let query = sqlx::query(sql)
        .bind(key)
        .bind(number)
        .bind(encode_time(now))
        .bind(delta.is_self_contained());
    query
        .bind(encode_json("a request", &delta)?)
        .execute(connection)
        .await?;
    apply_delta(&delta, &mut segments)?;
    Ok(PendingRequest {
        conversation: key,
        segments,
        number,
    })
}

/// Like [`log_request`], in one statement that makes all checks, for a conversation whose last
/// request `(key, number)` this process has logged. Returns `None` if nothing was written.
pub(crate) async fn log_guarded_request(
    connection: &mut PgConnection,
    remembered: &mut LastRequests,
    (key, last): (i64, i64),
    guard: &WriteGuard<'_>,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<Option<PendingRequest>, PostgresFailure> {
    let number = last + 1;
    let Some(mut segments) = remembered.take_previous(key, number) else {
        return Ok(None);
    };
    let request = &sent.request;
    let kept = count_kept(&segments, &request.segments);
    let new = &request.segments[kept..];
    let encoding = sent
        .encoding
        .as_ref()
        .map(|text| (ContentHash::from_content(text.as_bytes()), text.to_string()));
    let hashes = new.iter().map(|segment| &segment.entry.hash.0[..]);
    let hashes = hashes.chain([&request.tools.hash.0[..]]);
    let hashes: Vec<_> = hashes
        .chain(encoding.iter().map(|(hash, _)| &hash.0[..]))
        .collect();
    let (stored, missing) = guarded::find_stored(connection, key, new, &hashes).await?;
    let is_missing = |hash: &ContentHash| missing.iter().any(|one| one[..] == hash.0[..]);
    let mut texts = Vec::new();
    let mut added = Vec::with_capacity(new.len());
    for (segment, is_message) in new.iter().zip(stored) {
        let hash = &segment.entry.hash;
        added.push(SegmentRef::new(
            segment,
            if is_message {
                SegmentSource::Message
            } else {
                SegmentSource::Text
            },
        ));
        if !is_message && is_missing(hash) {
            let text = encode_json("a message", &segment.entry.message)?;
            texts.push((hash.0.to_vec(), text));
        }
    }
    if is_missing(&request.tools.hash) {
        let text = encode_json("a list of tools", &request.tools.specs)?;
        texts.push((request.tools.hash.0.to_vec(), text));
    }
    if let Some((hash, text)) = encoding.filter(|(hash, _)| is_missing(hash)) {
        texts.push((hash.0.to_vec(), text));
    }
    let delta = RequestDelta::new(&segments, sent, added);
    let row = RequestRow {
        number,
        sent_at: now,
        is_self_contained: delta.is_self_contained(),
        body: &encode_json("a request", &delta)?,
        texts: &texts,
    };
    if !guarded::insert_request(connection, guard, &row).await? {
        return Ok(None);
    }
    apply_delta(&delta, &mut segments)?;
    Ok(Some(PendingRequest {
        conversation: key,
        segments,
        number,
    }))
}

/// Stores the content of a segment unless it is stored already as a message, and returns where it
/// is stored.
async fn store_segment(
    connection: &mut PgConnection,
    conversation: i64,
    segment: &Segment,
) -> Result<SegmentSource, PostgresFailure> {
    let message = &segment.entry.message;
    if lineage::was_stored_with_hash(
        connection,
        conversation,
        message.message_id,
        segment.entry.hash,
    )
    .await?
    {
        return Ok(SegmentSource::Message);
    }
    store_text(connection, segment.entry.hash, || {
        encode_json("a message", message)
    })
    .await?;
    Ok(SegmentSource::Text)
}

async fn store_text(
    connection: &mut PgConnection,
    hash: ContentHash,
    text: impl FnOnce() -> Result<String, StoreError>,
) -> Result<(), PostgresFailure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM texts WHERE hash = $1)";
    if sqlx::query_scalar(sql)
        .bind(&hash.0[..])
        .fetch_one(&mut *connection)
        .await?
    {
        return Ok(());
    }
    let sql = "INSERT INTO texts VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(sql)
        .bind(&hash.0[..])
        .bind(text()?)
        .execute(connection)
        .await?;
    Ok(())
}

type LogColumns = (i64, String, String);

fn decode_logged_row((number, sent_at, body): LogColumns) -> Result<LoggedRow, PostgresFailure> {
    Ok(LoggedRow::decode(number, &sent_at, &body)?)
}

/// Returns the segments and the log row of a request. The segments are reconstructed by applying
/// the deltas since the last request that was stored whole.
async fn read_segments(
    connection: &mut PgConnection,
    conversation: i64,
    number: i64,
) -> Result<Option<(Vec<SegmentRef>, LoggedRow)>, PostgresFailure> {
    let sql = include_str!("statements/segments.sql");
    let rows: Vec<LogColumns> = sqlx::query_as(sql)
        .bind(conversation)
        .bind(number)
        .fetch_all(connection)
        .await?;
    replay_rows(rows.into_iter().map(decode_logged_row))
}

async fn read_log(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<LoggedRow>, PostgresFailure> {
    let sql = "SELECT number, sent_at, body FROM requests JOIN conversations ON conversations.key = conversation
               WHERE id = $1 AND deleted_at IS NULL ORDER BY number";
    let rows: Vec<LogColumns> = sqlx::query_as(sql)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(decode_logged_row).collect()
}

/// Returns a summary of each logged request of a conversation.
pub(crate) async fn list_requests(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<RequestSummary>, PostgresFailure> {
    let log = read_log(connection, id).await?;
    log.iter().map(|logged| Ok(logged.summary()?)).collect()
}

/// Returns the number of a conversation's logged requests.
pub(crate) async fn count_requests(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<u64, PostgresFailure> {
    let count: Option<i64> = sqlx::query_scalar(
        "SELECT requests FROM conversations WHERE id = $1 AND deleted_at IS NULL",
    )
    .bind(id.as_str())
    .fetch_optional(connection)
    .await?;
    Ok(decode_count(count.unwrap_or(0))?)
}

/// Returns an outline of each logged request of a conversation.
pub(crate) async fn list_outlines(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<RequestOutline>, PostgresFailure> {
    let mut outlines = OutlineReader::default();
    for logged in read_log(connection, id).await? {
        let encoding = match outlines.missing_encoding(&logged) {
            Some(hash) => Some(read_text(connection, hash).await?),
            None => None,
        };
        outlines.add_row(&logged, encoding)?;
    }
    Ok(outlines.finish())
}

/// Returns a logged request with its complete content, or `None` if it does not exist.
pub(crate) async fn read_request(
    connection: &mut PgConnection,
    id: &ConversationId,
    number: u64,
) -> Result<Option<LoggedRequest>, PostgresFailure> {
    let Ok(number) = i64::try_from(number) else {
        return Ok(None);
    };
    let Some(key) = read::find_key(connection, id).await? else {
        return Ok(None);
    };
    let Some((segments, logged)) = read_segments(connection, key, number).await? else {
        return Ok(None);
    };
    // For a number beyond the log, the query returns the last request.
    if logged.number != number {
        return Ok(None);
    }
    let bodies = RequestBodies::load(connection, key, &segments).await?;
    let mut whole = Vec::with_capacity(segments.len());
    for segment in segments {
        let message = segment.decode_message(bodies.get(&segment))?;
        whole.push((segment, message));
    }
    let tools = read_text(connection, logged.delta.tools()).await?;
    let encoding = match logged.delta.encoding() {
        Some(hash) => Some(read_text(connection, hash).await?),
        None => None,
    };
    Ok(Some(logged.into_request(whole, &tools, encoding)?))
}

/// The bodies of a request's segments, read together: one query per body would cost a round trip
/// each.
struct RequestBodies {
    messages: HashMap<i64, String>,
    texts: HashMap<Vec<u8>, String>,
}

impl RequestBodies {
    async fn load(
        connection: &mut PgConnection,
        key: i64,
        segments: &[SegmentRef],
    ) -> Result<Self, PostgresFailure> {
        let mut ids = Vec::new();
        let mut hashes = Vec::new();
        for segment in segments {
            match segment.source {
                SegmentSource::Message => ids.push(encode_short_id(segment.message_id.short_id())),
                SegmentSource::Text => hashes.push(segment.hash.0.to_vec()),
            }
        }
        let messages = lineage::read_first_bodies(connection, key, &ids).await?;
        let sql = "SELECT hash, body FROM texts WHERE hash = ANY ($1)";
        let texts: Vec<(Vec<u8>, String)> = sqlx::query_as(sql)
            .bind(&hashes)
            .fetch_all(connection)
            .await?;
        Ok(Self {
            messages,
            texts: texts.into_iter().collect(),
        })
    }

    fn get(&self, segment: &SegmentRef) -> Option<&str> {
        let body = match segment.source {
            SegmentSource::Message => self
                .messages
                .get(&encode_short_id(segment.message_id.short_id())),
            SegmentSource::Text => self.texts.get(&segment.hash.0[..]),
        };
        body.map(String::as_str)
    }
}

async fn read_text(
    connection: &mut PgConnection,
    hash: ContentHash,
) -> Result<String, PostgresFailure> {
    let sql = "SELECT body FROM texts WHERE hash = $1";
    let body = sqlx::query_scalar(sql)
        .bind(&hash.0[..])
        .fetch_optional(connection)
        .await?;
    body.ok_or_else(|| {
        PostgresFailure::Damaged(format!("text `{hash}` of a logged request is gone"))
    })
}
