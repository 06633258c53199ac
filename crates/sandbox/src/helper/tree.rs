//! Finding and ending the descendants of a process.
//!
//! Everything is read from `/proc` again and again until the kernel says that no child is left: a process can fork,
//! move to another session and lose its parent, but it cannot leave its nearest subreaper.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// Rounds in which nobody could be signalled, at the longest pause, before we give up: what is left belongs to another
/// user or cannot be seen.
const HOPELESS: u32 = 100;
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Asks every descendant of `root` but `spared` to end, stopped ones too.
pub(super) fn ask_to_end(root: Pid, spared: Pid) {
    for pid in descendants(root).into_iter().filter(|pid| *pid != spared) {
        let _ = kill_process(pid, Signal::TERM);
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Ends every descendant of `root`, the calling process, which must be a subreaper, and returns when none is left or
/// those that are cannot be ended.
pub(super) fn end_all(root: Pid) -> Children {
    let mut pause = Duration::from_millis(1);
    let mut hopeless = 0;
    while reap() == Children::Left {
        // First everything is stopped: what is stopped cannot fork.
        let mut stopped = HashSet::new();
        loop {
            let before = stopped.len();
            for pid in descendants(root) {
                if stopped.insert(pid) {
                    let _ = kill_process(pid, Signal::STOP);
                }
            }
            if stopped.len() == before {
                break;
            }
        }
        let killed = stopped.into_iter().filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count();
        hopeless = if killed == 0 { hopeless + 1 } else { 0 };
        if hopeless > HOPELESS {
            return Children::Left;
        }
        if reap() == Children::None {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Children::None
}

/// Whether any child is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Children {
    Left,
    None,
}

/// Takes leave of all children that have ended.
fn reap() -> Children {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Children::Left,
            Err(_) => return Children::None,
        }
    }
}

/// All processes below `root`, parents before children.
fn descendants(root: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes: Vec<(Pid, Pid)> = entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent(&stat)?))
        })
        .collect();
    let mut found = Vec::new();
    let mut above = vec![root];
    while let Some(parent) = above.pop() {
        for (pid, _) in processes.iter().filter(|(_, its)| *its == parent) {
            found.push(*pid);
            above.push(*pid);
        }
    }
    found
}

/// The parent in `pid (name) state parent …`; the name may hold anything, also parentheses.
fn parent(stat: &[u8]) -> Option<Pid> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent(b"12 (a) b) (c) S 7 12 12 0"), Pid::from_raw(7));
        assert_eq!(parent(b"12 (\xff\n) R 1 0"), Pid::from_raw(1));
        assert_eq!(parent(b"1 (init) S 0 1"), None);
        assert_eq!(parent(b"garbage"), None);
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(descendants(rustix::process::getpid()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(rustix::process::getpid()).contains(&pid));
    }
}
