//! Compares two requests by segment: the prefix they share, then the removed (−) and added (+)
//! segments. Unchanged segments behind a change are only counted: they are sent again.

use std::fmt::Write as _;

use haft_store::{LoggedRequest, LoggedSegment};
use haft_text::{Masker, format_thousands};
use haft_types::{ConversationId, Layer};
use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

use crate::localize_text;
use crate::message_text::{Countable, format_count, full_message_text, message_opening};
use crate::request_view::{RequestView, SegmentView, TextExtent};

/// A removed or added segment, or a run of unchanged segments between them.
enum SegmentChange<'a> {
    /// Unchanged segments after a change, which are sent again.
    Unchanged(&'a [LoggedSegment]),
    Removed(usize, &'a LoggedSegment),
    Added(usize, &'a LoggedSegment),
}

pub struct RequestDiff<'a> {
    old: &'a LoggedRequest,
    new: &'a LoggedRequest,
    masker: &'a Masker,
    /// The number of unchanged segments at the front.
    kept: usize,
    steps: Vec<SegmentChange<'a>>,
}

impl<'a> RequestDiff<'a> {
    pub fn new(old: &'a LoggedRequest, new: &'a LoggedRequest, masker: &'a Masker) -> Self {
        let pairs = old.segments.iter().zip(&new.segments);
        let kept = pairs.take_while(|(old, new)| old.hash == new.hash).count();
        let hashes = |request: &LoggedRequest| {
            request.segments[kept..]
                .iter()
                .map(|one| one.hash)
                .collect::<Vec<_>>()
        };
        let was = &old.segments[kept..];
        let is = &new.segments[kept..];
        let gone = |index: usize| SegmentChange::Removed(kept + index, &was[index]);
        let came = |index: usize| SegmentChange::Added(kept + index, &is[index]);
        let mut steps = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &hashes(old), &hashes(new)) {
            match op {
                DiffOp::Equal { new_index, len, .. } => {
                    steps.push(SegmentChange::Unchanged(&is[new_index..new_index + len]));
                }
                DiffOp::Delete {
                    old_index, old_len, ..
                } => steps.extend((old_index..old_index + old_len).map(gone)),
                DiffOp::Insert {
                    new_index, new_len, ..
                } => steps.extend((new_index..new_index + new_len).map(came)),
                DiffOp::Replace {
                    old_index,
                    old_len,
                    new_index,
                    new_len,
                } => {
                    steps.extend((old_index..old_index + old_len).map(gone));
                    steps.extend((new_index..new_index + new_len).map(came));
                }
            }
        }
        Self {
            old,
            new,
            masker,
            kept,
            steps,
        }
    }

    /// Returns the segment of the old request for a message that the new request sends in another
    /// form.
    fn earlier_form(&self, segment: &LoggedSegment) -> Option<&'a LoggedSegment> {
        let same = |step: &SegmentChange<'a>| match step {
            SegmentChange::Removed(_, old) if is_same_message(old, segment) => Some(*old),
            SegmentChange::Removed(..) | SegmentChange::Added(..) | SegmentChange::Unchanged(_) => {
                None
            }
        };
        self.steps.iter().find_map(same)
    }

    /// Returns the names of added, removed and changed tools, each with a sign.
    fn changed_tools(&self) -> Vec<String> {
        let old = &self.old.tools;
        let new = &self.new.tools;
        let gone = old
            .iter()
            .filter(|tool| !new.iter().any(|other| other.name == tool.name));
        let came =
            new.iter().filter_map(
                |tool| match old.iter().find(|other| other.name == tool.name) {
                    None => Some(format!("+ {}", tool.name)),
                    Some(before) if before != tool => Some(format!("~ {}", tool.name)),
                    Some(_) => None,
                },
            );
        gone.map(|tool| format!("- {}", tool.name))
            .chain(came)
            .collect()
    }

    pub fn to_text(&self, full: bool) -> String {
        let old = &self.old.summary;
        let new = &self.new.summary;
        let mut text = format!(
            "{}\n",
            text!(
                "inspect-requests-compared",
                before = old.number,
                after = new.number,
                before_tokens = format_thousands(old.tokens),
                after_tokens = format_thousands(new.tokens)
            )
        );
        if old.model != new.model || old.api != new.api {
            // Here and below: writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{}",
                text!(
                    "inspect-model-changed",
                    old_model = old.model,
                    old_api = old.api,
                    new_model = new.model,
                    new_api = new.api
                )
            );
        }
        let tools = self.changed_tools();
        if !tools.is_empty() {
            let _ = writeln!(
                text,
                "{}",
                text!(
                    "inspect-tools-changed",
                    tools = tools.join(text!("inspect-between"))
                )
            );
        } else if self.old.tools != self.new.tools {
            text.extend([text!("inspect-tools-reordered"), "\n"]);
        }
        let (segments, tokens) = format_totals(&self.new.segments[..self.kept]);
        let _ = writeln!(text, "= {}", text!("inspect-diff-kept", segments, tokens));
        for step in &self.steps {
            match step {
                SegmentChange::Unchanged(same) => {
                    let (segments, tokens) = format_totals(same);
                    let _ = writeln!(text, "  {}", text!("inspect-diff-again", segments, tokens));
                }
                SegmentChange::Removed(index, segment) => {
                    write_segment_line(&mut text, '-', *index, segment, self.masker);
                }
                SegmentChange::Added(index, segment) => {
                    write_segment_line(&mut text, '+', *index, segment, self.masker);
                    if full {
                        text.push_str(&self.changed_text(segment));
                    }
                }
            }
        }
        if self.steps.is_empty() {
            text.extend([text!("inspect-no-other-change"), "\n"]);
        }
        text
    }

    /// Returns the line diff of a changed message, or the whole text of a new one.
    fn changed_text(&self, segment: &LoggedSegment) -> String {
        let new = full_message_text(&segment.message, self.masker);
        let Some(old) = self.earlier_form(segment) else {
            return indent_lines(&new);
        };
        let old = full_message_text(&old.message, self.masker);
        indent_lines(
            &TextDiff::from_lines(old.as_str(), new.as_str())
                .unified_diff()
                .to_string(),
        )
    }

    /// Returns the difference for programs, of requests of `conversation`.
    pub fn to_json(&self, conversation: &ConversationId, full: bool) -> Value {
        let extent = if full {
            TextExtent::All
        } else {
            TextExtent::First
        };
        let was = RequestView::from_logged(self.old);
        let is = RequestView::from_logged(self.new);
        let segment = |sign: &str, index: usize, of: &SegmentView<'_>| {
            let mut value = of.to_json(extent, self.masker);
            value["change"] = sign.into();
            value["index"] = (index + 1).into();
            value
        };
        let changes: Vec<_> = self
            .steps
            .iter()
            .map(|step| match step {
                SegmentChange::Unchanged(same) => {
                    json!({"change": "=", "segments": same.len(), "tokens": sum_tokens(same)})
                }
                SegmentChange::Removed(index, _) => segment("-", *index, &was.segments[*index]),
                SegmentChange::Added(index, _) => segment("+", *index, &is.segments[*index]),
            })
            .collect();
        json!({
            "conversation_id": conversation,
            "from": self.old.summary,
            "to": self.new.summary,
            "kept": {"segments": self.kept, "tokens": sum_tokens(&self.new.segments[..self.kept])},
            "tools": self.changed_tools(),
            "changes": changes,
        })
    }
}

/// True if both segments are forms of one message. Messages of the engine have ids derived from
/// their content, so such messages are compared by owner, which is unique in a layer.
fn is_same_message(old: &LoggedSegment, new: &LoggedSegment) -> bool {
    let made = match new.layer {
        Layer::System | Layer::Documents | Layer::Reminders => true,
        Layer::History | Layer::Current => false,
    };
    old.message.message_id == new.message.message_id
        || (made
            && old.layer == new.layer
            && old.owner == new.owner
            && old.message.role == new.message.role)
}

fn sum_tokens(segments: &[LoggedSegment]) -> u64 {
    segments
        .iter()
        .map(|segment| u64::from(segment.tokens))
        .sum()
}

fn format_totals(segments: &[LoggedSegment]) -> (String, String) {
    (
        format_count(segments.len(), Countable::Segment),
        format_thousands(sum_tokens(segments)),
    )
}

fn write_segment_line(
    text: &mut String,
    sign: char,
    index: usize,
    segment: &LoggedSegment,
    masker: &Masker,
) {
    const MAX_TEXT_COLUMNS: usize = 60;
    let first_line = message_opening(&segment.message, masker);
    let id = segment.message.message_id.short_id();
    let role = localize_text(segment.message.role);
    let place = format!(
        "{sign} {} {} {id} {role}",
        index + 1,
        localize_text(&segment.owner)
    );
    let shown = haft_text::truncate_to_width(&first_line, MAX_TEXT_COLUMNS);
    text.push_str(&text!(
        "inspect-diff-line",
        place,
        tokens = format_thousands(segment.tokens),
        text = shown
    ));
    text.push('\n');
}

fn indent_lines(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        let _ = writeln!(indented, "    {line}");
    }
    indented
}
