//! The keeper: starts the command, adopts and reaps its orphans, reports how it ended.
//!
//! Invariant: it outlives the command's last descendant unless it is killed, and when the guard is gone it takes all of
//! them with it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Stdio, exit};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Signal, Uid, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, setsid, wait,
};

use super::sys::{self, Namespaces, NetworkSpace, Side, Users};
use super::{for_reading, is_ready, poll_until, tree};
use crate::HELPER_ARG;
use crate::confine::{
    self, AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, HostState, Network,
    Restrictions,
};
use crate::network;
use crate::wire::{CommandOutcome, Console, HelperReport, HelperRequest};

/// The user and group this process has outside any namespace.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
}

/// Runs the forked process to its end.
pub(super) fn main(
    mut link: UnixStream,
    request: &HelperRequest,
    namespaces: Namespaces,
    ids: Ids,
    around: &HostState,
) -> ! {
    let outcome = match settle(request, namespaces, ids, around) {
        Ok(Settled { children, restrictions, forwarder }) => match start(request, restrictions) {
            Ok(command) => {
                keep(command, forwarder, &mut link, children, namespaces);
                exit(0)
            }
            Err(outcome) => outcome,
        },
        Err(Unsettled::NotConfined(failed)) => CommandOutcome::NotConfined(failed),
        Err(Unsettled::Other) => CommandOutcome::NoNamespace,
    };
    report(&mut link, outcome, namespaces);
    exit(0)
}

/// What there is before the command is started.
struct Settled {
    /// Tells of children that have ended.
    children: File,
    /// What the command is still to put on.
    restrictions: Option<Restrictions>,
    /// A process beside the command by which it reaches the proxy.
    forwarder: Option<Pid>,
}

/// Why nothing can be started.
enum Unsettled {
    NotConfined(ConfinementFailure),
    Other,
}

impl From<ConfinementFailure> for Unsettled {
    fn from(failed: ConfinementFailure) -> Self {
        Self::NotConfined(failed)
    }
}

impl From<io::Error> for Unsettled {
    fn from(_: io::Error) -> Self {
        Self::Other
    }
}

fn report(link: &mut UnixStream, outcome: CommandOutcome, namespaces: Namespaces) {
    // A guard that does not listen any more is dead, and that is noticed by its silence.
    let _ = link.write_all(&HelperReport { outcome, reaper: namespaces.reaper() }.encode());
}

/// Makes this process the one that orphans come to, and the place one that the command can be in.
fn settle(request: &HelperRequest, namespaces: Namespaces, ids: Ids, around: &HostState) -> Result<Settled, Unsettled> {
    match namespaces {
        Namespaces::None => set_child_subreaper(Some(getpid())).map_err(io::Error::from)?,
        Namespaces::Pid => mount_own_proc()?,
        Namespaces::PidAndUser => {
            map_ids(ids)?;
            mount_own_proc()?;
        }
        Namespaces::Confined { users, network } => {
            match users {
                Users::Same => {}
                Users::Own => map_ids(ids).at(ConfinementStep::Users)?,
            }
            match network {
                NetworkSpace::Same => {}
                NetworkSpace::Own => confine::loopback_up().at(ConfinementStep::Network)?,
            }
        }
    }
    let (restrictions, forwarder) = match &request.confined {
        None => (None, None),
        Some(confined) => {
            match confined.method {
                ConfinementMethod::Namespace => {
                    confine::build(&confined.policy, around)?;
                    confine::lock_pipes(&confined.policy);
                }
                ConfinementMethod::Landlock => confine::lock_in(&confined.policy)?,
            }
            // Nobody inside may look into this process, which can do more.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).at(ConfinementStep::Restrictions)?;
            let restrictions = Restrictions::of(confined)?;
            let forwarder = start_forwarder(confined, &restrictions).at(ConfinementStep::Network)?;
            (Some(restrictions), forwarder)
        }
    };
    setsid().map_err(io::Error::from)?;
    Ok(Settled { children: sys::child_signals()?, restrictions, forwarder })
}

/// Starts what leads from the loopback to the proxy, confined like the command itself, where there is a proxy.
fn start_forwarder(confined: &ConfinementSpec, restrictions: &Restrictions) -> io::Result<Option<Pid>> {
    match (confined.method, &confined.policy.network) {
        (ConfinementMethod::Namespace, Network::Through(_)) => {}
        (ConfinementMethod::Namespace, Network::None | Network::All) | (ConfinementMethod::Landlock, _) => {
            return Ok(None);
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", confine::PROXY_PORT))?;
    match sys::fork(Namespaces::None)? {
        Side::Parent(pid) => Ok(Some(pid)),
        Side::Child => match restrictions.put_on() {
            Ok(()) => network::forward(listener, Path::new(confine::PROXY_SOCKET)),
            Err(_) => exit(1),
        },
    }
}

/// Keeps the user and the group in a new user namespace as they were.
fn map_ids(Ids { uid, gid }: Ids) -> io::Result<()> {
    // Without privilege a group can be mapped only when further groups cannot be set.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// A `/proc` that shows the pids of the new namespace. Without it programs would look up their own pid and find another
/// process. Only this mount is made private: what a command mounts elsewhere behaves as before.
fn mount_own_proc() -> io::Result<()> {
    mount_change("/proc", MountPropagationFlags::PRIVATE)?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
    Ok(())
}

fn start(request: &HelperRequest, restrictions: Option<Restrictions>) -> Result<Pid, CommandOutcome> {
    let number = |error: &io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    let no_program = |error: io::Error| CommandOutcome::NoProgram(number(&error));
    // Changing into it here tells a missing folder from a missing program.
    std::env::set_current_dir(&request.cwd).map_err(|error| CommandOutcome::NoFolder(number(&error)))?;
    let Some((program, arguments)) = request.argv.split_first() else {
        return Err(CommandOutcome::NoProgram(libc::EINVAL));
    };
    if program == HELPER_ARG {
        return start_nothing(restrictions.as_ref()).map_err(no_program);
    }
    let mut command = std::process::Command::new(program);
    let stdin = match (request.console, &request.input) {
        (Console::None, None) => Stdio::null(),
        (Console::None, Some(text)) => in_memory(text).map_err(no_program)?,
        (Console::Terminal | Console::Socket, _) => {
            io::stdout().as_fd().try_clone_to_owned().map_err(no_program)?.into()
        }
    };
    command.args(arguments).env_clear().stdin(stdin);
    command.envs(request.env.iter().map(|(name, value)| (name, value)));
    let child = sys::in_own_session(&mut command, request.console, restrictions).spawn().map_err(no_program)?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(CommandOutcome::Lost)
}

/// A file that holds the text, is nowhere on disk, and is read from its beginning. Nobody has to feed it.
fn in_memory(text: &str) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create("haft-input", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// A process in place of the command that only puts on what confines it: to find out whether that can be done.
fn start_nothing(restrictions: Option<&Restrictions>) -> io::Result<Pid> {
    match sys::fork(Namespaces::None)? {
        Side::Parent(pid) => Ok(pid),
        Side::Child => exit(i32::from(restrictions.is_some_and(|restrictions| restrictions.put_on().is_err()))),
    }
}

/// Waits for the command and then for all its orphans; ends all of them when the guard is gone.
fn keep(command: Pid, forwarder: Option<Pid>, link: &mut UnixStream, mut children: File, namespaces: Namespaces) {
    let mut reported = false;
    loop {
        match reap(command) {
            Reaped::Command(outcome) => {
                report(link, outcome, namespaces);
                reported = true;
                // It would never end by itself.
                if let Some(forwarder) = forwarder {
                    let _ = kill_process(forwarder, Signal::KILL);
                }
                continue;
            }
            Reaped::NobodyLeft if reported => return,
            Reaped::NobodyLeft | Reaped::AllAlive => {}
        }
        let mut fds = [for_reading(link), for_reading(&children)];
        let polled = poll_until(&mut fds, None);
        // The guard sends nothing: there is something to read only when it is gone.
        if polled.is_err() || is_ready(&fds[0]) {
            match namespaces {
                // The kernel ends the namespace with its first process.
                Namespaces::Pid | Namespaces::PidAndUser | Namespaces::Confined { .. } => {}
                Namespaces::None => {
                    tree::end_all(getpid());
                }
            }
            return;
        }
        // Which children is for `wait` to say.
        let _ = children.read(&mut [0; 1024]);
    }
}

enum Reaped {
    Command(CommandOutcome),
    AllAlive,
    NobodyLeft,
}

/// Reaps orphans until the command itself, or nobody, is found to have ended.
fn reap(command: Pid) -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => return Reaped::Command(outcome(status)),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Reaped::AllAlive,
            Err(_) => return Reaped::NobodyLeft,
        }
    }
}

fn outcome(status: WaitStatus) -> CommandOutcome {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => CommandOutcome::Code(code),
        (None, Some(signal)) => CommandOutcome::Signal(signal),
        (None, None) => CommandOutcome::Lost,
    }
}
