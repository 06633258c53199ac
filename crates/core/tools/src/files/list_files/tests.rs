use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::testing::Bench;

fn project() -> Bench {
    let bench = Bench::new();
    for name in [
        "b.txt",
        "a/z.rs",
        "a/b/deep.rs",
        ".hidden",
        ".git/config",
        "target/out",
        "a/skip.log",
    ] {
        bench.write(name, "x");
    }
    bench.write(".gitignore", "target/\n*.log\n");
    symlink("b.txt", bench.path("link")).unwrap();
    bench
}

#[tokio::test]
async fn list_files_shows_everything_in_one_folder() {
    let bench = project();
    let output = bench.ok(&define_tool(), json!({"path": "."})).await;
    assert_eq!(
        output.envelope.text,
        ".git/\n.gitignore\n.hidden\na/\nb.txt\nlink -> b.txt\ntarget/"
    );
    let data = &output.envelope.data;
    assert_eq!(
        (&data["total"], &data["files"], &data["folders"]),
        (&json!(7), &json!(4), &json!(3))
    );
    let output = bench.ok(&define_tool(), json!({"path": "a"})).await;
    assert_eq!(output.envelope.text, "a/b/\na/skip.log\na/z.rs");
}

#[tokio::test]
async fn list_files_recursively_honors_ignore_files() {
    let bench = project();
    let output = bench
        .ok(&define_tool(), json!({"path": ".", "recursive": true}))
        .await;
    assert_eq!(
        output.envelope.text,
        ".gitignore\n.hidden\na/\na/b/\na/b/deep.rs\na/z.rs\nb.txt\nlink -> b.txt"
    );
    // The project's ignore files also apply to its subfolders.
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "recursive": true}))
        .await;
    assert_eq!(output.envelope.text, "a/b/\na/b/deep.rs\na/z.rs");
}

#[tokio::test]
async fn list_files_reports_how_many_entries_are_omitted() {
    let bench = Bench::new().with_limits(2, 1000);
    for name in ["a", "b", "c", "d"] {
        bench.write(name, "");
    }
    let output = bench.ok(&define_tool(), json!({"path": "."})).await;
    assert!(
        output
            .envelope
            .text
            .starts_with("a\nb\n[2 more of 4 entries in `.`."),
        "{}",
        output.envelope.text
    );
    assert_eq!(output.envelope.data["truncated"], true);
    assert_eq!(output.envelope.data["total"], 4);
}

#[tokio::test]
async fn list_files_rejects_wrong_folders() {
    let bench = project();
    std::fs::create_dir(bench.path("empty")).unwrap();
    assert_eq!(
        bench
            .ok(&define_tool(), json!({"path": "empty"}))
            .await
            .envelope
            .text,
        "`empty` is empty."
    );
    assert_eq!(
        bench.err(&define_tool(), json!({"path": "nope"})).await.0,
        "not_found"
    );
    assert_eq!(
        bench.err(&define_tool(), json!({"path": "b.txt"})).await.0,
        "not_a_folder"
    );
    assert_eq!(
        bench.err(&define_tool(), json!({"path": "/etc"})).await.0,
        "outside_workspace"
    );
}

#[tokio::test]
async fn list_files_ends_when_canceled() {
    let bench = project();
    bench.context.cancel.cancel();
    assert_eq!(
        bench.err(&define_tool(), json!({"path": "."})).await.0,
        "cancelled"
    );
}
