//! The system calls of confinement that need `unsafe`, each behind a safe function.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use seccompiler::sock_filter;

/// A mount attribute that makes the mount read-only.
pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// The mounts to which new attributes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Only the given mount.
    One,
    /// The given mount and all mounts below it.
    All,
}

/// Sets attributes, such as `READ_ONLY`, on the mount that a descriptor refers to.
pub(super) fn restrict_mount(mount: impl AsFd, set: u64, depth: Depth) -> io::Result<()> {
    let recursive = match depth {
        Depth::One => 0,
        Depth::All => libc::AT_RECURSIVE,
    };
    // The kernel's `struct mount_attr`: the attributes to set, and three unused fields.
    let attributes = [set, 0, 0, 0];
    // SAFETY: the path is a terminated empty string, the structure lives across the call, and the
    // size passed is its size.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Activates the loopback interface, which is down in a new network namespace.
pub(crate) fn bring_up_loopback() -> io::Result<()> {
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all zeros is a valid request: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = (*from).cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request lives across the call, which only reads it.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Installs a filter in the calling process, which its future children inherit, and returns the
/// descriptor through which the kernel asks about calls.
pub(super) fn install_listener(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut().cast(),
    };
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A call that was already asked about is not interrupted by a signal. Since Linux 5.19.
    let waiting = listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    for flags in [waiting, listener] {
        // SAFETY: the program and its instructions, which have the layout of the kernel's, live
        // across the call, which only reads them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if let Ok(fd @ 0..) = i32::try_from(fd) {
            // SAFETY: the descriptor is new and has no other owner.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    Err(io::Error::last_os_error())
}

/// A call of a confined process that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotifiedCall {
    id: u64,
    /// The thread, as a process id in the namespace of this process.
    pub(super) thread: u32,
    pub(super) number: libc::c_long,
    pub(super) arguments: [u64; 6],
}

/// The answer to a notified call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallAnswer {
    /// The kernel carries out the call, with the arguments as they are then.
    Continue,
    /// The call fails with this error number.
    Fail(libc::c_int),
}

/// Receives a call that waits for an answer. Fails if the calling process has been killed.
pub(super) fn receive_call(listener: impl AsFd) -> io::Result<NotifiedCall> {
    // SAFETY: all zeros is a valid value, which the kernel demands.
    let mut call: libc::seccomp_notif = unsafe { zeroed() };
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the structure lives across the call, which fills it.
    let failed = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(NotifiedCall {
        id: call.id,
        thread: call.pid,
        number: call.data.nr.into(),
        arguments: call.data.args,
    })
}

/// Answers a call. Fails if the calling process has been killed.
pub(super) fn answer_call(
    listener: impl AsFd,
    call: &NotifiedCall,
    answer: CallAnswer,
) -> io::Result<()> {
    let (error, flags) = match answer {
        CallAnswer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        CallAnswer::Fail(errno) => (-errno, 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error,
        flags,
    };
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the structure lives across the call.
    let failed = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The capabilities that a confined command keeps if it runs as root: with them, root can act as
/// the owner of every file that it can see.
const KEPT_CAPABILITIES: u64 =
    1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID;
const CAP_CHOWN: u64 = 0;
const CAP_DAC_OVERRIDE: u64 = 1;
const CAP_FOWNER: u64 = 3;
const CAP_FSETID: u64 = 4;

/// True if the kernel treats this process as root: its user id is 0 in its namespace.
fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

/// Permanently drops all capabilities, except that a process that runs as root keeps
/// `KEPT_CAPABILITIES`. Makes only system calls, so it may run between fork and exec.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let kept = if is_privileged() {
        KEPT_CAPABILITIES
    } else {
        0
    };
    for capability in 0..64 {
        if kept >> capability & 1 == 1 {
            continue;
        }
        // SAFETY: the arguments are numbers. The kernel rejects unknown capabilities, and it
        // rejects every drop by an unprivileged process; such a process cannot regain any
        // capability either, because it gets no new privileges.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: the arguments are numbers.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    };
    let mut held = [CapabilityData::default(); 2];
    let header = CapabilityHeader {
        version: 0x2008_0522,
        pid: 0,
    };
    // SAFETY: this version of the call reads and writes two structures; all of them live across it.
    let failed = unsafe { libc::syscall(libc::SYS_capget, &raw const header, held.as_mut_ptr()) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    for (data, kept) in held.iter_mut().zip([kept as u32, (kept >> 32) as u32]) {
        let kept = kept & data.permitted;
        *data = CapabilityData {
            effective: kept,
            permitted: kept,
            inheritable: 0,
        };
    }
    // SAFETY: as above.
    let failed = unsafe { libc::syscall(libc::SYS_capset, &raw const header, held.as_ptr()) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}
