//! Replaces a piece of text that may begin and end anywhere in a line, as a pure function.
//!
//! A model writes every line end as a line feed. The text is searched in that form and changed in
//! its original form: every byte outside the replaced pieces is kept, and new lines get the line
//! ends of the surrounding lines.

use super::lines::{
    TextLine, has_cr_line_ends, line_end_near, restore_carriage_returns, split_lines,
};
use super::nearest::{self, EditTerms};

/// Controls which occurrences of a text are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrences {
    /// The only occurrence. Several occurrences are an error.
    Only,
    /// All occurrences. At least one is required.
    All,
}

/// The reason why a string could not be replaced. Lines are numbered from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StringMisfit {
    NotFound { hint: String },
    Ambiguous { lines: Vec<usize> },
}

/// Replaces a string. Returns the new text and the number of replacements. Errors use the names in
/// `terms`.
pub(crate) fn replace_text(
    text: &str,
    (old, new): (&str, &str),
    which: Occurrences,
    terms: EditTerms,
) -> Result<(String, usize), StringMisfit> {
    let lines = split_lines(text);
    let plain = NormalizedText::from_lines(&lines);
    let old = unify_line_ends(old, text);
    let new = unify_line_ends(new, text);
    let places: Vec<usize> = plain.text.match_indices(&old).map(|(at, _)| at).collect();
    match (places.as_slice(), which) {
        ([], _) => {
            let wanted: Vec<&str> = old.lines().collect();
            let replacement: Vec<&str> = new.lines().collect();
            return Err(StringMisfit::NotFound {
                hint: nearest::describe_nearest_places(&lines, &wanted, &replacement, terms),
            });
        }
        ([_, _, ..], Occurrences::Only) => {
            return Err(StringMisfit::Ambiguous {
                lines: places.iter().map(|at| plain.line_at(*at) + 1).collect(),
            });
        }
        (_, Occurrences::Only | Occurrences::All) => {}
    }
    let mut out = String::with_capacity(text.len() + new.len());
    let mut done = 0;
    for at in &places {
        let start = plain.offset_in_file(*at);
        let end = plain.offset_in_file(at + old.len());
        out.push_str(text.get(done..start).unwrap_or_default());
        let ending = line_end_near(&lines, plain.line_at(*at));
        if ending == "\n" {
            out.push_str(&new);
        } else {
            out.push_str(&new.replace('\n', ending));
        }
        done = end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok((out, places.len()))
}

/// Converts all line ends to `\n`, because a model may copy other line ends from a file.
fn unify_line_ends(text: &str, file: &str) -> String {
    let text = restore_carriage_returns(&text.replace("\r\n", "\n"), file);
    if has_cr_line_ends(file) {
        text.replace('\r', "\n")
    } else {
        text
    }
}

/// A text in which every line ends in `\n`, with a mapping from its offsets to offsets in the file.
struct NormalizedText {
    text: String,
    /// The offset in this text at which each line starts.
    starts: Vec<usize>,
    /// The offsets, in this text, of line ends that have two bytes in the file.
    longer: Vec<usize>,
}

impl NormalizedText {
    fn from_lines(lines: &[TextLine<'_>]) -> Self {
        let mut plain = Self {
            text: String::new(),
            starts: Vec::with_capacity(lines.len()),
            longer: Vec::new(),
        };
        for line in lines {
            plain.starts.push(plain.text.len());
            plain.text.push_str(line.text);
            if line.end == "\r\n" {
                plain.longer.push(plain.text.len());
            }
            if !line.end.is_empty() {
                plain.text.push('\n');
            }
        }
        plain
    }

    /// Returns the index of the line that contains an offset in this text.
    fn line_at(&self, at: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= at)
            .saturating_sub(1)
    }

    /// Converts an offset in this text to the offset in the file.
    fn offset_in_file(&self, at: usize) -> usize {
        at + self.longer.partition_point(|end| *end < at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: EditTerms = EditTerms {
        old: "`old`",
        new: "`new`",
        next: "",
    };

    fn replace_only(text: &str, old: &str, new: &str) -> String {
        replace_text(text, (old, new), Occurrences::Only, WORDS)
            .unwrap()
            .0
    }

    #[test]
    fn replace_changes_a_part_of_a_line() {
        assert_eq!(
            replace_only("let x = 1;\n", "x = 1", "y = 2"),
            "let y = 2;\n"
        );
        assert_eq!(replace_only("a\nb\nc\n", "\nb", ""), "a\nc\n");
        assert_eq!(replace_only("a", "a", "b\n"), "b\n");
    }

    #[test]
    fn replace_uses_the_line_ends_of_the_file() {
        assert_eq!(
            replace_only("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"),
            "x\r\ny\r\nz\r\nc\r\n"
        );
        assert_eq!(replace_only("a\r\nb\r\n", "\r\nb", "\r\nB"), "a\r\nB\r\n");
        assert_eq!(replace_only("a\rb\rc", "b\n", "x\ny\n"), "a\rx\ry\rc");
        assert_eq!(
            replace_only("a\nb\r\nc\n", "b\n", "x\ny\n"),
            "a\nx\r\ny\r\nc\n"
        );
    }

    #[test]
    fn replace_counts_places_and_can_change_all() {
        assert_eq!(
            replace_text("a b\na\n", ("a", "c"), Occurrences::All, WORDS),
            Ok(("c b\nc\n".to_owned(), 2))
        );
        assert_eq!(
            replace_text("a b\na\n", ("a", "c"), Occurrences::Only, WORDS),
            Err(StringMisfit::Ambiguous { lines: vec![1, 2] })
        );
        assert!(matches!(
            replace_text("a\n", ("b", "c"), Occurrences::All, WORDS),
            Err(StringMisfit::NotFound { .. })
        ));
    }

    proptest! {
        #[test]
        fn replace_keeps_all_bytes_outside_the_match(
            before in "([ab]{0,2}(\n|\r\n)){0,4}[ab]{0,2}",
            after in "[ab]{0,2}((\n|\r\n)[ab]{0,2}){0,4}",
            new in "[xy\n]{0,5}",
        ) {
            let text = format!("{before}<old>{after}");
            let out = replace_only(&text, "<old>", &new);
            prop_assert!(out.starts_with(&before) && out.ends_with(&after), "{out:?}");
            let middle = &out[before.len()..out.len() - after.len()];
            prop_assert_eq!(middle.replace("\r\n", "\n"), new);
        }
    }
}
