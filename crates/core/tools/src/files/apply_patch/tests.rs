use std::fs;
use std::os::unix::fs::PermissionsExt;

use haft_types::ChangeKind;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::files::read_file;
use crate::testing::{Bench, check_fixtures};

#[tokio::test]
async fn apply_patch_matches_the_fixtures() {
    check_fixtures(
        "apply_patch",
        70,
        &define_tool(parse::parse_patch),
        |case| json!({"patch": fs::read_to_string(case.join("patch")).unwrap()}),
    )
    .await;
}

#[tokio::test]
async fn apply_patch_result_lists_every_file() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench.write("b", "two\n");
    bench.write("c", "three\n");
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Delete File: b\n*** Update File: c\n\
                 *** Move to: d\n*** Add File: e\n+new\n*** End Patch";
    let output = bench
        .ok(&define_tool(parse::parse_patch), json!({"patch": patch}))
        .await;
    assert_eq!(
        output.envelope.text,
        "Patch applied to 4 files.\nChanged `a`: 1 chunk applied, 1 line added, 1 removed.\n@@ -1 +1 @@\n-one\n+1\n\
         Deleted `b`.\nMoved `c` to `d`.\nCreated `e`: 1 line."
    );
    assert_eq!(
        output.envelope.data,
        json!({"files": [
            {
                "path": "a", "change": "edited", "applied": 1, "changed_ranges": [{"start_line": 1, "end_line": 1}],
                "added": 1, "removed": 1, "diff": "@@ -1 +1 @@\n-one\n+1",
            },
            {"path": "b", "change": "deleted"},
            {"path": "d", "change": "moved", "from": "c"},
            {"path": "e", "change": "created", "lines": 1},
        ]})
    );
    let changes: Vec<_> = output
        .changes
        .iter()
        .map(|change| (change.path.clone(), change.kind))
        .collect();
    let expected = [
        ("a", ChangeKind::Modified),
        ("b", ChangeKind::Deleted),
        ("c", ChangeKind::Deleted),
        ("d", ChangeKind::Added),
        ("e", ChangeKind::Added),
    ];
    assert_eq!(
        changes,
        expected.map(|(name, kind)| (bench.path(name), kind))
    );
    assert_eq!(bench.history.saved.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn apply_patch_keeps_the_mode_of_a_moved_file() {
    let bench = Bench::new();
    let path = bench.write("script", "one\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let patch =
        "*** Begin Patch\n*** Update File: script\n*** Move to: bin/script\n*** End Patch\n";
    bench
        .ok(&define_tool(parse::parse_patch), json!({"patch": patch}))
        .await;
    assert_eq!(
        fs::metadata(bench.path("bin/script"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o755
    );
}

#[tokio::test]
async fn apply_patch_refuses_to_delete_a_file_changed_since_it_was_read() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    bench.write("a", "two\n");
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
    assert_eq!(
        bench
            .err(&define_tool(parse::parse_patch), json!({"patch": patch}))
            .await
            .0,
        "changed_since_read"
    );
    assert_eq!(bench.read("a"), b"two\n");
}

proptest! {
    /// Applying a patch made from two versions of a file gives exactly the second one.
    #[test]
    fn apply_patch_of_a_whole_file_gives_exactly_the_new_file(
        pieces in proptest::collection::vec((0..3_u8, "[ab \t]{0,3}"), 1..20),
        ending in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
    ) {
        let mut old = String::new();
        let mut new = String::new();
        let mut patch = String::new();
        for (number, (kind, text)) in pieces.iter().enumerate() {
            // The number makes every line unique.
            let line = format!("{number}{text}");
            let (sign, in_old, in_new) = [(' ', true, true), ('-', true, false), ('+', false, true)][usize::from(*kind)];
            patch.extend([sign.to_string(), line.clone(), "\n".to_owned()]);
            for (is_in, out) in [(in_old, &mut old), (in_new, &mut new)] {
                if is_in {
                    out.push_str(&line);
                    out.push_str(ending);
                }
            }
        }
        // Without old lines, the line ending is unknown.
        prop_assume!(!old.is_empty());
        let patch = format!("*** Begin Patch\n*** Update File: a\n@@\n{patch}*** End Patch\n");
        let sections = parse::parse_patch(&patch).unwrap().sections;
        let PatchAction::Update { chunks, .. } = &sections[0].action else { panic!("{sections:?}") };
        let applied = blocks::apply_blocks(&old, chunks, MatchPolicy::Unique, EDIT_TERMS).unwrap();
        prop_assert_eq!(applied.text, new);
    }

    #[test]
    fn parse_and_apply_never_panic(
        text in "([ab \t]{0,3}(\n|\r\n|\r)){0,8}[ab]?",
        patch in "(\\*\\*\\* (Add File: a|Update File: a|Delete File: a|Move to: b|End of File|End Patch)\n|@@( [ab]{0,2})?\n|[+ -]?[ab é]{0,3}\n){0,16}",
    ) {
        if let Ok(parsed) = parse::parse_patch(&format!("*** Begin Patch\n{patch}\n*** End Patch\n")) {
            for section in &parsed.sections {
                if let PatchAction::Update { chunks, .. } = &section.action {
                    let _ = blocks::apply_blocks(&text, chunks, MatchPolicy::Unique, EDIT_TERMS);
                }
            }
        }
    }
}
