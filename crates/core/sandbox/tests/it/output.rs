//! Tests of large and binary output.

use haft_sandbox::{Capture, CommandExit};
use haft_text::CutLimits;
use tempfile::TempDir;

use crate::{WAYS, run, shell};

/// Returns the peak memory of this process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn streams_are_captured_separately() {
    let finished = run(
        WAYS[0],
        &shell("echo out; echo err >&2; echo out", "/".as_ref()),
        &Capture::default(),
    )
    .unwrap();
    assert_eq!(finished.stdout.head, b"out\nout\n");
    assert_eq!(finished.stderr.head, b"err\n");
}

#[test]
fn endless_lines_are_counted_in_bounded_memory() {
    let finished = run(
        WAYS[0],
        &shell("yes | head -c 209715200", "/".as_ref()),
        &Capture::default(),
    )
    .unwrap();
    assert_eq!(finished.exit, CommandExit::Code(0));
    assert_eq!(
        (finished.stdout.bytes, finished.stdout.lines),
        (209_715_200, 104_857_600)
    );
    let limits = CutLimits::default();
    assert!(
        finished.stdout.head.len() <= limits.bytes && finished.stdout.tail.len() <= limits.bytes
    );
    let cut = finished.stdout.text(limits);
    assert!(cut.text.len() <= limits.bytes);
    assert!(
        cut.text.contains("104,855,601 lines"),
        "{}",
        &cut.text[1_990..2_100]
    );
    assert!(peak_memory() < 150 << 20, "{} bytes", peak_memory());
}

#[test]
fn spill_file_keeps_one_huge_line_whole() {
    let folder = TempDir::new().unwrap();
    let capture = Capture::with_spill(CutLimits::default(), folder.path().join("call"));
    let line = "head -c 52428800 /dev/zero | tr '\\0' x";
    let finished = run(WAYS[0], &shell(line, folder.path()), &capture).unwrap();
    assert_eq!(
        (finished.stdout.bytes, finished.stdout.lines),
        (52_428_800, 1)
    );
    let spill = finished.stdout.spill.clone().unwrap();
    assert_eq!(spill.metadata().unwrap().len(), 52_428_800);
    assert_eq!(finished.stdout.spill_problem, None);
    assert_eq!(finished.stderr.spill, None);
    assert!(
        finished
            .stdout
            .text(capture.limits)
            .text
            .contains("bytes of a long line omitted")
    );
    assert!(peak_memory() < 150 << 20, "{} bytes", peak_memory());
}

#[test]
fn captured_text_of_binary_output_has_no_control_characters() {
    let line = "head -c 3000000 /dev/urandom; printf '\\033]0;title\\007\\033[2J'";
    let finished = run(WAYS[0], &shell(line, "/".as_ref()), &Capture::default()).unwrap();
    assert_eq!(finished.stdout.bytes, 3_000_000 + 14);
    let shown = finished.stdout.text(CutLimits::default()).text;
    assert!(
        !shown
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
    );
    assert!(shown.len() <= CutLimits::default().bytes);
}

#[test]
fn run_does_not_wait_for_output_of_background_processes() {
    // The background process holds the pipe; it is ended, so that reading ends.
    let line = "sleep 1000 & echo done";
    for way in WAYS {
        let finished = run(way, &shell(line, "/".as_ref()), &Capture::default()).unwrap();
        assert_eq!(finished.exit, CommandExit::Code(0));
        assert_eq!(finished.stdout.head, b"done\n");
    }
}
