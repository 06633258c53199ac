//! Someone else writes a file over and over while it is edited.
//!
//! The file has two lines: theirs, with a number that only ever grows, and one that is edited.
//! Whatever happens, their last number must be in the file in the end, in whichever line the edits
//! left: as they wrote it, or carried along by an edit that had read it. And an edit that says it
//! was made must be there unless they wrote after it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haft_testkit::support::Random;
use serde_json::json;

use crate::testing::Bench;
use crate::{Caller, Findings};

/// Writes of theirs in one case.
const WRITES: u64 = 100;

pub(crate) fn run(count: u64, random: &mut Random) -> Findings {
    let caller = Caller::new();
    let mut findings = Findings::default();
    for case in 0..count {
        let in_place = random.below(2) == 0;
        let result = try_one(&caller, in_place, random, &mut findings);
        findings.take(result.map_err(|what| format!("case {case}: {what}")));
    }
    findings
}

fn content(theirs: u64) -> String {
    format!("theirs {theirs}\nours 0\n")
}

fn try_one(
    caller: &Caller,
    in_place: bool,
    random: &mut Random,
    findings: &mut Findings,
) -> Result<String, String> {
    let bench = Bench::new();
    let path = bench.write("file", content(0));
    let written = AtomicU64::new(0);
    // From one write right after another to a few in the time of an edit.
    let pause = 1_u64 << random.below(18);
    let mut made = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=WRITES {
                write(&path, &content(number), in_place);
                written.store(number, Ordering::SeqCst);
                for _ in 0..pause {
                    std::hint::spin_loop();
                }
                thread::yield_now();
            }
        });
        let mut number = 0;
        while written.load(Ordering::SeqCst) < WRITES {
            number += 1;
            let before = written.load(Ordering::SeqCst);
            let outcome = edit(caller, &bench, number);
            findings.count(format!("  edits: {outcome}"));
            if outcome == "done" {
                made.push((number, before));
            }
        }
    });
    // A read in between may have seen half of their write; in the end it is whole.
    let last = fs::read_to_string(&path).unwrap();
    let way = if in_place { "in place" } else { "by renaming" };
    if !last.starts_with(&format!("theirs {WRITES}\nours ")) {
        return Err(format!("written {way}: their last write is lost: {last:?}"));
    }
    if let Some((number, _)) = made.iter().find(|(_, before)| *before == WRITES)
        && last != format!("theirs {WRITES}\nours {number}\n")
    {
        return Err(format!(
            "written {way}: edit {number} was said to be made: {last:?}"
        ));
    }
    // Once they are quiet an edit is made, and nothing is left lying about but what a message
    // named.
    if edit(caller, &bench, 0) == "changed_since_read" {
        return Err(format!("written {way}: refused though nobody writes"));
    }
    let left = bench
        .files()
        .iter()
        .filter(|name| name.starts_with(".haft-"))
        .count();
    if left > 0 {
        findings.count("  earlier content kept beside the file");
    }
    Ok(format!("nothing lost, written {way}"))
}

fn edit(caller: &Caller, bench: &Bench, number: u64) -> String {
    caller.call(bench, "read_file", json!({"path": "file"}));
    let read = fs::read_to_string(bench.path("file")).unwrap_or_default();
    let Some(ours) = read.lines().nth(1) else {
        return "read half of it".into();
    };
    let diff = format!("<<<<<<< SEARCH\n{ours}\n=======\nours {number}\n>>>>>>> REPLACE");
    caller.outcome(
        bench,
        "replace_in_file",
        json!({"path": "file", "diff": diff}),
    )
}

fn write(path: &Path, content: &str, in_place: bool) {
    if in_place {
        fs::write(path, content).unwrap();
    } else {
        let other = path.with_file_name("theirs");
        fs::write(&other, content).unwrap();
        fs::rename(other, path).unwrap();
    }
}
