//! The request log in SQLite: deltas in order, texts once each.
//!
//! Invariant: what a request refers to is stored in the same transaction as the request, so every logged request can be
//! made whole again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_types::{ContentHash, ConversationId, Message, Segment, Timestamp, ToolSpec};
use rusqlite::{Connection, OptionalExtension, Row};

use super::failure::Failure;
use super::{lineage, rows, write};
use crate::error::StoreError;
use crate::request_log::delta::{self, Delta, SegmentRef, Source};
use crate::request_log::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary, SentRequest};

/// The last request of a conversation, as segments.
struct Last {
    number: i64,
    segments: Vec<SegmentRef>,
}

/// The last requests this process logged, so that the next one is compared without reading the log.
#[derive(Default)]
pub(super) struct LastRequests(HashMap<i64, Last>);

/// Enough for one agent with many sub-agents; a forgotten one is read from the log.
const REMEMBERED: usize = 64;

/// Logs one request and gives its number.
pub(super) fn log(
    connection: &mut Connection,
    remembered: &mut LastRequests,
    id: &ConversationId,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<u64, Failure> {
    let transaction = write::begin(connection)?;
    let (key, number) = count_request(&transaction, id)?;
    // Another process may have logged one in between, and what is remembered must not outlive a failure below.
    let last = remembered.0.remove(&key).filter(|last| last.number == number - 1);
    let mut segments = match last {
        Some(last) => last.segments,
        None => segments_of(&transaction, key, number - 1)?.map_or_else(Vec::new, |(segments, _)| segments),
    };

    let request = &sent.request;
    let kept = delta::kept(&segments, &request.segments);
    let mut added = Vec::with_capacity(request.segments.len() - kept);
    for segment in &request.segments[kept..] {
        added.push(SegmentRef::new(segment, keep(&transaction, key, segment)?));
    }
    keep_text(&transaction, request.tools.hash, || rows::encode("a list of tools", &request.tools.specs))?;
    let delta = Delta::new(&segments, sent, added);
    if let (Some(hash), Some(encoding)) = (delta.encoding, &sent.encoding) {
        keep_text(&transaction, hash, || Ok(encoding.to_string()))?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO requests (conversation, number, sent_at, whole, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((key, number, rows::write_time(now), kept == 0, rows::encode("a request", &delta)?))?;
    apply(&delta, &mut segments)?;
    transaction.commit()?;

    if remembered.0.len() >= REMEMBERED {
        remembered.0.clear();
    }
    remembered.0.insert(key, Last { number, segments });
    rows::read_count(number)
}

fn count_request(connection: &Connection, id: &ConversationId) -> Result<(i64, i64), Failure> {
    connection
        .prepare_cached(
            "UPDATE conversations SET requests = requests + 1 WHERE id = ?1 AND deleted_at IS NULL
             RETURNING key, requests",
        )?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Makes sure that what the segment holds is stored, and says where.
fn keep(connection: &Connection, conversation: i64, segment: &Segment) -> Result<Source, Failure> {
    let message = &segment.entry.message;
    if lineage::stored_as(connection, conversation, message.message_id, segment.entry.hash)? {
        return Ok(Source::Message);
    }
    keep_text(connection, segment.entry.hash, || rows::encode("a message", message))?;
    Ok(Source::Text)
}

fn keep_text(
    connection: &Connection,
    hash: ContentHash,
    text: impl FnOnce() -> Result<String, StoreError>,
) -> Result<(), Failure> {
    if !connection.prepare_cached("SELECT 1 FROM texts WHERE hash = ?1")?.exists([&hash.0])? {
        connection.prepare_cached("INSERT INTO texts (hash, body) VALUES (?1, ?2)")?.execute((&hash.0, text()?))?;
    }
    Ok(())
}

fn apply(delta: &Delta, segments: &mut Vec<SegmentRef>) -> Result<(), Failure> {
    delta.apply(segments).map_err(|misfit| Failure::Damaged(misfit.to_string()))
}

/// The segments and the row of a request, from the last whole request on.
fn segments_of(
    connection: &Connection,
    conversation: i64,
    number: i64,
) -> Result<Option<(Vec<SegmentRef>, Logged)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sent_at, body FROM requests
         WHERE conversation = ?1 AND number <= ?2 AND number >=
             (SELECT number FROM requests WHERE conversation = ?1 AND number <= ?2 AND whole = 1
              ORDER BY number DESC LIMIT 1)
         ORDER BY number",
    )?;
    let mut segments = Vec::new();
    let mut newest = None;
    for logged in statement.query_and_then((conversation, number), logged)? {
        let logged = logged?;
        apply(&logged.delta, &mut segments)?;
        newest = Some(logged);
    }
    Ok(newest.map(|newest| (segments, newest)))
}

/// A row of the log.
struct Logged {
    number: i64,
    sent_at: Timestamp,
    delta: Delta,
}

fn logged(row: &Row<'_>) -> Result<Logged, Failure> {
    let number = row.get(0)?;
    let sent_at = rows::read_time(rows::text(row, 1)?)?;
    let body = rows::text(row, 2)?;
    Ok(Logged { number, sent_at, delta: rows::decode(|| format!("logged request {number}"), body)? })
}

impl Logged {
    fn summary(&self) -> Result<RequestSummary, Failure> {
        Ok(RequestSummary {
            number: rows::read_count(self.number)?,
            sent_at: self.sent_at,
            model: self.delta.model.clone(),
            api: self.delta.api,
            kept: self.delta.kept,
            segments: self.delta.segments,
            tokens: self.delta.tokens,
            cause: self.delta.cause.clone(),
        })
    }
}

/// The log of a conversation, a line each.
pub(super) fn list(connection: &Connection, id: &ConversationId) -> Result<Vec<RequestSummary>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, sent_at, body FROM requests
         WHERE conversation = (SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL) ORDER BY number",
    )?;
    statement.query_and_then([id.as_str()], |row| logged(row)?.summary())?.collect()
}

/// The log of a conversation with the outlines of what was sent: one pass, no message is read.
pub(super) fn outlines(connection: &mut Connection, id: &ConversationId) -> Result<Vec<RequestOutline>, Failure> {
    let transaction = connection.transaction()?;
    let Some((key, _)) = rows::conversation(&transaction, id)? else { return Ok(Vec::new()) };
    let mut statement = transaction
        .prepare_cached("SELECT number, sent_at, body FROM requests WHERE conversation = ?1 ORDER BY number")?;
    let mut segments = Vec::new();
    let mut encodings: HashMap<ContentHash, Arc<str>> = HashMap::new();
    let mut outlines = Vec::new();
    for logged in statement.query_and_then([key], logged)? {
        let logged = logged?;
        apply(&logged.delta, &mut segments)?;
        let encoding = match logged.delta.encoding {
            None => None,
            Some(hash) => Some(match encodings.get(&hash) {
                Some(known) => Arc::clone(known),
                None => Arc::clone(encodings.entry(hash).or_insert(text(&transaction, hash)?.into())),
            }),
        };
        outlines.push(RequestOutline {
            summary: logged.summary()?,
            segments: logged.delta.outline(&segments),
            tools: logged.delta.tools,
            encoding,
        });
    }
    Ok(outlines)
}

/// A logged request, whole.
pub(super) fn get(
    connection: &mut Connection,
    id: &ConversationId,
    number: u64,
) -> Result<Option<LoggedRequest>, Failure> {
    let transaction = connection.transaction()?;
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let Some((key, _)) = rows::conversation(&transaction, id)? else { return Ok(None) };
    let Some((segments, logged)) = segments_of(&transaction, key, number)? else { return Ok(None) };
    // The newest one before a number beyond the log is not that one.
    if logged.number != number {
        return Ok(None);
    }
    let boundaries: HashSet<usize> = logged.delta.boundaries.iter().copied().collect();
    let mut whole = Vec::with_capacity(segments.len());
    for (index, segment) in segments.into_iter().enumerate() {
        let message = message_of(&transaction, key, &segment)?;
        whole.push(LoggedSegment {
            layer: segment.label.layer,
            owner: segment.label.owner.into_owned(),
            message,
            hash: segment.hash,
            tokens: segment.label.tokens,
            boundary: boundaries.contains(&index),
        });
    }
    let tools = text(&transaction, logged.delta.tools)?;
    let tools: Vec<ToolSpec> = rows::decode(|| format!("the tools of logged request {number}"), &tools)?;
    let encoding = logged.delta.encoding.map(|hash| text(&transaction, hash)).transpose()?;
    Ok(Some(LoggedRequest {
        summary: logged.summary()?,
        segments: whole,
        tools,
        max_output_tokens: logged.delta.max_output_tokens,
        cache_key: logged.delta.cache_key,
        encoding: encoding.map(Into::into),
    }))
}

/// What a segment held, checked against its hash.
fn message_of(connection: &Connection, conversation: i64, segment: &SegmentRef) -> Result<Message, Failure> {
    let body = match segment.source {
        Source::Message => lineage::first_body(connection, conversation, segment.message_id.short())?
            .ok_or_else(|| Failure::Damaged(format!("message `{}` of a logged request is gone", segment.message_id)))?,
        Source::Text => text(connection, segment.hash)?,
    };
    let mut message: Message = rows::decode(|| format!("message `{}`", segment.message_id), &body)?;
    message.message_id = segment.message_id;
    if message.content_hash() != segment.hash {
        return Err(Failure::Damaged(format!("message `{}` is not what was sent", segment.message_id)));
    }
    Ok(message)
}

fn text(connection: &Connection, hash: ContentHash) -> Result<String, Failure> {
    connection
        .prepare_cached("SELECT body FROM texts WHERE hash = ?1")?
        .query_row([&hash.0], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Failure::Damaged(format!("text `{hash}` of a logged request is gone")))
}
