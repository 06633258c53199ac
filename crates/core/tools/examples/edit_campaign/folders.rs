//! A folder and a link that leads out of the project change places, over and over, while files are
//! made, changed and removed in that folder. Nothing outside may be touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haft_testkit::support::Random;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::testing::Bench;
use crate::{Caller, Findings};

pub(crate) fn run(count: u64, random: &mut Random) -> Findings {
    let caller = Caller::new();
    let mut findings = Findings::default();
    let bench = Bench::new();
    let outside = bench.workspace().root.with_file_name("outside");
    // The same files inside and outside: only the way there tells them apart.
    for folder in [bench.path("folder"), outside.clone()] {
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("file"), "mark 0\nend\n").unwrap();
        fs::write(folder.join("deep/file"), "mark 0\nend\n").unwrap();
    }
    symlink(&outside, bench.path("link")).unwrap();
    let untouched = look(&outside);

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let folder = bench.path("folder");
            let link = bench.path("link");
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                thread::yield_now();
            }
        });
        for case in 0..count {
            let (tool, call) = call(random, case);
            let outcome = caller.outcome(&bench, tool, call);
            let now = look(&outside);
            findings.take(if now == untouched {
                Ok(format!("{tool}: {outcome}"))
            } else {
                Err(format!(
                    "case {case}, {tool}: {outcome}; outside is now {now:?}"
                ))
            });
            if now != untouched {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    // Whatever was left beside the files inside is a failure too.
    let inside = [bench.path("folder"), bench.path("link")];
    let real = inside.iter().find(|path| !path.is_symlink()).unwrap();
    for (name, _) in look(real) {
        if name.contains(".haft-") {
            findings.failures.push(format!("`{name}` was left behind"));
        }
    }
    findings
}

/// Every file below a folder, and what it holds.
fn look(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .build()
    {
        let path = entry.unwrap().into_path();
        found.push((
            path.display().to_string(),
            fs::read_to_string(&path).unwrap_or_default(),
        ));
    }
    found.sort();
    found
}

fn call(random: &mut Random, case: u64) -> (&'static str, Value) {
    let path = *random.choose(&["folder/file", "folder/deep/file"]).unwrap();
    let number = random.below(3);
    let old = format!("mark {number}");
    let new = format!("mark {}", (number + 1) % 3);
    match random.below(6) {
        0 => (
            "write_to_file",
            json!({"path": format!("folder/new-{}", case % 50), "content": "x"}),
        ),
        1 => (
            "write_to_file",
            json!({"path": format!("folder/deep/{case}/new"), "content": "x"}),
        ),
        2 => (
            "multi_edit",
            json!({"edits": [
                {"path": "folder/file", "old_string": old, "new_string": new},
                    {"path": format!("folder/deep/made-{case}"), "old_string": "", "new_string": "x"},
            ]}),
        ),
        3 => {
            let patch = format!(
                "*** Begin Patch\n*** Delete File: folder/new-{}\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch",
                random.below(50)
            );
            ("apply_patch", json!({"patch": patch}))
        }
        _ => {
            let diff = format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE");
            ("replace_in_file", json!({"path": path, "diff": diff}))
        }
    }
}
