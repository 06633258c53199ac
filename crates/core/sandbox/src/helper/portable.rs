//! The guard of systems other than Linux.
//!
//! The command has its own session. When it ends, all processes in this session and their
//! descendants are ended. Orphans are not adopted here: a process that has left its session and
//! whose parents are gone is not found. If the guard itself is killed, the command keeps running.
//! Nothing is confined: a command with a confinement is not run.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::wait::{GRACE_PERIOD, release_output, wait_for_outcome};
use super::{command, sys};
use crate::confine::{ConfinementFailure, ConfinementStep};
use crate::program_path::ProgramPath;
use crate::wire::{self, CommandOutcome, HelperRequest};

/// The time limit for killed processes to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the command until it and all processes of its session have ended.
pub(super) fn run_guard(mut control: UnixStream, request: &HelperRequest) -> io::Result<()> {
    const UNSUPPORTED: ConfinementFailure = ConfinementFailure {
        step: ConfinementStep::Namespaces,
        errno: libc::ENOTSUP,
    };
    let deadline = request
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));
    let unconfined = request
        .confined
        .as_ref()
        .map_or(Ok(()), |_| Err(CommandOutcome::NotConfined(UNSUPPORTED)));
    let started = unconfined.and_then(|()| command::start_command(request, || Ok(())));
    let outcome = match started {
        Ok(leader) => wait_for_outcome(&mut control, &mut watch_exit(leader)?, deadline, |_| false),
        Err(outcome) => outcome,
    };
    // Errors are ignored: if haft is dead, that is a reason to continue with ending the command.
    let _ = control.write_all(&outcome.encode());
    let all_gone = started.map_or(true, end_session);
    release_output();
    if all_gone {
        let _ = control.write_all(&[wire::ALL_GONE]);
    }
    Ok(())
}

/// Returns a socket on which the command's outcome will arrive, so that one poll covers all events.
fn watch_exit(command: Pid) -> io::Result<UnixStream> {
    let (ours, mut theirs) = UnixStream::pair()?;
    thread::spawn(move || {
        let ended = retry_on_intr(|| waitpid(Some(command), WaitOptions::empty()));
        ended
            .ok()
            .flatten()
            .map(|(_, status)| theirs.write_all(&command::decode_wait_status(status).encode()))
    });
    Ok(ours)
}

/// Ends all processes in the command's session. Returns true if all of them are gone, or false if
/// some are left or if processes cannot be listed.
fn end_session(leader: Pid) -> bool {
    let Some(all) = list_session_processes(leader) else {
        let _ = kill_process_group(leader, Signal::KILL);
        return false;
    };
    for pid in all {
        let _ = kill_process(pid, Signal::TERM);
        let _ = kill_process(pid, Signal::CONT);
    }
    let begun = Instant::now();
    while begun.elapsed() < KILL_TIMEOUT {
        let left = list_session_processes(leader).unwrap_or_else(|| vec![leader]);
        if left.is_empty() {
            return true;
        }
        if begun.elapsed() > GRACE_PERIOD {
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Returns all processes of the session that `leader` leads and their descendants, or `None` if
/// processes cannot be listed.
fn list_session_processes(leader: Pid) -> Option<Vec<Pid>> {
    // There is no `/proc` here, and no safe library for the system calls that `ps` uses.
    let listed = ProgramPath::for_system("/bin/ps")
        .command()
        .args(["-axo", "pid=,ppid=,stat="])
        .output()
        .ok()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let process = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let mut id = || Pid::from_raw(words.next()?.parse().ok()?);
        let pid = id()?;
        let parent = id()?;
        (!words.next()?.starts_with('Z')).then_some((pid, parent))
    };
    let processes: Vec<_> = listed.lines().filter_map(process).collect();
    let of_session = processes
        .iter()
        .map(|(pid, _)| *pid)
        .filter(|pid| sys::session_id(*pid) == leader.as_raw_pid());
    let mut found: Vec<_> = of_session.collect();
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        let below = processes
            .iter()
            .filter(|(pid, parent)| *parent == above && !found.contains(pid));
        found.extend(below.map(|(pid, _)| *pid).collect::<Vec<_>>());
        at += 1;
    }
    (!processes.is_empty()).then_some(found)
}
