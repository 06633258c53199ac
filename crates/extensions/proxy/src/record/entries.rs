//! Converts segments of recorded requests to entries of the request log. Each text is masked,
//! hashed and counted only once.

use std::collections::HashMap;
use std::sync::Arc;

use haft_model::O200k;
use haft_text::Masker;
use haft_types::{
    ContentHash, Entry, Layer, Message, MessageId, Part, Role, Segment, Timestamp, TokenCounter,
};

use super::occurrence_hash;
use crate::explain::{SYSTEM, TOOLS};
use crate::layout::{BodyLayout, SegmentKind, SplitBody};
use crate::readable;

/// The maximum bytes of cached text.
const MOST_REMEMBERED: usize = 256 << 20;
/// The maximum length of a text whose tokens are counted. Tokens of longer texts are estimated from
/// their length.
const LONGEST_COUNTED: usize = 2 << 20;

/// A cache of entries by the text that was sent, so that no text is masked and counted twice.
#[derive(Default)]
pub(super) struct EntryCache {
    known: HashMap<ContentHash, Arc<Entry>>,
    bytes: usize,
}

impl EntryCache {
    /// Returns the segments of a body, and its layout with the cache markers moved to their
    /// positions in the masked texts.
    pub(super) fn segments(
        &mut self,
        split: &SplitBody,
        masker: &Masker,
        now: Timestamp,
    ) -> (Vec<Segment>, BodyLayout) {
        let mut layout = split.layout.clone();
        let mut occurrences: HashMap<ContentHash, u32> = HashMap::new();
        let mut segments = Vec::with_capacity(split.segments.len());
        for (index, segment) in split.segments.iter().enumerate() {
            let text = ContentHash::of(segment.text.as_bytes());
            let occurrence = occurrences
                .entry(occurrence_hash(segment.kind, &text, 0))
                .or_default();
            let key = occurrence_hash(segment.kind, &text, *occurrence);
            *occurrence += 1;
            let entry = self.entry(key, segment.kind, &segment.text, masker, now);
            if segment.boundary && entry.message.joined_text() != segment.text {
                layout.move_marks(index, |at| masker.mask(&segment.text[..at]).len());
            }
            let owner = owner_of(segment.kind, entry.message.role);
            segments.push(Segment {
                layer: Layer::History,
                owner,
                entry,
                boundary: segment.boundary,
            });
        }
        put_in_layers(&mut segments);
        (segments, layout)
    }

    fn entry(
        &mut self,
        key: ContentHash,
        kind: SegmentKind,
        text: &str,
        masker: &Masker,
        now: Timestamp,
    ) -> Arc<Entry> {
        if let Some(known) = self.known.get(&key) {
            return Arc::clone(known);
        }
        let text = masker.mask(text);
        let parts = readable::messages(kind, &text);
        let role = parts.first().map_or(Role::User, |(role, _)| *role);
        let id = MessageId::derived(key);
        let tokens = match text.len() {
            // Four bytes per token is the usual estimate.
            length if length > LONGEST_COUNTED => u32::try_from(length / 4).unwrap_or(u32::MAX),
            _ => parts
                .into_iter()
                .map(|(role, parts)| O200k.message(&Message::new(id, role, parts, now)))
                .sum(),
        };
        let message = Message::text(id, role, text, now);
        if self.bytes > MOST_REMEMBERED {
            *self = Self::default();
        }
        self.bytes += message.joined_text().len();
        let entry = Arc::new(Entry {
            hash: message.content_hash(),
            message,
            tokens,
        });
        self.known.insert(key, Arc::clone(&entry));
        entry
    }
}

fn owner_of(kind: SegmentKind, role: Role) -> &'static str {
    match (kind, role) {
        (SegmentKind::Tool, _) => TOOLS,
        (SegmentKind::System, _) | (_, Role::System) => SYSTEM,
        (_, Role::Assistant) => "assistant",
        (_, Role::Tool) => "tool",
        (_, Role::User | Role::Summary) => "user",
    }
}

/// Returns the constant for the owner of a stored segment.
pub(super) fn known_owner(owner: &str) -> &'static str {
    ["assistant", "tool", TOOLS, SYSTEM]
        .into_iter()
        .find(|known| *known == owner)
        .unwrap_or("user")
}

/// Returns the kind of an owner's segments.
pub(super) fn kind_of(owner: &str) -> SegmentKind {
    match owner {
        TOOLS => SegmentKind::Tool,
        SYSTEM => SegmentKind::System,
        _ => SegmentKind::Message,
    }
}

pub(super) fn decoded_messages(kind: SegmentKind, json: &str) -> Vec<(Role, Vec<Part>)> {
    readable::messages(kind, json)
}

/// Assigns layers: tools and system prompt first, then the history, then everything from the user's
/// newest message on.
fn put_in_layers(segments: &mut [Segment]) {
    let newest = segments
        .iter()
        .rposition(|segment| segment.owner == "user")
        .unwrap_or(segments.len());
    for (index, segment) in segments.iter_mut().enumerate() {
        segment.layer = match segment.owner {
            TOOLS | SYSTEM => Layer::System,
            _ if index >= newest => Layer::Current,
            _ => Layer::History,
        };
    }
}

/// Returns the messages of the conversation that a segment contains.
pub(super) fn dialogue(segment: &Segment) -> Vec<Message> {
    let message = &segment.entry.message;
    let all = readable::messages(SegmentKind::Message, &message.joined_text());
    let one = |(index, (role, parts)): (usize, (Role, Vec<Part>))| {
        let id = match index {
            0 => message.message_id,
            _ => MessageId::derived(occurrence_hash(
                SegmentKind::Message,
                &segment.entry.hash,
                index as u32,
            )),
        };
        Message::new(id, role, parts, message.created_at)
    };
    all.into_iter().enumerate().map(one).collect()
}

/// Returns a title for a conversation: the first line the user wrote, cut to fit a table.
pub(super) fn title(segments: &[Segment]) -> Option<String> {
    const LONGEST: usize = 60;
    // Agents put text in tags before the user's own text.
    let said = segments
        .iter()
        .filter(|segment| segment.owner == "user")
        .flat_map(dialogue);
    let texts: Vec<_> = said.map(|message| message.joined_text()).collect();
    let lines = texts
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let line = lines
        .clone()
        .find(|line| !line.starts_with('<'))
        .or_else(|| lines.clone().next())?;
    Some(
        line.chars()
            .filter(|c| !c.is_control())
            .take(LONGEST)
            .collect(),
    )
}
