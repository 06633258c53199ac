//! Finds text that an agent moves and changes with every request, such as a message with the time,
//! and puts it at the end, so that the messages after it are read from the cache.
//!
//! ```text
//! U  A T  A T  [10:31]  A T            the next request differs from here on
//! U  A T  A T  A T  [10:32]  A T
//! ```
//!
//! The text is recognized by what changes between two requests: without it, the second request only
//! extends the first. Its beginning is remembered, and from then on the one message of the agent
//! that begins with it comes last.

use haft_types::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::ParsedRequest;
use crate::layout::SegmentKind;
use crate::message_parts::parse_messages;

/// The maximum size of such a text in bytes.
const MAX_BYTES: usize = 8_000;
/// The minimum and maximum number of bytes at the beginning by which a text is recognized.
const MIN_OPENING_BYTES: usize = 12;
const MAX_OPENING_BYTES: usize = 64;

/// The beginning of a text that an agent moves with every request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MovedText {
    pub(crate) agent: String,
    pub(crate) opening: String,
}

/// The messages of a request, for comparison with the next one.
#[derive(Clone, Debug)]
pub(crate) struct SentMessages {
    hashes: Vec<ContentHash>,
    /// The texts of messages that could be moved, with their positions.
    texts: Vec<(usize, String)>,
}

impl SentMessages {
    pub(crate) fn new(request: &ParsedRequest<'_>) -> Self {
        let mut hashes = Vec::new();
        let mut texts = Vec::new();
        for (index, element) in request.elements.iter().enumerate() {
            if element.kind != SegmentKind::Message {
                continue;
            }
            if let Some(text) = plain_user_text(request, index) {
                texts.push((hashes.len(), text));
            }
            let (text, _) = crate::layout::cut_cache_markers(request.element_text(index));
            hashes.push(ContentHash::from_content(text.as_bytes()));
        }
        Self { hashes, texts }
    }

    /// Returns the beginning of the text that was moved and changed between the request `before` and
    /// this one, if the rest of this request extends `before`.
    pub(crate) fn find_moved_opening(&self, before: &Self) -> Option<String> {
        let kept = before
            .hashes
            .iter()
            .zip(&self.hashes)
            .take_while(|(old, new)| old == new)
            .count();
        let (_, old) = before.texts.iter().find(|(index, _)| *index == kept)?;
        let rest = &before.hashes[kept + 1..];
        // With nothing after it, the text was not moved.
        if rest.is_empty() || !self.hashes[kept..].starts_with(rest) {
            return None;
        }
        let (_, new) = self
            .texts
            .iter()
            .find(|(index, text)| *index > kept && common_opening(old, text).is_some())?;
        common_opening(old, new)
    }
}

/// Returns the beginning that two different texts have in common, if it is long enough.
fn common_opening(old: &str, new: &str) -> Option<String> {
    let common: String = old
        .chars()
        .zip(new.chars())
        .take_while(|(old, new)| old == new)
        .map(|(old, _)| old)
        .collect();
    let opening: String = common.chars().take(MAX_OPENING_BYTES).collect();
    (old != new && opening.len() >= MIN_OPENING_BYTES).then_some(opening)
}

/// Returns the index of the element that must come last, or `None` if there is none or it does so
/// already.
pub(crate) fn find_moved_element(
    request: &ParsedRequest<'_>,
    openings: &[MovedText],
    agent: &str,
) -> Option<usize> {
    let openings: Vec<_> = openings.iter().filter(|one| one.agent == agent).collect();
    if openings.is_empty() {
        return None;
    }
    let mut found = request.elements.iter().enumerate().filter(|(index, one)| {
        one.kind == SegmentKind::Message
            && plain_user_text(request, *index).is_some_and(|text| {
                openings
                    .iter()
                    .any(|known| text.starts_with(known.opening.as_str()))
            })
    });
    let (index, _) = found.next()?;
    let is_last = index + 1 == request.elements.len();
    let ends_with_reply = request.elements.last().is_some_and(|last| last.is_reply);
    (found.next().is_none() && !is_last && !ends_with_reply).then_some(index)
}

/// Returns the text of a short message of the user that contains nothing else.
fn plain_user_text(request: &ParsedRequest<'_>, index: usize) -> Option<String> {
    let json = request.element_text(index);
    if json.len() > MAX_BYTES || request.elements[index].is_reply {
        return None;
    }
    let value: Value = serde_json::from_str(json).ok()?;
    if value.get("role")?.as_str()? != "user" {
        return None;
    }
    let messages = parse_messages(SegmentKind::Message, json);
    let mut text = String::new();
    for part in messages.into_iter().flat_map(|(_, parts)| parts) {
        match part {
            haft_types::Part::Text { text: piece, .. } => text.push_str(&piece),
            haft_types::Part::ToolCall(_)
            | haft_types::Part::ToolResult(_)
            | haft_types::Part::Thinking(_)
            | haft_types::Part::Image(_) => return None,
        }
    }
    Some(text)
}
