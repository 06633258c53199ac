//! The system calls that need `unsafe`, each behind a safe function. The helper has one thread when any of them is used.

use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

use crate::confine::Restrictions;
use crate::wire::Console;

/// What a forked process gets of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// Pids and mounts.
    Pid,
    /// Pids, mounts and users, which needs no privilege.
    PidAndUser,
    /// All that confine it, and users if it must be.
    Confined { users: Users, network: NetworkSpace },
    /// Nothing.
    None,
}

/// Whether a process gets a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// As it is: that needs privilege.
    Same,
    /// Of its own.
    Own,
}

/// Whether a process gets a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkSpace {
    /// As it is.
    Same,
    /// Of its own, with a loopback only.
    Own,
}

/// Which of the two processes this is after a fork.
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Forks, the child with these namespaces of its own.
pub(super) fn fork(namespaces: Namespaces) -> io::Result<Side> {
    let pid = match namespaces {
        // SAFETY: there is one thread, so the child finds no lock held and no state half-changed.
        Namespaces::None => i64::from(unsafe { libc::fork() }),
        Namespaces::Pid => clone(libc::CLONE_NEWPID | libc::CLONE_NEWNS),
        Namespaces::PidAndUser => clone(libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUSER),
        Namespaces::Confined { users, network } => {
            let users = match users {
                Users::Same => 0,
                Users::Own => libc::CLONE_NEWUSER,
            };
            let network = match network {
                NetworkSpace::Same => 0,
                NetworkSpace::Own => libc::CLONE_NEWNET,
            };
            let all = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
            clone(all | users | network)
        }
    };
    match pid {
        0 => Ok(Side::Child),
        1.. => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Side::Parent)
            .ok_or_else(|| io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A fork into new namespaces. `unshare` instead would change this process too, which then could not fork again without
/// them when they prove useless.
fn clone(namespaces: libc::c_int) -> libc::c_long {
    let arguments =
        CloneArguments { flags: namespaces as u64, exit_signal: libc::SIGCHLD as u64, ..CloneArguments::default() };
    // SAFETY: like `fork`: no memory is shared, no stack is given, there is one thread. The structure lives across the
    // call and its size is its own.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) }
}

/// The first version of the kernel's `struct clone_args`, which libc does not define for every target.
#[derive(Default)]
#[repr(C)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// Blocks every signal that can be blocked.
pub(super) fn block_signals() -> io::Result<()> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set; the old mask is not asked for.
    let failed = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Marks every descriptor but the standard three to be closed in the command: what haft inherited is not its business.
pub(super) fn close_others_on_exec() {
    // SAFETY: no descriptor is closed here. An old kernel that does not know the call changes nothing.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// A descriptor that can be read when a child has ended. The signal must be blocked.
pub(super) fn child_signals() -> io::Result<File> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Makes the command start like one of a fresh shell: a session of its own at its own terminal, if it has one, no signal
/// blocked or ignored, and what confines it put on.
pub(super) fn in_own_session(
    command: &mut Command,
    console: Console,
    restrictions: Option<Restrictions>,
) -> &mut Command {
    let prepare = move || {
        rustix::process::setsid()?;
        match console {
            Console::None | Console::Socket => {}
            Console::Terminal => rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?,
        }
        reset_signals()?;
        // Last: from here on little is allowed.
        restrictions.as_ref().map_or(Ok(()), Restrictions::put_on)
    };
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe { command.pre_exec(prepare) }
}

fn reset_signals() -> io::Result<()> {
    let mut none = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set. Signals that cannot be reset, such as `SIGKILL`, refuse and stay.
    let failed = unsafe {
        for signal in 1..=31 {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
