//! The request log in SQLite: deltas in order, and each text stored once.
//!
//! Invariant: the texts that a request refers to are stored in the transaction of the request, so
//! every logged request can be restored.

use haft_types::{ContentHash, ConversationId, Message, Segment, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::SqliteFailure;
use super::{lineage, rows, write};
use crate::error::StoreError;
use crate::request_log::delta::{self, RequestDelta, SegmentRef, SegmentSource};
use crate::request_log::rows::{LastRequests, LoggedRow, OutlineReader, apply_delta, replay_rows};
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};

/// Logs one request and returns its number.
pub(super) fn log_request(
    connection: &mut Connection,
    remembered: &mut LastRequests,
    id: &ConversationId,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<u64, SqliteFailure> {
    let transaction = write::begin_write(connection)?;
    let (key, number) = reserve_number(&transaction, id)?;
    let mut segments = match remembered.take_previous(key, number) {
        Some(segments) => segments,
        None => load_segments(&transaction, key, number - 1)?
            .map_or_else(Vec::new, |(segments, _)| segments),
    };

    let request = &sent.request;
    let kept = delta::count_kept(&segments, &request.segments);
    let mut added = Vec::with_capacity(request.segments.len() - kept);
    for segment in &request.segments[kept..] {
        added.push(SegmentRef::new(
            segment,
            store_segment(&transaction, key, segment)?,
        ));
    }
    store_text(&transaction, request.tools.hash, || {
        rows::encode_json("a list of tools", &request.tools.specs)
    })?;
    let delta = RequestDelta::new(&segments, sent, added);
    if let (Some(hash), Some(encoding)) = (delta.encoding(), &sent.encoding) {
        store_text(&transaction, hash, || Ok(encoding.to_string()))?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO requests (conversation, number, sent_at, whole, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((key, number, rows::encode_time(now), delta.is_self_contained(), rows::encode_json("a request", &delta)?))?;
    apply_delta(&delta, &mut segments)?;
    transaction.commit()?;

    remembered.remember(key, number, segments);
    Ok(rows::decode_count(number)?)
}

fn reserve_number(
    connection: &Connection,
    id: &ConversationId,
) -> Result<(i64, i64), SqliteFailure> {
    connection
        .prepare_cached(
            "UPDATE conversations SET requests = requests + 1 WHERE id = ?1 AND deleted_at IS NULL
             RETURNING key, requests",
        )?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Stores the message of a segment unless it is already stored, and returns the table that contains
/// it.
fn store_segment(
    connection: &Connection,
    conversation: i64,
    segment: &Segment,
) -> Result<SegmentSource, SqliteFailure> {
    let message = &segment.entry.message;
    if lineage::has_original_content(
        connection,
        conversation,
        message.message_id,
        segment.entry.hash,
    )? {
        return Ok(SegmentSource::Message);
    }
    store_text(connection, segment.entry.hash, || {
        rows::encode_json("a message", message)
    })?;
    Ok(SegmentSource::Text)
}

fn store_text(
    connection: &Connection,
    hash: ContentHash,
    text: impl FnOnce() -> Result<String, StoreError>,
) -> Result<(), SqliteFailure> {
    if !connection
        .prepare_cached("SELECT 1 FROM texts WHERE hash = ?1")?
        .exists([&hash.0])?
    {
        connection
            .prepare_cached("INSERT INTO texts (hash, body) VALUES (?1, ?2)")?
            .execute((&hash.0, text()?))?;
    }
    Ok(())
}

/// Returns the segments and the row of a request, by replaying the log from the last self-contained
/// request.
fn load_segments(
    connection: &Connection,
    conversation: i64,
    number: i64,
) -> Result<Option<(Vec<SegmentRef>, LoggedRow)>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sent_at, body FROM requests
         WHERE conversation = ?1 AND number <= ?2 AND number >=
             (SELECT number FROM requests WHERE conversation = ?1 AND number <= ?2 AND whole = 1
              ORDER BY number DESC LIMIT 1)
         ORDER BY number",
    )?;
    replay_rows(statement.query_and_then((conversation, number), decode_row)?)
}

fn decode_row(row: &Row<'_>) -> Result<LoggedRow, SqliteFailure> {
    Ok(LoggedRow::decode(
        row.get(0)?,
        rows::text_column(row, 1)?,
        rows::text_column(row, 2)?,
    )?)
}

/// Returns the entries of a conversation's request log.
pub(super) fn list_requests(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Vec<RequestSummary>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sent_at, body FROM requests
         WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL) ORDER BY number",
    )?;
    statement
        .query_and_then([id.as_str()], |row| Ok(decode_row(row)?.summary()?))?
        .collect()
}

/// Returns the number of a conversation's logged requests.
pub(super) fn count_requests(
    connection: &Connection,
    id: &ConversationId,
) -> Result<u64, SqliteFailure> {
    let count = connection
        .prepare_cached("SELECT requests FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    Ok(rows::decode_count(count.unwrap_or(0))?)
}

/// Returns the outlines of a conversation's logged requests. Reads the log in one pass, without the
/// content of messages.
pub(super) fn load_outlines(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<Vec<RequestOutline>, SqliteFailure> {
    let transaction = connection.transaction()?;
    let Some((key, _)) = rows::find_conversation(&transaction, id)? else {
        return Ok(Vec::new());
    };
    let mut statement = transaction.prepare_cached(
        "SELECT number, sent_at, body FROM requests WHERE conversation = ?1 ORDER BY number",
    )?;
    let mut outlines = OutlineReader::default();
    for logged in statement.query_and_then([key], decode_row)? {
        let logged = logged?;
        let encoding = outlines
            .missing_encoding(&logged)
            .map(|hash| load_text(&transaction, hash))
            .transpose()?;
        outlines.add_row(&logged, encoding)?;
    }
    Ok(outlines.finish())
}

/// Returns a complete logged request.
pub(super) fn load_request(
    connection: &mut Connection,
    id: &ConversationId,
    number: u64,
) -> Result<Option<LoggedRequest>, SqliteFailure> {
    let transaction = connection.transaction()?;
    let Ok(number) = i64::try_from(number) else {
        return Ok(None);
    };
    let Some((key, _)) = rows::find_conversation(&transaction, id)? else {
        return Ok(None);
    };
    let Some((segments, logged)) = load_segments(&transaction, key, number)? else {
        return Ok(None);
    };
    // For a number beyond the end of the log, the newest request is returned by the replay.
    if logged.number != number {
        return Ok(None);
    }
    let mut whole = Vec::with_capacity(segments.len());
    for segment in segments {
        let message = load_message(&transaction, key, &segment)?;
        whole.push((segment, message));
    }
    let tools = load_text(&transaction, logged.delta.tools())?;
    let encoding = logged
        .delta
        .encoding()
        .map(|hash| load_text(&transaction, hash))
        .transpose()?;
    Ok(Some(logged.into_request(whole, &tools, encoding)?))
}

/// Returns the message of a segment, after checking it against the recorded hash.
fn load_message(
    connection: &Connection,
    conversation: i64,
    segment: &SegmentRef,
) -> Result<Message, SqliteFailure> {
    let body = match segment.source {
        SegmentSource::Message => {
            lineage::load_original_body(connection, conversation, segment.message_id.short_id())?
        }
        SegmentSource::Text => Some(load_text(connection, segment.hash)?),
    };
    Ok(segment.decode_message(body.as_deref())?)
}

fn load_text(connection: &Connection, hash: ContentHash) -> Result<String, SqliteFailure> {
    connection
        .prepare_cached("SELECT body FROM texts WHERE hash = ?1")?
        .query_row([&hash.0], |row| row.get(0))
        .optional()?
        .ok_or_else(|| SqliteFailure::Damaged(format!("text `{hash}` of a logged request is gone")))
}
