//! The keeper: starts the command, adopts and reaps its orphans, and reports how the command ended.
//!
//! Invariant: the keeper outlives the command's last descendant unless the keeper is killed, and
//! ends all descendants when the guard is gone.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::exit;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Signal, Uid, WaitOptions, getpid, kill_process,
    set_child_subreaper, set_dumpable_behavior, setsid, wait,
};
use rustix::thread::UnshareFlags;

use super::namespaces::{self, CONFINED_NAMESPACES, ForkSide};
use super::wait::{is_ready, poll_fd_for_reading, poll_until};
use super::{command, tree};
use crate::HELPER_ARG;
use crate::confine::{
    self, AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep,
    HostState, NameMonitor, Network, Restrictions, Watched,
};
use crate::network;
use crate::wire::{CommandOutcome, HelperRequest};

/// The user id and the group id of this process outside any namespace.
#[derive(Clone, Copy)]
pub(super) struct Ids {
    pub(super) uid: Uid,
    pub(super) gid: Gid,
}

/// Runs the forked keeper process until it exits.
pub(super) fn run_keeper(
    mut link: UnixStream,
    request: &HelperRequest,
    namespaces: UnshareFlags,
    ids: Ids,
    host: &HostState,
) -> ! {
    let outcome = match prepare_keeper(request, namespaces, ids, host) {
        Ok(PreparedKeeper {
            children,
            restrictions,
            forwarder,
        }) => {
            let monitor = NameMonitor::start(&host.names);
            match start_command_or_restriction_test(request, restrictions) {
                Ok(command) => {
                    let waiting = ChildWait {
                        command,
                        forwarder,
                        children,
                        namespaces,
                        monitor,
                        is_reported: false,
                    };
                    waiting.run(&mut link);
                    exit(0)
                }
                Err(outcome) => outcome,
            }
        }
        Err(PrepareError::NotConfined(failed)) => CommandOutcome::NotConfined(failed),
        Err(PrepareError::Other) => CommandOutcome::NoNamespace,
    };
    // Errors are ignored: a guard that no longer reads is dead, and the keeper will notice that the
    // socket is closed.
    let _ = link.write_all(&outcome.encode());
    exit(0)
}

/// The state of the keeper after its setup and before the command is started.
struct PreparedKeeper {
    /// A descriptor that becomes readable when a child has ended.
    children: File,
    /// Restrictions that the command applies to itself before `exec`.
    restrictions: Option<Restrictions>,
    /// The process that connects the command with the proxy.
    forwarder: Option<Pid>,
}

/// The reason why the keeper could not be prepared. No command is started.
enum PrepareError {
    NotConfined(ConfinementFailure),
    Other,
}

impl From<ConfinementFailure> for PrepareError {
    fn from(failed: ConfinementFailure) -> Self {
        Self::NotConfined(failed)
    }
}

impl From<io::Error> for PrepareError {
    fn from(_: io::Error) -> Self {
        Self::Other
    }
}

/// Makes this process adopt orphans, and sets up the confinement.
fn prepare_keeper(
    request: &HelperRequest,
    namespaces: UnshareFlags,
    ids: Ids,
    host: &HostState,
) -> Result<PreparedKeeper, PrepareError> {
    if namespaces.is_empty() {
        set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    } else if !namespaces.contains(CONFINED_NAMESPACES) {
        mount_own_proc()?;
    }
    if namespaces.contains(UnshareFlags::NEWUSER) {
        map_ids(ids).at_step(ConfinementStep::Users)?;
    }
    if namespaces.contains(UnshareFlags::NEWNET) {
        confine::bring_up_loopback().at_step(ConfinementStep::Network)?;
    }
    let (restrictions, forwarder) = match &request.confined {
        None => (None, None),
        Some(confined) => {
            match confined.method {
                ConfinementMethod::Namespace => {
                    confine::build_file_system(&confined.policy, host)?;
                }
                ConfinementMethod::Landlock => confine::restrict_with_landlock(&confined.policy)?,
            }
            // No process inside may inspect this process, which has more rights.
            set_dumpable_behavior(DumpableBehavior::NotDumpable)
                .at_step(ConfinementStep::Restrictions)?;
            let restrictions = Restrictions::for_spec(confined)?;
            let forwarder =
                start_forwarder(confined, &restrictions).at_step(ConfinementStep::Network)?;
            (Some(restrictions), forwarder)
        }
    };
    setsid().map_err(io::Error::from)?;
    Ok(PreparedKeeper {
        children: namespaces::open_child_signals()?,
        restrictions,
        forwarder,
    })
}

/// Starts the process that forwards connections from the loopback interface to the proxy, confined
/// like the command itself. Returns `None` if there is no proxy.
fn start_forwarder(
    confined: &ConfinementSpec,
    restrictions: &Restrictions,
) -> io::Result<Option<Pid>> {
    match (confined.method, &confined.policy.network) {
        (ConfinementMethod::Namespace, Network::Through(_)) => {}
        (ConfinementMethod::Namespace, Network::None | Network::All)
        | (ConfinementMethod::Landlock, _) => {
            return Ok(None);
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", confine::PROXY_PORT))?;
    match namespaces::fork_into(UnshareFlags::empty())? {
        ForkSide::Parent(pid) => Ok(Some(pid)),
        ForkSide::Child => match restrictions.apply() {
            Ok(()) => network::forward_connections(listener, Path::new(confine::PROXY_SOCKET)),
            Err(_) => exit(1),
        },
    }
}

/// Maps the user and the group to themselves in a new user namespace.
fn map_ids(Ids { uid, gid }: Ids) -> io::Result<()> {
    // Without privileges, a group can be mapped only after setting further groups is denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Mounts a `/proc` that shows the process ids of the new namespace: in the old `/proc`, a program
/// that searches for its own process id would find another process. Only this mount is made
/// private, so mounts that a command makes elsewhere behave as before.
fn mount_own_proc() -> io::Result<()> {
    mount_change("/proc", MountPropagationFlags::PRIVATE)?;
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )?;
    Ok(())
}

fn start_command_or_restriction_test(
    request: &HelperRequest,
    restrictions: Option<Restrictions>,
) -> Result<Pid, CommandOutcome> {
    if request
        .argv
        .first()
        .is_some_and(|program| program == HELPER_ARG)
    {
        // Every failure of the trial is reported as one error.
        return start_restriction_test(restrictions.as_ref())
            .or(Err(CommandOutcome::NoProgram(libc::EAGAIN)));
    }
    command::start_command(request, move || {
        restrictions.as_ref().map_or(Ok(()), Restrictions::apply)
    })
}

/// Starts a process that only applies the restrictions, in place of the command, to test whether
/// they can be applied.
fn start_restriction_test(restrictions: Option<&Restrictions>) -> io::Result<Pid> {
    match namespaces::fork_into(UnshareFlags::empty())? {
        ForkSide::Parent(pid) => Ok(pid),
        ForkSide::Child => exit(i32::from(
            restrictions.is_some_and(|restrictions| restrictions.apply().is_err()),
        )),
    }
}

/// The wait for the command and then for all its orphans.
struct ChildWait<'host> {
    command: Pid,
    forwarder: Option<Pid>,
    /// A descriptor that becomes readable when a child has ended.
    children: File,
    namespaces: UnshareFlags,
    monitor: NameMonitor<'host>,
    /// True if the guard knows how the command ended.
    is_reported: bool,
}

impl ChildWait<'_> {
    /// Returns when all processes have ended, or must end with this process.
    fn run(mut self, link: &mut UnixStream) {
        loop {
            match reap_until_command(self.command) {
                Reaped::Command(outcome) => {
                    self.send_notices(link);
                    let _ = link.write_all(&outcome.encode());
                    self.is_reported = true;
                    // The forwarder would never exit by itself.
                    if let Some(forwarder) = self.forwarder {
                        let _ = kill_process(forwarder, Signal::KILL);
                    }
                    continue;
                }
                Reaped::NoneLeft if self.is_reported => {
                    // A name that appeared last may still be another program's.
                    let _ = self.monitor.judge_events();
                    return self.send_notices(link);
                }
                Reaped::NoneLeft | Reaped::AllAlive => {}
            }
            if self.wait_for_change(link) == AfterWait::End {
                return;
            }
        }
    }

    fn wait_for_change(&mut self, link: &mut UnixStream) -> AfterWait {
        let mut fds = vec![
            poll_fd_for_reading(link),
            poll_fd_for_reading(&self.children),
        ];
        let watched: Vec<_> = self.monitor.descriptors().collect();
        fds.extend(watched.iter().map(poll_fd_for_reading));
        let polled = poll_until(&mut fds, self.monitor.deadline());
        // The guard sends nothing, so this socket becomes readable only when the guard is gone.
        if polled.is_err() || is_ready(&fds[0]) {
            // The kernel ends a pid namespace with its first process.
            if self.namespaces.is_empty() {
                tree::kill_descendants(getpid());
            }
            return AfterWait::End;
        }
        drop(fds);
        drop(watched);
        let intruded = self.monitor.attend() == Watched::Intrusion;
        self.send_notices(link);
        if intruded {
            // The kernel ends the command with this process, which is the first of its namespace.
            if !self.is_reported {
                let killed = CommandOutcome::Signal(Signal::KILL.as_raw());
                let _ = link.write_all(&killed.encode());
            }
            return AfterWait::End;
        }
        // `wait` reports which children have ended; the content is not needed.
        let _ = self.children.read(&mut [0; 1024]);
        AfterWait::Continue
    }

    fn send_notices(&mut self, link: &mut UnixStream) {
        for notice in self.monitor.take_notices() {
            let _ = link.write_all(&notice.encode());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterWait {
    Continue,
    End,
}

enum Reaped {
    Command(CommandOutcome),
    AllAlive,
    NoneLeft,
}

/// Reaps ended children until the command itself is reaped or no ended child is left.
fn reap_until_command(command: Pid) -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                return Reaped::Command(command::decode_wait_status(status));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Reaped::AllAlive,
            Err(_) => return Reaped::NoneLeft,
        }
    }
}
