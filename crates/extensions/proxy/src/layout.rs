//! Splits a request body into segments and joins them again, byte for byte.
//!
//! A segment is one tool, one block of the system prompt or one message, as the JSON that was sent.
//! The text between segments is stored in the [`BodyLayout`], which is small: a request that only
//! appends adds its new messages and one such layout to the record. Markers for the provider's
//! cache are stored in the layout too, because they move while the text stays unchanged.
//!
//! Invariant: [`BodyLayout::join`] of the texts returned by [`split_body`] is the original body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use haft_types::Api;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The kind of a request's segment. The variants are in the order in which providers pass the kinds
/// to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SegmentKind {
    Tool,
    System,
    Message,
}

/// One tool, system text or message of a request body, as JSON without cache markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodySegment {
    pub(crate) kind: SegmentKind,
    pub(crate) text: String,
    /// True if a cache marker asks the provider to cache the prefix up to the end of this segment.
    pub(crate) boundary: bool,
}

/// The positions of the segments in a request body, and all text around them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyLayout {
    pieces: Vec<LayoutPiece>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<CutMark>,
}

/// A piece of a body's layout: text outside of segments, or a run of segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum LayoutPiece {
    Text(String),
    /// A run of consecutive segments with identical text between them.
    Run {
        from: usize,
        count: usize,
        between: String,
    },
}

/// A cache marker that was removed from a segment, and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CutMark {
    segment: usize,
    at: usize,
    text: String,
}

/// A request body split into segments, with the layout to restore it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitBody {
    pub(crate) model: Option<String>,
    pub(crate) segments: Vec<BodySegment>,
    pub(crate) layout: BodyLayout,
    /// The session id that the client sent in the body.
    pub(crate) session: Option<String>,
}

/// Splits a request body into segments. Returns `None` if the body is not a valid request to this
/// API.
pub(crate) fn split_body(api: Api, body: &str) -> Option<SplitBody> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(body).ok()?;
    let (messages, systems): (&str, &[&str]) = match api {
        Api::OpenaiChat => ("messages", &[]),
        Api::OpenaiResponses => ("input", &["instructions"]),
        Api::Anthropic => ("messages", &["system"]),
        Api::Gemini => ("contents", &["systemInstruction", "system_instruction"]),
    };
    fields.get(messages)?;
    let mut spans: Vec<(SegmentKind, &str)> = Vec::new();
    let mut add_spans = |kind, name: &str| {
        if let Some(value) = fields.get(name) {
            spans.extend(
                split_list_elements(value.get())
                    .into_iter()
                    .map(|text| (kind, text)),
            );
        }
    };
    add_spans(SegmentKind::Tool, "tools");
    for name in systems {
        add_spans(SegmentKind::System, name);
    }
    add_spans(SegmentKind::Message, messages);
    let (segments, layout) = build_layout(body, &spans);
    Some(SplitBody {
        model: text_field(&fields, "model"),
        segments,
        layout,
        session: find_session_id(&fields),
    })
}

/// Returns the elements of a JSON list, or the value itself if it is not a list.
fn split_list_elements(value: &str) -> Vec<&str> {
    match serde_json::from_str::<Vec<&RawValue>>(value) {
        Ok(list) => list.into_iter().map(RawValue::get).collect(),
        Err(_) => vec![value],
    }
}

fn text_field(fields: &BTreeMap<Cow<'_, str>, &RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(fields.get(name)?.get()).ok()
}

/// Returns the id with which the client groups its requests into sessions.
fn find_session_id(fields: &BTreeMap<Cow<'_, str>, &RawValue>) -> Option<String> {
    let metadata = || {
        let metadata: serde_json::Value =
            serde_json::from_str(fields.get("metadata")?.get()).ok()?;
        metadata.get("user_id")?.as_str().map(str::to_owned)
    };
    text_field(fields, "prompt_cache_key")
        .or_else(metadata)
        .filter(|name| !name.is_empty())
}

fn build_layout(body: &str, spans: &[(SegmentKind, &str)]) -> (Vec<BodySegment>, BodyLayout) {
    let start = |text: &str| text.as_ptr() as usize - body.as_ptr() as usize;
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|index| start(spans[*index].1));
    let mut pieces: Vec<LayoutPiece> = Vec::new();
    let mut done = 0;
    for index in order {
        let text = spans[index].1;
        let between = &body[done..start(text)];
        done = start(text) + text.len();
        match pieces.last_mut() {
            Some(LayoutPiece::Run {
                from,
                count,
                between: same,
            }) if *from + *count == index && (*count == 1 || same == between) => {
                between.clone_into(same);
                *count += 1;
            }
            _ => {
                pieces.push(LayoutPiece::Text(between.to_owned()));
                pieces.push(LayoutPiece::Run {
                    from: index,
                    count: 1,
                    between: String::new(),
                });
            }
        }
    }
    pieces.push(LayoutPiece::Text(body[done..].to_owned()));
    let mut marks = Vec::new();
    let mut segments = Vec::with_capacity(spans.len());
    for (segment, (kind, text)) in spans.iter().enumerate() {
        let (text, cut) = cut_cache_markers(text);
        segments.push(BodySegment {
            kind: *kind,
            text,
            boundary: !cut.is_empty(),
        });
        marks.extend(
            cut.into_iter()
                .map(|(at, text)| CutMark { segment, at, text }),
        );
    }
    (segments, BodyLayout { pieces, marks })
}

impl BodyLayout {
    /// Appends the text of a segment with its cache markers.
    fn push_segment(&self, body: &mut String, index: usize, text: &str) {
        let mut done = 0;
        for mark in self.marks.iter().filter(|mark| mark.segment == index) {
            let at = if text.is_char_boundary(mark.at) {
                mark.at.max(done)
            } else {
                text.len()
            };
            body.push_str(&text[done..at]);
            body.push_str(&mark.text);
            done = at;
        }
        body.push_str(&text[done..]);
    }

    /// Restores the original body by inserting the texts of the segments.
    pub fn join<Text: AsRef<str>>(&self, segments: &[Text]) -> String {
        let mut body = String::new();
        for piece in &self.pieces {
            match piece {
                LayoutPiece::Text(text) => body.push_str(text),
                LayoutPiece::Run {
                    from,
                    count,
                    between,
                } => {
                    for index in *from..from + count {
                        if index > *from {
                            body.push_str(between);
                        }
                        if let Some(text) = segments.get(index) {
                            self.push_segment(&mut body, index, text.as_ref());
                        }
                    }
                }
            }
        }
        body
    }

    /// Moves the cache markers of a segment after its text was masked. `place` maps each position
    /// in the original text to the position in the masked text.
    pub(crate) fn move_markers(&mut self, segment: usize, place: impl Fn(usize) -> usize) {
        self.marks
            .iter_mut()
            .filter(|mark| mark.segment == segment)
            .for_each(|mark| mark.at = place(mark.at));
    }

    /// Applies `change` to all text outside the segments.
    #[must_use]
    pub(crate) fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        for piece in &mut self.pieces {
            if let LayoutPiece::Text(text) = piece {
                *text = change(text);
            }
        }
        self
    }
}

/// Removes all `cache_control` members from a JSON text. Returns the text and the removed members
/// with their positions in it.
pub(crate) fn cut_cache_markers(text: &str) -> (String, Vec<(usize, String)>) {
    const KEY: &str = "\"cache_control\"";
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut cut = Vec::new();
    let mut at = 0;
    let mut done = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'"' {
            at += 1;
            continue;
        }
        let end = find_string_end(bytes, at);
        let after = skip_whitespace(bytes, end);
        if text.get(at..end) == Some(KEY) && bytes.get(after) == Some(&b':') {
            let value = skip_whitespace(bytes, after + 1);
            let value_end = find_value_end(bytes, value);
            let before = text[..at].trim_end_matches([' ', '\n', '\r', '\t']);
            let comma_before = before
                .strip_suffix(',')
                .filter(|before| before.len() >= done);
            let (from, to) = if let Some(before) = comma_before {
                (before.len(), value_end)
            } else {
                // A first member has no comma before it, so the comma after it is removed.
                let comma = skip_whitespace(bytes, value_end);
                (
                    at,
                    if bytes.get(comma) == Some(&b',') {
                        comma + 1
                    } else {
                        value_end
                    },
                )
            };
            out.push_str(&text[done..from]);
            cut.push((out.len(), text[from..to].to_owned()));
            (at, done) = (to, to);
        } else {
            at = end;
        }
    }
    out.push_str(&text[done..]);
    (out, cut)
}

/// Returns the position after the JSON string that starts at `start`.
pub(crate) fn find_string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

pub(crate) fn skip_whitespace(bytes: &[u8], at: usize) -> usize {
    let spaces = bytes
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + spaces.count()
}

/// Returns the position after the JSON value that starts at `start`. The text must be valid JSON.
pub(crate) fn find_value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = find_string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 1 { at + 1 } else { at },
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
