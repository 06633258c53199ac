use proptest::prelude::*;

use super::*;

const SMALL: CutLimits = CutLimits {
    lines: 5,
    bytes: 1_000,
};

#[test]
fn cut_lines_keeps_text_within_the_limits() {
    let cut = cut_lines("a\nb\n", SMALL);
    assert_eq!(cut.text, "a\nb\n");
    assert!(!cut.is_cut());
    assert_eq!((cut.total_lines, cut.total_bytes), (2, 4));
    assert_eq!(cut_lines("", SMALL).total_lines, 0);
    assert_eq!(cut_lines("a", SMALL).total_lines, 1);
}

#[test]
fn cut_lines_keeps_head_and_tail() {
    let cut = cut_lines("1\n2\n3\n4\n5\n6\n7", SMALL);
    assert_eq!(cut.text, "1\n2\n[... 3 lines (6 bytes) omitted ...]\n6\n7");
    assert_eq!(
        (cut.total_lines, cut.omitted_lines, cut.omitted_bytes),
        (7, 3, 6)
    );
}

#[test]
fn cut_lines_cuts_inside_one_huge_line() {
    let cut = cut_lines(&"x".repeat(50_000), SMALL);
    assert_eq!(cut.omitted_lines, 0);
    assert_eq!(cut.omitted_bytes, 50_000 - 900);
    assert!(
        cut.text
            .contains("\n[... 49,100 bytes of a long line omitted ...]\n")
    );
}

#[test]
fn cut_lines_shows_part_of_a_huge_line_after_a_short_one() {
    let cut = cut_lines(&format!("short\n{}", "x".repeat(50_000)), SMALL);
    assert!(cut.text.starts_with("short\nxxx"));
    assert!(cut.text.ends_with("xxx"));
    assert_eq!(cut.omitted_lines, 0);
}

#[test]
fn cut_lines_with_tiny_limits_leaves_the_marker() {
    let cut = cut_lines("a\nb\nc", CutLimits { lines: 1, bytes: 0 });
    assert_eq!(cut.text, "[... 3 lines (5 bytes) omitted ...]\n");
}

#[test]
fn cut_ends_counts_the_gap_as_omitted() {
    let gap = Gap {
        newlines: 1_000,
        bytes: 70_000,
    };
    let cut = cut_ends("first\npar", gap, "tial\nlast\n", SMALL);
    assert_eq!(
        cut.text,
        "first\npar\n[... 999 lines (70,000 bytes) omitted ...]\ntial\nlast\n"
    );
    assert_eq!(cut.total_lines, 1_003);
}

fn lines_of(text: &str) -> u64 {
    text.lines().count() as u64
}

fn ragged_text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![4 => "[a-zé日]{0,6}\n", 1 => "[a-zé日]{50,200}", 1 => Just("\n".to_owned())],
        0..60,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn cut_lines_keeps_limits_and_counts(text in ragged_text(), lines in 0usize..20, bytes in 0usize..600) {
        let cut = cut_lines(&text, CutLimits { lines, bytes });
        prop_assert_eq!(cut.total_bytes, text.len() as u64);
        prop_assert_eq!(cut.total_lines, lines_of(&text));
        prop_assert!(cut.text.len() <= bytes.max(MARKER_BYTES), "{} bytes of {}", cut.text.len(), bytes);
        prop_assert!(lines_of(&cut.text) <= lines.max(1) as u64);
        if cut.is_cut() {
            let marker = format_marker(cut.omitted_lines, cut.omitted_bytes);
            let (head, tail) = cut.text.split_once(&format!("{marker}\n")).unwrap();
            let head = if text.starts_with(head) { head } else { head.strip_suffix('\n').unwrap() };
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            // The text before the marker may end in an added line break that is also the one that
            // was cut off.
            let shown = text.len() as u64 - cut.omitted_bytes;
            let seen = (head.len() + tail.len()) as u64;
            prop_assert!(seen == shown || seen == shown + 1);
        } else {
            prop_assert_eq!(&cut.text, &text);
        }
    }

    #[test]
    fn cut_ends_without_a_gap_equals_cut_lines(text in ragged_text(), at in 0usize..400, lines in 0usize..20) {
        let at = text.floor_char_boundary(at.min(text.len()));
        let limits = CutLimits { lines, bytes: 300 };
        prop_assert_eq!(cut_ends(&text[..at], Gap::default(), &text[at..], limits), cut_lines(&text, limits));
    }

    #[test]
    fn cut_lines_counts_omitted_whole_lines(count in 30u64..200) {
        let text = "line\n".repeat(usize::try_from(count).unwrap());
        let cut = cut_lines(&text, CutLimits { lines: 11, bytes: 10_000 });
        prop_assert_eq!(cut.omitted_lines, count - 10);
    }
}
