use proptest::prelude::*;

use super::*;

#[test]
fn sanitize_borrows_plain_text() {
    assert!(matches!(
        sanitize("plain\ttext\nñ 日本 🦀\n"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn sanitize_removes_terminal_sequences() {
    for (given, shown) in [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2::1:2:3mtrue\x1b[m", "true"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Y3VybA==\x1b\\x", "x"),
        ("\x1bPq#0;2;0;0;0\n#0~~\x1b\\after", "after"),
        ("\x1b_Gf=100;AAAA\x1b\\after", "after"),
        ("\x1b(B\x1b=\x1b7text", "text"),
        ("\u{9b}31mred", "red"),
        ("\u{9d}0;title\u{9c}text", "text"),
        ("\x1b[2J\x1b[Htop", "top"),
        ("\x1b[?25lhidden cursor", "hidden cursor"),
    ] {
        assert_eq!(sanitize(given), shown, "{given:?}");
    }
}

#[test]
fn sanitize_shows_the_text_after_an_unterminated_sequence() {
    assert_eq!(sanitize("\x1b]0;title\nrm -rf /"), "␛]0;title\nrm -rf /");
    assert_eq!(sanitize("a\x1bPb"), "a␛Pb");
    assert_eq!(sanitize("\x1b]a\x1b[1mb"), "␛]ab");
    assert_eq!(sanitize("end\x1b"), "end␛");
}

#[test]
fn sanitize_shows_other_controls_as_symbols() {
    assert_eq!(sanitize("a\0b\x07c\x7fd"), "a␀b␇c␡d");
    assert_eq!(sanitize("a\u{85}b"), "a<U+0085>b");
}

#[test]
fn sanitize_applies_carriage_returns_as_a_terminal_does() {
    for (given, shown) in [
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"),
        ("a\r", "a"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("downloading\rdone", "doneloading"),
        ("downloading\r\x1b[Kdone\nnext", "done\nnext"),
        ("downloading\x1b[2K\rdone", "done"),
        ("12345\x1b[1G\x1b[0Kx", "x"),
        ("abc\x1b[2DX", "aXc"),
        ("b\x08bo\x08ol\x08ld\x08d", "bold"),
        ("日本\rx", "x 本"),
        ("ab\r日", "日"),
        ("abc\r\tX", "abc     X"),
        ("e\u{301}a\rx", "xa"),
        ("x\x1b[5Cy", "x     y"),
    ] {
        assert_eq!(sanitize(given), shown, "{given:?}");
    }
}

#[test]
fn sanitize_limits_lines_made_long_by_cursor_moves() {
    assert!(sanitize("\x1b[999999999999999999999Cx").len() < 300);
}

#[test]
fn sanitize_spells_out_invisible_characters() {
    assert_eq!(sanitize("a\u{202e}b\u{2066}c"), "a<U+202E>b<U+2066>c");
    assert_eq!(
        sanitize("zero\u{200b}width\u{feff}"),
        "zero<U+200B>width<U+FEFF>"
    );
    assert_eq!(sanitize("tag\u{e0041}"), "tag<U+E0041>");
    assert_eq!(sanitize("a\u{200d}b"), "a<U+200D>b");
    assert_eq!(sanitize("a\u{fe01}"), "a<U+FE01>");
}

#[test]
fn sanitize_keeps_joiners_and_variation_selectors_in_use() {
    for text in [
        "👩\u{200d}💻",
        "❤\u{fe0f}\u{200d}🔥",
        "می\u{200c}خواهم",
        "1\u{fe0f}\u{20e3}",
        "葛\u{e0100}",
    ] {
        assert_eq!(sanitize(text), text);
    }
}

#[test]
fn sanitize_bytes_replaces_invalid_utf8() {
    assert_eq!(sanitize_bytes(b"a\xff\x00b\x1b[1m"), "a\u{fffd}␀b");
}

/// Generates text that consists mostly of fragments of terminal sequences.
fn text_with_terminal_sequences() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\x1b".to_owned()),
        "[\\[\\]PX^_()0-9;?GKCDm\\\\]",
        "[\x00-\x1f\x7f\u{80}-\u{9f}]",
        "[\u{200b}-\u{200f}\u{202a}-\u{202e}\u{fe00}-\u{fe0f}\u{e0100}\u{301}]",
        "[a-z é日👩\n\t\r]",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn sanitize_leaves_no_control_or_reordering_characters(text in text_with_terminal_sequences()) {
        let shown = sanitize(&text);
        prop_assert!(!shown.chars().any(terminal::is_control), "{shown:?}");
        let reorders = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}');
        prop_assert!(!shown.chars().any(reorders), "{shown:?}");
    }

    #[test]
    fn sanitize_is_idempotent(text in text_with_terminal_sequences()) {
        let once = sanitize(&text).into_owned();
        prop_assert_eq!(sanitize(&once), once.as_str());
    }

    #[test]
    fn sanitize_bytes_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!sanitize_bytes(&bytes).chars().any(terminal::is_control));
    }
}

#[test]
fn reveal_shows_all_controls_and_invisible_characters() {
    assert_eq!(reveal_controls("plain\ttext\n"), "plain\ttext\n");
    assert_eq!(
        reveal_controls("a\u{8}b\u{7f}\u{85}c\r\n"),
        "a␈b␡<U+0085>c␍\n"
    );
    assert!(!reveal_controls("safe\u{202e}exe").contains('\u{202e}'));
    assert_eq!(reveal_controls("\u{1b}]0;title\u{7}x"), "␛]0;title␇x");
}
