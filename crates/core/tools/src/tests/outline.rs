//! Tests of `list_code_definition_names`, which an extension provides.

use serde_json::json;

use crate::testing::{Bench, outline};

async fn outline_text(bench: &Bench, path: &str) -> String {
    bench
        .ok(outline().as_ref(), json!({ "path": path }))
        .await
        .envelope
        .text
}

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(
        "src/lib.rs",
        "pub struct Cup;\n\nimpl Cup {\n    pub fn fill(&self) {\n    }\n}\n",
    );
    bench.write("src/tool", "#!/bin/sh\nbuild() {\n  :\n}\n");
    bench.write("src/empty.py", "# nothing here\n");
    bench.write("src/notes.md", "# fn not_code() {}\n");
    bench.write("src/data", b"\0\0\0");
    bench.write("src/deep/more.rs", "fn deeper() {}\n");
    bench.write("src/skipped.rs", "fn skipped() {}\n");
    bench.write("src/.hidden.rs", "fn hidden() {}\n");
    bench.write(".gitignore", "skipped.rs\n");
    bench
}

#[tokio::test]
async fn list_code_definition_names_nests_the_definitions_of_a_file() {
    let bench = project();
    let output = bench
        .ok(outline().as_ref(), json!({"path": "src/lib.rs"}))
        .await;
    assert_eq!(
        output.envelope.text,
        "src/lib.rs\n  1-1 struct Cup\n  3-6 impl Cup\n    4-5 method fill"
    );
    assert_eq!(
        output.envelope.data,
        json!({"path": "src/lib.rs", "files": 1, "definitions": 3})
    );
    // A named file is listed regardless of ignore files.
    assert_eq!(
        outline_text(&bench, "src/skipped.rs").await,
        "src/skipped.rs\n  1-1 function skipped"
    );
}

#[tokio::test]
async fn list_code_definition_names_skips_subfolders_and_ignored_files() {
    let bench = project();
    assert_eq!(
        outline_text(&bench, "src").await,
        "src/empty.py\n  [No definitions.]\n\
         src/lib.rs\n  1-1 struct Cup\n  3-6 impl Cup\n    4-5 method fill\n\
         src/tool\n  2-4 function build"
    );
    bench.write("docs/a.md", "text");
    assert!(
        outline_text(&bench, "docs")
            .await
            .contains("holds no source files")
    );
}

#[tokio::test]
async fn list_code_definition_names_names_a_bad_file_and_lists_the_rest() {
    let bench = Bench::new();
    bench.write("a.py", format!("{}\n", "x = 1\n".repeat(200_000)));
    bench.write("b.py", "def fine(): pass\ndef broken(((\n");
    assert_eq!(
        outline_text(&bench, ".").await,
        "a.py\n  [Not parsed: the source has 1200001 bytes; at most 1048576 are parsed.]\n\
         b.py\n  1-1 function fine\n  [Parts of this file could not be parsed; definitions may be missing.]"
    );
    let (code, message) = bench.err(outline().as_ref(), json!({"path": "a.py"})).await;
    assert_eq!(code, "too_large");
    assert!(message.contains("search it instead"), "{message}");
}

#[tokio::test]
async fn list_code_definition_names_reports_omitted_definitions() {
    let bench = Bench::new().with_limits(3, 1000);
    bench.write("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let output = bench.ok(outline().as_ref(), json!({"path": "."})).await;
    assert_eq!(
        output.envelope.text,
        "a.rs\n  1-1 function a\n  2-2 function b\n[Not everything is shown: 3 definitions in 1 files. List one file.]"
    );
    assert_eq!(output.envelope.data["truncated"], true);
}

#[tokio::test]
async fn list_code_definition_names_reports_why_a_path_has_none() {
    let bench = project();
    for (path, code, says) in [
        ("src/notes.md", "unknown_language", "Rust"),
        ("src/data", "unknown_language", "read it, or search it"),
        ("nope.rs", "not_found", "does not exist"),
        ("/etc/passwd", "outside_workspace", "/etc/passwd"),
    ] {
        let (found, message) = bench.err(outline().as_ref(), json!({ "path": path })).await;
        assert_eq!(found, code, "{path}");
        assert!(message.contains(says), "{message}");
    }
    bench.context.cancel.cancel();
    assert_eq!(
        bench
            .err(outline().as_ref(), json!({"path": "src"}))
            .await
            .0,
        "cancelled"
    );
}
