//! `haft context diff`: compares two requests by segment.
//!
//! Prints the prefix that both requests share, then the removed (−) and added (+) segments.
//! Unchanged segments behind a change are only counted: they are sent again.

use std::fmt::Write as _;

use haft_store::{LoggedRequest, LoggedSegment};
use haft_text::{Masker, format_thousands};
use haft_types::Layer;
use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

use super::request_log::RequestLogReader;
use super::segments::{RequestView, SegmentView, TextExtent};
use super::text::{Countable, format_count, full_message_text, message_opening};
use crate::commands::context::DiffArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &DiffArgs) -> anyhow::Result<()> {
    let asked = DiffTarget::from_args(args)?;
    let log = RequestLogReader::open(haft, asked.conversation, &args.common).await?;
    let (from, to) = asked.request_pair(log.requests)?;
    let old = log.request(Some(from)).await?;
    let new = log.request(Some(to)).await?;
    let masker = haft.masker();
    let difference = RequestDiff::new(&old, &new, &masker);
    if args.json {
        return output::print_json(&difference.to_json(&log, args.full));
    }
    output::print_text(&difference.to_text(args.full))
}

/// The conversation and the requests that the positional arguments name.
#[derive(Debug, PartialEq, Eq)]
struct DiffTarget<'a> {
    conversation: Option<&'a str>,
    numbers: Vec<u64>,
}

impl<'a> DiffTarget<'a> {
    fn from_args(args: &'a DiffArgs) -> anyhow::Result<Self> {
        // The eight characters of a short id can look like a number, but no conversation has that
        // many requests.
        const SHORT_ID_LEN: usize = 8;
        let (conversation, numbers) = match args.what.split_first() {
            Some((first, rest))
                if args.what.len() == 3
                    || first.len() >= SHORT_ID_LEN
                    || first.parse::<u64>().is_err() =>
            {
                (Some(first.as_str()), rest)
            }
            _ => (None, args.what.as_slice()),
        };
        let number = |text: &String| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| usage_error(text!("context-not-a-number", text)))
        };
        let mut numbers = numbers
            .iter()
            .map(number)
            .collect::<Result<Vec<u64>, _>>()?;
        match args.request {
            Some(_) if !numbers.is_empty() => {
                return Err(usage_error(text!("context-request-twice")));
            }
            Some(number) => numbers.push(number),
            None => {}
        }
        Ok(Self {
            conversation,
            numbers,
        })
    }

    fn request_pair(&self, requests: u64) -> anyhow::Result<(u64, u64)> {
        let first = || usage_error(text!("context-first-request"));
        match self.numbers.as_slice() {
            [from, to, ..] => Ok((*from, *to)),
            [to] if *to > 1 => Ok((to - 1, *to)),
            [] if requests > 1 => Ok((requests - 1, requests)),
            [_] | [] => Err(first()),
        }
    }
}

/// A removed or added segment, or a run of unchanged segments between them.
enum SegmentChange<'a> {
    /// Unchanged segments after a change, which are sent again.
    Unchanged(&'a [LoggedSegment]),
    Removed(usize, &'a LoggedSegment),
    Added(usize, &'a LoggedSegment),
}

pub(super) struct RequestDiff<'a> {
    old: &'a LoggedRequest,
    new: &'a LoggedRequest,
    masker: &'a Masker,
    /// The number of unchanged segments at the front.
    kept: usize,
    steps: Vec<SegmentChange<'a>>,
}

impl<'a> RequestDiff<'a> {
    pub(super) fn new(old: &'a LoggedRequest, new: &'a LoggedRequest, masker: &'a Masker) -> Self {
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

    /// Returns the removed segment of the old request that contains another form of the message in
    /// `segment`.
    fn earlier_form(&self, segment: &LoggedSegment) -> Option<&'a LoggedSegment> {
        let same = |step: &SegmentChange<'a>| match step {
            SegmentChange::Removed(_, old) if is_same_message(old, segment) => Some(*old),
            SegmentChange::Removed(..) | SegmentChange::Added(..) | SegmentChange::Unchanged(_) => {
                None
            }
        };
        self.steps.iter().find_map(same)
    }

    /// Returns the names of added, removed and changed tools, each with the sign `+`, `-` or `~`.
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

    pub(super) fn to_text(&self, full: bool) -> String {
        let old = &self.old.summary;
        let new = &self.new.summary;
        let mut text = format!(
            "{}\n",
            text!(
                "context-requests-compared",
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
                    "context-model-changed",
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
                text!("context-tools-changed", tools = output::join_names(&tools))
            );
        } else if self.old.tools != self.new.tools {
            text.extend([text!("context-tools-reordered"), "\n"]);
        }
        let (segments, tokens) = format_totals(&self.new.segments[..self.kept]);
        let _ = writeln!(text, "= {}", text!("context-diff-kept", segments, tokens));
        for step in &self.steps {
            match step {
                SegmentChange::Unchanged(same) => {
                    let (segments, tokens) = format_totals(same);
                    let _ = writeln!(text, "  {}", text!("context-diff-again", segments, tokens));
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
            text.extend([text!("context-no-other-change"), "\n"]);
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

    fn to_json(&self, log: &RequestLogReader, full: bool) -> Value {
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
            "conversation_id": log.conversation.id,
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
    let role = output::localize_text(segment.message.role);
    let place = format!(
        "{sign} {} {} {id} {role}",
        index + 1,
        output::localize_text(&segment.owner)
    );
    let shown = haft_text::truncate_to_width(&first_line, MAX_TEXT_COLUMNS);
    text.push_str(&text!(
        "context-diff-line",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Common;

    fn parse_target(
        what: &[&str],
        request: Option<u64>,
    ) -> anyhow::Result<(Option<String>, (u64, u64))> {
        let what = what.iter().map(|word| (*word).to_owned()).collect();
        let args = DiffArgs {
            what,
            request,
            full: false,
            json: false,
            common: Common::default(),
        };
        let asked = DiffTarget::from_args(&args)?;
        Ok((
            asked.conversation.map(str::to_owned),
            asked.request_pair(9)?,
        ))
    }

    #[test]
    fn diff_target_takes_numbers_as_requests() {
        assert_eq!(parse_target(&[], None).unwrap(), (None, (8, 9)));
        assert_eq!(parse_target(&["5"], None).unwrap(), (None, (4, 5)));
        assert_eq!(parse_target(&["2", "5"], None).unwrap(), (None, (2, 5)));
        assert_eq!(
            parse_target(&["fix it"], None).unwrap(),
            (Some("fix it".into()), (8, 9))
        );
        assert_eq!(
            parse_target(&["12345678", "5"], None).unwrap(),
            (Some("12345678".into()), (4, 5))
        );
        assert_eq!(
            parse_target(&["7", "2", "5"], None).unwrap(),
            (Some("7".into()), (2, 5))
        );
        assert_eq!(
            parse_target(&["fix it"], Some(3)).unwrap(),
            (Some("fix it".into()), (2, 3))
        );
    }

    #[test]
    fn diff_target_rejects_requests_that_cannot_be_compared() {
        for wrong in [vec!["1"], vec!["0", "3"], vec!["a name", "b"]] {
            assert!(parse_target(&wrong, None).is_err(), "{wrong:?}");
        }
        assert!(parse_target(&["2", "3"], Some(4)).is_err());
    }
}
