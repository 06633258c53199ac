//! The parts of a request log that all stores share: the state kept between two requests, and the
//! conversion of rows to requests. Each store has its own SQL statements.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_types::{ContentHash, Message, Timestamp};

use super::delta::{RequestDelta, SegmentRef};
use super::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary, SegmentList};
use crate::encoding::{DamagedRow, decode_count, decode_json, decode_time};

/// The maximum number of conversations whose last request is kept in memory: enough for one agent
/// with many sub-agents. If it is exceeded, last requests are read from the log again.
const MAX_REMEMBERED: usize = 64;

/// The last request that this process logged in each conversation. The next request is compared
/// with it, so that the log need not be read.
#[derive(Default)]
pub struct LastRequests(HashMap<i64, LastRequest>);

/// The number and the segments of a conversation's last request.
struct LastRequest {
    number: i64,
    segments: Vec<SegmentRef>,
}

impl LastRequests {
    /// Removes and returns the segments of the request before `number`. Returns `None` if another
    /// process has logged a request since. The segments stay removed until the next
    /// [`Self::remember`], so that they don't outlive a failed write.
    pub fn take_previous(&mut self, conversation: i64, number: i64) -> Option<Vec<SegmentRef>> {
        self.0
            .remove(&conversation)
            .filter(|last| last.number == number - 1)
            .map(|last| last.segments)
    }

    /// Keeps the segments of a request in memory after the request was logged.
    pub fn remember(&mut self, conversation: i64, number: i64, segments: Vec<SegmentRef>) {
        if self.0.len() >= MAX_REMEMBERED {
            self.0.clear();
        }
        self.0
            .insert(conversation, LastRequest { number, segments });
    }
}

/// A row of the request log.
pub struct LoggedRow {
    /// The number of the request within its conversation, as a signed integer as stored in the
    /// database.
    pub number: i64,
    /// The difference from the previous request, decoded from the body of the row.
    pub delta: RequestDelta,
    sent_at: Timestamp,
}

impl LoggedRow {
    /// Decodes the columns of a row.
    pub fn decode(number: i64, sent_at: &str, body: &str) -> Result<Self, DamagedRow> {
        let delta = decode_json(|| format!("logged request {number}"), body)?;
        Ok(Self {
            number,
            delta,
            sent_at: decode_time(sent_at)?,
        })
    }

    /// Updates `segments` from those of the previous request to those of the request in this row.
    pub fn apply(&self, segments: &mut Vec<SegmentRef>) -> Result<(), DamagedRow> {
        apply_delta(&self.delta, segments)
    }

    /// Returns the request's entry in the log.
    pub fn summary(&self) -> Result<RequestSummary, DamagedRow> {
        Ok(RequestSummary {
            number: decode_count(self.number)?,
            sent_at: self.sent_at,
            model: self.delta.model.clone(),
            api: self.delta.api,
            kept: self.delta.kept,
            segments: self.delta.segments,
            tokens: self.delta.tokens,
            cause: self.delta.cause.clone(),
        })
    }

    /// Builds the complete request from its segments and their messages, the stored list of tools,
    /// and the encoder settings.
    pub fn into_request(
        self,
        segments: Vec<(SegmentRef, Message)>,
        tools: &str,
        encoding: Option<String>,
    ) -> Result<LoggedRequest, DamagedRow> {
        let boundaries: HashSet<usize> = self.delta.boundaries.iter().copied().collect();
        let whole = |(index, (segment, message)): (usize, (SegmentRef, Message))| LoggedSegment {
            layer: segment.label.layer,
            owner: segment.label.owner.into_owned(),
            message,
            hash: segment.hash,
            tokens: segment.label.tokens,
            boundary: boundaries.contains(&index),
        };
        Ok(LoggedRequest {
            summary: self.summary()?,
            segments: segments.into_iter().enumerate().map(whole).collect(),
            tools: decode_json(
                || format!("the tools of logged request {}", self.number),
                tools,
            )?,
            max_output_tokens: self.delta.max_output_tokens,
            cache_key: self.delta.cache_key,
            encoding: encoding.map(Into::into),
        })
    }
}

/// Builds the outlines of all requests in a log, which are added row by row.
#[derive(Default)]
pub struct OutlineReader {
    segments: Vec<SegmentRef>,
    /// The outline of the last request, and the positions of its boundaries.
    outline: SegmentList,
    boundaries: Vec<usize>,
    /// The encoder settings by hash. Equal settings of several rows are read only once.
    encodings: HashMap<ContentHash, Arc<str>>,
    outlines: Vec<RequestOutline>,
}

impl OutlineReader {
    /// Returns the hash of the encoder settings that [`Self::add_row`] needs for `row`, or `None`
    /// if these settings are already loaded or not recorded.
    pub fn missing_encoding(&self, row: &LoggedRow) -> Option<ContentHash> {
        row.delta
            .encoding()
            .filter(|hash| !self.encodings.contains_key(hash))
    }

    /// Adds the next row. `text` contains the encoder settings whose hash
    /// [`Self::missing_encoding`] returned.
    pub fn add_row(&mut self, row: &LoggedRow, text: Option<String>) -> Result<(), DamagedRow> {
        row.apply(&mut self.segments)?;
        let encoding = row.delta.encoding();
        if let (Some(hash), Some(text)) = (encoding, text) {
            self.encodings.insert(hash, text.into());
        }
        let encoding = encoding.and_then(|hash| self.encodings.get(&hash).cloned());
        row.delta
            .apply_to_outline(&mut self.outline, &self.boundaries);
        self.boundaries.clone_from(&row.delta.boundaries);
        self.outlines.push(RequestOutline {
            summary: row.summary()?,
            segments: self.outline.clone(),
            tools: row.delta.tools,
            encoding,
        });
        Ok(())
    }

    /// Returns the outlines of all rows.
    pub fn finish(self) -> Vec<RequestOutline> {
        self.outlines
    }
}

/// Updates `segments` from those of the previous request to those of the request that `delta`
/// describes.
pub fn apply_delta(delta: &RequestDelta, segments: &mut Vec<SegmentRef>) -> Result<(), DamagedRow> {
    delta
        .apply(segments)
        .map_err(|misfit| DamagedRow(misfit.to_string()))
}

/// Applies the rows of a log one after another, and returns the segments and the row of the last
/// request. The first row must contain a self-contained request.
pub fn replay_rows<E: From<DamagedRow>>(
    rows: impl IntoIterator<Item = Result<LoggedRow, E>>,
) -> Result<Option<(Vec<SegmentRef>, LoggedRow)>, E> {
    let mut segments = Vec::new();
    let mut newest = None;
    for row in rows {
        let row = row?;
        row.apply(&mut segments)?;
        newest = Some(row);
    }
    Ok(newest.map(|newest| (segments, newest)))
}

impl SegmentRef {
    /// Decodes the message of a segment from its stored body, and checks the hash of the message.
    pub fn decode_message(&self, body: Option<&str>) -> Result<Message, DamagedRow> {
        let gone = || {
            DamagedRow(format!(
                "message `{}` of a logged request is gone",
                self.message_id
            ))
        };
        let mut message: Message = decode_json(
            || format!("message `{}`", self.message_id),
            body.ok_or_else(gone)?,
        )?;
        message.message_id = self.message_id;
        if message.content_hash() != self.hash {
            return Err(DamagedRow(format!(
                "message `{}` is not what was sent",
                self.message_id
            )));
        }
        Ok(message)
    }
}
