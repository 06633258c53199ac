//! Finds and ends the descendants of a process.
//!
//! `/proc` is read repeatedly until the kernel reports that no child is left: a process can fork,
//! move to another session, and lose its parent, but it cannot leave its nearest subreaper.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::proc::find_descendants;

/// The maximum number of rounds, at the longest pause, in which no process could be killed. After
/// that, the remaining processes belong to another user or cannot be seen.
const MAX_FAILED_ROUNDS: u32 = 100;
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Sends `SIGTERM` to every descendant of `root` except `spared`, even to stopped ones.
///
/// All of them are stopped first: otherwise a process that is just being started would miss the
/// signal, and the helper would wait for it until the grace period is over. Processes that
/// descendants start afterwards, to clean up, are left alone.
pub(super) fn terminate_descendants(root: Pid, spared: Pid) {
    for pid in stop_descendants(root, Some(spared)) {
        let _ = kill_process(pid, Signal::TERM);
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Stops every descendant of `root` except `spared`. Stopped processes cannot fork, so the returned
/// set is complete.
fn stop_descendants(root: Pid, spared: Option<Pid>) -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    loop {
        let before = stopped.len();
        for pid in find_descendants(root)
            .into_iter()
            .filter(|pid| Some(*pid) != spared)
        {
            if stopped.insert(pid) {
                let _ = kill_process(pid, Signal::STOP);
            }
        }
        if stopped.len() == before {
            return stopped;
        }
    }
}

/// Kills every descendant of `root`, which must be the calling process and a subreaper. Returns
/// when none is left or the remaining ones cannot be killed.
pub(super) fn kill_descendants(root: Pid) -> RemainingChildren {
    let mut pause = Duration::from_millis(1);
    let mut failed_rounds = 0;
    while reap_children() == RemainingChildren::Left {
        let killed = stop_descendants(root, None)
            .into_iter()
            .filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
            .count();
        failed_rounds = if killed == 0 { failed_rounds + 1 } else { 0 };
        if failed_rounds > MAX_FAILED_ROUNDS {
            return RemainingChildren::Left;
        }
        if reap_children() == RemainingChildren::None {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(MAX_PAUSE);
    }
    RemainingChildren::None
}

/// The result of reaping: some children of this process are left, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemainingChildren {
    Left,
    None,
}

/// Reaps all children that have ended. Returns `Left` if other children are still running, or
/// `None` if there are no children.
fn reap_children() -> RemainingChildren {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return RemainingChildren::Left,
            Err(_) => return RemainingChildren::None,
        }
    }
}
