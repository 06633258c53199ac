//! Finds processes that should have ended.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A script that starts a process without a parent, in its own session, that ignores TERM signals,
/// and a process that keeps starting others; both run once the file `ready` exists. The environment
/// holds a mark by which the tests find them.
pub(crate) const DAEMONS: &str = r#"
    trap "" TERM HUP INT
    (setsid sh -c 'trap "" TERM HUP INT; touch daemon; while :; do sleep 1; done' &)
    (setsid sh -c 'trap "" TERM; touch forker; while :; do sleep 0.02; (setsid sleep 1000 &); done' &)
    while [ ! -e daemon ] || [ ! -e forker ]; do sleep 0.01; done
    touch ready
"#;

/// Returns an environment entry that is unique to `folder`, a temporary folder of one test.
pub(crate) fn mark(folder: &Path) -> (String, String) {
    ("HAFT_TEST_MARK".to_owned(), folder.display().to_string())
}

/// Returns the living processes with the mark of `folder`.
pub(crate) fn marked_processes(folder: &Path) -> Vec<i32> {
    let (name, value) = mark(folder);
    let entry = format!("{name}={value}").into_bytes();
    let has_mark = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|e| e == entry))
    };
    all_processes()
        .into_iter()
        .filter(has_mark)
        .filter(|pid| is_alive(*pid))
        .collect()
}

/// Returns a process and all its descendants.
pub(crate) fn process_family(root: i32) -> Vec<i32> {
    let parents: Vec<_> = all_processes()
        .into_iter()
        .filter_map(|pid| Some((pid, state_and_parent(pid)?.1)))
        .collect();
    let mut family = vec![root];
    let mut at = 0;
    while at < family.len() {
        let above = family[at];
        family.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == above)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    family
}

/// True if the process runs; false if it waits to be reaped.
pub(crate) fn is_alive(pid: i32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// Waits until `holds` returns true. The limit is generous, so that no timing decides a test.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn all_processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the state and the parent.
fn state_and_parent(pid: i32) -> Option<(String, i32)> {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
