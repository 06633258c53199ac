use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::files::{read_file, replace_in_file, write_to_file};
use crate::testing::Bench;

fn project() -> Bench {
    let bench = Bench::new();
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/documents/fixtures");
    for file in ["report.docx", "paper.pdf", "analysis.ipynb"] {
        bench.write(
            &format!("docs/{file}"),
            fs::read(fixtures.join(file)).unwrap(),
        );
    }
    bench
}

#[tokio::test]
async fn extract_to_text_writes_beside_the_document_or_to_the_output() {
    let bench = project();
    let output = bench
        .ok(&define_tool(), json!({"path": "docs/report.docx"}))
        .await;
    assert!(output.envelope.text.starts_with(
        "Wrote the text of `docs/report.docx`, a Word document, to `docs/report.docx.txt`:"
    ));
    let path = bench.path("docs/report.docx.txt");
    assert_eq!(
        output.changes,
        [FileChange {
            path: path.clone(),
            kind: ChangeKind::Added
        }]
    );
    let expected = include_str!("../../../../../extensions/documents/fixtures/report.docx.txt");
    assert_eq!(bench.read("docs/report.docx.txt"), expected.as_bytes());
    assert_eq!(output.envelope.data["lines"], expected.lines().count());
    assert_eq!(
        *bench.history.saved.lock().unwrap(),
        [("call-1".to_owned(), path)]
    );
    // The written text counts as read: it may be overwritten.
    bench
        .ok(&define_tool(), json!({"path": "docs/report.docx"}))
        .await;

    bench
        .ok(
            &define_tool(),
            json!({"path": "docs/paper.pdf", "output": "new/folder/paper.txt"}),
        )
        .await;
    assert!(
        String::from_utf8(bench.read("new/folder/paper.txt"))
            .unwrap()
            .contains("difficult office")
    );
}

#[tokio::test]
async fn extract_to_text_overwrites_no_unread_file() {
    let bench = project();
    bench.write("docs/report.docx.txt", "mine");
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "docs/report.docx"}))
            .await
            .0,
        "not_read"
    );
    assert_eq!(bench.read("docs/report.docx.txt"), b"mine");
    assert!(bench.history.saved.lock().unwrap().is_empty());
    let itself = json!({"path": "docs/report.docx", "output": "docs/report.docx"});
    assert_eq!(bench.err(&define_tool(), itself).await.0, "document");
    let outside = json!({"path": "docs/report.docx", "output": "/etc/report.txt"});
    assert_eq!(
        bench.err(&define_tool(), outside).await.0,
        "outside_workspace"
    );
}

#[tokio::test]
async fn extract_to_text_rejects_files_that_are_no_documents() {
    let bench = project();
    bench.write("a.txt", "text");
    let (code, message) = bench.err(&define_tool(), json!({"path": "a.txt"})).await;
    assert_eq!(code, "unknown_format");
    assert!(message.contains("read it as text"), "{message}");
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "none.pdf"}))
            .await
            .0,
        "not_found"
    );
}

#[tokio::test]
async fn documents_cannot_be_edited_as_text_after_reading() {
    let bench = project();
    for file in ["docs/report.docx", "docs/paper.pdf", "docs/analysis.ipynb"] {
        let before = bench.read(file);
        bench
            .ok(&read_file::define_tool(), json!({ "path": file }))
            .await;
        let diff = "<<<<<<< SEARCH\n  \"nbformat\": 4,\n=======\n>>>>>>> REPLACE\n";
        for (code, message) in [
            bench
                .err(
                    &replace_in_file::define_tool(),
                    json!({ "path": file, "diff": diff }),
                )
                .await,
            bench
                .err(
                    &write_to_file::define_tool(),
                    json!({ "path": file, "content": "new" }),
                )
                .await,
        ] {
            assert_eq!(code, "document", "{message}");
            assert!(
                message.contains("use a program that knows the format"),
                "{message}"
            );
        }
        assert_eq!(bench.read(file), before);
    }
}
