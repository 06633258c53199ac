//! The half of a request log that is the same in every store: what is remembered between two
//! requests, and how the rows of the log become requests again. The statements are each store's
//! own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_types::{ContentHash, Message, Timestamp};

use super::delta::{RequestDelta, SegmentRef};
use super::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary};
use crate::encoding::{DamagedRow, decode, decode_count, decode_time};

/// Enough for one agent with many sub-agents; a forgotten one is read from the log.
const REMEMBERED: usize = 64;

/// The last requests this process logged, so that the next one is compared without reading the log.
#[derive(Default)]
pub struct LastRequests(HashMap<i64, LastRequest>);

/// The last request of a conversation, as segments.
struct LastRequest {
    number: i64,
    segments: Vec<SegmentRef>,
}

impl LastRequests {
    /// The segments of the request before `number`, unless another process logged one in between.
    /// They are forgotten until [`Self::remember`]: what is remembered must not outlive a write that fails.
    pub fn take_before(&mut self, conversation: i64, number: i64) -> Option<Vec<SegmentRef>> {
        self.0
            .remove(&conversation)
            .filter(|last| last.number == number - 1)
            .map(|last| last.segments)
    }

    /// Remembers a request that is in the log now.
    pub fn remember(&mut self, conversation: i64, number: i64, segments: Vec<SegmentRef>) {
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0
            .insert(conversation, LastRequest { number, segments });
    }
}

/// A row of the log.
pub struct LoggedRow {
    /// The number of the request within its conversation, as stored.
    pub number: i64,
    /// What the row says.
    pub delta: RequestDelta,
    sent_at: Timestamp,
}

impl LoggedRow {
    /// Reads the columns of a row.
    pub fn decode(number: i64, sent_at: &str, body: &str) -> Result<Self, DamagedRow> {
        let delta = decode(|| format!("logged request {number}"), body)?;
        Ok(Self {
            number,
            delta,
            sent_at: decode_time(sent_at)?,
        })
    }

    /// Makes the segments of the request before into those of this one.
    pub fn apply(&self, segments: &mut Vec<SegmentRef>) -> Result<(), DamagedRow> {
        apply(&self.delta, segments)
    }

    /// The request as a line of the log.
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

    /// The request without its texts; `segments` are its own.
    fn outline(
        &self,
        segments: &[SegmentRef],
        encoding: Option<Arc<str>>,
    ) -> Result<RequestOutline, DamagedRow> {
        let summary = self.summary()?;
        Ok(RequestOutline {
            summary,
            segments: self.delta.outline(segments),
            tools: self.delta.tools,
            encoding,
        })
    }

    /// The whole request, from its segments with their messages and the texts it refers to.
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
            tools: decode(
                || format!("the tools of logged request {}", self.number),
                tools,
            )?,
            max_output_tokens: self.delta.max_output_tokens,
            cache_key: self.delta.cache_key,
            encoding: encoding.map(Into::into),
        })
    }
}

/// Reads the outlines of a log, row by row.
#[derive(Default)]
pub struct OutlineReader {
    segments: Vec<SegmentRef>,
    /// Texts that rows refer to, each read once.
    encodings: HashMap<ContentHash, Arc<str>>,
    outlines: Vec<RequestOutline>,
}

impl OutlineReader {
    /// The text that must be given with this row.
    pub fn missing_text(&self, row: &LoggedRow) -> Option<ContentHash> {
        row.delta
            .encoding()
            .filter(|hash| !self.encodings.contains_key(hash))
    }

    /// Takes the next row, with the text that was missing.
    pub fn take(&mut self, row: &LoggedRow, text: Option<String>) -> Result<(), DamagedRow> {
        row.apply(&mut self.segments)?;
        let encoding = row.delta.encoding();
        if let (Some(hash), Some(text)) = (encoding, text) {
            self.encodings.insert(hash, text.into());
        }
        let encoding = encoding.and_then(|hash| self.encodings.get(&hash).cloned());
        self.outlines.push(row.outline(&self.segments, encoding)?);
        Ok(())
    }

    /// The outlines of all rows.
    pub fn finish(self) -> Vec<RequestOutline> {
        self.outlines
    }
}

/// Makes the segments of the request before a difference into those after it.
pub fn apply(delta: &RequestDelta, segments: &mut Vec<SegmentRef>) -> Result<(), DamagedRow> {
    delta
        .apply(segments)
        .map_err(|misfit| DamagedRow(misfit.to_string()))
}

/// The segments and the row of the last request of a list that begins with a whole one.
pub fn replay<E: From<DamagedRow>>(
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
    /// What a segment held, from the body it refers to and checked against its hash.
    pub fn decode_message(&self, body: Option<&str>) -> Result<Message, DamagedRow> {
        let gone = || {
            DamagedRow(format!(
                "message `{}` of a logged request is gone",
                self.message_id
            ))
        };
        let mut message: Message = decode(
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
