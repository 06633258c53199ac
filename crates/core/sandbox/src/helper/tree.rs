//! Finding and ending the descendants of a process.
//!
//! Everything is read from `/proc` again and again until the kernel says that no child is left: a
//! process can fork, move to another session and lose its parent, but it cannot leave its nearest
//! subreaper.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::proc::descendants;

/// Rounds in which nobody could be signalled, at the longest pause, before we give up: what is left
/// belongs to another user or cannot be seen.
const HOPELESS: u32 = 100;
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Asks every descendant of `root` but `spared` to end, stopped ones too. One that was just being
/// started would not hear of it and be waited for until the time of grace is over; what it starts
/// from then on, to clean up, is left alone.
pub(super) fn ask_to_end(root: Pid, spared: Pid) {
    for pid in stop_all(root, Some(spared)) {
        let _ = kill_process(pid, Signal::TERM);
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Stops every descendant of `root` but `spared`: what is stopped cannot fork, so these are all
/// there are.
fn stop_all(root: Pid, spared: Option<Pid>) -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    loop {
        let before = stopped.len();
        for pid in descendants(root)
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

/// Ends every descendant of `root`, the calling process, which must be a subreaper, and returns
/// when none is left or those that are cannot be ended.
pub(super) fn end_all(root: Pid) -> RemainingChildren {
    let mut pause = Duration::from_millis(1);
    let mut hopeless = 0;
    while reap() == RemainingChildren::Left {
        let killed = stop_all(root, None)
            .into_iter()
            .filter(|pid| kill_process(*pid, Signal::KILL).is_ok())
            .count();
        hopeless = if killed == 0 { hopeless + 1 } else { 0 };
        if hopeless > HOPELESS {
            return RemainingChildren::Left;
        }
        if reap() == RemainingChildren::None {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    RemainingChildren::None
}

/// Whether any child is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemainingChildren {
    Left,
    None,
}

/// Takes leave of all children that have ended.
fn reap() -> RemainingChildren {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return RemainingChildren::Left,
            Err(_) => return RemainingChildren::None,
        }
    }
}
