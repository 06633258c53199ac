use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::live::{LiveCommand, OutputStream};

const SMALL: CutLimits = CutLimits {
    lines: 10,
    bytes: 200,
};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn record(capture: &Capture, chunks: &[&[u8]]) -> CapturedOutput {
    block_on(async {
        let mut recorder =
            OutputRecorder::new(capture, OutputStream::Stdout, &LiveCommand::default());
        for chunk in chunks {
            recorder.push_chunk(chunk).await;
        }
        recorder.finish().await
    })
}

#[test]
fn capture_keeps_short_output_without_a_file() {
    let folder = TempDir::new().unwrap();
    let captured = record(
        &Capture::with_spill(SMALL, folder.path().join("out")),
        &[b"a\n", b"b"],
    );
    assert_eq!(captured.text(SMALL).text, "a\nb");
    assert_eq!(
        (captured.bytes, captured.lines, captured.spill),
        (3, 2, None)
    );
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn capture_spills_long_output_to_a_private_file() {
    let folder = TempDir::new().unwrap();
    let chunks: Vec<_> = (0..100)
        .map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let chunks: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
    let captured = record(
        &Capture::with_spill(SMALL, folder.path().join("out")),
        &chunks,
    );
    let path = captured.spill.clone().unwrap();
    assert_eq!(path, folder.path().join("out.stdout"));
    assert_eq!(std::fs::read(&path).unwrap(), chunks.concat());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let cut = captured.text(SMALL);
    assert!(
        cut.text.starts_with("line 0\n") && cut.text.ends_with("line 99\n"),
        "{}",
        cut.text
    );
    assert_eq!(captured.lines, 100);
}

#[test]
fn capture_spills_many_short_lines() {
    let folder = TempDir::new().unwrap();
    let captured = record(
        &Capture::with_spill(SMALL, folder.path().join("out")),
        &[&b"\n".repeat(11)],
    );
    assert_eq!(
        std::fs::read(captured.spill.unwrap()).unwrap(),
        b"\n".repeat(11)
    );
}

#[test]
fn capture_does_not_touch_an_existing_file() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("out.stdout"), "mine").unwrap();
    let captured = record(
        &Capture::with_spill(SMALL, folder.path().join("out")),
        &[&[b'x'; 1_000]],
    );
    assert_eq!(captured.spill, None);
    assert!(matches!(
        captured.spill_problem,
        Some(SpillProblem::Failed { .. })
    ));
    assert_eq!(captured.bytes, 1_000);
    assert_eq!(
        std::fs::read(folder.path().join("out.stdout")).unwrap(),
        b"mine"
    );
}

#[test]
fn capture_reports_a_full_spill_file() {
    let folder = TempDir::new().unwrap();
    let capture = Capture {
        max_spill_bytes: 500,
        ..Capture::with_spill(SMALL, folder.path().join("out"))
    };
    let captured = record(&capture, &[&[b'x'; 400], &[b'y'; 400], &[b'z'; 400]]);
    let path = captured.spill.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 500);
    assert_eq!(
        captured.spill_problem,
        Some(SpillProblem::Full { path, bytes: 500 })
    );
    assert_eq!(captured.bytes, 1_200);
}

#[test]
fn recorder_leaves_no_file_when_dropped() {
    let folder = TempDir::new().unwrap();
    let capture = Capture::with_spill(SMALL, folder.path().join("out"));
    block_on(async {
        let mut recorder =
            OutputRecorder::new(&capture, OutputStream::Stderr, &LiveCommand::default());
        recorder.push_chunk(&[b'x'; 1_000]).await;
        assert!(folder.path().join("out.stderr").exists());
        drop(recorder);
    });
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn captured_text_omits_a_character_torn_at_the_gap() {
    let text = "é".repeat(1_000);
    let limits = CutLimits {
        lines: 10,
        bytes: 301,
    };
    let captured = record(
        &Capture {
            limits,
            ..Capture::default()
        },
        &[text.as_bytes(), b"x"],
    );
    let cut = captured.text(CutLimits {
        lines: 10,
        bytes: 1_000,
    });
    assert!(
        !cut.text.contains(char::REPLACEMENT_CHARACTER),
        "{}",
        cut.text
    );
    assert!(
        cut.text.contains("1,399 bytes") || cut.text.contains("1,400 bytes"),
        "{}",
        cut.text
    );
}

proptest! {
    #[test]
    fn capture_counts_exactly_in_bounded_memory(
        chunks in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 1..300), 0..20),
        bytes in 0usize..400,
    ) {
        let limits = CutLimits { lines: 1_000, bytes };
        let slices: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
        let captured = record(&Capture { limits, ..Capture::default() }, &slices);
        let whole = chunks.concat();
        let line_ends = whole.split(|byte| *byte == b'\n').count() as u64 - 1;
        prop_assert_eq!(captured.bytes, whole.len() as u64);
        prop_assert_eq!(captured.lines, line_ends + u64::from(whole.last().is_some_and(|last| *last != b'\n')));
        prop_assert!(captured.head.len() <= bytes && captured.tail.len() <= bytes);
        prop_assert!(whole.starts_with(&captured.head) && whole.ends_with(&captured.tail));
        let kept = captured.head.len() + captured.tail.len();
        prop_assert!(kept == whole.len() || captured.tail.len() == bytes);
        prop_assert!(captured.text(limits).text.len() <= bytes.max(100));
    }
}
