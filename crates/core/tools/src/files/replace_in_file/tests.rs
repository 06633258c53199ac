use std::fs;
use std::path::Path;

use haft_tool::FileChange;
use haft_types::ChangeKind;
use proptest::prelude::*;
use serde_json::json;

use super::parse::{SearchReplaceBlock, parse_diff};
use super::*;
use crate::files::read_file;
use crate::testing::Bench;

/// Each folder contains a file and a `diff`; applying it gives `expected` byte for byte, or `error`
/// and an unchanged file.
#[tokio::test]
async fn replace_in_file_matches_the_fixtures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/files/replace_in_file/fixtures");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(
        cases.len() >= 60,
        "only {} fixtures were found",
        cases.len()
    );
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let bench = Bench::new();
        let input = fs::read(case.join("input")).unwrap();
        bench.write("file", &input);
        let mut arguments =
            json!({"path": "file", "diff": fs::read_to_string(case.join("diff")).unwrap()});
        if let Ok(matching) = fs::read_to_string(case.join("match")) {
            arguments["match"] = matching.trim().into();
        }
        let output = bench.run(&define_tool(), arguments).await;
        if let Ok(expected) = fs::read(case.join("expected")) {
            assert!(
                output.envelope.error.is_none(),
                "{name}: {}",
                output.envelope.text
            );
            assert_eq!(
                bench.read("file").escape_ascii().to_string(),
                expected.escape_ascii().to_string(),
                "{name}"
            );
            let fallback = output.envelope.data.get("fallback").is_some();
            assert_eq!(fallback, name.starts_with("whitespace-fallback"), "{name}");
        } else {
            let expected = fs::read_to_string(case.join("error")).unwrap_or_default();
            let error = output.envelope.error.unwrap();
            assert_eq!(
                format!("{}: {}\n", error.code, error.message),
                expected,
                "{name}"
            );
            assert_eq!(bench.read("file"), input, "{name}: the file was touched");
        }
        assert_eq!(bench.files(), ["file"], "{name}");
    }
}

const TWO_TO_THREE: &str = "<<<<<<< SEARCH\ntwo\n=======\nthree\n>>>>>>> REPLACE";

#[tokio::test]
async fn replace_in_file_result_shows_the_diff_and_changed_ranges() {
    let bench = Bench::new();
    bench.write("a", "one\ntwo\nend\n");
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "diff": TWO_TO_THREE}))
        .await;
    let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+three\n end";
    assert_eq!(
        output.envelope.text,
        format!("Changed `a`: 1 block applied, 1 line added, 1 removed.\n{diff}")
    );
    assert_eq!(
        output.envelope.data,
        json!({
            "path": "a", "change": "edited", "applied": 1, "changed_ranges": [{"start_line": 2, "end_line": 2}],
            "added": 1, "removed": 1, "diff": diff,
        })
    );
    assert_eq!(
        output.changes,
        [FileChange {
            path: bench.path("a"),
            kind: ChangeKind::Modified
        }]
    );
    assert_eq!(output.envelope.context["file"]["size"], 14);
}

#[tokio::test]
async fn replace_in_file_limits_a_large_diff_and_omits_it_from_the_data() {
    let bench = Bench::new();
    bench.write("a", "old\n");
    let new = "new\n".repeat(100);
    let diff = format!("<<<<<<< SEARCH\nold\n=======\n{new}>>>>>>> REPLACE");
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "diff": diff}))
        .await;
    assert!(
        output
            .envelope
            .text
            .ends_with("[52 more lines of the diff are not shown.]"),
        "{}",
        output.envelope.text
    );
    assert_eq!(output.envelope.text.lines().count(), 52);
    assert_eq!(output.envelope.data.get("diff"), None);
    let head = output.envelope.data["diff_head"].as_str().unwrap();
    assert!(
        head.lines().count() == 20 && head.starts_with("@@ -1 +1,100 @@\n-old\n+new\n"),
        "{head}"
    );
    assert_eq!(
        output.envelope.data["changed_ranges"],
        json!([{"start_line": 1, "end_line": 100}])
    );
}

#[tokio::test]
async fn replace_in_file_edits_unread_files_but_not_changed_ones() {
    let bench = Bench::new();
    bench.write("a", "two\n");
    bench
        .ok(&define_tool(), json!({"path": "a", "diff": TWO_TO_THREE}))
        .await;
    // A file that the tool edited counts as read.
    let back = "<<<<<<< SEARCH\nthree\n=======\ntwo\n>>>>>>> REPLACE";
    bench
        .ok(&define_tool(), json!({"path": "a", "diff": back}))
        .await;
    bench.write("a", "two\nmore\n");
    let (code, _) = bench
        .err(&define_tool(), json!({"path": "a", "diff": TWO_TO_THREE}))
        .await;
    assert_eq!(code, "changed_since_read");
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    bench
        .ok(&define_tool(), json!({"path": "a", "diff": TWO_TO_THREE}))
        .await;
    assert_eq!(bench.read("a"), b"three\nmore\n");
}

#[tokio::test]
async fn replace_in_file_rejects_a_missing_file() {
    let bench = Bench::new();
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "a", "diff": TWO_TO_THREE}))
            .await
            .0,
        "not_found"
    );
    assert!(bench.files().is_empty());
}

fn write_block(block: &SearchReplaceBlock) -> String {
    let SearchReplaceBlock { search, replace } = block;
    format!(
        "<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n",
        join(search, "\n"),
        join(replace, "\n")
    )
}

/// A file in pieces: `None` keeps the lines, `Some` replaces them.
type Pieces = Vec<(Vec<String>, Option<Vec<String>>)>;

fn pieces() -> impl Strategy<Value = Pieces> {
    let line = "[a-c \t]{0,4}";
    let kept = proptest::collection::vec(line, 0..4).prop_map(|lines| (lines, None));
    let edited = (
        proptest::collection::vec(line, 1..4),
        proptest::collection::vec(line, 0..4),
    )
        .prop_map(|(lines, new)| (lines, Some(new)));
    proptest::collection::vec(prop_oneof![kept, edited], 1..8).prop_map(|mut pieces| {
        // The number makes every old line unique.
        let mut number = 0;
        for line in pieces.iter_mut().flat_map(|piece| &mut piece.0) {
            number += 1;
            line.insert_str(0, &format!("{number}:"));
        }
        pieces
    })
}

fn join(lines: &[String], ending: &str) -> String {
    lines.iter().flat_map(|line| [line, ending]).collect()
}

proptest! {
    #[test]
    fn replace_in_file_gives_exactly_the_expected_file(
        pieces in pieces(),
        ending in prop_oneof![Just("\n"), Just("\r\n")],
        final_newline in any::<bool>(),
        order in any::<prop::sample::Index>(),
    ) {
        let old: Vec<String> = pieces.iter().flat_map(|(lines, _)| lines.clone()).collect();
        let new: Vec<String> = pieces.iter().flat_map(|(lines, new)| new.as_ref().unwrap_or(lines).clone()).collect();
        let mut blocks: Vec<SearchReplaceBlock> = pieces
            .iter()
            .filter_map(|(search, new)| new.clone().map(|replace| SearchReplaceBlock { search: search.clone(), replace }))
            .collect();
        // A single line without an end does not determine the line ending.
        prop_assume!(!blocks.is_empty() && (final_newline || old.len() > 1));
        let turn = order.index(blocks.len());
        blocks.rotate_left(turn);

        let mut before = join(&old, ending);
        let mut after = join(&new, ending);
        if !final_newline {
            before.truncate(before.len() - ending.len());
            // Only removing an unterminated last line leaves the line break before it.
            let last = pieces.iter().rev().find(|(old, _)| !old.is_empty()).unwrap();
            if last.1.as_ref().is_none_or(|new| !new.is_empty()) {
                after.truncate(after.len() - ending.len());
            }
        }
        let diff: String = blocks.iter().map(write_block).collect();
        prop_assert_eq!(parse_diff(&diff).unwrap(), (blocks.clone(), false));
        let applied = apply_search_blocks(&before, &blocks, MatchPolicy::Unique).unwrap();
        prop_assert_eq!(applied.text, after);
        prop_assert!(applied.tolerant.is_empty());
    }

    #[test]
    fn apply_keeps_the_bytes_of_lines_outside_an_edit(
        lines in proptest::collection::vec(("[a-z]{0,3}", prop_oneof![Just("\n"), Just("\r\n")]), 1..12),
        at in any::<prop::sample::Index>(),
        new in proptest::collection::vec("[A-Z]{1,3}", 0..3),
    ) {
        let at = at.index(lines.len());
        let whole: Vec<String> = lines.iter().enumerate().map(|(index, (text, end))| format!("{index}{text}{end}")).collect();
        let block = SearchReplaceBlock { search: vec![format!("{at}{}", lines[at].0)], replace: new };
        let applied = apply_search_blocks(&whole.concat(), &[block], MatchPolicy::Unique).unwrap();
        prop_assert!(applied.text.starts_with(&whole[..at].concat()));
        prop_assert!(applied.text.ends_with(&whole[at + 1..].concat()));
    }

    #[test]
    fn parse_and_apply_never_panic(
        text in "([ab \t]{0,3}(\n|\r\n|\r)){0,8}[ab]?",
        diff in "(<<<<<<< SEARCH\n|=======\n|>>>>>>> REPLACE\n|[ab \t]{0,3}\n){0,14}",
        first in any::<bool>(),
    ) {
        if let Ok((blocks, _)) = parse_diff(&diff) {
            let _ = apply_search_blocks(&text, &blocks, if first { MatchPolicy::First } else { MatchPolicy::Unique });
        }
    }
}
