//! Converts segments of recorded requests to entries of the request log. Each text is masked,
//! hashed and counted only once.

use std::collections::HashMap;
use std::sync::Arc;

use haft_model::O200k;
use haft_text::Masker;
use haft_types::{
    ContentHash, Entry, Layer, Message, MessageId, Part, Role, Segment, Timestamp, TokenCounter,
};

use super::hash_occurrence;
use crate::explanation::{SYSTEM_OWNER, TOOLS_OWNER};
use crate::layout::{BodyLayout, SegmentKind, SplitBody};
use crate::message_parts;

/// The maximum total size of the texts whose entries are cached, in bytes.
const MAX_CACHED_BYTES: usize = 256 << 20;
/// The maximum length of a text whose tokens are counted, in bytes. The tokens of longer texts are
/// estimated from their length.
const MAX_COUNTED_BYTES: usize = 2 << 20;

/// A cache of log entries, by the hash of the text that was sent. It saves masking a text and
/// counting its tokens again.
#[derive(Default)]
pub(super) struct EntryCache {
    known: HashMap<ContentHash, Arc<Entry>>,
    bytes: usize,
}

impl EntryCache {
    /// Masks the segments of a request body. Returns them with the body's layout, in which the
    /// positions of the cache markers refer to the masked texts.
    pub(super) fn build_segments(
        &mut self,
        split: &SplitBody,
        masker: &Masker,
        now: Timestamp,
    ) -> (Vec<Segment>, BodyLayout) {
        let mut layout = split.layout.clone();
        let mut occurrences: HashMap<ContentHash, u32> = HashMap::new();
        let mut segments = Vec::with_capacity(split.segments.len());
        for (index, segment) in split.segments.iter().enumerate() {
            let text = ContentHash::from_content(segment.text.as_bytes());
            let occurrence = occurrences
                .entry(hash_occurrence(segment.kind, &text, 0))
                .or_default();
            let key = hash_occurrence(segment.kind, &text, *occurrence);
            *occurrence += 1;
            let entry = self.find_or_build_entry(key, segment.kind, &segment.text, masker, now);
            if segment.boundary && entry.message.joined_text() != segment.text {
                layout.move_markers(index, |at| masker.mask(&segment.text[..at]).len());
            }
            let owner = segment_owner(segment.kind, entry.message.role);
            segments.push(Segment {
                layer: Layer::History,
                owner,
                entry,
                boundary: segment.boundary,
            });
        }
        assign_layers(&mut segments);
        (segments, layout)
    }

    fn find_or_build_entry(
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
        let parts = message_parts::parse_messages(kind, &text);
        let role = parts.first().map_or(Role::User, |(role, _)| *role);
        let id = MessageId::from_hash(key);
        let tokens = match text.len() {
            // Four bytes per token is the usual estimate.
            length if length > MAX_COUNTED_BYTES => u32::try_from(length / 4).unwrap_or(u32::MAX),
            _ => parts
                .into_iter()
                .map(|(role, parts)| O200k.count_message(&Message::new(id, role, parts, now)))
                .sum(),
        };
        let message = Message::from_text(id, role, text, now);
        if self.bytes > MAX_CACHED_BYTES {
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

fn segment_owner(kind: SegmentKind, role: Role) -> &'static str {
    match (kind, role) {
        (SegmentKind::Tool, _) => TOOLS_OWNER,
        (SegmentKind::System, _) | (_, Role::System) => SYSTEM_OWNER,
        (_, Role::Assistant) => "assistant",
        (_, Role::Tool) => "tool",
        (_, Role::User | Role::Summary) => "user",
    }
}

/// Returns the static string that equals the owner of a stored segment, or `user` if the owner is
/// unknown.
pub(super) fn intern_owner(owner: &str) -> &'static str {
    ["assistant", "tool", TOOLS_OWNER, SYSTEM_OWNER]
        .into_iter()
        .find(|known| *known == owner)
        .unwrap_or("user")
}

/// Returns the kind of the segments that belong to `owner`.
pub(super) fn owner_kind(owner: &str) -> SegmentKind {
    match owner {
        TOOLS_OWNER => SegmentKind::Tool,
        SYSTEM_OWNER => SegmentKind::System,
        _ => SegmentKind::Message,
    }
}

pub(super) fn decode_messages(kind: SegmentKind, json: &str) -> Vec<(Role, Vec<Part>)> {
    message_parts::parse_messages(kind, json)
}

/// Assigns a layer to each segment: tools and system prompt first, then the history, then
/// everything from the user's newest message on.
fn assign_layers(segments: &mut [Segment]) {
    let newest = segments
        .iter()
        .rposition(|segment| segment.owner == "user")
        .unwrap_or(segments.len());
    for (index, segment) in segments.iter_mut().enumerate() {
        segment.layer = match segment.owner {
            TOOLS_OWNER | SYSTEM_OWNER => Layer::System,
            _ if index >= newest => Layer::Current,
            _ => Layer::History,
        };
    }
}

/// Parses the messages that a segment contains. All but the first get derived ids.
pub(super) fn segment_messages(segment: &Segment) -> Vec<Message> {
    let message = &segment.entry.message;
    let all = message_parts::parse_messages(SegmentKind::Message, &message.joined_text());
    let one = |(index, (role, parts)): (usize, (Role, Vec<Part>))| {
        let id = match index {
            0 => message.message_id,
            _ => MessageId::from_hash(hash_occurrence(
                SegmentKind::Message,
                &segment.entry.hash,
                index as u32,
            )),
        };
        Message::new(id, role, parts, message.created_at)
    };
    all.into_iter().enumerate().map(one).collect()
}

/// Returns a title for a conversation: the first line that the user wrote, truncated to fit a
/// table.
pub(super) fn derive_conversation_title(segments: &[Segment]) -> Option<String> {
    const MAX_TITLE_CHARS: usize = 60;
    // Agents put text in tags before the user's own text.
    let messages = segments
        .iter()
        .filter(|segment| segment.owner == "user")
        .flat_map(segment_messages);
    let texts: Vec<_> = messages.map(|message| message.joined_text()).collect();
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
            .take(MAX_TITLE_CHARS)
            .collect(),
    )
}
