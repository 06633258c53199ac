//! The guard on Linux, and the keeper below it: two small processes between haft and the command.
//!
//! ```text
//! haft ── guard ── keeper ── command ── its descendants
//! ```
//!
//! The **keeper** starts the command and adopts its orphans: it is pid 1 of a pid namespace or else
//! a subreaper. The **guard** waits for the first of three events: the command ends, the timeout
//! passes, haft's side of the socket closes. Then it ends all processes with `SIGTERM` and, after a
//! grace period, with `SIGKILL`. If the keeper is killed, its children become children of the
//! guard, which is a subreaper too. If the guard is killed, the keeper ends all processes. The
//! signals of a terminal reach neither of them.
//!
//! Invariant: the guard reports that all processes are gone only when it has no child left, which
//! for a subreaper means no descendant.
//!
//! `PDEATHSIG` is not used: it depends on a thread of the parent and is lost in too many cases.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, getpid, kill_process, set_child_subreaper, waitpid,
};
use rustix::thread::UnshareFlags;

use super::keeper;
use super::namespaces::{self, CONFINED_NAMESPACES, ForkSide};
use super::tree::{self, RemainingChildren};
use super::wait::{
    GRACE_PERIOD, PollOutcome, poll_fd_for_reading, poll_until, release_output, wait_for_outcome,
};
use crate::PidNamespace;
use crate::commits;
use crate::confine::{
    ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, HostState, NameNotice,
    Network,
};
use crate::wire::{self, CommandOutcome, HelperRequest};

/// The time for which the last children of an ended command may run before they are sent `SIGTERM`.
const LAST_CHILDREN_TIMEOUT: Duration = Duration::from_millis(5);

/// Runs the command until it and everything it started have ended.
pub(super) fn run_guard(mut control: UnixStream, request: &HelperRequest) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let deadline = request
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));

    let host = match survey_host(request) {
        Ok(host) => host,
        Err(failed) => {
            let _ = control.write_all(&CommandOutcome::NotConfined(failed).encode());
            return Ok(());
        }
    };
    let mut notices = Vec::new();
    let (keeper, outcome) =
        run_until_outcome(request, &host, &mut control, deadline, &mut notices)?;
    // Errors are ignored: if haft is dead, that is a reason to continue with ending the command.
    let _ = control.write_all(&outcome.encode());
    let children = keeper.map_or(RemainingChildren::None, |keeper| {
        end_processes(keeper, outcome, &mut notices)
    });
    report_disarmed_redirects(request);
    // Done last: remaining processes could create the entries again.
    let undone = host.names.undo_intrusions(&notices);
    if !undone.is_empty() {
        let _ = control.write_all(&wire::encode_undone_paths(&undone));
    }
    release_output();
    if children == RemainingChildren::None {
        let _ = control.write_all(&[wire::ALL_GONE]);
    }
    Ok(())
}

/// Renames entries that redirect git, if the command created them in a repository that it was
/// allowed to write, and reports this as output of the command.
fn report_disarmed_redirects(request: &HelperRequest) {
    let confined = request.confined.iter();
    let repositories = confined.flat_map(|confined| &confined.policy.repositories);
    for path in repositories.flat_map(|repository| commits::disarm_redirects(repository)) {
        // Without standard error, the entry is renamed silently.
        let _ = writeln!(
            io::stderr(),
            "haft: the command created `{}`, which decides what git runs; it was renamed",
            path.display()
        );
    }
}

/// Reads the state of the machine, and begins to watch names, before a command is confined.
fn survey_host(request: &HelperRequest) -> Result<HostState, ConfinementFailure> {
    match &request.confined {
        Some(ConfinementSpec {
            method: ConfinementMethod::Namespace,
            policy,
        }) => HostState::survey(policy, request.console),
        Some(ConfinementSpec {
            method: ConfinementMethod::Landlock,
            ..
        })
        | None => Ok(HostState::for_console(request.console)),
    }
}

/// The process that starts the command, and the guard's end of the socket that connects them.
struct KeeperProcess {
    pid: Pid,
    link: UnixStream,
}

/// Starts the command, and waits until the command ends or must be ended. Returns no keeper if no
/// command was started.
fn run_until_outcome(
    request: &HelperRequest,
    host: &HostState,
    control: &mut UnixStream,
    deadline: Option<Instant>,
    notices: &mut Vec<NameNotice>,
) -> io::Result<(Option<KeeperProcess>, CommandOutcome)> {
    let mut not_confined = None;
    for namespaces in namespace_attempts(request) {
        let mut keeper = match start_keeper(request, namespaces, host) {
            Ok(keeper) => keeper,
            Err(error) => {
                not_confined = Some(ConfinementFailure::new(ConfinementStep::Namespaces, &error));
                continue;
            }
        };
        let outcome = wait_for_outcome(control, &mut keeper.link, deadline, |report| {
            let notice = NameNotice::decode(report);
            notices.extend(notice);
            notice.is_some()
        });
        match outcome {
            CommandOutcome::NoNamespace => {}
            CommandOutcome::NotConfined(failed) => not_confined = Some(failed),
            CommandOutcome::Code(_)
            | CommandOutcome::Signal(_)
            | CommandOutcome::TimedOut
            | CommandOutcome::Cancelled
            | CommandOutcome::NoFolder(_)
            | CommandOutcome::NoProgram(_)
            | CommandOutcome::Lost => return Ok((Some(keeper), outcome)),
        }
        end_processes(keeper, outcome, notices);
    }
    let failed = not_confined.filter(|_| request.confined.is_some());
    let failed = failed.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    Ok((None, CommandOutcome::NotConfined(failed)))
}

/// Returns the sets of namespaces to try, best first. The last set for an unconfined command is
/// empty, so it works everywhere; every set for a confined command confines it.
fn namespace_attempts(request: &HelperRequest) -> Vec<UnshareFlags> {
    let none = UnshareFlags::empty();
    let pids = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    if let Some(ConfinementSpec {
        method: ConfinementMethod::Namespace,
        policy,
    }) = &request.confined
    {
        let network = match policy.network {
            Network::None | Network::Through(_) => UnshareFlags::NEWNET,
            Network::All => none,
        };
        let all = pids | CONFINED_NAMESPACES | network;
        // The first set needs privileges.
        return vec![all, all | UnshareFlags::NEWUSER];
    }
    match request.namespace {
        PidNamespace::Privileged => vec![pids, none],
        PidNamespace::Never => vec![none],
    }
}

fn start_keeper(
    request: &HelperRequest,
    namespaces: UnshareFlags,
    host: &HostState,
) -> io::Result<KeeperProcess> {
    let (link, theirs) = UnixStream::pair()?;
    let ids = keeper::Ids {
        uid: geteuid(),
        gid: getegid(),
    };
    match namespaces::fork_into(namespaces)? {
        ForkSide::Parent(pid) => Ok(KeeperProcess { pid, link }),
        ForkSide::Child => {
            drop(link);
            keeper::run_keeper(theirs, request, namespaces, ids, host)
        }
    }
}

/// Ends all processes of the command and the keeper.
fn end_processes(
    mut keeper: KeeperProcess,
    outcome: CommandOutcome,
    notices: &mut Vec<NameNotice>,
) -> RemainingChildren {
    let ended = matches!(outcome, CommandOutcome::Code(_) | CommandOutcome::Signal(_));
    let started = ended
        || matches!(
            outcome,
            CommandOutcome::TimedOut | CommandOutcome::Cancelled
        );
    if started && !(ended && keeper.exits_within(LAST_CHILDREN_TIMEOUT, notices)) {
        tree::terminate_descendants(getpid(), keeper.pid);
        keeper.exits_within(GRACE_PERIOD, notices);
    }
    // Killing the keeper ends a whole pid namespace, and the kernel then reports the keeper as
    // ended only after all other processes. Without a pid namespace its children become children of
    // the guard. Waiting for the keeper first avoids a search of `/proc` for the usual command,
    // which leaves no processes.
    let _ = kill_process(keeper.pid, Signal::KILL);
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(keeper.pid), WaitOptions::empty()) {}
    // Reads the notices that the keeper sent last.
    keeper.exits_within(GRACE_PERIOD, notices);
    tree::kill_descendants(getpid())
}

impl KeeperProcess {
    /// Waits until the keeper exits. Returns false if it is still running after `timeout`. The
    /// keeper exits when the command and all its children have ended.
    fn exits_within(&mut self, timeout: Duration, notices: &mut Vec<NameNotice>) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            match poll_until(&mut [poll_fd_for_reading(&self.link)], deadline) {
                Ok(PollOutcome::Interrupted) => {}
                Ok(PollOutcome::Timeout) | Err(_) => return false,
                Ok(PollOutcome::Some) => {
                    if self.read_notice(notices).is_err() {
                        return true;
                    }
                }
            }
        }
    }

    /// Reads a report of the keeper, and keeps it if it is a notice: how the command ended is known.
    /// Fails if the keeper has exited.
    fn read_notice(&mut self, notices: &mut Vec<NameNotice>) -> io::Result<()> {
        let mut report = [0; NameNotice::ENCODED_LEN];
        self.link.read_exact(&mut report)?;
        notices.extend(NameNotice::decode(report));
        Ok(())
    }
}
