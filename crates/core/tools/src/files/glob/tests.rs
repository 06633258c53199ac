use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::*;
use crate::testing::Bench;

/// Creates files, each one second older than the one before.
fn project(names: &[&str]) -> Bench {
    let bench = Bench::new();
    for (age, name) in (0..).zip(names) {
        let file = File::options()
            .write(true)
            .open(bench.write(name, "x"))
            .unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age))
            .unwrap();
    }
    bench
}

async fn glob_text(bench: &Bench, arguments: Value) -> String {
    bench.ok(&define_tool(), arguments).await.envelope.text
}

#[tokio::test]
async fn glob_lists_the_newest_files_first() {
    let bench = project(&["src/z.rs", "b.rs", "src/deep/a.rs", "a.txt"]);
    let output = bench
        .ok(&define_tool(), json!({"pattern": "**/*.rs"}))
        .await;
    assert_eq!(output.envelope.text, "src/z.rs\nb.rs\nsrc/deep/a.rs");
    assert_eq!(
        output.envelope.data,
        json!({"path": ".", "pattern": "**/*.rs", "total": 3, "entries": ["src/z.rs", "b.rs", "src/deep/a.rs"]})
    );
}

#[tokio::test]
async fn glob_sorts_files_of_equal_age_by_name() {
    let bench = Bench::new();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    for name in ["c", "a", "d", "b"] {
        File::options()
            .write(true)
            .open(bench.write(name, ""))
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    assert_eq!(
        glob_text(&bench, json!({"pattern": "*"})).await,
        "a\nb\nc\nd"
    );
    let bench = bench.with_limits(2, 1000);
    assert_eq!(
        glob_text(&bench, json!({"pattern": "*"})).await,
        "a\nb\n[2 more of 4 files, all older. Use a narrower pattern.]"
    );
}

#[tokio::test]
async fn glob_matches_names_or_paths() {
    let bench = project(&[
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/deep/d.ts",
        ".github/e.yml",
    ]);
    for (pattern, path, expected) in [
        ("*.rs", ".", "a.rs\nsrc/b.rs\nsrc/deep/c.rs"),
        ("./*.rs", ".", "a.rs\nsrc/b.rs\nsrc/deep/c.rs"),
        ("src/*.rs", ".", "src/b.rs"),
        (
            "src/**/*.{rs,ts}",
            ".",
            "src/b.rs\nsrc/deep/c.rs\nsrc/deep/d.ts",
        ),
        ("deep/*", "src", "src/deep/c.rs\nsrc/deep/d.ts"),
        ("*.yml", ".", ".github/e.yml"),
        ("[bc].rs", ".", "src/b.rs\nsrc/deep/c.rs"),
        ("*.go", ".", "No files in `.` match `*.go`."),
    ] {
        assert_eq!(
            glob_text(&bench, json!({"pattern": pattern, "path": path})).await,
            expected,
            "{pattern} in {path}"
        );
    }
    let whole = bench.path("src").join("**/*.ts");
    assert_eq!(
        glob_text(&bench, json!({"pattern": whole, "path": "src"})).await,
        "src/deep/d.ts"
    );
}

#[tokio::test]
async fn glob_skips_ignored_files_and_git_and_follows_no_links() {
    let bench = project(&["a.log", "b.txt", ".git/config", "target/c.txt", ".hidden"]);
    bench.write(".gitignore", "*.log\ntarget/\n");
    std::fs::create_dir(bench.path("folder")).unwrap();
    symlink("../b.txt", bench.path("folder/link")).unwrap();
    symlink(".", bench.path("circle")).unwrap();
    let mut found: Vec<_> = glob_text(&bench, json!({"pattern": "**"}))
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    found.sort();
    assert_eq!(
        found,
        [".gitignore", ".hidden", "b.txt", "circle", "folder/link"]
    );
}

#[tokio::test]
async fn glob_reports_files_above_the_limit() {
    let bench = project(&["a", "b", "c", "d"]).with_limits(2, 1000);
    let output = bench.ok(&define_tool(), json!({"pattern": "*"})).await;
    assert_eq!(
        output.envelope.text,
        "a\nb\n[2 more of 4 files, all older. Use a narrower pattern.]"
    );
    assert_eq!(
        (
            &output.envelope.data["truncated"],
            &output.envelope.data["total"]
        ),
        (&json!(true), &json!(4))
    );
    let bench = project(&["aaaa", "bbbb"]).with_limits(10, 6);
    assert!(
        glob_text(&bench, json!({"pattern": "*"}))
            .await
            .starts_with("aaaa\n[1 more of 2 files")
    );
}

#[tokio::test]
async fn glob_rejects_wrong_arguments() {
    let bench = project(&["a"]);
    for (arguments, code) in [
        (json!({"pattern": "["}), "invalid_pattern"),
        (json!({"pattern": ""}), "invalid_pattern"),
        (json!({"pattern": "/etc/*"}), "invalid_pattern"),
        (json!({"pattern": "*", "path": "none"}), "not_found"),
        (json!({"pattern": "*", "path": "a"}), "not_a_folder"),
        (json!({"pattern": "*", "path": "/etc"}), "outside_workspace"),
    ] {
        assert_eq!(
            bench.err(&define_tool(), arguments.clone()).await.0,
            code,
            "{arguments}"
        );
    }
    bench.context.cancel.cancel();
    assert_eq!(
        bench.err(&define_tool(), json!({"pattern": "*"})).await.0,
        "cancelled"
    );
}
