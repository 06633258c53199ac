use serde_json::json;

use super::*;
use crate::testing::Bench;

/// The bench counts a token for every word, in a window of 1,000.
#[tokio::test]
async fn count_tokens_counts_files_and_texts() {
    let bench = Bench::new();
    bench.write("a.txt", "one two three\nfour\n");
    let output = bench.ok(&define_tool(), json!({"path": "a.txt"})).await;
    assert_eq!(
        output.envelope.text,
        "`a.txt` has about 4 tokens (2 lines, 19 bytes), 0.4 % of the context window of 1000."
    );
    assert_eq!(
        output.envelope.data,
        json!({"path": "a.txt", "tokens": 4, "lines": 2, "bytes": 19, "window": 1000})
    );
    let output = bench
        .ok(&define_tool(), json!({"text": "five words are in here"}))
        .await;
    assert!(
        output
            .envelope
            .text
            .starts_with("The text has about 5 tokens (1 lines"),
        "{}",
        output.envelope.text
    );
    assert!(output.envelope.data.get("path").is_none());
}

#[tokio::test]
async fn count_tokens_decodes_encodings_and_documents() {
    let bench = Bench::new();
    bench.write("utf16", b"\xFF\xFEa\0 \0b\0");
    assert_eq!(
        bench
            .ok(&define_tool(), json!({"path": "utf16"}))
            .await
            .envelope
            .data["tokens"],
        2
    );
    let notebook = include_bytes!("../../../../../extensions/documents/fixtures/analysis.ipynb");
    bench.write("a.ipynb", notebook);
    let words = include_str!("../../../../../extensions/documents/fixtures/analysis.ipynb.txt")
        .split_whitespace()
        .count();
    assert_eq!(
        bench
            .ok(&define_tool(), json!({"path": "a.ipynb"}))
            .await
            .envelope
            .data["tokens"],
        words
    );
}

#[tokio::test]
async fn count_tokens_needs_either_a_path_or_a_text() {
    let bench = Bench::new();
    bench.write("program", b"\x7FELF\0\0");
    for (arguments, code) in [
        (json!({}), "invalid_arguments"),
        (json!({"path": "a", "text": "b"}), "invalid_arguments"),
        (json!({"path": "program"}), "binary_file"),
        (json!({"path": "none"}), "not_found"),
    ] {
        assert_eq!(
            bench.err(&define_tool(), arguments.clone()).await.0,
            code,
            "{arguments}"
        );
    }
}
