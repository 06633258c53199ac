//! A request body taken apart into segments and put together again, byte for byte.
//!
//! A segment is one tool, one block of the system text or one message, as the JSON it was sent as.
//! What lies between them is kept in the [`BodyLayout`], which is small: a request that only
//! appends adds its new messages and one such layout to the record. Markers for the provider's
//! cache are no part of a segment, because they move while the text stays; they are kept
//! in the layout, too.
//!
//! Invariant: [`BodyLayout::join`] of the texts [`split`] gave is the body.

use std::borrow::Cow;
use std::collections::BTreeMap;

use haft_types::Api;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a segment of a body is. The order is that in which providers put them before the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SegmentKind {
    Tool,
    System,
    Message,
}

/// One segment: its JSON without cache markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodySegment {
    pub(crate) kind: SegmentKind,
    pub(crate) text: String,
    /// Whether the provider is asked to remember the prefix that ends here.
    pub(crate) boundary: bool,
}

/// Where the segments of a body stood, and everything else it held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyLayout {
    pieces: Vec<LayoutPiece>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<CutMark>,
}

/// A stretch of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum LayoutPiece {
    Text(String),
    /// Segments that follow each other with the same text between them.
    Run {
        from: usize,
        count: usize,
        between: String,
    },
}

/// A cache marker that was cut out of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CutMark {
    segment: usize,
    at: usize,
    text: String,
}

/// A body in its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SplitBody {
    pub(crate) model: Option<String>,
    pub(crate) segments: Vec<BodySegment>,
    pub(crate) layout: BodyLayout,
    /// What names the conversation, where the client says so.
    pub(crate) session: Option<String>,
}

/// Takes a body apart. `None` where it is not a request of this API.
pub(crate) fn split(api: Api, body: &str) -> Option<SplitBody> {
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(body).ok()?;
    let (messages, systems): (&str, &[&str]) = match api {
        Api::OpenaiChat => ("messages", &[]),
        Api::OpenaiResponses => ("input", &["instructions"]),
        Api::Anthropic => ("messages", &["system"]),
        Api::Gemini => ("contents", &["systemInstruction", "system_instruction"]),
    };
    fields.get(messages)?;
    let mut spans: Vec<(SegmentKind, &str)> = Vec::new();
    let mut take = |kind, name: &str| {
        if let Some(value) = fields.get(name) {
            spans.extend(elements(value.get()).into_iter().map(|text| (kind, text)));
        }
    };
    take(SegmentKind::Tool, "tools");
    for name in systems {
        take(SegmentKind::System, name);
    }
    take(SegmentKind::Message, messages);
    let text_of = |name: &str| serde_json::from_str::<String>(fields.get(name)?.get()).ok();
    let (segments, layout) = lay_out(body, &spans);
    Some(SplitBody {
        model: text_of("model"),
        segments,
        layout,
        session: session(&fields),
    })
}

/// The elements of a list, or the one value there is.
fn elements(value: &str) -> Vec<&str> {
    match serde_json::from_str::<Vec<&RawValue>>(value) {
        Ok(list) => list.into_iter().map(RawValue::get).collect(),
        Err(_) => vec![value],
    }
}

/// The id under which a client groups its requests.
fn session(fields: &BTreeMap<Cow<'_, str>, &RawValue>) -> Option<String> {
    let text = |name: &str| serde_json::from_str::<String>(fields.get(name)?.get()).ok();
    let metadata = || {
        let metadata: serde_json::Value =
            serde_json::from_str(fields.get("metadata")?.get()).ok()?;
        metadata.get("user_id")?.as_str().map(str::to_owned)
    };
    text("prompt_cache_key")
        .or_else(metadata)
        .filter(|name| !name.is_empty())
}

fn lay_out(body: &str, spans: &[(SegmentKind, &str)]) -> (Vec<BodySegment>, BodyLayout) {
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
        let (text, cut) = without_marks(text);
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
    /// The body, from the texts of its segments.
    pub fn join<Text: AsRef<str>>(&self, segments: &[Text]) -> String {
        let mut body = String::new();
        let put = |body: &mut String, index: usize| {
            let Some(text) = segments.get(index).map(AsRef::as_ref) else {
                return;
            };
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
        };
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
                        put(&mut body, index);
                    }
                }
            }
        }
        body
    }

    /// Moves the markers of a segment to where they stand in its masked text.
    pub(crate) fn move_marks(&mut self, segment: usize, place: impl Fn(usize) -> usize) {
        self.marks
            .iter_mut()
            .filter(|mark| mark.segment == segment)
            .for_each(|mark| mark.at = place(mark.at));
    }

    /// The same with every text between segments changed so.
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

/// A JSON text without its members `cache_control`, and what was cut out where, in places of the
/// text that is left.
fn without_marks(text: &str) -> (String, Vec<(usize, String)>) {
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
        let end = string_end(bytes, at);
        let after = skip_space(bytes, end);
        if text.get(at..end) == Some(KEY) && bytes.get(after) == Some(&b':') {
            let value = skip_space(bytes, after + 1);
            let value_end = value_end(bytes, value);
            let before = text[..at].trim_end_matches([' ', '\n', '\r', '\t']);
            let comma_before = before
                .strip_suffix(',')
                .filter(|before| before.len() >= done);
            let (from, to) = if let Some(before) = comma_before {
                (before.len(), value_end)
            } else {
                // The first member takes the comma behind it along.
                let comma = skip_space(bytes, value_end);
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

/// Behind the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
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

fn skip_space(bytes: &[u8], at: usize) -> usize {
    let spaces = bytes
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    at + spaces.count()
}

/// Behind the value that begins here; the text is known to be JSON.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
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
