//! The request log: requests as deltas in order, and each text once.
//!
//! Invariant: the texts that a request refers to are stored in its transaction, so every logged
//! request can be reconstructed.

use std::collections::HashMap;

use haft_store::backend::{
    LastRequests, LoggedRow, OutlineReader, RequestDelta, SegmentRef, SegmentSource, apply,
    decode_count, encode, encode_short_id, encode_time, kept, replay,
};
use haft_store::{LoggedRequest, RequestOutline, RequestSummary, SentRequest, StoreError};
use haft_types::{ContentHash, ConversationId, Segment, Timestamp};
use sqlx::PgConnection;

use crate::failure::PostgresFailure;
use crate::{lineage, read};

/// A request that is logged when the transaction commits.
pub(crate) struct Logging {
    conversation: i64,
    segments: Vec<SegmentRef>,
    number: i64,
}

impl Logging {
    /// Caches the segments for the delta of the next request, after the commit, and returns the
    /// request's number.
    pub(crate) fn remember(self, remembered: &mut LastRequests) -> Result<u64, PostgresFailure> {
        let number = decode_count(self.number)?;
        remembered.remember(self.conversation, self.number, self.segments);
        Ok(number)
    }
}

/// Logs one request.
pub(crate) async fn log(
    connection: &mut PgConnection,
    remembered: &mut LastRequests,
    id: &ConversationId,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<Logging, PostgresFailure> {
    let sql =
        "UPDATE conversations SET requests = requests + 1 WHERE id = $1 AND deleted_at IS NULL
               RETURNING key, requests";
    let counted: Option<(i64, i64)> = sqlx::query_as(sql)
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let (key, number) =
        counted.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() })?;
    let mut segments = match remembered.take_before(key, number) {
        Some(segments) => segments,
        None => segments_of(connection, key, number - 1)
            .await?
            .map_or_else(Vec::new, |(segments, _)| segments),
    };

    let request = &sent.request;
    let kept = kept(&segments, &request.segments);
    let mut added = Vec::with_capacity(request.segments.len() - kept);
    for segment in &request.segments[kept..] {
        added.push(SegmentRef::new(
            segment,
            keep(connection, key, segment).await?,
        ));
    }
    keep_text(connection, request.tools.hash, || {
        encode("a list of tools", &request.tools.specs)
    })
    .await?;
    let delta = RequestDelta::new(&segments, sent, added);
    if let (Some(hash), Some(encoding)) = (delta.encoding(), &sent.encoding) {
        keep_text(connection, hash, || Ok(encoding.to_string())).await?;
    }
    let sql = "INSERT INTO requests (conversation, number, sent_at, whole, body) VALUES ($1, $2, $3, $4, $5)";
    let query = sqlx::query(sql)
        .bind(key)
        .bind(number)
        .bind(encode_time(now))
        .bind(delta.is_whole());
    query
        .bind(encode("a request", &delta)?)
        .execute(connection)
        .await?;
    apply(&delta, &mut segments)?;
    Ok(Logging {
        conversation: key,
        segments,
        number,
    })
}

/// Stores the content of a segment if needed, and returns where it is stored.
async fn keep(
    connection: &mut PgConnection,
    conversation: i64,
    segment: &Segment,
) -> Result<SegmentSource, PostgresFailure> {
    let message = &segment.entry.message;
    if lineage::stored_as(
        connection,
        conversation,
        message.message_id,
        segment.entry.hash,
    )
    .await?
    {
        return Ok(SegmentSource::Message);
    }
    keep_text(connection, segment.entry.hash, || {
        encode("a message", message)
    })
    .await?;
    Ok(SegmentSource::Text)
}

async fn keep_text(
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

type Row = (i64, String, String);

fn logged((number, sent_at, body): Row) -> Result<LoggedRow, PostgresFailure> {
    Ok(LoggedRow::decode(number, &sent_at, &body)?)
}

/// Returns the segments and row of a request, reconstructed from the last whole request on.
async fn segments_of(
    connection: &mut PgConnection,
    conversation: i64,
    number: i64,
) -> Result<Option<(Vec<SegmentRef>, LoggedRow)>, PostgresFailure> {
    let sql = include_str!("statements/segments.sql");
    let rows: Vec<Row> = sqlx::query_as(sql)
        .bind(conversation)
        .bind(number)
        .fetch_all(connection)
        .await?;
    replay(rows.into_iter().map(logged))
}

async fn log_of(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<LoggedRow>, PostgresFailure> {
    let sql = "SELECT number, sent_at, body FROM requests JOIN conversations ON conversations.key = conversation
               WHERE id = $1 AND deleted_at IS NULL ORDER BY number";
    let rows: Vec<Row> = sqlx::query_as(sql)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(logged).collect()
}

/// Returns a summary of each logged request of a conversation.
pub(crate) async fn list(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<RequestSummary>, PostgresFailure> {
    let log = log_of(connection, id).await?;
    log.iter().map(|logged| Ok(logged.summary()?)).collect()
}

/// Returns an outline of each logged request of a conversation.
pub(crate) async fn outlines(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<RequestOutline>, PostgresFailure> {
    let mut outlines = OutlineReader::default();
    for logged in log_of(connection, id).await? {
        let encoding = match outlines.missing_text(&logged) {
            Some(hash) => Some(text(connection, hash).await?),
            None => None,
        };
        outlines.take(&logged, encoding)?;
    }
    Ok(outlines.finish())
}

/// Returns a logged request in full.
pub(crate) async fn get(
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
    let Some((segments, logged)) = segments_of(connection, key, number).await? else {
        return Ok(None);
    };
    // For a number beyond the log, the query returns the last request.
    if logged.number != number {
        return Ok(None);
    }
    let bodies = RequestBodies::read(connection, key, &segments).await?;
    let mut whole = Vec::with_capacity(segments.len());
    for segment in segments {
        let message = segment.decode_message(bodies.of(&segment))?;
        whole.push((segment, message));
    }
    let tools = text(connection, logged.delta.tools()).await?;
    let encoding = match logged.delta.encoding() {
        Some(hash) => Some(text(connection, hash).await?),
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
    async fn read(
        connection: &mut PgConnection,
        key: i64,
        segments: &[SegmentRef],
    ) -> Result<Self, PostgresFailure> {
        let mut ids = Vec::new();
        let mut hashes = Vec::new();
        for segment in segments {
            match segment.source {
                SegmentSource::Message => ids.push(encode_short_id(segment.message_id.short())),
                SegmentSource::Text => hashes.push(segment.hash.0.to_vec()),
            }
        }
        let messages = lineage::first_bodies(connection, key, &ids).await?;
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

    fn of(&self, segment: &SegmentRef) -> Option<&str> {
        let body = match segment.source {
            SegmentSource::Message => self
                .messages
                .get(&encode_short_id(segment.message_id.short())),
            SegmentSource::Text => self.texts.get(&segment.hash.0[..]),
        };
        body.map(String::as_str)
    }
}

async fn text(connection: &mut PgConnection, hash: ContentHash) -> Result<String, PostgresFailure> {
    let sql = "SELECT body FROM texts WHERE hash = $1";
    let body = sqlx::query_scalar(sql)
        .bind(&hash.0[..])
        .fetch_optional(connection)
        .await?;
    body.ok_or_else(|| {
        PostgresFailure::Damaged(format!("text `{hash}` of a logged request is gone"))
    })
}
