//! The request log: deltas in order, texts once each.
//!
//! Invariant: what a request refers to is stored in the same transaction as the request, so every logged request can be
//! made whole again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_types::{ContentHash, ConversationId, Message, Segment, Timestamp, ToolSpec};
use sqlx::PgConnection;

use super::failure::Failure;
use super::lineage;
use super::read::{self, decode, read_count, read_time};
use crate::encoding::{encode, short, write_time};
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

/// A request that is in the log once the transaction ends.
pub(super) struct Logging {
    conversation: i64,
    last: Last,
    number: u64,
}

impl Logging {
    /// Remembers it for the next one, now that it is there, and gives its number.
    pub(super) fn remember(self, remembered: &mut LastRequests) -> u64 {
        if remembered.0.len() >= REMEMBERED {
            remembered.0.clear();
        }
        remembered.0.insert(self.conversation, self.last);
        self.number
    }
}

/// Logs one request.
pub(super) async fn log(
    connection: &mut PgConnection,
    remembered: &mut LastRequests,
    id: &ConversationId,
    sent: &SentRequest,
    now: Timestamp,
) -> Result<Logging, Failure> {
    let sql = "UPDATE conversations SET requests = requests + 1 WHERE id = $1 AND deleted_at IS NULL
               RETURNING key, requests";
    let counted: Option<(i64, i64)> = sqlx::query_as(sql).bind(id.as_str()).fetch_optional(&mut *connection).await?;
    let (key, number) = counted.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() })?;
    // Another process may have logged one in between, and what is remembered must not outlive a failure below.
    let last = remembered.0.remove(&key).filter(|last| last.number == number - 1);
    let mut segments = match last {
        Some(last) => last.segments,
        None => segments_of(connection, key, number - 1).await?.map_or_else(Vec::new, |(segments, _)| segments),
    };

    let request = &sent.request;
    let kept = delta::kept(&segments, &request.segments);
    let mut added = Vec::with_capacity(request.segments.len() - kept);
    for segment in &request.segments[kept..] {
        added.push(SegmentRef::new(segment, keep(connection, key, segment).await?));
    }
    keep_text(connection, request.tools.hash, || encode("a list of tools", &request.tools.specs)).await?;
    let delta = Delta::new(&segments, sent, added);
    if let (Some(hash), Some(encoding)) = (delta.encoding, &sent.encoding) {
        keep_text(connection, hash, || Ok(encoding.to_string())).await?;
    }
    let sql = "INSERT INTO requests (conversation, number, sent_at, whole, body) VALUES ($1, $2, $3, $4, $5)";
    let query = sqlx::query(sql).bind(key).bind(number).bind(write_time(now)).bind(kept == 0);
    query.bind(encode("a request", &delta)?).execute(connection).await?;
    apply(&delta, &mut segments)?;
    Ok(Logging { conversation: key, last: Last { number, segments }, number: read_count(number)? })
}

/// Makes sure that what the segment holds is stored, and says where.
async fn keep(connection: &mut PgConnection, conversation: i64, segment: &Segment) -> Result<Source, Failure> {
    let message = &segment.entry.message;
    if lineage::stored_as(connection, conversation, message.message_id, segment.entry.hash).await? {
        return Ok(Source::Message);
    }
    keep_text(connection, segment.entry.hash, || encode("a message", message)).await?;
    Ok(Source::Text)
}

async fn keep_text(
    connection: &mut PgConnection,
    hash: ContentHash,
    text: impl FnOnce() -> Result<String, StoreError>,
) -> Result<(), Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM texts WHERE hash = $1)";
    if sqlx::query_scalar(sql).bind(&hash.0[..]).fetch_one(&mut *connection).await? {
        return Ok(());
    }
    let sql = "INSERT INTO texts VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(sql).bind(&hash.0[..]).bind(text()?).execute(connection).await?;
    Ok(())
}

fn apply(delta: &Delta, segments: &mut Vec<SegmentRef>) -> Result<(), Failure> {
    delta.apply(segments).map_err(|misfit| Failure::Damaged(misfit.to_string()))
}

/// A row of the log.
struct Logged {
    number: i64,
    sent_at: Timestamp,
    delta: Delta,
}

type Row = (i64, String, String);

fn logged((number, sent_at, body): Row) -> Result<Logged, Failure> {
    let delta = decode(|| format!("logged request {number}"), &body)?;
    Ok(Logged { number, sent_at: read_time(&sent_at)?, delta })
}

impl Logged {
    fn summary(&self) -> Result<RequestSummary, Failure> {
        Ok(RequestSummary {
            number: read_count(self.number)?,
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

/// The segments and the row of a request, from the last whole request on.
async fn segments_of(
    connection: &mut PgConnection,
    conversation: i64,
    number: i64,
) -> Result<Option<(Vec<SegmentRef>, Logged)>, Failure> {
    let sql = "SELECT number, sent_at, body FROM requests
               WHERE conversation = $1 AND number <= $2 AND number >=
                   (SELECT number FROM requests WHERE conversation = $1 AND number <= $2 AND whole
                    ORDER BY number DESC LIMIT 1)
               ORDER BY number";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(conversation).bind(number).fetch_all(connection).await?;
    let mut segments = Vec::new();
    let mut newest = None;
    for row in rows {
        let logged = logged(row)?;
        apply(&logged.delta, &mut segments)?;
        newest = Some(logged);
    }
    Ok(newest.map(|newest| (segments, newest)))
}

async fn log_of(connection: &mut PgConnection, id: &ConversationId) -> Result<Vec<Logged>, Failure> {
    let sql = "SELECT number, sent_at, body FROM requests JOIN conversations ON conversations.key = conversation
               WHERE id = $1 AND deleted_at IS NULL ORDER BY number";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(id.as_str()).fetch_all(connection).await?;
    rows.into_iter().map(logged).collect()
}

/// The log of a conversation, a line each.
pub(super) async fn list(connection: &mut PgConnection, id: &ConversationId) -> Result<Vec<RequestSummary>, Failure> {
    log_of(connection, id).await?.iter().map(Logged::summary).collect()
}

/// The log of a conversation with the outlines of what was sent.
pub(super) async fn outlines(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Vec<RequestOutline>, Failure> {
    let mut segments = Vec::new();
    let mut encodings: HashMap<ContentHash, Arc<str>> = HashMap::new();
    let mut outlines = Vec::new();
    for logged in log_of(connection, id).await? {
        apply(&logged.delta, &mut segments)?;
        let encoding = match logged.delta.encoding {
            None => None,
            Some(hash) => Some(match encodings.get(&hash) {
                Some(known) => Arc::clone(known),
                None => Arc::clone(encodings.entry(hash).or_insert(text(connection, hash).await?.into())),
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
pub(super) async fn get(
    connection: &mut PgConnection,
    id: &ConversationId,
    number: u64,
) -> Result<Option<LoggedRequest>, Failure> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let Some(key) = read::find_key(connection, id).await? else { return Ok(None) };
    let Some((segments, logged)) = segments_of(connection, key, number).await? else { return Ok(None) };
    // The newest one before a number beyond the log is not that one.
    if logged.number != number {
        return Ok(None);
    }
    let bodies = Bodies::read(connection, key, &segments).await?;
    let boundaries: HashSet<usize> = logged.delta.boundaries.iter().copied().collect();
    let mut whole = Vec::with_capacity(segments.len());
    for (index, segment) in segments.into_iter().enumerate() {
        whole.push(LoggedSegment {
            message: bodies.message_of(&segment)?,
            layer: segment.label.layer,
            owner: segment.label.owner.into_owned(),
            hash: segment.hash,
            tokens: segment.label.tokens,
            boundary: boundaries.contains(&index),
        });
    }
    let tools = text(connection, logged.delta.tools).await?;
    let tools: Vec<ToolSpec> = decode(|| format!("the tools of logged request {number}"), &tools)?;
    let encoding = match logged.delta.encoding {
        Some(hash) => Some(text(connection, hash).await?.into()),
        None => None,
    };
    Ok(Some(LoggedRequest {
        summary: logged.summary()?,
        segments: whole,
        tools,
        max_output_tokens: logged.delta.max_output_tokens,
        cache_key: logged.delta.cache_key,
        encoding,
    }))
}

/// The bodies a request refers to, read at once: each by itself would be a journey to the server.
struct Bodies {
    messages: HashMap<i64, String>,
    texts: HashMap<Vec<u8>, String>,
}

impl Bodies {
    async fn read(connection: &mut PgConnection, key: i64, segments: &[SegmentRef]) -> Result<Self, Failure> {
        let (mut ids, mut hashes) = (Vec::new(), Vec::new());
        for segment in segments {
            match segment.source {
                Source::Message => ids.push(short(segment.message_id.short())),
                Source::Text => hashes.push(segment.hash.0.to_vec()),
            }
        }
        let messages = lineage::first_bodies(connection, key, &ids).await?;
        let sql = "SELECT hash, body FROM texts WHERE hash = ANY ($1)";
        let texts: Vec<(Vec<u8>, String)> = sqlx::query_as(sql).bind(&hashes).fetch_all(connection).await?;
        Ok(Self { messages, texts: texts.into_iter().collect() })
    }

    /// What a segment held, checked against its hash.
    fn message_of(&self, segment: &SegmentRef) -> Result<Message, Failure> {
        let body = match segment.source {
            Source::Message => self.messages.get(&short(segment.message_id.short())),
            Source::Text => self.texts.get(&segment.hash.0[..]),
        };
        let gone = || Failure::Damaged(format!("message `{}` of a logged request is gone", segment.message_id));
        let mut message: Message = decode(|| format!("message `{}`", segment.message_id), body.ok_or_else(gone)?)?;
        message.message_id = segment.message_id;
        if message.content_hash() != segment.hash {
            return Err(Failure::Damaged(format!("message `{}` is not what was sent", segment.message_id)));
        }
        Ok(message)
    }
}

async fn text(connection: &mut PgConnection, hash: ContentHash) -> Result<String, Failure> {
    let sql = "SELECT body FROM texts WHERE hash = $1";
    let body = sqlx::query_scalar(sql).bind(&hash.0[..]).fetch_optional(connection).await?;
    body.ok_or_else(|| Failure::Damaged(format!("text `{hash}` of a logged request is gone")))
}
