//! Forks into new namespaces and reports ended children. The calling process must have only one
//! thread.

use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, size_of_val};
use std::os::fd::FromRawFd;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// The namespaces that a confined command gets in addition to those for process ids, mounts, and
/// the network.
pub(super) const CONFINED_NAMESPACES: UnshareFlags =
    UnshareFlags::NEWIPC.union(UnshareFlags::NEWUTS);

/// The side on which a fork returned: the parent, which receives the child's process id, or the
/// child.
pub(super) enum ForkSide {
    Parent(Pid),
    Child,
}

/// Forks this process. The child gets new namespaces of the given kinds.
pub(super) fn fork_into(namespaces: UnshareFlags) -> io::Result<ForkSide> {
    // SAFETY: there is one thread, so the child finds no lock held and no state half-changed.
    let pid = if namespaces.is_empty() {
        i64::from(unsafe { libc::fork() })
    } else {
        clone_into_namespaces(namespaces)
    };
    match pid {
        0 => Ok(ForkSide::Child),
        1.. => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(ForkSide::Parent)
            .ok_or_else(|| io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Forks this process and puts the child into new namespaces. `unshare` would change this process
/// as well: if the namespaces turned out to be useless, a fork without them would no longer be
/// possible.
fn clone_into_namespaces(namespaces: UnshareFlags) -> libc::c_long {
    // The first version of the kernel's `struct clone_args`: the flags are first, the exit signal
    // is fifth.
    let arguments: [u64; 8] = [
        namespaces.bits().into(),
        0,
        0,
        0,
        libc::SIGCHLD as u64,
        0,
        0,
        0,
    ];
    // SAFETY: like `fork`: no memory is shared, no stack is given, there is one thread. The
    // structure lives across the call, and the size passed is its size.
    unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of_val(&arguments),
        )
    }
}

/// Returns a descriptor that becomes readable when a child has ended. `SIGCHLD` must be blocked.
pub(super) fn open_child_signals() -> io::Result<File> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}
