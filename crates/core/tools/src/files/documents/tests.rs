use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::files::{extract_to_text, read_file, write_to_file};
use crate::testing::Bench;

/// The helper process that reads PDF files, if the program was started as one; not a test of its
/// own.
#[test]
fn __haft_read_pdf() {
    if let Some(code) = haft_documents::read_pdf_entry(std::env::args_os()) {
        // A test that returned would count as a success, whatever the exit code was.
        let number = (1..=255).find(|number| code == std::process::ExitCode::from(*number));
        std::process::exit(number.map_or(0, i32::from));
    }
}

fn read_fixture(file: &str) -> Vec<u8> {
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/documents/fixtures");
    fs::read(folder.join(file)).unwrap()
}

async fn read_document(file: &str, bytes: impl AsRef<[u8]>) -> Result<String, (String, String)> {
    let bench = Bench::new().with_limits(2_000, 500_000);
    bench.write(file, bytes);
    let output = bench
        .run(&read_file::define_tool(), json!({ "path": file }))
        .await;
    // Reading a document as text does not permit overwriting it.
    assert!(bench.context.reads.last_seen(&bench.path(file)).is_none());
    if let Some(error) = output.envelope.error {
        return Err((error.code, error.message));
    }
    assert!(
        output
            .envelope
            .text
            .ends_with("it cannot be edited as text.]"),
        "{}",
        output.envelope.text
    );
    Ok(format!(
        "{}\n",
        output.envelope.data["content"].as_str().unwrap()
    ))
}

#[tokio::test]
async fn read_file_returns_the_text_of_documents() {
    for file in ["paper.pdf", "report.docx", "sheet.ods", "analysis.ipynb"] {
        let expected = String::from_utf8(read_fixture(&format!("{file}.txt"))).unwrap();
        assert_eq!(
            read_document(file, read_fixture(file)).await.unwrap(),
            expected,
            "{file}"
        );
    }
    assert!(
        read_document("renamed.bin", read_fixture("report.docx"))
            .await
            .unwrap()
            .contains("Quarterly report")
    );
    let bench = Bench::new();
    bench.write("plain.pdf", "no document\n");
    bench.write("other.ipynb", "{\"cells\": 1}\n");
    for file in ["plain.pdf", "other.ipynb"] {
        let output = bench
            .ok(&read_file::define_tool(), json!({ "path": file }))
            .await;
        assert!(output.envelope.data.get("document").is_none(), "{file}");
    }
}

#[tokio::test]
async fn read_file_reports_why_a_document_has_no_text() {
    let old = [b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".as_slice(), &[0; 600]].concat();
    for (file, bytes, code, says) in [
        (
            "encrypted.docx",
            read_fixture("encrypted.docx"),
            "encrypted",
            "with a password",
        ),
        (
            "encrypted.pdf",
            read_fixture("encrypted.pdf"),
            "encrypted",
            "with a password",
        ),
        ("old.doc", old, "unknown_format", "soffice"),
        (
            "cut.pdf",
            b"%PDF-1.7\nnothing more".to_vec(),
            "damaged_document",
            "`cut.pdf` is a PDF document but",
        ),
        (
            "bad.ipynb",
            br#"{"nbformat": 4, "cells": 3}"#.to_vec(),
            "damaged_document",
            "`bad.ipynb` is a",
        ),
    ] {
        let (found, message) = read_document(file, bytes).await.unwrap_err();
        assert_eq!(found, code, "{file}: {message}");
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn read_file_of_a_document_ends_when_canceled() {
    let bench = Bench::new();
    bench.write("a.pdf", read_fixture("paper.pdf"));
    bench.write("a.docx", read_fixture("report.docx"));
    bench.context.cancel.cancel();
    for file in ["a.pdf", "a.docx"] {
        assert_eq!(
            bench
                .err(&read_file::define_tool(), json!({ "path": file }))
                .await
                .0,
            "cancelled",
            "{file}"
        );
    }
}

#[tokio::test]
async fn read_file_without_document_readers_reports_the_format() {
    let mut bench = Bench::new();
    bench.context.documents = None;
    for (file, kind) in [
        ("paper.pdf", "a PDF document"),
        ("report.docx", "an Office document"),
    ] {
        bench.write(file, read_fixture(file));
        let (code, message) = bench
            .err(&read_file::define_tool(), json!({ "path": file }))
            .await;
        assert_eq!(code, "unknown_format");
        assert_eq!(
            message,
            format!(
                "`{file}` is {kind}, and this build of haft reads no documents; use a program that reads it"
            )
        );
        // It cannot be overwritten without having been read, either.
        let over = json!({ "path": file, "content": "text" });
        assert_eq!(
            bench.err(&write_to_file::define_tool(), over).await.0,
            "not_read"
        );
    }
    // Notebooks are text files.
    bench.write("a.ipynb", read_fixture("analysis.ipynb"));
    assert!(
        bench
            .ok(&read_file::define_tool(), json!({"path": "a.ipynb"}))
            .await
            .envelope
            .data
            .get("document")
            .is_none()
    );
    assert_eq!(
        bench
            .err(&extract_to_text::define_tool(), json!({"path": "a.ipynb"}))
            .await
            .0,
        "unknown_format"
    );
}
