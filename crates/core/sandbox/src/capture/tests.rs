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
            recorder.push(chunk).await;
        }
        recorder.finish().await
    })
}

#[test]
fn short_output_is_whole_and_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let captured = record(
        &Capture::spilling_to(SMALL, folder.path().join("out")),
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
fn long_output_is_whole_in_a_private_file() {
    let folder = TempDir::new().unwrap();
    let chunks: Vec<_> = (0..100)
        .map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let chunks: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
    let captured = record(
        &Capture::spilling_to(SMALL, folder.path().join("out")),
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
fn many_short_lines_spill_too() {
    let folder = TempDir::new().unwrap();
    let captured = record(
        &Capture::spilling_to(SMALL, folder.path().join("out")),
        &[&b"\n".repeat(11)],
    );
    assert_eq!(
        std::fs::read(captured.spill.unwrap()).unwrap(),
        b"\n".repeat(11)
    );
}

#[test]
fn an_existing_file_is_not_touched() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("out.stdout"), "mine").unwrap();
    let captured = record(
        &Capture::spilling_to(SMALL, folder.path().join("out")),
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
fn a_full_file_says_so() {
    let folder = TempDir::new().unwrap();
    let capture = Capture {
        spill_bytes: 500,
        ..Capture::spilling_to(SMALL, folder.path().join("out"))
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
fn a_recorder_that_is_dropped_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let capture = Capture::spilling_to(SMALL, folder.path().join("out"));
    block_on(async {
        let mut recorder =
            OutputRecorder::new(&capture, OutputStream::Stderr, &LiveCommand::default());
        recorder.push(&[b'x'; 1_000]).await;
        assert!(folder.path().join("out.stderr").exists());
        drop(recorder);
    });
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_character_torn_at_the_gap_is_not_shown() {
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
    fn counts_are_exact_and_memory_is_bounded(
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
