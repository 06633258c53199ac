use serde_json::json;

use super::*;
use crate::testing::Bench;

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(
        "src/a.rs",
        "fn one() {}\nfn two() {}\n\nfn three() {}\nend\nfn four() {}\n",
    );
    bench.write("src/deep/b.py", "def two(): pass\r\nx = 1\r\n");
    bench.write("ignored/c.rs", "fn two() {}\n");
    bench.write(".hidden.rs", "fn two() {}\n");
    bench.write("data.bin", b"fn two() {}\n\0\0");
    bench.write(".gitignore", "ignored/\n");
    bench
}

async fn search_text(bench: &Bench, arguments: Value) -> String {
    bench.ok(&define_tool(), arguments).await.envelope.text
}

#[tokio::test]
async fn search_files_shows_matches_with_file_line_and_context() {
    let bench = project();
    let output = bench
        .ok(&define_tool(), json!({"path": ".", "regex": r"\btwo\("}))
        .await;
    assert_eq!(
        output.envelope.text,
        "2 matches in 2 files.\n\
         src/a.rs-1- fn one() {}\n\
         src/a.rs:2: fn two() {}\n\
         src/a.rs-3- \n\
         --\n\
         src/deep/b.py:1: def two(): pass\n\
         src/deep/b.py-2- x = 1"
    );
    assert_eq!(
        output.envelope.data,
        json!({
            "path": ".", "regex": r"\btwo\(", "matches": 2, "files": 2,
            "lines": [
                {"path": "src/a.rs", "line": 2, "text": "fn two() {}"},
                {"path": "src/deep/b.py", "line": 1, "text": "def two(): pass"},
            ],
        })
    );
}

#[tokio::test]
async fn search_files_separates_groups_in_one_file() {
    let bench = project();
    bench.write("long", "hit\n1\n2\n3\nhit\n");
    assert_eq!(
        search_text(&bench, json!({"path": "long", "regex": "hit"})).await,
        "2 matches in 1 files.\nlong:1: hit\nlong-2- 1\n--\nlong-4- 3\nlong:5: hit"
    );
}

#[tokio::test]
async fn search_files_limits_files_by_pattern() {
    let bench = project();
    for (pattern, files) in [
        ("*.rs", 1),
        ("*.{py,rs}", 2),
        ("src/**/*.py", 1),
        ("./src/*.rs", 1),
        ("*.go", 0),
        ("src/*.py", 0),
    ] {
        let arguments = json!({"path": ".", "regex": "two", "file_pattern": pattern});
        let output = bench.ok(&define_tool(), arguments).await;
        assert_eq!(output.envelope.data["files"], files, "{pattern}");
    }
}

#[tokio::test]
async fn search_files_anchors_match_both_line_endings() {
    let bench = project();
    assert!(
        search_text(&bench, json!({"path": ".", "regex": r"pass$"}))
            .await
            .starts_with("1 matches")
    );
    assert!(
        search_text(&bench, json!({"path": ".", "regex": r"^end$"}))
            .await
            .starts_with("1 matches")
    );
    assert_eq!(
        search_text(&bench, json!({"path": "src", "regex": "nowhere"})).await,
        "No matches in `src`."
    );
}

#[tokio::test]
async fn search_files_searches_a_named_file_even_if_ignored_or_hidden() {
    let bench = project();
    assert!(
        search_text(&bench, json!({"path": ".hidden.rs", "regex": "two"}))
            .await
            .starts_with("1 matches")
    );
    assert!(
        search_text(&bench, json!({"path": "ignored", "regex": "two"}))
            .await
            .starts_with("1 matches")
    );
}

#[tokio::test]
async fn search_files_reports_when_it_stops_early() {
    let bench = Bench::new().with_limits(6, 1000);
    bench.write("a", "hit\n".repeat(50));
    let output = bench
        .ok(&define_tool(), json!({"path": ".", "regex": "hit"}))
        .await;
    assert!(
        output
            .envelope
            .text
            .starts_with("Stopped after 5 matches in 1 files: there are more."),
        "{}",
        output.envelope.text
    );
    assert_eq!(output.envelope.data["truncated"], true);
    assert!(output.envelope.text.lines().count() <= 6);
}

#[tokio::test]
async fn search_files_cuts_a_long_line_around_its_match() {
    let bench = Bench::new();
    bench.write(
        "a",
        format!("{}needle{}\n", "é".repeat(5_000), "x".repeat(5_000)),
    );
    let shown = search_text(&bench, json!({"path": "a", "regex": "needle"})).await;
    assert!(shown.contains("a:1: … é"), "{shown}");
    assert!(shown.contains("needle") && shown.ends_with(" …"), "{shown}");
    assert!(shown.len() < 800, "{}", shown.len());
}

#[tokio::test]
async fn search_files_reports_where_arguments_are_wrong() {
    let bench = project();
    let (code, message) = bench
        .err(&define_tool(), json!({"path": ".", "regex": "fn (two"}))
        .await;
    assert_eq!(code, "invalid_regex");
    assert!(
        message.contains("fn (two\n") && message.contains('^'),
        "{message}"
    );
    let (code, _) = bench
        .err(&define_tool(), json!({"path": ".", "regex": "a\\nb"}))
        .await;
    assert_eq!(code, "invalid_regex");
    let (code, _) = bench
        .err(
            &define_tool(),
            json!({"path": ".", "regex": "a", "file_pattern": "["}),
        )
        .await;
    assert_eq!(code, "invalid_pattern");
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "data.bin", "regex": "two"}))
            .await
            .0,
        "binary_file"
    );
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "nope", "regex": "a"}))
            .await
            .0,
        "not_found"
    );
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "/etc", "regex": "a"}))
            .await
            .0,
        "outside_workspace"
    );
}

#[tokio::test]
async fn search_files_ends_when_canceled() {
    let bench = project();
    bench.context.cancel.cancel();
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": ".", "regex": "a"}))
            .await
            .0,
        "cancelled"
    );
}

#[tokio::test]
async fn search_files_searches_only_the_beginning_of_very_long_lines() {
    let bench = Bench::new();
    let long = "x".repeat(MAX_LINE_BYTES);
    bench.write(
        "min.js",
        format!("first\nneedle {long} thorn\nneedle here\n"),
    );
    bench.write("other", "needle\n");
    let shown = search_text(&bench, json!({"path": ".", "regex": "needle"})).await;
    assert!(
        shown.starts_with(
            "3 matches in 2 files. Lines of more than 4 MB were searched only at their beginning, in 1 files (`min.js`).\n"
        ),
        "{}",
        &shown[..200]
    );
    assert!(shown.contains("min.js:2: needle xxx") && shown.contains("min.js:3: needle here"));
    assert!(shown.len() < 2_000);
    // The text after the limit is not found, but the file counts as read.
    let shown = search_text(&bench, json!({"path": "min.js", "regex": "thorn"})).await;
    assert!(
        shown.starts_with("No matches in `min.js`. Lines of more than 4 MB"),
        "{shown}"
    );
}

#[tokio::test]
async fn search_files_orders_many_files_deterministically() {
    let bench = Bench::new().with_limits(40, 10_000);
    for folder in 0..20 {
        for file in 0..10 {
            bench.write(&format!("f{folder:02}/a{file}"), "before\nhit\nafter\n");
        }
    }
    let first = search_text(&bench, json!({"path": ".", "regex": "hit"})).await;
    assert!(
        first.starts_with("Stopped after 10 matches in 10 files: there are more."),
        "{first}"
    );
    assert!(
        first.contains("f00/a9:2: hit") && !first.contains("f01/"),
        "{first}"
    );
    for _ in 0..10 {
        assert_eq!(
            search_text(&bench, json!({"path": ".", "regex": "hit"})).await,
            first
        );
    }
}

#[tokio::test]
async fn search_files_counts_unreadable_files() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = project();
    // Links are never followed.
    symlink("/etc/passwd", bench.path("link")).unwrap();
    assert!(
        !search_text(&bench, json!({"path": ".", "regex": "root"}))
            .await
            .contains("could not be read")
    );
    // Root can read every file.
    if !rustix::process::geteuid().is_root() {
        std::fs::set_permissions(
            bench.path("src/a.rs"),
            std::fs::Permissions::from_mode(0o000),
        )
        .unwrap();
        let shown = search_text(&bench, json!({"path": ".", "regex": "two"})).await;
        assert!(
            shown.starts_with("1 matches in 1 files. 1 files or folders could not be read."),
            "{shown}"
        );
    }
}
