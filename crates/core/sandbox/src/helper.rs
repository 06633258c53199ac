//! The helper's side: two small processes between haft and the command.
//!
//! ```text
//! haft ── guard ── keeper ── command ── whatever it starts
//! ```
//!
//! The **keeper** starts the command and adopts its orphans: it is pid 1 of a pid namespace, or else a subreaper. The
//! **guard** waits for the first of these: the command's end, the timeout, the end of haft's side of the socket. Then it
//! ends everything: politely, and after a moment of grace with `SIGKILL`. Should anyone kill the keeper, its children
//! come to the guard, a subreaper too; should anyone kill the guard, the keeper ends everything. Both are out of reach
//! of the signals a terminal sends.
//!
//! Invariant: the guard says that all are gone only when it has no child left, which for a subreaper means no descendant.
//!
//! There is no `PDEATHSIG` in this: it depends on a thread of the parent and is lost in too many ways.

mod keeper;
#[expect(unsafe_code, reason = "what neither the standard library nor rustix can do safely")]
mod sys;
mod tree;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, getegid, geteuid, getpid, kill_process, set_child_subreaper, waitpid};

use crate::confine::{
    self, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, HostState, Network, PlacedCovers,
};
use crate::wire::{self, CommandOutcome, HelperReport, HelperRequest};
use crate::{HELPER_ARG, PidNamespace, Reaper};
use sys::{Namespaces, NetworkSpace, Side, Users};
use tree::RemainingChildren;

/// From the polite signal to the one that cannot be ignored.
const GRACE: Duration = Duration::from_millis(500);
/// How long a command that has ended may take to be followed by its last children before they are told to go.
const SETTLE: Duration = Duration::from_millis(5);

/// Runs this process as a supervisor helper if its arguments, the program's name included, say that it is one.
///
/// `main` calls it first thing, before it starts a thread or reads anything, and returns the code if there is one. A
/// helper speaks over the socket that is its standard input and prints nothing: its output is the command's.
pub fn helper_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let is_helper = arguments.into_iter().nth(1).is_some_and(|argument| argument == HELPER_ARG);
    is_helper.then(|| guard().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn guard() -> io::Result<()> {
    let mut control = take_control()?;
    sys::block_signals()?;
    sys::close_others_on_exec();
    set_child_subreaper(Some(getpid()))?;
    control.set_read_timeout(Some(wire::IDLE))?;
    let request = HelperRequest::read_from(&mut control)?;
    let deadline = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));

    let (covers, around) = match surroundings(&request) {
        Ok(found) => found,
        Err(failed) => {
            let report = HelperReport { outcome: CommandOutcome::NotConfined(failed), reaper: Reaper::Subreaper };
            let _ = control.write_all(&report.encode());
            return Ok(());
        }
    };
    let (keeper, report) = watch(&request, &around, &mut control, deadline)?;
    // haft may be dead; its death is then the reason to go on, not to stop.
    let _ = control.write_all(&report.encode());
    let children = keeper.map_or(RemainingChildren::None, |keeper| end(keeper, report.outcome));
    // Not before: whoever is left could write what is uncovered.
    drop(covers);
    // Nobody has to wait for our own end, not even who reads until nobody can write any more.
    let _ = rustix::stdio::dup2_stdout(rustix::stdio::stdin());
    let _ = rustix::stdio::dup2_stderr(rustix::stdio::stdin());
    if children == RemainingChildren::None {
        let _ = control.write_all(&[wire::ALL_GONE]);
    }
    Ok(())
}

/// What has to be known and done outside before a command can be confined.
fn surroundings(request: &HelperRequest) -> Result<(PlacedCovers, HostState), ConfinementFailure> {
    let (mut covers, mut sockets) = (PlacedCovers::default(), Vec::new());
    if let Some(ConfinementSpec { method: ConfinementMethod::Namespace, policy }) = &request.confined {
        (covers, sockets) = (PlacedCovers::place(policy)?, confine::bound_sockets());
    }
    let around = HostState { covers: covers.paths(), protected: covers.found(), sockets, console: request.console };
    Ok((covers, around))
}

/// Standard input as our socket, with nothing in its place. Started by hand there is no socket: that is an error.
fn take_control() -> io::Result<UnixStream> {
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    control.peer_addr()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
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
) -> io::Result<(Option<KeeperProcess>, HelperReport)> {
    let mut not_confined = None;
    for namespaces in attempts(request) {
        let reaper = namespaces.reaper();
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
            | CommandOutcome::Lost => return Ok((Some(keeper), HelperReport { outcome, reaper })),
        }
        end(keeper, outcome);
    }
    let failed = not_confined.filter(|_| request.confined.is_some());
    let failed = failed.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    Ok((None, HelperReport { outcome: CommandOutcome::NotConfined(failed), reaper: Reaper::Subreaper }))
}

/// The ways to keep descendants together, best first. For a command that is not confined the last works everywhere; one that
/// is has no way but those that confine it.
fn attempts(request: &HelperRequest) -> Vec<Namespaces> {
    if let Some(ConfinementSpec { method: ConfinementMethod::Namespace, policy }) = &request.confined {
        let network = match policy.network {
            Network::None | Network::Through(_) => NetworkSpace::Own,
            Network::All => NetworkSpace::Same,
        };
        return [Users::Same, Users::Own].map(|users| Namespaces::Confined { users, network }).to_vec();
    }
    match request.namespace {
        PidNamespace::Privileged => vec![Namespaces::Pid, Namespaces::None],
        PidNamespace::Unprivileged => vec![Namespaces::Pid, Namespaces::PidAndUser, Namespaces::None],
        PidNamespace::Never => vec![Namespaces::None],
    }
}

fn start_keeper(request: &HelperRequest, namespaces: Namespaces, around: &HostState) -> io::Result<KeeperProcess> {
    let (link, theirs) = UnixStream::pair()?;
    let ids = keeper::Ids { uid: geteuid(), gid: getegid() };
    match sys::fork(namespaces)? {
        Side::Parent(pid) => Ok(KeeperProcess { pid, link }),
        Side::Child => {
            drop(link);
            keeper::main(theirs, request, namespaces, ids, around)
        }
    }
}

fn wait_for_outcome(control: &mut UnixStream, link: &mut UnixStream, deadline: Option<Instant>) -> CommandOutcome {
    loop {
        let mut fds = [for_reading(link), for_reading(control)];
        match poll_until(&mut fds, deadline) {
            Ok(PollOutcome::Some) => {}
            Ok(PollOutcome::Interrupted) => continue,
            Ok(PollOutcome::Timeout) => return CommandOutcome::TimedOut,
            Err(_) => return CommandOutcome::Lost,
        }
        let [from_keeper, from_haft] = fds.map(|fd| is_ready(&fd));
        if from_keeper {
            // A keeper that says nothing was killed.
            let mut report = [0; HelperReport::LENGTH];
            let heard = link.read_exact(&mut report).ok().and_then(|()| HelperReport::decode(report));
            return heard.map_or(CommandOutcome::Lost, |report| report.outcome);
        }
        if from_haft {
            return CommandOutcome::Cancelled;
        }
    }
}

/// Ends everything that is left.
fn end(mut keeper: KeeperProcess, outcome: CommandOutcome) -> RemainingChildren {
    let ended = matches!(outcome, CommandOutcome::Code(_) | CommandOutcome::Signal(_));
    let started = ended || matches!(outcome, CommandOutcome::TimedOut | CommandOutcome::Cancelled);
    if started && !(ended && is_over(&mut keeper.link, SETTLE)) {
        tree::ask_to_end(getpid(), keeper.pid);
        is_over(&mut keeper.link, GRACE);
    }
    // For a pid namespace this is all there is to do, and the keeper is gone when all the others are; otherwise its
    // children come to us. Waiting for it first spares the usual command, of which nothing is left, a search.
    let _ = kill_process(keeper.pid, Signal::KILL);
    while let Err(rustix::io::Errno::INTR) = waitpid(Some(keeper.pid), WaitOptions::empty()) {}
    tree::end_all(getpid())
}

/// Whether the keeper ends within this time, which it does when the command has ended and no child is left.
fn is_over(link: &mut UnixStream, patience: Duration) -> bool {
    let deadline = Instant::now().checked_add(patience);
    loop {
        match poll_until(&mut [for_reading(link)], deadline) {
            Ok(PollOutcome::Interrupted) => {}
            Ok(PollOutcome::Timeout) | Err(_) => return false,
            // Its report is of no interest any more.
            Ok(PollOutcome::Some) => match link.read(&mut [0; HelperReport::LENGTH]) {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            },
        }
    }
}

enum PollOutcome {
    Some,
    Timeout,
    Interrupted,
}

fn poll_until(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<PollOutcome> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // A time too long for the kernel is as good as none.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(fds, left.as_ref()) {
        Ok(0) => Ok(PollOutcome::Timeout),
        Ok(_) => Ok(PollOutcome::Some),
        Err(rustix::io::Errno::INTR) => Ok(PollOutcome::Interrupted),
        Err(error) => Err(error.into()),
    }
}

impl Namespaces {
    fn reaper(self) -> Reaper {
        match self {
            Self::Pid | Self::PidAndUser | Self::Confined { .. } => Reaper::PidNamespace,
            Self::None => Reaper::Subreaper,
        }
    }
}

fn for_reading<Fd: AsFd>(fd: &Fd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// Whether there is something to read, the end included.
fn is_ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}
