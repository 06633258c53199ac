use proptest::prelude::*;

use super::*;

const PAGE: &str = include_str!("fixtures/page.md");

fn text(rows: &[StyledLine]) -> String {
    rows.iter().map(|row| row.plain() + "\n").collect()
}

/// Draws a page that arrives in pieces of this many characters.
fn streamed(page: &str, columns: usize, piece: usize) -> Vec<StyledLine> {
    let mut stream = MarkdownStream::default();
    let chars: Vec<_> = page.chars().collect();
    let mut rows = Vec::new();
    for piece in chars.chunks(piece) {
        rows.extend(stream.push(&piece.iter().collect::<String>(), columns));
        stream.draw_tail(columns);
    }
    rows.extend(stream.finish(columns));
    rows
}

#[test]
fn markdown_page_at_three_widths() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("page_{columns}"), text(&streamed(PAGE, columns, 7)));
    }
}

#[test]
fn stream_is_independent_of_chunks() {
    let whole = streamed(PAGE, 60, usize::MAX >> 1);
    for piece in [1, 2, 5, 64] {
        assert_eq!(streamed(PAGE, 60, piece), whole, "in pieces of {piece}");
    }
}

#[test]
fn stream_finishes_code_line_by_line() {
    let mut stream = MarkdownStream::default();
    assert_eq!(
        text(&stream.push("Look:\n```rust\nfn a() {}\nfn b", 40)),
        "Look:\n\n  fn a() {}\n"
    );
    assert_eq!(text(&stream.draw_tail(40)), "  fn b\n");
    assert_eq!(text(&stream.push("() {}\n```\ndone", 40)), "  fn b() {}\n");
    assert_eq!(text(&stream.finish(40)), "\ndone\n");
    assert!(stream.draw_tail(40).is_empty());
}

#[test]
fn code_is_highlighted_by_language() {
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
fn fence_inside_a_longer_fence_is_code() {
    let mut stream = MarkdownStream::default();
    assert_eq!(text(&stream.push("````\n```\n````\n", 40)), "  ```\n");
}

#[test]
fn link_shows_its_url() {
    assert_eq!(
        text(&draw_block("[example.com](https://evil.test)", 60)),
        "example.com (https://evil.test)\n"
    );
    assert_eq!(
        text(&draw_block("<https://a.test>", 60)),
        "https://a.test\n"
    );
}

#[test]
fn tail_is_bounded_for_long_blocks() {
    let mut stream = MarkdownStream::default();
    stream.push(&"word ".repeat(200_000), 80);
    assert!(stream.draw_tail(80).len() <= TAIL_BYTES / 40);
}

proptest! {
    #[test]
    fn markdown_rows_fit_any_text(page in "[-a#*_`~|> \\[\\]()<&\u{1b}\u{202e}日\\n0-9.]{0,200}", columns in 8usize..60, piece in 1usize..9) {
        let rows = streamed(&page, columns, piece);
        prop_assert!(rows.iter().all(|row| row.width() <= columns), "{:?}", text(&rows));
        let hidden = text(&rows).contains(['\u{1b}', '\u{202e}']);
        prop_assert!(!hidden);
    }
}
