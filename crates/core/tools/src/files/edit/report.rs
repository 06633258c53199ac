//! How a change is shown: a bounded unified diff, counts, and the lines that changed.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value, json};
use similar::{ChangeTag, DiffTag, TextDiff};

use super::drafts::Count;
use super::lines;
use crate::visible;

/// Lines of diffs that one result shows.
const MAX_DIFF: usize = 50;
/// First lines that are kept of a larger one.
const DIFF_HEAD: usize = 20;
/// Bytes of one of them that are shown.
const MAX_DIFF_LINE: usize = 500;

/// What changed in one text.
pub(crate) struct TextDifference {
    added: usize,
    removed: usize,
    /// Changed lines of the new text, from 1, both ends included; a pure deletion is an empty
    /// range.
    ranges: Vec<(usize, usize)>,
    lines: Vec<String>,
}

impl TextDifference {
    pub(crate) fn between(old: &str, new: &str) -> Self {
        let old = plain(old);
        let new = plain(new);
        let diff = TextDiff::from_lines(old.as_str(), new.as_str());
        let count = |tag| {
            diff.iter_all_changes()
                .filter(|change| change.tag() == tag)
                .count()
        };
        let changed = diff
            .ops()
            .iter()
            .filter(|part| part.tag() != DiffTag::Equal);
        Self {
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            ranges: changed
                .map(|part| (part.new_range().start + 1, part.new_range().end))
                .collect(),
            lines: diff
                .unified_diff()
                .context_radius(3)
                .to_string()
                .lines()
                .map(diff_line)
                .collect(),
        }
    }
}

impl fmt::Display for TextDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} added, {} removed",
            Count(self.added, "line"),
            self.removed
        )
    }
}

/// The text as it is compared and shown: every line ends alike and holds nothing that could be
/// taken for an end.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in lines::split(text) {
        plain.push_str(&visible::line(line.text));
        if !line.end.is_empty() {
            plain.push('\n');
        }
    }
    plain
}

/// A line of the diff; a very long one is cut.
fn diff_line(line: &str) -> String {
    let cut = visible::prefix(line, MAX_DIFF_LINE);
    if cut.len() < line.len() {
        format!("{cut} …")
    } else {
        line.to_owned()
    }
}

/// The room that is left for diffs in one result.
pub(crate) struct DiffBudget(usize);

impl Default for DiffBudget {
    fn default() -> Self {
        Self(MAX_DIFF)
    }
}

impl DiffBudget {
    /// Shows a difference as far as there is room: in the text cut, in the data whole, or its head
    /// for what is made of the result later.
    pub(crate) fn show(
        &mut self,
        difference: &TextDifference,
        text: &mut String,
        data: &mut Map<String, Value>,
    ) {
        let TextDifference {
            added,
            removed,
            ranges,
            lines,
        } = difference;
        let ranges: Vec<Value> = ranges
            .iter()
            .map(|(start, end)| json!({ "start_line": start, "end_line": end }))
            .collect();
        data.insert("changed_ranges".into(), ranges.into());
        data.insert("added".into(), (*added).into());
        data.insert("removed".into(), (*removed).into());
        let shown = lines.get(..self.0).unwrap_or(lines).join("\n");
        if !shown.is_empty() {
            let _ = write!(text, "\n{shown}");
        }
        if let Some(more) = lines.len().checked_sub(self.0).filter(|more| *more > 0) {
            let _ = write!(text, "\n[{more} more lines of the diff are not shown.]");
            data.insert("truncated".into(), true.into());
            let head = shown.lines().take(DIFF_HEAD).collect::<Vec<_>>().join("\n");
            if !head.is_empty() {
                data.insert("diff_head".into(), head.into());
            }
        } else {
            data.insert("diff".into(), shown.into());
        }
        self.0 = self.0.saturating_sub(lines.len());
    }
}

/// The first lines of a new text as a diff shows them, for what is made of the result later.
pub(crate) fn beginning(text: &str) -> String {
    let shown = plain(text);
    let lines: Vec<_> = shown
        .lines()
        .take(MAX_DIFF)
        .map(|line| diff_line(&format!("+{line}")))
        .collect();
    lines.join("\n")
}

/// The side of a diff that is not there.
pub(crate) const NOWHERE: &str = "/dev/null";

/// A whole unified diff of two texts, old and new, character for character; with no line where a
/// file comes or goes empty.
pub(crate) fn whole_diff(names: (&str, &str), old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new)
        .unified_diff()
        .header(names.0, names.1)
        .to_string();
    if diff.is_empty() && names.0 != names.1 {
        format!("--- {}\n+++ {}\n", names.0, names.1)
    } else {
        diff
    }
}

/// Line numbers as part of a sentence.
pub(crate) fn list(lines: &[usize]) -> String {
    const SHOWN: usize = 20;
    let mut text = lines
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if lines.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// What is said when blocks matched only with white space ignored; `unit` begins the sentence.
pub(crate) fn tolerance(unit: &str, tolerant: &[usize]) -> Vec<String> {
    let sentence = || {
        format!(
            "{unit} {} fitted only with white space ignored: check the indentation below.",
            list(tolerant)
        )
    };
    (!tolerant.is_empty()).then(sentence).into_iter().collect()
}
