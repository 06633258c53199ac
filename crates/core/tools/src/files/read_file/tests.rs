use std::fs::{self, File};
use std::io::{BufWriter, Write as _};

use serde_json::json;

use super::*;
use crate::knowledge::notes::StoredNotes;
use crate::testing::Bench;

async fn read_text(bench: &Bench, arguments: Value) -> String {
    bench.ok(&define_tool(), arguments).await.envelope.text
}

#[tokio::test]
async fn read_file_numbers_lines_and_returns_data() {
    let bench = Bench::new();
    let path = bench.write("src/a.txt", "one\n\ntwo\n");
    let output = bench.ok(&define_tool(), json!({"path": "src/a.txt"})).await;
    assert_eq!(output.envelope.text, "1\tone\n2\t\n3\ttwo");
    let mut data = output.envelope.data.clone();
    let mtime = data.as_object_mut().unwrap().remove("mtime").unwrap();
    assert!(mtime.as_str().unwrap().ends_with('Z'), "{mtime}");
    assert_eq!(
        data,
        json!({"path": "src/a.txt", "start_line": 1, "end_line": 3, "total_lines": 3, "content": "one\n\ntwo"})
    );
    let file = &output.envelope.context["file"];
    assert_eq!(file["path"], json!(path));
    assert_eq!(file["size"], 9);
    let seen = bench.context.reads.last_seen(&path).unwrap();
    assert_eq!(file["hash"], json!(seen.hash));
    assert_eq!(file["mtime_ns"], seen.mtime_ns);
}

#[tokio::test]
async fn read_file_shows_a_range_and_its_position() {
    let bench = Bench::new();
    bench.write("a", "1\n2\n3\n4\n5");
    assert_eq!(
        read_text(&bench, json!({"path": "a", "start_line": 2, "end_line": 3})).await,
        "2\t2\n3\t3\n[Lines 2-3 of 5.]"
    );
    assert_eq!(
        read_text(
            &bench,
            json!({"path": "a", "start_line": 5, "end_line": 99})
        )
        .await,
        "5\t5\n[Lines 5-5 of 5.]"
    );
}

#[tokio::test]
async fn read_file_rejects_ranges_beyond_the_end() {
    let bench = Bench::new();
    bench.write("a", "1\n2\n");
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "start_line": 3}))
        .await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "out_of_range",
            "`a` has 2 lines; `start_line` 3 is beyond its end"
        )
    );
    for (start, end) in [(0, 1), (2, 1)] {
        let arguments = json!({"path": "a", "start_line": start, "end_line": end});
        assert_eq!(
            bench.err(&define_tool(), arguments).await.0,
            "invalid_range"
        );
    }
}

#[tokio::test]
async fn read_file_reports_omitted_lines_and_where_to_continue() {
    let bench = Bench::new().with_limits(3, 1000);
    bench.write("a", "1\n2\n3\n4\n");
    let output = bench.ok(&define_tool(), json!({"path": "a"})).await;
    assert_eq!(
        output.envelope.text,
        "1\t1\n2\t2\n3\t3\n[Lines 1-3 of 4. Read on with start_line 4.]"
    );
    assert_eq!(output.envelope.data["truncated"], true);
    assert_eq!(
        read_text(&bench, json!({"path": "a", "start_line": 4})).await,
        "4\t4\n[Lines 4-4 of 4.]"
    );

    let bench = Bench::new().with_limits(100, 30);
    bench.write("a", "0123456789\n0123456789\n0123456789\n");
    assert!(
        read_text(&bench, json!({"path": "a"}))
            .await
            .ends_with("[Lines 1-2 of 3. Read on with start_line 3.]")
    );
}

#[tokio::test]
async fn read_file_cuts_one_huge_line_between_characters() {
    let bench = Bench::new().with_limits(100, 30);
    bench.write("a", format!("{}\nnext\n", "é".repeat(500)));
    let shown = read_text(&bench, json!({"path": "a"})).await;
    assert!(shown.starts_with("1\téééé"), "{shown}");
    assert!(
        shown.contains("[Line 1 has 1000 bytes and is cut here"),
        "{shown}"
    );
    assert!(
        shown.ends_with("[Lines 1-1 of 2. Read on with start_line 2.]"),
        "{shown}"
    );
    assert!(shown.lines().next().unwrap().len() <= 30);
}

#[tokio::test]
async fn read_file_reports_empty_missing_special_and_binary_files() {
    let bench = Bench::new();
    bench.write("empty", "");
    bench.write("program", b"\x7FELF\0\0\0");
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(
        read_text(&bench, json!({"path": "empty"})).await,
        "`empty` is empty."
    );
    for (path, code, says) in [
        ("missing", "not_found", "`.` holds `empty`"),
        (".", "is_folder", "list it to see"),
        ("pipe", "not_a_file", "never opened"),
        (
            "program",
            "binary_file",
            "an ELF program or library of 7 bytes",
        ),
        ("/etc/passwd", "outside_workspace", "/etc/passwd"),
    ] {
        let (found, message) = bench.err(&define_tool(), json!({"path": path})).await;
        assert_eq!(found, code, "{path}");
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn read_file_names_encodings_other_than_utf8() {
    let bench = Bench::new();
    bench.write("latin", b"caf\xE9\r\nb\r\n");
    bench.write("utf16", b"\xFF\xFEh\0i\0\n\0");
    bench.write("bom", b"\xEF\xBB\xBFhi\n");
    assert_eq!(
        read_text(&bench, json!({"path": "latin"})).await,
        "1\tcafé\n2\tb\n[Read as windows-1252.]"
    );
    assert_eq!(
        read_text(&bench, json!({"path": "utf16"})).await,
        "1\thi\n[Read as UTF-16LE.]"
    );
    assert_eq!(read_text(&bench, json!({"path": "bom"})).await, "1\thi");
}

#[tokio::test]
async fn read_file_shows_control_characters_and_reports_them() {
    let bench = Bench::new();
    bench.write("a", "\x1b]0;title\x07\n");
    let shown = read_text(&bench, json!({"path": "a"})).await;
    assert!(
        shown.starts_with("1\t␛]0;title␇\n[Control characters"),
        "{shown}"
    );
}

#[tokio::test]
async fn read_file_returns_images_whatever_their_name() {
    let bench = Bench::new();
    bench.write("a.txt", b"\x89PNG\r\n\x1A\nrest");
    let output = bench.ok(&define_tool(), json!({"path": "a.txt"})).await;
    assert_eq!(
        output.envelope.text,
        "`a.txt` is a picture (image/png, 12 bytes)."
    );
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].media_type, "image/png");
    assert_eq!(output.images[0].data, "iVBORw0KGgpyZXN0");
}

#[tokio::test]
async fn read_file_notes_an_external_change_once() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    read_text(&bench, json!({"path": "a"})).await;
    bench.write("a", "two\n");
    let output = bench.ok(&define_tool(), json!({"path": "a"})).await;
    assert_eq!(
        output.envelope.text,
        "1\ttwo\nNote: a was modified externally."
    );
    assert_eq!(
        output.envelope.data["note"],
        "Note: a was modified externally."
    );
    assert_eq!(read_text(&bench, json!({"path": "a"})).await, "1\ttwo");
    // A new time alone is no change: the hash decides.
    bench.write("a", "two\n");
    assert_eq!(read_text(&bench, json!({"path": "a"})).await, "1\ttwo");
}

#[tokio::test]
async fn read_file_reads_a_very_large_file_by_range() {
    let bench = Bench::new();
    let mut file = BufWriter::new(File::create(bench.path("big")).unwrap());
    let lines = MAX_LOADED / 100 + 1_000;
    for line in 1..=lines {
        writeln!(file, "{line:099}").unwrap();
    }
    file.into_inner().unwrap();
    let output = bench
        .ok(
            &define_tool(),
            json!({"path": "big", "start_line": lines, "end_line": lines}),
        )
        .await;
    assert_eq!(
        output.envelope.text,
        format!("{lines}\t{lines:099}\n[Lines {lines}-{lines} of {lines}.]")
    );
    // The file was not hashed, so it counts as not read.
    assert!(bench.context.reads.last_seen(&bench.path("big")).is_none());
    fs::remove_file(bench.path("big")).unwrap();
}

#[tokio::test]
async fn read_file_rejects_unknown_arguments() {
    let bench = Bench::new();
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "limit": 3}))
        .await;
    assert_eq!(code, "invalid_arguments");
    assert!(message.contains("`limit`"), "{message}");
}

#[tokio::test]
async fn read_file_returns_the_notes_on_the_file() {
    let bench = Bench::with_store().await;
    let kept = bench.shared::<StoredNotes>();
    bench.write("src/a.txt", "one\n");
    bench.write("src/b.txt", "two\n");
    for note in ["first", "second"] {
        kept.add("src/a.txt", note).await.unwrap();
    }
    kept.add("src", "on the folder").await.unwrap();
    let output = bench.ok(&define_tool(), json!({"path": "src/a.txt"})).await;
    assert_eq!(
        output.envelope.text,
        "1\tone\n[Notes on `src/a.txt`:]\n- n1: first\n- n2: second"
    );
    let notes = json!([{"id": "n1", "note": "first"}, {"id": "n2", "note": "second"}]);
    assert_eq!(output.envelope.data["notes"], notes);
    let other = bench.ok(&define_tool(), json!({"path": "src/b.txt"})).await;
    assert_eq!(
        (
            other.envelope.text.as_str(),
            other.envelope.data.get("notes")
        ),
        ("1\ttwo", None)
    );
    for note in 3..=8 {
        kept.add("src/a.txt", &note.to_string()).await.unwrap();
    }
    let many = read_text(&bench, json!({"path": "src/a.txt"})).await;
    assert!(
        many.contains("`note_query` shows 3 older ones") && !many.contains("- n1:"),
        "{many}"
    );
    assert_eq!(many.lines().count(), 7, "{many}");
}
