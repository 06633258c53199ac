//! A request as the difference to the one before, which keeps the log linear in what was ever sent.
//!
//! Invariant: applying the deltas of a conversation in order to an empty list gives, after each of
//! them, the segments of that request. A segment is kept when message id and content hash are the
//! same; what may change about a kept one (its layer once a new round begins, its owner, its token
//! estimate after a change of model) is relabelled, and boundaries are listed with each request
//! because they move.

use std::borrow::Cow;
use std::collections::HashSet;

use haft_types::{Api, ContentHash, Layer, MessageId, Segment, SentSegment};
use serde::{Deserialize, Serialize};

use super::SentRequest;

/// Where the message of a segment is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentSource {
    /// It is a message of the conversation, sent as stored.
    Message,
    /// The engine made or changed it: kept once by content hash.
    Text,
}

/// A segment by reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentRef {
    /// The message.
    pub message_id: MessageId,
    /// The hash of what was sent of it.
    pub hash: ContentHash,
    /// Where its body is found.
    pub source: SegmentSource,
    #[serde(flatten)]
    pub(crate) label: Label,
}

impl SegmentRef {
    /// The reference to a segment whose message is kept there.
    pub fn new(segment: &Segment, source: SegmentSource) -> Self {
        let message_id = segment.entry.message.message_id;
        Self {
            message_id,
            hash: segment.entry.hash,
            source,
            label: Label::of(segment),
        }
    }

    fn is(&self, segment: &Segment) -> bool {
        self.hash == segment.entry.hash && self.message_id == segment.entry.message.message_id
    }
}

/// What is said about a segment without being sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Label {
    pub(crate) layer: Layer,
    pub(crate) owner: Cow<'static, str>,
    pub(crate) tokens: u32,
}

impl Label {
    fn of(segment: &Segment) -> Self {
        Self {
            layer: segment.layer,
            owner: Cow::Borrowed(segment.owner),
            tokens: segment.entry.tokens,
        }
    }

    fn is_of(&self, segment: &Segment) -> bool {
        self.layer == segment.layer
            && self.owner == segment.owner
            && self.tokens == segment.entry.tokens
    }
}

/// A new label for a kept segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Relabel {
    index: usize,
    #[serde(flatten)]
    label: Label,
}

/// One request as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestDelta {
    pub(crate) model: String,
    pub(crate) api: Api,
    pub(crate) tools: ContentHash,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) cache_key: Option<String>,
    pub(crate) tokens: u64,
    pub(crate) segments: usize,
    pub(crate) boundaries: Vec<usize>,
    pub(crate) kept: usize,
    /// Where the description of its encoding is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) relabelled: Vec<Relabel>,
    pub(crate) added: Vec<SegmentRef>,
}

/// The delta does not fit the list it was applied to.
#[derive(Debug, thiserror::Error)]
#[error(
    "a logged request keeps {kept} of {before} segments and adds {added}, which are not {segments}"
)]
pub(crate) struct DeltaMisfit {
    kept: usize,
    before: usize,
    added: usize,
    segments: usize,
}

/// How many leading segments of a request are those of the request before.
pub fn kept(before: &[SegmentRef], now: &[Segment]) -> usize {
    before
        .iter()
        .zip(now)
        .take_while(|(old, new)| old.is(new))
        .count()
}

impl RequestDelta {
    /// The difference of a request to the list before, of which it keeps all that [`kept`] counted
    /// and adds `added`.
    pub fn new(before: &[SegmentRef], sent: &SentRequest, added: Vec<SegmentRef>) -> Self {
        let request = &sent.request;
        let kept = request.segments.len() - added.len();
        let relabelled = before.iter().zip(&request.segments).take(kept).enumerate();
        Self {
            model: sent.model.clone(),
            api: sent.api,
            tools: request.tools.hash,
            max_output_tokens: request.max_output_tokens,
            cache_key: request.cache_key.clone(),
            tokens: request.tokens(),
            segments: request.segments.len(),
            boundaries: (0..request.segments.len())
                .filter(|&index| request.segments[index].boundary)
                .collect(),
            kept,
            encoding: sent
                .encoding
                .as_ref()
                .map(|text| ContentHash::of(text.as_bytes())),
            cause: sent.cause.clone(),
            relabelled: relabelled
                .filter(|(_, (old, new))| !old.label.is_of(new))
                .map(|(index, (_, new))| Relabel {
                    index,
                    label: Label::of(new),
                })
                .collect(),
            added,
        }
    }

    /// Whether nothing of the request before is needed to make this one whole.
    pub fn is_whole(&self) -> bool {
        self.kept == 0
    }

    /// Where the list of tools is kept.
    pub fn tools(&self) -> ContentHash {
        self.tools
    }

    /// Where what was said of the encoding is kept.
    pub fn encoding(&self) -> Option<ContentHash> {
        self.encoding
    }

    /// The segments of the request, once this delta was applied, without their bodies.
    pub(crate) fn outline(&self, segments: &[SegmentRef]) -> Vec<SentSegment> {
        let boundaries: HashSet<usize> = self.boundaries.iter().copied().collect();
        let outline = |(index, segment): (usize, &SegmentRef)| SentSegment {
            layer: segment.label.layer,
            owner: segment.label.owner.as_ref().to_owned().into(),
            message: segment.message_id,
            hash: segment.hash,
            tokens: segment.label.tokens,
            boundary: boundaries.contains(&index),
        };
        segments.iter().enumerate().map(outline).collect()
    }

    /// Turns the list before into the list of this request.
    pub(crate) fn apply(&self, list: &mut Vec<SegmentRef>) -> Result<(), DeltaMisfit> {
        let fits = self.kept <= list.len()
            && self.kept.checked_add(self.added.len()) == Some(self.segments)
            && self
                .relabelled
                .iter()
                .all(|relabel| relabel.index < self.kept)
            && self.boundaries.iter().all(|&index| index < self.segments);
        if !fits {
            let before = list.len();
            let added = self.added.len();
            return Err(DeltaMisfit {
                kept: self.kept,
                before,
                added,
                segments: self.segments,
            });
        }
        list.truncate(self.kept);
        for relabel in &self.relabelled {
            list[relabel.index].label = relabel.label.clone();
        }
        list.extend_from_slice(&self.added);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
