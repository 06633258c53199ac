use haft_types::ContentHash;

use super::*;

fn file(content: &str) -> FileVersion {
    FileVersion::File {
        mode: 0o644,
        size: content.len() as u64,
        hash: ContentHash::from_content(content.as_bytes()),
    }
}

const NOTHING: FileVersion = FileVersion::Absent;
const FOLDER: FileVersion = FileVersion::Folder { mode: 0o755 };

fn step(id: i64, changes: &[(&str, FileVersion, FileVersion)]) -> FileStep {
    let change = |(path, before, after): &(&str, FileVersion, FileVersion)| PathChange {
        path: path.into(),
        before: *before,
        after: Some(*after),
        taken_back: None,
    };
    FileStep {
        id: StepId(id),
        kind: StepKind::Call,
        call: None,
        at: Timestamp::UNIX_EPOCH,
        done: true,
        changes: changes.iter().map(change).collect(),
    }
}

fn show(files: &[FileSummary]) -> Vec<String> {
    let line = |file: &FileSummary| match &file.kind {
        SummaryKind::Moved { from } => format!("moved {} {}", from.display(), file.path.display()),
        kind => format!("{kind:?} {}", file.path.display()).to_lowercase(),
    };
    files.iter().map(line).collect()
}

#[test]
fn summarise_lists_a_file_added_and_changed_as_added() {
    let steps = [
        step(
            1,
            &[
                ("/new", NOTHING, file("1")),
                ("/old", file("1"), file("2")),
                ("/gone", file("x"), NOTHING),
            ],
        ),
        step(
            2,
            &[
                ("/new", file("1"), file("2")),
                ("/old", file("2"), file("3")),
                ("/short", NOTHING, file("s")),
            ],
        ),
        step(
            3,
            &[
                ("/short", file("s"), NOTHING),
                ("/gone", NOTHING, file("y")),
            ],
        ),
    ];
    let summary = summarize_steps(&steps);
    assert_eq!(
        show(&summary.files),
        ["modified /gone", "added /new", "modified /old"]
    );
    assert_eq!(summary.files[1].after, Some(file("2")));
    assert_eq!(
        show(&summary.steps[1].files),
        ["modified /new", "modified /old", "added /short"]
    );
}

#[test]
fn summarise_omits_changes_that_were_reverted() {
    let steps = [
        step(1, &[("/a", file("1"), file("2"))]),
        step(2, &[("/a", file("2"), file("1"))]),
    ];
    assert_eq!(summarize_steps(&steps).files, []);
}

#[test]
fn summarise_follows_moves_to_the_original_path() {
    let steps = [
        step(1, &[("/a", file("x"), NOTHING), ("/b", NOTHING, file("x"))]),
        step(2, &[("/b", file("x"), file("y"))]),
        step(
            3,
            &[
                ("/b", file("y"), NOTHING),
                ("/dir/c", NOTHING, file("y")),
                ("/dir", NOTHING, FOLDER),
            ],
        ),
    ];
    let summary = summarize_steps(&steps);
    assert_eq!(show(&summary.files), ["moved /a /dir/c"]);
    assert_eq!(
        (summary.files[0].before, summary.files[0].after),
        (file("x"), Some(file("y")))
    );
    assert_eq!(show(&summary.steps[0].files), ["moved /a /b"]);
}

#[test]
fn summarise_omits_a_file_that_moved_back() {
    let there = [("/a", file("x"), NOTHING), ("/b", NOTHING, file("x"))];
    let back = [("/b", file("x"), NOTHING), ("/a", NOTHING, file("x"))];
    assert_eq!(
        summarize_steps(&[step(1, &there), step(2, &back)]).files,
        []
    );
}

#[test]
fn summarise_pairs_moved_files_of_equal_content_by_name() {
    let steps = [step(
        1,
        &[
            ("/old/one", file("x"), NOTHING),
            ("/old/two", file("x"), NOTHING),
            ("/new/two", NOTHING, file("x")),
            ("/new/three", NOTHING, file("x")),
            ("/empty", file(""), NOTHING),
            ("/other", NOTHING, file("")),
        ],
    )];
    let shown = show(&summarize_steps(&steps).files);
    assert_eq!(
        shown,
        [
            "deleted /empty",
            "moved /old/one /new/three",
            "moved /old/two /new/two",
            "added /other"
        ]
    );
}

#[test]
fn summarise_lists_a_folder_only_if_no_entry_of_it_is_listed() {
    let steps = [step(
        1,
        &[
            ("/full", NOTHING, FOLDER),
            ("/full/a", NOTHING, file("a")),
            ("/bare", NOTHING, FOLDER),
        ],
    )];
    assert_eq!(
        show(&summarize_steps(&steps).files),
        ["added /bare", "added /full/a"]
    );
}

#[test]
fn unified_diff_is_none_for_binary_content() {
    assert_eq!(
        unified_diff(("a", "b"), b"1\n", b"2\n").unwrap(),
        "--- a\n+++ b\n@@ -1 +1 @@\n-1\n+2\n"
    );
    assert_eq!(unified_diff(("a", "b"), b"\0", b"2\n"), None);
    assert_eq!(unified_diff(("a", "b"), b"\xff", b"2\n"), None);
}
