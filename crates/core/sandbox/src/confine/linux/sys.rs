//! The system calls of confinement that need `unsafe`, each behind a safe function.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// What a mount may have taken away from it.
pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(super) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// How far a change of a mount goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// This mount.
    One,
    /// This mount and all below it.
    All,
}

/// Takes rights away from a mount, given by a descriptor of it.
pub(super) fn restrict_mount(mount: impl AsFd, set: u64, depth: Depth) -> io::Result<()> {
    let recursive = match depth {
        Depth::One => 0,
        Depth::All => libc::AT_RECURSIVE,
    };
    // The kernel's `struct mount_attr`: what is set, and three of which nothing is asked.
    let attributes = [set, 0, 0, 0];
    // SAFETY: the path is a terminated empty string, the structure lives across the call and its
    // size is its own.
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

/// Brings up the loopback of a network namespace, which is down at first.
pub(crate) fn loopback_up() -> io::Result<()> {
    // SAFETY: a new socket; nobody else's.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all zeroes is a valid request: an empty name and no flags.
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

/// Capabilities that a command of root keeps: what makes root the owner of every file it can see,
/// and nothing else.
const KEPT: u64 = 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID;
const CAP_CHOWN: u64 = 0;
const CAP_DAC_OVERRIDE: u64 = 1;
const CAP_FOWNER: u64 = 3;
const CAP_FSETID: u64 = 4;

/// Whether this process is root to the kernel: its user id is 0 in its namespace.
fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

/// Drops all capabilities but, for root, those over files; for good. Only system calls are made.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let kept = if is_privileged() { KEPT } else { 0 };
    for capability in 0..64 {
        if kept >> capability & 1 == 1 {
            continue;
        }
        // SAFETY: numbers only. One that the kernel does not know is refused, and so is every one
        // without the privilege to drop any: then there is none to be regained either, for
        // there will be no new privileges.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: numbers only.
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
    // SAFETY: this version of the call reads and writes two structures; all live across it.
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
    // SAFETY: like above.
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
