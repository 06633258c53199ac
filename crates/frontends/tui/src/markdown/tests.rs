use proptest::prelude::*;

use super::*;

const PAGE: &str = include_str!("fixtures/page.md");

fn text(rows: &[StyledLine]) -> String {
    rows.iter().map(|row| row.plain() + "\n").collect()
}

/// The page as it is once it has arrived in pieces of this many characters.
fn streamed(page: &str, columns: usize, piece: usize) -> Vec<StyledLine> {
    let mut stream = MarkdownStream::default();
    let chars: Vec<_> = page.chars().collect();
    let mut rows = Vec::new();
    for piece in chars.chunks(piece) {
        rows.extend(stream.push(&piece.iter().collect::<String>(), columns));
        stream.tail(columns);
    }
    rows.extend(stream.finish(columns));
    rows
}

#[test]
fn a_page_at_three_widths() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("page_{columns}"), text(&streamed(PAGE, columns, 7)));
    }
}

#[test]
fn it_does_not_matter_how_it_arrives() {
    let whole = streamed(PAGE, 60, usize::MAX >> 1);
    for piece in [1, 2, 5, 64] {
        assert_eq!(streamed(PAGE, 60, piece), whole, "in pieces of {piece}");
    }
}

#[test]
fn code_is_finished_line_by_line() {
    let mut stream = MarkdownStream::default();
    assert_eq!(
        text(&stream.push("Look:\n```rust\nfn a() {}\nfn b", 40)),
        "Look:\n\n  fn a() {}\n"
    );
    assert_eq!(text(&stream.tail(40)), "  fn b\n");
    assert_eq!(text(&stream.push("() {}\n```\ndone", 40)), "  fn b() {}\n");
    assert_eq!(text(&stream.finish(40)), "\ndone\n");
    assert!(stream.tail(40).is_empty());
}

#[test]
fn code_has_the_tones_of_its_language() {
    for page in [
        "```rust\nlet a = 1; // b\n```",
        "- item\n\n  ```rust\n  let a = 1; // b\n  ```",
    ] {
        let rows = streamed(page, 40, 3);
        let spans: Vec<_> = rows.iter().flat_map(StyledLine::spans).collect();
        assert!(
            spans
                .iter()
                .any(|span| span.text() == "let" && span.style() == TextStyle::Keyword),
            "{spans:?}"
        );
        assert!(
            spans
                .iter()
                .any(|span| span.text().contains("// b") && span.style() == TextStyle::Comment),
            "{spans:?}"
        );
    }
}

#[test]
fn a_fence_inside_of_a_longer_one_is_code() {
    let mut stream = MarkdownStream::default();
    assert_eq!(text(&stream.push("````\n```\n````\n", 40)), "  ```\n");
}

#[test]
fn a_link_shows_where_it_leads() {
    assert_eq!(
        text(&render("[example.com](https://evil.test)", 60)),
        "example.com (https://evil.test)\n"
    );
    assert_eq!(text(&render("<https://a.test>", 60)), "https://a.test\n");
}

#[test]
fn a_tail_stays_short_however_long_the_block_is() {
    let mut stream = MarkdownStream::default();
    stream.push(&"word ".repeat(200_000), 80);
    assert!(stream.tail(80).len() <= TAIL_BYTES / 40);
}

proptest! {
    #[test]
    fn rows_fit_whatever_it_is(page in "[-a#*_`~|> \\[\\]()<&\u{1b}\u{202e}日\\n0-9.]{0,200}", columns in 8usize..60, piece in 1usize..9) {
        let rows = streamed(&page, columns, piece);
        prop_assert!(rows.iter().all(|row| row.width() <= columns), "{:?}", text(&rows));
        let hidden = text(&rows).contains(['\u{1b}', '\u{202e}']);
        prop_assert!(!hidden);
    }
}
