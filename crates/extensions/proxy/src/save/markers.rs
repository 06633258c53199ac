//! Sets the cache markers of a request to the Messages API, where a prefix is stored and found only
//! at a marker.
//!
//! ```text
//! system ▪  U  A T  A T ▪  A stub  A stub  …  A T ▪  A T ▪  moved text
//! ```
//!
//! The markers are at the end of the fixed prefix, before the first result that the newest pass
//! cleared, at the end of the previous request, and at the end of this one, before text that changes
//! with every request. The agent's own markers are removed, because the API allows four.

use std::ops::Range;

use haft_types::Api;
use serde_json::value::RawValue;

use super::body_edits::BodyEdit;
use super::request::{Fields, ParsedRequest, parse_json, parse_list};
use crate::layout::{SegmentKind, find_string_end, find_value_end, skip_whitespace};

const MARKER_KEY: &str = "cache_control";
/// The marker of requests whose agent sets none.
const DEFAULT_MARKER: &str = r#"{"type":"ephemeral"}"#;
/// The number of the model's replies from which markers are added for an agent that sets none. In a
/// shorter conversation, storing the prefix could cost more than reading it saves.
const MIN_REPLIES: usize = 4;

/// A member of a JSON object.
struct Member {
    /// The member with one of the commas beside it.
    span: Range<usize>,
    value: Range<usize>,
}

/// A place where a marker can be.
enum MarkerSite {
    /// An object, into which the marker is added as a member.
    Object(Range<usize>),
    /// A text, which becomes a list with one block.
    Text(Range<usize>),
}

/// Returns the edits that set the markers of a request. `first_cleared` is the element with the first
/// result of the newest pass, `moved` the element that is moved to the end. Nothing is changed if
/// neither is set and the agent sets markers itself.
pub(crate) fn build_marker_edits(
    request: &ParsedRequest<'_>,
    cleared: &[Range<usize>],
    first_cleared: Option<usize>,
    moved: Option<usize>,
) -> Vec<BodyEdit> {
    if request.api != Api::Anthropic {
        return Vec::new();
    }
    let mut existing: Vec<Member> = (0..request.elements.len())
        .flat_map(|index| find_markers(request, index))
        .collect();
    let is_rewritten = first_cleared.is_some() || moved.is_some();
    let has_markers = !existing.is_empty() || request.has_automatic_marker;
    let ends = request.request_ends();
    if !is_rewritten && (has_markers || ends.len() <= MIN_REPLIES) {
        return Vec::new();
    }
    existing.retain(|marker| {
        !cleared
            .iter()
            .any(|span| span.start <= marker.span.start && marker.span.end <= span.end)
    });
    existing.extend(find_member(request.body, 0));
    let value = |marker: &Member| request.body[marker.value.clone()].to_owned();
    let default = || DEFAULT_MARKER.to_owned();
    // Entries with a longer lifetime must come before those with a shorter one.
    let first_value = existing.first().map_or_else(default, value);
    let last_value = existing.last().map_or_else(default, value);
    let mut edits: Vec<BodyEdit> = existing
        .into_iter()
        .map(|marker| BodyEdit {
            span: marker.span,
            text: String::new(),
        })
        .collect();
    let fixed = request
        .elements
        .iter()
        .rposition(|element| element.kind != SegmentKind::Message);
    let last = (0..request.elements.len())
        .rev()
        .find(|index| Some(*index) != moved);
    let previous = ends
        .len()
        .checked_sub(2)
        .and_then(|previous| ends[previous].checked_sub(1))
        .filter(|index| Some(*index) != moved);
    let before_cleared = first_cleared.and_then(|first| first.checked_sub(1));
    let mut marked = Vec::new();
    for element in [fixed, before_cleared, previous, last]
        .into_iter()
        .flatten()
    {
        if marked.contains(&element) {
            continue;
        }
        let Some(site) = find_marker_site(request, element) else {
            continue;
        };
        marked.push(element);
        let value = if Some(element) == fixed {
            &first_value
        } else {
            &last_value
        };
        edits.extend(build_insertions(site, value));
    }
    edits
}

fn build_insertions(site: MarkerSite, value: &str) -> Vec<BodyEdit> {
    let insert = |at: usize, text: String| BodyEdit { span: at..at, text };
    match site {
        MarkerSite::Object(span) => {
            vec![insert(span.end - 1, format!(r#","{MARKER_KEY}":{value}"#))]
        }
        MarkerSite::Text(span) => vec![
            insert(span.start, r#"[{"type":"text","text":"#.to_owned()),
            insert(span.end, format!(r#","{MARKER_KEY}":{value}}}]"#)),
        ],
    }
}

/// Returns the content blocks of an element, or the element itself if it is a tool or a system text.
fn list_blocks<'a>(request: &ParsedRequest<'a>, element: usize) -> Vec<&'a str> {
    let text = request.element_text(element);
    if request.elements[element].kind != SegmentKind::Message {
        return vec![text];
    }
    list_content_blocks(text)
}

/// Returns the blocks in the content of a message or a result. Content that is a string is returned
/// as it is.
fn list_content_blocks(object: &str) -> Vec<&str> {
    let fields: Fields<'_> = parse_json(object).unwrap_or_default();
    let Some(content) = fields.get("content") else {
        return Vec::new();
    };
    match parse_list(content) {
        Some(list) => list.into_iter().map(RawValue::get).collect(),
        None => vec![content.get()],
    }
}

/// Returns the markers in an element: those of its blocks, and those of the blocks in its results.
fn find_markers(request: &ParsedRequest<'_>, element: usize) -> Vec<Member> {
    if !request.element_text(element).contains(MARKER_KEY) {
        return Vec::new();
    }
    let mut blocks = list_blocks(request, element);
    let inner: Vec<&str> = blocks
        .iter()
        .filter(|block| block_type(block).as_deref() == Some("tool_result"))
        .flat_map(|block| list_content_blocks(block))
        .collect();
    blocks.extend(inner);
    let mut markers: Vec<Member> = blocks
        .into_iter()
        .filter(|block| block.starts_with('{'))
        .filter_map(|block| {
            let start = block.as_ptr() as usize - request.body.as_ptr() as usize;
            find_member_in(block, start)
        })
        .collect();
    markers.sort_by_key(|marker| marker.span.start);
    markers
}

fn block_type(block: &str) -> Option<String> {
    let fields: Fields<'_> = parse_json(block)?;
    parse_json(fields.get("type")?.get())
}

/// Returns the last place in an element where a marker is allowed.
fn find_marker_site(request: &ParsedRequest<'_>, element: usize) -> Option<MarkerSite> {
    let position = |text: &str| {
        let start = text.as_ptr() as usize - request.body.as_ptr() as usize;
        start..start + text.len()
    };
    let block = list_blocks(request, element).into_iter().next_back()?;
    if block.starts_with('"') {
        return (block.len() > 2).then(|| MarkerSite::Text(position(block)));
    }
    let is_allowed = match block_type(block).as_deref() {
        Some("thinking" | "redacted_thinking") => false,
        Some("text") => !block.contains(r#""text":"""#),
        Some(_) => true,
        // Tools have no type.
        None => request.elements[element].kind == SegmentKind::Tool,
    };
    (is_allowed && block.ends_with('}')).then(|| MarkerSite::Object(position(block)))
}

fn find_member(body: &str, start: usize) -> Option<Member> {
    let object = body[start..].trim();
    let start = object.as_ptr() as usize - body.as_ptr() as usize;
    find_member_in(object, start)
}

/// Finds the marker of an object, not those of objects in it. `offset` is the object's position in
/// the body.
fn find_member_in(object: &str, offset: usize) -> Option<Member> {
    let bytes = object.as_bytes();
    let mut at = skip_whitespace(bytes, 1);
    let mut comma_before = None;
    while bytes.get(at) == Some(&b'"') {
        let key_end = find_string_end(bytes, at);
        let colon = skip_whitespace(bytes, key_end);
        let value = skip_whitespace(bytes, colon + 1);
        let value_end = find_value_end(bytes, value);
        let trimmed = object.get(value..value_end)?.trim_end().len() + value;
        let next = skip_whitespace(bytes, trimmed);
        let has_next = bytes.get(next) == Some(&b',');
        if object.get(at + 1..key_end - 1) == Some(MARKER_KEY) {
            let span = match comma_before {
                Some(comma) => comma..trimmed,
                None if has_next => at..skip_whitespace(bytes, next + 1),
                None => at..trimmed,
            };
            return Some(Member {
                span: span.start + offset..span.end + offset,
                value: value + offset..trimmed + offset,
            });
        }
        if !has_next {
            return None;
        }
        comma_before = Some(next);
        at = skip_whitespace(bytes, next + 1);
    }
    None
}
