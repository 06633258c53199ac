//! Reports a change of a text: a bounded unified diff, the number of changed lines, and their
//! ranges.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value, json};
use similar::{ChangeTag, DiffTag, TextDiff};

use super::drafts::UnitCount;
use super::lines;
use crate::visible;

/// The maximum number of diff lines in one result.
const MAX_DIFF_LINES: usize = 50;
/// The number of leading lines of a longer diff that the result's data contains.
const DIFF_HEAD_LINES: usize = 20;
/// The maximum length of a diff line, in bytes.
const MAX_DIFF_LINE_BYTES: usize = 500;

/// The difference between the old and the new text of a file.
pub(crate) struct TextDifference {
    added: usize,
    removed: usize,
    /// The changed lines of the new text, as the first and the last line number, counting from 1. A
    /// pure deletion is an empty range, whose last line precedes its first.
    ranges: Vec<(usize, usize)>,
    lines: Vec<String>,
}

impl TextDifference {
    pub(crate) fn from_texts(old: &str, new: &str) -> Self {
        let old = normalize_text(old);
        let new = normalize_text(new);
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
                .map(cut_diff_line)
                .collect(),
        }
    }
}

impl fmt::Display for TextDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} added, {} removed",
            UnitCount(self.added, "line"),
            self.removed
        )
    }
}

/// Normalizes a text for comparison and display: every line ends in `\n`, and other control
/// characters become visible symbols.
fn normalize_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in lines::split_lines(text) {
        plain.push_str(&visible::reveal_line(line.text));
        if !line.end.is_empty() {
            plain.push('\n');
        }
    }
    plain
}

/// Cuts a diff line that is longer than [`MAX_DIFF_LINE_BYTES`].
fn cut_diff_line(line: &str) -> String {
    let cut = visible::prefix_within(line, MAX_DIFF_LINE_BYTES);
    if cut.len() < line.len() {
        format!("{cut} …")
    } else {
        line.to_owned()
    }
}

/// The number of diff lines that the text of one result can still contain.
pub(crate) struct DiffBudget(usize);

impl Default for DiffBudget {
    fn default() -> Self {
        Self(MAX_DIFF_LINES)
    }
}

impl DiffBudget {
    /// Adds a diff to `text`, cut to the remaining budget. Later rounds are compressed from `data`,
    /// so `data` gets the complete diff, or its head if the diff is too long.
    pub(crate) fn add_diff(
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
            let head = shown
                .lines()
                .take(DIFF_HEAD_LINES)
                .collect::<Vec<_>>()
                .join("\n");
            if !head.is_empty() {
                data.insert("diff_head".into(), head.into());
            }
        } else {
            data.insert("diff".into(), shown.into());
        }
        self.0 = self.0.saturating_sub(lines.len());
    }
}

/// Returns the first lines of a new text in diff format. They are part of the result's data, from
/// which later rounds are compressed.
pub(crate) fn diff_new_text(text: &str) -> String {
    let shown = normalize_text(text);
    let lines: Vec<_> = shown
        .lines()
        .take(MAX_DIFF_LINES)
        .map(|line| cut_diff_line(&format!("+{line}")))
        .collect();
    lines.join("\n")
}

/// The file name in the header of a diff for the side without a file.
pub(crate) const DEV_NULL: &str = "/dev/null";

/// Returns the complete unified diff of two texts, without normalizing them. If only the file names
/// differ, the diff consists of its header.
pub(crate) fn format_diff(names: (&str, &str), old: &str, new: &str) -> String {
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

/// Formats line numbers as part of a sentence. Only the first numbers of a long list are included.
pub(crate) fn format_line_numbers(lines: &[usize]) -> String {
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

/// Returns a warning about blocks that matched only with white space ignored. `unit` begins the
/// sentence.
pub(crate) fn warn_tolerant_matches(unit: &str, tolerant: &[usize]) -> Vec<String> {
    let sentence = || {
        format!(
            "{unit} {} fitted only with white space ignored: check the indentation below.",
            format_line_numbers(tolerant)
        )
    };
    (!tolerant.is_empty()).then(sentence).into_iter().collect()
}
