//! The guard on Linux, and the keeper below it: two small processes between haft and the command.
//!
//! ```text
//! haft ── guard ── keeper ── command ── whatever it starts
//! ```
//!
//! The **keeper** starts the command and adopts its orphans: it is pid 1 of a pid namespace, or
//! else a subreaper. The **guard** waits for the first of these: the command's end, the timeout,
//! the end of haft's side of the socket. Then it ends everything: politely, and after a moment of
//! grace with `SIGKILL`. Should anyone kill the keeper, its children come to the guard, a subreaper
//! too; should anyone kill the guard, the keeper ends everything. Both are out of reach
//! of the signals a terminal sends.
//!
//! Invariant: the guard says that all are gone only when it has no child left, which for a
//! subreaper means no descendant.
//!
//! There is no `PDEATHSIG` in this: it depends on a thread of the parent and is lost in too many
//! ways.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, getpid, kill_process, set_child_subreaper, waitpid,
};
use rustix::thread::UnshareFlags;

use super::keeper;
use super::namespaces::{self, CONFINED, Side};
use super::tree::{self, RemainingChildren};
use super::wait::{
    GRACE, PollOutcome, for_reading, let_go_of_output, poll_until, wait_for_outcome,
};
use crate::PidNamespace;
use crate::confine::{
    self, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, HostState,
    Network, PlacedCovers,
};
use crate::wire::{self, CommandOutcome, HelperRequest};

/// How long a command that has ended may take to be followed by its last children before they are
/// told to go.
const SETTLE: Duration = Duration::from_millis(5);

/// Runs the command to its end and the end of everything it started.
pub(super) fn guard(mut control: UnixStream, request: &HelperRequest) -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    let deadline = request
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));

    let (covers, around) = match surroundings(request) {
        Ok(found) => found,
        Err(failed) => {
            let _ = control.write_all(&CommandOutcome::NotConfined(failed).encode());
            return Ok(());
        }
    };
    let (keeper, outcome) = watch(request, &around, &mut control, deadline)?;
    // haft may be dead; its death is then the reason to go on, not to stop.
    let _ = control.write_all(&outcome.encode());
    let children = keeper.map_or(RemainingChildren::None, |keeper| end(keeper, outcome));
    // Not before: whoever is left could write what is uncovered.
    drop(covers);
    let_go_of_output();
    if children == RemainingChildren::None {
        let _ = control.write_all(&[wire::ALL_GONE]);
    }
    Ok(())
}

/// What has to be known and done outside before a command can be confined.
fn surroundings(request: &HelperRequest) -> Result<(PlacedCovers, HostState), ConfinementFailure> {
    let mut covers = PlacedCovers::default();
    let mut sockets = Vec::new();
    if let Some(ConfinementSpec {
        method: ConfinementMethod::Namespace,
        policy,
    }) = &request.confined
    {
        (covers, sockets) = (PlacedCovers::place(policy)?, confine::bound_sockets());
    }
    let around = HostState {
        covers: covers.paths(),
        protected: covers.found(),
        sockets,
        console: request.console,
    };
    Ok((covers, around))
}

/// The process that starts the command, and our end of the socket to it.
struct KeeperProcess {
    pid: Pid,
    link: UnixStream,
}

/// Starts the command and waits until it has to end. Without a keeper nothing was started.
fn watch(
    request: &HelperRequest,
    around: &HostState,
    control: &mut UnixStream,
    deadline: Option<Instant>,
) -> io::Result<(Option<KeeperProcess>, CommandOutcome)> {
    let mut not_confined = None;
    for namespaces in attempts(request) {
        let mut keeper = match start_keeper(request, namespaces, around) {
            Ok(keeper) => keeper,
            Err(error) => {
                not_confined = Some(ConfinementFailure::new(ConfinementStep::Namespaces, &error));
                continue;
            }
        };
        let outcome = wait_for_outcome(control, &mut keeper.link, deadline);
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
        end(keeper, outcome);
    }
    let failed = not_confined.filter(|_| request.confined.is_some());
    let failed = failed.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    Ok((None, CommandOutcome::NotConfined(failed)))
}

/// The ways to keep descendants together, best first. For a command that is not confined the last
/// works everywhere; one that is has no way but those that confine it.
fn attempts(request: &HelperRequest) -> Vec<UnshareFlags> {
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
        let all = pids | CONFINED | network;
        // The first needs privilege.
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
    around: &HostState,
) -> io::Result<KeeperProcess> {
    let (link, theirs) = UnixStream::pair()?;
    let ids = keeper::Ids {
        uid: geteuid(),
        gid: getegid(),
    };
    match namespaces::fork(namespaces)? {
        Side::Parent(pid) => Ok(KeeperProcess { pid, link }),
        Side::Child => {
            drop(link);
            keeper::main(theirs, request, namespaces, ids, around)
        }
    }
}

/// Ends everything that is left.
fn end(mut keeper: KeeperProcess, outcome: CommandOutcome) -> RemainingChildren {
    let ended = matches!(outcome, CommandOutcome::Code(_) | CommandOutcome::Signal(_));
    let started = ended
        || matches!(
            outcome,
            CommandOutcome::TimedOut | CommandOutcome::Cancelled
        );
    if started && !(ended && is_over(&mut keeper.link, SETTLE)) {
        tree::ask_to_end(getpid(), keeper.pid);
        is_over(&mut keeper.link, GRACE);
    }
    // For a pid namespace this is all there is to do, and the keeper is gone when all the others
    // are; otherwise its children come to us. Waiting for it first spares the usual command, of
    // which nothing is left, a search.
    let _ = kill_process(keeper.pid, Signal::KILL);
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(keeper.pid), WaitOptions::empty()) {}
    tree::end_all(getpid())
}

/// Whether the keeper ends within this time, which it does when the command has ended and no child
/// is left.
fn is_over(link: &mut UnixStream, patience: Duration) -> bool {
    let deadline = Instant::now().checked_add(patience);
    loop {
        match poll_until(&mut [for_reading(link)], deadline) {
            Ok(PollOutcome::Interrupted) => {}
            Ok(PollOutcome::Timeout) | Err(_) => return false,
            // Its report is of no interest any more.
            Ok(PollOutcome::Some) => match link.read(&mut [0; CommandOutcome::LENGTH]) {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            },
        }
    }
}
