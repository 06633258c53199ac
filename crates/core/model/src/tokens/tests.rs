//! Tests of the token counts. The reference is the `tiktoken` crate; the numbers in the fixture
//! come from OpenAI's implementation.

use std::fs;
use std::path::{Path, PathBuf};

use haft_types::TokenCounter;
use proptest::prelude::*;

use super::merge::{MergeResult, Merger, merge_short};
use super::split::TokenPieces;
use super::{O200k, table};

fn reference() -> &'static tiktoken::CoreBpe {
    tiktoken::get_encoding("o200k_base").expect("the reference has this vocabulary")
}

/// True if the reference is known to be wrong: its fast path does not treat `'ſ` as a contraction.
/// The fixture is correct.
fn is_miscounted_by_reference(text: &str) -> bool {
    text.contains("'ſ")
}

fn expect_equal(text: &str) {
    assert_eq!(
        O200k.count_text(text) as usize,
        reference().count(text),
        "tokens of {text:?}"
    );
}

#[test]
fn rank_finds_every_token() {
    for rank in 0..199_998 {
        assert_eq!(table::token_rank(&reference().decode(&[rank])), Some(rank));
    }
}

#[test]
fn rank_is_none_for_other_bytes() {
    for bytes in [
        b"".as_slice(),
        b"zqxj",
        b"\xff\xff\xff",
        b"hello world",
        &[b' '; 5000],
    ] {
        assert_eq!(table::token_rank(bytes), None, "{bytes:?}");
    }
}

#[test]
fn o200k_counts_the_fixture_texts_as_recorded() {
    #[derive(serde::Deserialize)]
    struct Case {
        text: String,
        tokens: u32,
    }
    let fixture = include_str!("../../fixtures/tokens/nasty.json");
    let cases: Vec<Case> = serde_json::from_str(fixture).expect("the fixture is JSON");
    assert!(cases.len() > 70);
    for Case { text, tokens } in cases {
        assert_eq!(O200k.count_text(&text), tokens, "tokens of {text:?}");
        if !is_miscounted_by_reference(&text) {
            expect_equal(&text);
        }
    }
}

#[test]
fn o200k_counts_this_repository_as_the_reference_does() {
    let mut files = Vec::new();
    collect_text_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut files,
    );
    assert!(files.len() > 10, "found only {files:?}");
    for file in files {
        // Some fixtures are deliberately not UTF-8.
        let Ok(text) = String::from_utf8(fs::read(&file).expect("our files are readable")) else {
            continue;
        };
        // This folder contains the character that the reference miscounts.
        expect_equal(&text.replace('ſ', "s"));
    }
}

/// Collects all sources, prompts and fixtures below `folder`.
fn collect_text_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            collect_text_files(&path, files);
        } else if path
            .extension()
            .is_some_and(|ext| ext == "rs" || ext == "md" || ext == "toml" || ext == "json")
        {
            files.push(path);
        }
    }
}

#[test]
fn o200k_splits_characters_of_every_block_as_the_reference_does() {
    // Each character follows a letter of either case, a space, a digit, a sign, a mark and a line
    // break, because every class of character splits differently. Short texts, because the
    // reference is slow for long ones that are not ASCII.
    for point in (0..=char::MAX as u32).step_by(131) {
        if let Some(character) = char::from_u32(point) {
            let text: String = ["a", "B", " ", "1", "!", "\u{301}", "漢", "\n"]
                .iter()
                .fold(String::new(), |text, near| {
                    text + near + character.encode_utf8(&mut [0; 4])
                });
            expect_equal(&text);
        }
    }
}

#[test]
fn merger_takes_linear_steps_for_repetitive_text() {
    for pattern in [
        "a",
        "=",
        " ",
        "ab",
        "\u{301}",
        "漢",
        "aaaaaaaaab",
        "QUJD",
        "the",
    ] {
        for len in [1_000, 16_000] {
            let piece = pattern.repeat(len / pattern.len());
            let MergeResult { tokens, steps } = Merger::default().merge_long(piece.as_bytes());
            assert!(tokens > 0);
            // One join per adjacent pair at the start, and at most two more for each join made.
            assert!(
                steps as usize <= 3 * piece.len(),
                "{steps} steps for {} bytes of {pattern:?}",
                piece.len()
            );
        }
    }
}

#[test]
fn o200k_counts_long_pieces_as_the_reference_does() {
    for text in [
        "a".repeat(100_000),
        "=".repeat(20_001),
        " ".repeat(19_999),
        "xyzzy".repeat(4_000),
        "漢字".repeat(2_000),
    ] {
        assert_eq!(O200k.count_text(&text) as usize, reference().count(&text));
    }
}

#[test]
fn o200k_is_off_by_at_most_a_token_per_cut_beyond_the_limit() {
    let text = "abcabcd".repeat(40_000);
    let ours = O200k.count_text(&text);
    let exact = reference().count(&text) as u32;
    assert!(ours.abs_diff(exact) <= 1, "{ours} against {exact}");
}

/// Generates texts of characters that the pattern treats specially, in any order.
fn texts() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        4 => "[a-z]{1,8}",
        2 => "[A-Z]{1,4}",
        2 => "[A-Za-z]{1,12}",
        2 => "[0-9]{1,12}",
        2 => "[ \t\r\n\u{b}\u{a0}\u{3000}\u{2028}\u{85}]{1,5}",
        2 => "[!-/:-@\\[-`{-~]{1,5}",
        2 => "'([sStTmMdD]|[rRvV][eE]|[lL]{1,2})",
        1 => "\\p{M}{1,3}",
        1 => "\\p{Lu}|\\p{Lt}|\\p{Lm}|\\p{Lo}|\\p{Ll}",
        1 => "\\p{N}{1,4}",
        1 => "[一-龥ぁ-ヿ가-힣]{1,6}",
        1 => "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{200f}\u{feff}]{1,2}",
        1 => prop::sample::select(vec!["👨‍👩‍👧", "👩🏽‍💻", "🏳️‍🌈", "🇩🇪", "<|endoftext|>", "\r\n/", "e\u{301}"]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn o200k_counts_generated_texts_as_the_reference_does(text in texts()) {
        prop_assume!(!is_miscounted_by_reference(&text));
        prop_assert_eq!(O200k.count_text(&text) as usize, reference().count(&text));
    }

    #[test]
    fn o200k_counts_arbitrary_strings_as_the_reference_does(text in any::<String>()) {
        prop_assert_eq!(O200k.count_text(&text) as usize, reference().count(&text));
    }

    #[test]
    fn token_pieces_concatenate_to_the_text(text in texts()) {
        prop_assert!(TokenPieces::new(&text).all(|piece| !piece.is_empty()));
        prop_assert_eq!(TokenPieces::new(&text).collect::<String>(), text);
    }

    #[test]
    fn merger_short_and_long_agree(piece in "[a-e]{2,90}|[A-Za-z0-9+/]{2,90}|[ =\n-]{2,90}|[一-丟]{1,28}") {
        prop_assert_eq!(Merger::default().merge_long(piece.as_bytes()).tokens, merge_short(piece.as_bytes()));
    }
}
