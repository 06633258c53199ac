//! Looking for processes that should be gone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts a process that has lost its parent, has a session of its own and ignores polite signals,
/// and one that keeps starting others; both exist once the file `ready` does. The environment holds
/// a mark to find them by.
pub(crate) const DAEMONS: &str = r#"
    trap "" TERM HUP INT
    (setsid sh -c 'trap "" TERM HUP INT; touch daemon; while :; do sleep 1; done' &)
    (setsid sh -c 'trap "" TERM; touch forker; while :; do sleep 0.02; (setsid sleep 1000 &); done' &)
    while [ ! -e daemon ] || [ ! -e forker ]; do sleep 0.01; done
    touch ready
"#;

/// An environment entry that no other test has: the path of a folder made for one.
pub(crate) fn mark(folder: &Path) -> (String, String) {
    ("HAFT_TEST_MARK".to_owned(), folder.display().to_string())
}

/// Processes with this mark that are alive.
pub(crate) fn marked(folder: &Path) -> Vec<i32> {
    let (name, value) = mark(folder);
    let entry = format!("{name}={value}").into_bytes();
    let has_mark = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|e| e == entry))
    };
    all()
        .into_iter()
        .filter(has_mark)
        .filter(|pid| is_alive(*pid))
        .collect()
}

/// A process with all its descendants.
pub(crate) fn family(root: i32) -> Vec<i32> {
    let parents: Vec<_> = all()
        .into_iter()
        .filter_map(|pid| Some((pid, stat(pid)?.1)))
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

/// Whether the process runs; one that only waits to be reaped does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// Waits for something that must come; how long it takes decides nothing.
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

pub(crate) fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// State and parent.
fn stat(pid: i32) -> Option<(String, i32)> {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
