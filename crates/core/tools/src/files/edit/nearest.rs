//! Explains to a model why its text is not in the file: names the most similar places and the
//! differences.

use std::collections::HashSet;
use std::fmt::Write as _;

use similar::TextDiff;

use super::blocks::Comparison;
use super::edit_report;
use super::lines::TextLine;
use crate::visible;

/// The maximum number of similar places that are shown.
const MAX_CANDIDATES: usize = 3;
/// The maximum number of lines that are compared character by character if the file contains no
/// line of the SEARCH text.
const MAX_COMPARED_LINES: usize = 2_000;
/// The minimum similarity of a line that is shown, between 0 and 1.
const MIN_SIMILARITY: f32 = 0.6;

/// The words that a tool's messages use for its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EditTerms {
    /// The name of the text to find, such as `SEARCH`.
    pub(crate) old: &'static str,
    /// The name of the replacement, at the beginning of a sentence, such as `The REPLACE part`.
    pub(crate) new: &'static str,
    /// The advice that follows if a message contains the whole file. Without advice, a small model
    /// repeats the call.
    pub(crate) next: &'static str,
}

/// Describes the places in the file that are most similar to `old`, as sentences that follow "not
/// in the file".
pub(crate) fn describe_nearest_places(
    lines: &[TextLine<'_>],
    old: &[&str],
    new: &[&str],
    terms: EditTerms,
) -> String {
    let mut hint = String::new();
    if let Some(line) = find_new_lines(lines, new) {
        let _ = write!(
            hint,
            " {} is already in the file at line {line}: the change may have been made before.",
            terms.new
        );
    }
    let mut candidates = find_candidates(lines, old);
    if candidates.is_empty() {
        if let Some(inside) = hint_partial_line(lines, old, terms) {
            return hint + &inside;
        }
        candidates.extend(find_similar_line(lines, old));
    }
    if candidates.is_empty() {
        return hint + &hint_nothing_similar(lines, terms.next);
    }
    hint.push_str(" Nearest places:");
    for candidate in candidates {
        let _ = write!(
            hint,
            "\n{}",
            describe_candidate(lines, old, &candidate, terms)
        );
    }
    hint
}

struct NearMatch {
    /// The index of the line of the file that corresponds to the first line of the SEARCH text.
    start: usize,
    equal: usize,
}

/// Returns the places where most lines are equal to lines of the SEARCH text, best first.
fn find_candidates(lines: &[TextLine<'_>], search: &[&str]) -> Vec<NearMatch> {
    let wanted: HashSet<&str> = search
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect();
    let mut found: Vec<NearMatch> = Vec::new();
    let mut seen = HashSet::new();
    for (at, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| wanted.contains(line.text.trim()))
    {
        // Every place at which this line would coincide with an equal line of SEARCH.
        for offset in (0..search.len()).filter(|offset| {
            search
                .get(*offset)
                .is_some_and(|one| one.trim() == line.text.trim())
        }) {
            if let Some(start) = at.checked_sub(offset)
                && seen.insert(start)
            {
                found.push(NearMatch {
                    start,
                    equal: count_equal_lines(lines, search, start),
                });
            }
        }
        if found.len() > 10_000 {
            break;
        }
    }
    found.sort_by_key(|candidate| (std::cmp::Reverse(candidate.equal), candidate.start));
    found.truncate(MAX_CANDIDATES);
    found
}

fn count_equal_lines(lines: &[TextLine<'_>], search: &[&str], start: usize) -> usize {
    let window = lines.get(start..).unwrap_or_default().iter();
    window
        .zip(search)
        .filter(|(line, wanted)| Comparison::Tolerant.lines_equal(line.text, wanted))
        .count()
}

/// Returns a hint if a line of the SEARCH text is part of a line of the file, or differs from such
/// a part only in case.
fn hint_partial_line(lines: &[TextLine<'_>], search: &[&str], terms: EditTerms) -> Option<String> {
    let wanted = search
        .iter()
        .map(|line| line.trim())
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    let folded = wanted.to_lowercase();
    let exact = lines.iter().any(|line| line.text.contains(wanted));
    let found: Vec<_> = lines
        .iter()
        .zip(1..)
        .filter(|(line, _)| {
            if exact {
                line.text.contains(wanted)
            } else {
                line.text.to_lowercase().contains(&folded)
            }
        })
        .collect();
    let (first, _) = found.first()?;
    let how = match (exact, search.len()) {
        (false, _) => " in other upper and lower case: copy it as it is there".to_owned(),
        (true, 1) => format!(
            ", and {} is compared with whole lines: give each line whole, as it is there",
            terms.old
        ),
        (true, _) => ": copy the lines from there".to_owned(),
    };
    let numbers: Vec<usize> = found.iter().map(|(_, number)| *number).collect();
    let place = if exact && first.text.trim() != wanted {
        "inside"
    } else {
        "in"
    };
    let lines_shown: Vec<_> = found
        .iter()
        .take(MAX_CANDIDATES)
        .map(|(line, number)| format!("\n- line {number} is `{}`", shorten_line(line.text)))
        .collect();
    let lines_shown = lines_shown.concat();
    Some(format!(
        " `{}` is {place} line {}{how}:{lines_shown}",
        shorten_line(wanted),
        edit_report::format_line_numbers(&numbers)
    ))
}

/// Returns the hint for text that resembles no line of the file. If the file is short, the hint
/// lists all its lines.
fn hint_nothing_similar(lines: &[TextLine<'_>], next: &str) -> String {
    const MAX_WHOLE_LINES: usize = 12;
    if lines.is_empty() || lines.len() > MAX_WHOLE_LINES {
        return " Nothing similar was found: read the file and copy the lines from there."
            .to_owned();
    }
    let all: Vec<_> = lines.iter().map(|line| shorten_line(line.text)).collect();
    format!(
        " Nothing similar was found. The whole file is:\n{}{next}",
        all.join("\n")
    )
}

/// Shortens a line and makes its control characters visible, for use in a sentence.
fn shorten_line(line: &str) -> String {
    visible::prefix_within(&visible::reveal_line(line), 160).to_owned()
}

/// Returns the line of the file that is most similar to the first SEARCH line that contains letters
/// or digits.
fn find_similar_line(lines: &[TextLine<'_>], search: &[&str]) -> Option<NearMatch> {
    let (offset, wanted) = search
        .iter()
        .enumerate()
        .find(|(_, line)| line.chars().any(char::is_alphanumeric))?;
    let wanted = visible::prefix_within(wanted.trim(), 200);
    lines
        .iter()
        .take(MAX_COMPARED_LINES)
        .enumerate()
        .map(|(at, line)| {
            (
                at,
                TextDiff::from_chars(visible::prefix_within(line.text.trim(), 200), wanted).ratio(),
            )
        })
        .filter(|(_, ratio)| *ratio >= MIN_SIMILARITY)
        .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))
        .map(|(at, _)| NearMatch {
            start: at.saturating_sub(offset),
            equal: 0,
        })
}

fn describe_candidate(
    lines: &[TextLine<'_>],
    search: &[&str],
    candidate: &NearMatch,
    terms: EditTerms,
) -> String {
    let &NearMatch { start, equal } = candidate;
    let end = (start + search.len()).min(lines.len());
    let place = if end > start + 1 {
        format!("lines {}-{end}", start + 1)
    } else {
        format!("line {}", start + 1)
    };
    let mut text = format!("- {place} ({equal} of {} lines agree)", search.len());
    let differs =
        search
            .iter()
            .enumerate()
            .find_map(|(offset, wanted)| match lines.get(start + offset) {
                Some(line) if Comparison::Tolerant.lines_equal(line.text, wanted) => None,
                other => Some((start + offset + 1, other.map(|line| line.text), wanted)),
            });
    match differs {
        Some((number, Some(file), wanted)) => {
            let _ = write!(
                text,
                "; line {number} is `{}`, {} has `{}`",
                shorten_line(file),
                terms.old,
                shorten_line(wanted)
            );
        }
        Some((_, None, wanted)) => {
            let _ = write!(text, "; the file ends before `{}`", shorten_line(wanted));
        }
        None => {
            let spaced = |line: &str| shorten_line(&line.replace('\t', "\\t"));
            let differs = search.iter().zip(lines.iter().skip(start)).zip(start + 1..);
            if let Some(((wanted, line), number)) = differs
                .into_iter()
                .find(|((wanted, line), _)| line.text != **wanted)
            {
                let _ = write!(
                    text,
                    "; line {number} differs in white space: it is `{}`, {} has `{}`",
                    spaced(line.text),
                    terms.old,
                    spaced(wanted)
                );
            }
        }
    }
    text
}

/// Returns the number of the line at which the file already contains all new lines. Returns `None`
/// if it does not, or if the new lines are trivial.
fn find_new_lines(lines: &[TextLine<'_>], new: &[&str]) -> Option<usize> {
    if !new.iter().any(|line| line.trim().len() > 3) {
        return None;
    }
    lines
        .windows(new.len())
        .position(|window| window.iter().zip(new).all(|(line, new)| line.text == *new))
        .map(|at| at + 1)
}
