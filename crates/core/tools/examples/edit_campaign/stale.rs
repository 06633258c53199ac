//! A file that someone else changed between read and edit: same second, same size, same time, other
//! content.

use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

use haft_testkit::support::Random;
use serde_json::{Value, json};

use crate::testing::Bench;
use crate::{Caller, Findings};

/// How someone else changes a file.
const WAYS: [&str; 3] = ["written in place", "renamed over", "cut and written"];

pub(crate) fn run(count: u64, random: &mut Random) -> Findings {
    let caller = Caller::new();
    let mut findings = Findings::default();
    for case in 0..count {
        findings.take(try_one(&caller, random).map_err(|what| format!("case {case}: {what}")));
    }
    findings
}

fn try_one(caller: &Caller, random: &mut Random) -> Result<String, String> {
    let bench = Bench::new();
    // The edited line stays what it is, so that only the ledger can tell.
    let mut lines: Vec<String> = (0..4 + random.below(20))
        .map(|line| format!("line {line} of {}", random.next_u64()))
        .collect();
    let edited = 0;
    let changed = 1 + random.below(lines.len() - 1);
    let path = bench.write("file", lines.join("\n") + "\n");
    assert_eq!(
        caller.outcome(&bench, "read_file", json!({"path": "file"})),
        "done"
    );

    let before = fs::metadata(&path).unwrap();
    let digit = lines[changed].pop().unwrap();
    lines[changed].push(if digit == '0' { '1' } else { '0' });
    let theirs = lines.join("\n") + "\n";
    let way = *random.choose(&WAYS).unwrap();
    change(&path, &theirs, way, before.modified().unwrap());
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (after.len(), after.modified().unwrap()),
        (before.len(), before.modified().unwrap())
    );

    let (tool, call) = call(random, &lines[edited]);
    let outcome = caller.outcome(&bench, tool, call);
    if outcome != "changed_since_read" {
        return Err(format!("{tool}, {way}: {outcome}"));
    }
    if bench.read("file") != theirs.as_bytes() || bench.files() != ["file"] {
        return Err(format!("{tool}, {way}: the file is not as they left it"));
    }
    Ok(format!("{tool} refused, {way}"))
}

fn change(path: &Path, content: &str, way: &str, time: SystemTime) {
    match way {
        "written in place" => {
            use std::io::{Seek, Write};
            let mut file = File::options().write(true).open(path).unwrap();
            file.rewind().unwrap();
            file.write_all(content.as_bytes()).unwrap();
        }
        "renamed over" => {
            let other = path.with_file_name("other");
            fs::write(&other, content).unwrap();
            fs::rename(other, path).unwrap();
        }
        _ => fs::write(path, content).unwrap(),
    }
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

/// A call of one of the tools that would change this line.
fn call(random: &mut Random, line: &str) -> (&'static str, Value) {
    match random.below(5) {
        0 => (
            "write_to_file",
            json!({"path": "file", "content": "everything new\n"}),
        ),
        1 => {
            let diff = format!("<<<<<<< SEARCH\n{line}\n=======\nnew\n>>>>>>> REPLACE");
            ("replace_in_file", json!({"path": "file", "diff": diff}))
        }
        2 => (
            "multi_edit",
            json!({"edits": [{"path": "file", "old_string": line, "new_string": "new"}]}),
        ),
        3 => {
            let patch =
                format!("*** Begin Patch\n*** Update File: file\n@@\n-{line}\n+new\n*** End Patch");
            ("apply_patch", json!({"patch": patch}))
        }
        _ => (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: file\n*** End Patch"}),
        ),
    }
}
