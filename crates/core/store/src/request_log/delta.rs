//! Stores a request as the difference to the previous one, so that the log grows linearly with the
//! text sent.
//!
//! Invariant: applying the deltas of a conversation in order to an empty list yields, after each
//! one, the segments of that request. A segment is kept if its message id and content hash are
//! unchanged. The other properties of a kept segment (its layer once a new round begins, its owner,
//! its token estimate after a change of model) are updated by relabeling, and boundaries are listed
//! with each request because they move.

use std::borrow::Cow;

use haft_types::{Api, ContentHash, Layer, MessageId, Segment, SentSegment};
use serde::{Deserialize, Serialize};

use super::{SegmentList, SentRequest};

/// The table that stores the message of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentSource {
    /// The table of messages. The segment is a message of the conversation, sent as stored.
    Message,
    /// The table of texts. The segment is a text that the engine created or changed, stored once
    /// per content hash.
    Text,
}

/// A reference to the message of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentRef {
    /// The id of the message.
    pub message_id: MessageId,
    /// The hash of the message as sent.
    pub hash: ContentHash,
    /// The table that contains the message.
    pub source: SegmentSource,
    #[serde(flatten)]
    pub(crate) label: Label,
}

impl SegmentRef {
    /// Creates a reference to a segment whose message is stored in `source`.
    pub fn new(segment: &Segment, source: SegmentSource) -> Self {
        let message_id = segment.entry.message.message_id;
        Self {
            message_id,
            hash: segment.entry.hash,
            source,
            label: Label::for_segment(segment),
        }
    }

    fn matches(&self, segment: &Segment) -> bool {
        self.hash == segment.entry.hash && self.message_id == segment.entry.message.message_id
    }
}

/// The properties of a segment that are logged but not sent to the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Label {
    pub(crate) layer: Layer,
    pub(crate) owner: Cow<'static, str>,
    pub(crate) tokens: u32,
}

impl Label {
    fn for_segment(segment: &Segment) -> Self {
        Self {
            layer: segment.layer,
            owner: Cow::Borrowed(segment.owner),
            tokens: segment.entry.tokens,
        }
    }

    fn matches(&self, segment: &Segment) -> bool {
        self.layer == segment.layer
            && self.owner == segment.owner
            && self.tokens == segment.entry.tokens
    }
}

/// The label of a segment that the request shares with the previous request, if the label has
/// changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Relabel {
    index: usize,
    #[serde(flatten)]
    label: Label,
}

/// A logged request in its stored form: its difference from the previous request.
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
    /// The hash by which the encoder settings are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) relabelled: Vec<Relabel>,
    pub(crate) added: Vec<SegmentRef>,
}

/// The error for a delta that does not fit the list of segments to which it was applied.
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

/// Returns the number of segments at the beginning that are equal to those of the previous request.
pub fn count_kept(before: &[SegmentRef], now: &[Segment]) -> usize {
    before
        .iter()
        .zip(now)
        .take_while(|(old, new)| old.matches(new))
        .count()
}

impl RequestDelta {
    /// Computes the difference between `before`, the segments of the previous request, and `sent`.
    /// `added` contains references to the segments that are not shared, which are those after the
    /// first [`count_kept`].
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
            tokens: request.estimated_tokens(),
            segments: request.segments.len(),
            boundaries: (0..request.segments.len())
                .filter(|&index| request.segments[index].boundary)
                .collect(),
            kept,
            encoding: sent
                .encoding
                .as_ref()
                .map(|text| ContentHash::from_content(text.as_bytes())),
            cause: sent.cause.clone(),
            relabelled: relabelled
                .filter(|(_, (old, new))| !old.label.matches(new))
                .map(|(index, (_, new))| Relabel {
                    index,
                    label: Label::for_segment(new),
                })
                .collect(),
            added,
        }
    }

    /// True if the request can be restored without the previous request.
    pub fn is_self_contained(&self) -> bool {
        self.kept == 0
    }

    /// Returns the hash by which the list of tools is found.
    pub fn tools(&self) -> ContentHash {
        self.tools
    }

    /// Returns the hash by which the encoder settings are found.
    pub fn encoding(&self) -> Option<ContentHash> {
        self.encoding
    }

    /// Updates `list`, the outline of the previous request, to that of this request. `before`
    /// contains the boundaries of the previous request. The delta must fit the list, which
    /// [`Self::apply`] checks.
    pub(crate) fn apply_to_outline(&self, list: &mut SegmentList, before: &[usize]) {
        list.truncate(self.kept);
        for relabel in &self.relabelled {
            list.update(relabel.index, |segment| {
                segment.layer = relabel.label.layer;
                segment.owner.clone_from(&relabel.label.owner);
                segment.tokens = relabel.label.tokens;
            });
        }
        let gone = before
            .iter()
            .filter(|index| !self.boundaries.contains(index));
        for index in gone {
            list.update(*index, |segment| segment.boundary = false);
        }
        let came = self
            .boundaries
            .iter()
            .filter(|index| !before.contains(index));
        for index in came.filter(|index| **index < self.kept) {
            list.update(*index, |segment| segment.boundary = true);
        }
        let added = self.added.iter().zip(self.kept..);
        list.extend(added.map(|(segment, index)| SentSegment {
            layer: segment.label.layer,
            owner: segment.label.owner.clone(),
            message: segment.message_id,
            hash: segment.hash,
            tokens: segment.label.tokens,
            boundary: self.boundaries.contains(&index),
        }));
    }

    /// Updates `list`, which contains the segments of the previous request, to those of this
    /// request.
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
