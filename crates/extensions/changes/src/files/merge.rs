//! Merges texts line by line, so that one of several changes can be removed from a file.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The error for two changes that cannot be merged, because they overlap or touch each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap;

/// Merges two changes to an indivisible value: returns the side that differs from `base`. Fails if
/// both sides changed the value in different ways.
pub(super) fn merge_value<T: PartialEq>(base: &T, ours: T, theirs: T) -> Result<T, Overlap> {
    if ours == *base || ours == theirs {
        Ok(theirs)
    } else if theirs == *base {
        Ok(ours)
    } else {
        Err(Overlap)
    }
}

/// Applies the changes of both sides to `base`, line by line. Fails if two changes have no
/// unchanged line between them, or if the content is binary.
pub(super) fn merge_lines(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Overlap> {
    if [base, ours, theirs].iter().any(|bytes| bytes.contains(&0)) {
        return Err(Overlap);
    }
    let base = split_lines(base);
    let ours = split_lines(ours);
    let theirs = split_lines(theirs);
    let mine = diff_hunks(&base, &ours);
    let other = diff_hunks(&base, &theirs);
    let mut mine = mine.iter().peekable();
    let mut other = other.iter().peekable();
    let mut merged = Vec::new();
    let mut at = 0;
    loop {
        let (hunk, side) = match (mine.peek(), other.peek()) {
            (None, None) => break,
            (Some(one), Some(two)) if one.touches(two) => {
                if one.old != two.old || ours[one.new.clone()] != theirs[two.new.clone()] {
                    return Err(Overlap);
                }
                other.next();
                (mine.next(), &ours)
            }
            (Some(one), Some(two)) if two.old.start < one.old.start => (other.next(), &theirs),
            (Some(_), _) => (mine.next(), &ours),
            (None, Some(_)) => (other.next(), &theirs),
        };
        let Some(hunk) = hunk else { break };
        merged.extend(
            base[at..hunk.old.start]
                .iter()
                .chain(&side[hunk.new.clone()])
                .copied()
                .flatten(),
        );
        at = hunk.old.end;
    }
    merged.extend(base[at..].iter().copied().flatten());
    Ok(merged)
}

/// A changed place in a text: a range of old lines and the range of new lines that replaces it.
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

impl Hunk {
    fn touches(&self, other: &Self) -> bool {
        self.old.start <= other.old.end && other.old.start <= self.old.end
    }
}

fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns the changed ranges between two texts, with adjacent changes joined.
fn diff_hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Patience, old, new) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let hunk = Hunk {
            old: op.old_range(),
            new: op.new_range(),
        };
        match hunks.last_mut() {
            Some(last) if last.old.end == hunk.old.start => {
                last.old.end = hunk.old.end;
                last.new.end = hunk.new.end;
            }
            _ => hunks.push(hunk),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(base: &str, ours: &str, theirs: &str) -> Option<String> {
        merge_lines(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())
            .ok()
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn text_merges_separate_changes() {
        let base = "1\n2\n3\n4\n5\n";
        assert_eq!(
            merged(base, "1\nB\n3\n4\n5\n", "1\n2\n3\n4\nE\n").as_deref(),
            Some("1\nB\n3\n4\nE\n")
        );
        assert_eq!(
            merged(base, "0\n1\n2\n3\n4\n5\n", "1\n2\n3\n5\n").as_deref(),
            Some("0\n1\n2\n3\n5\n")
        );
        assert_eq!(merged(base, base, "other\n").as_deref(), Some("other\n"));
    }

    #[test]
    fn text_does_not_merge_adjacent_changes() {
        let base = "1\n2\n3\n";
        assert_eq!(merged(base, "1\nB\n3\n", "1\nX\n3\n"), None);
        assert_eq!(
            merged(base, "1\nB\n3\n", "1\n2\nX\n"),
            None,
            "next to each other"
        );
        assert_eq!(
            merged(base, "1\n2\n3\nmine\n", "1\n2\n3\nother\n"),
            None,
            "both at the end"
        );
        assert_eq!(merged("", "mine\n", "other\n"), None);
    }

    #[test]
    fn text_applies_an_equal_change_of_both_sides_once() {
        assert_eq!(
            merged("1\n2\n", "1\nB\n", "1\nB\n").as_deref(),
            Some("1\nB\n")
        );
    }

    #[test]
    fn text_treats_a_missing_last_line_break_as_a_difference() {
        assert_eq!(
            merged("1\n2\n3", "A\n2\n3", "1\n2\n3\n").as_deref(),
            Some("A\n2\n3\n")
        );
    }

    #[test]
    fn text_does_not_merge_binary_content() {
        assert_eq!(
            merge_lines(b"1\n2\n3\n", b"A\n2\n3\n", b"1\n2\n\0\n"),
            Err(Overlap)
        );
    }

    #[test]
    fn value_merges_if_one_side_is_unchanged() {
        assert_eq!(merge_value(&1, 1, 2), Ok(2));
        assert_eq!(merge_value(&1, 2, 1), Ok(2));
        assert_eq!(merge_value(&1, 2, 2), Ok(2));
        assert_eq!(merge_value(&1, 2, 3), Err(Overlap));
    }

    proptest! {
        /// Undoing one of two separate edits leaves the result of the other edit alone.
        #[test]
        fn text_can_undo_one_of_two_separate_edits(
            lines in 12usize..40, first in 0usize..4, second in 6usize..10, (a, b) in (0usize..3, 0usize..3)
        ) {
            let base: Vec<String> = (0..lines).map(|line| format!("line {line}\n")).collect();
            let edit = |text: &[String], at: usize, count: usize, name: &str| {
                let new: Vec<String> = (0..count).map(|line| format!("{name} {line}\n")).collect();
                [&text[..at], &new, &text[at + 1..]].concat()
            };
            // The second edit is made first, because it does not move the position of the other.
            let with_second = edit(&base, second, b, "second");
            let with_both = edit(&with_second, first, a, "first");
            let with_first = edit(&base, first, a, "first");
            let join = |text: &[String]| text.concat().into_bytes();
            // `second` was made on top of `first`, which is undone.
            prop_assert_eq!(merge_lines(&join(&with_first), &join(&with_both), &join(&base)), Ok(join(&with_second)));
        }

        /// A merge with an unchanged side returns the other side.
        #[test]
        fn text_with_an_unchanged_side_returns_the_other(base in "[ab\n]{0,30}", other in "[ab\n]{0,30}") {
            prop_assert_eq!(merge_lines(base.as_bytes(), base.as_bytes(), other.as_bytes()), Ok(other.clone().into_bytes()));
            prop_assert_eq!(merge_lines(base.as_bytes(), other.as_bytes(), base.as_bytes()), Ok(other.into_bytes()));
        }
    }
}
