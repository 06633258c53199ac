//! Attempts to leave the sandbox by system calls, or to reach into the kernel.
//!
//! Where success would do harm, the call has arguments that the kernel rejects only after the
//! permission check. Then any error but one of permission means that the call would have succeeded.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sys::{
    SyscallArg, clone_with_flags, clone3_with_flags, file_from_descriptor, make_syscall,
};
use crate::{
    Attempt, AttemptResult, attempt_for_anyone, attempt_for_root, attempt_for_some_machines,
    refused,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_root("mount a file system", |g| {
        let at = to_c_string(&g.project);
        make_syscall(
            libc::SYS_mount,
            [
                c"none".into(),
                at.as_c_str().into(),
                c"tmpfs".into(),
                0.into(),
                0.into(),
            ],
        )?;
        unmount_path(&at)
    }),
    attempt_for_root("mount a folder somewhere else", |g| {
        let from = to_c_string(&g.outside);
        let to = to_c_string(&g.in_project("folder"));
        let flags = libc::MS_BIND.cast_signed();
        make_syscall(
            libc::SYS_mount,
            [
                from.as_c_str().into(),
                to.as_c_str().into(),
                0.into(),
                flags.into(),
                0.into(),
            ],
        )?;
        unmount_path(&to)
    }),
    attempt_for_root("make a mount writable again", |_| {
        // Outside, the call fails because this is not a mount point.
        let flags = (libc::MS_REMOUNT | libc::MS_BIND).cast_signed();
        check_permitted(make_syscall(
            libc::SYS_mount,
            [
                0.into(),
                c"/proc/self/exe".into(),
                0.into(),
                flags.into(),
                0.into(),
            ],
        ))
    }),
    attempt_for_root("unmount what covers a secret", |g| {
        let at = to_c_string(g.secret_folder());
        check_permitted(make_syscall(
            libc::SYS_umount2,
            [at.as_c_str().into(), libc::MNT_DETACH.into()],
        ))
    }),
    attempt_for_root("open a file system by the newer calls", |_| {
        check_permitted(make_syscall(libc::SYS_fsopen, [c"tmpfs".into(), 0.into()]))
    }),
    attempt_for_root("copy a tree of mounts", |g| {
        let at = to_c_string(&g.outside);
        check_permitted(make_syscall(
            libc::SYS_open_tree,
            [libc::AT_FDCWD.into(), at.as_c_str().into(), 1.into()],
        ))
    }),
    attempt_for_root("move a mount", |_| {
        let none = libc::AT_FDCWD;
        check_permitted(make_syscall(
            libc::SYS_move_mount,
            [
                none.into(),
                c"/none".into(),
                none.into(),
                c"/none".into(),
                0.into(),
            ],
        ))
    }),
    attempt_for_root("change what a mount allows", |_| {
        // Sets and clears every attribute at once, which is invalid.
        let mut attributes = [0xff_u8; 32];
        let here = libc::AT_FDCWD;
        check_permitted(make_syscall(
            libc::SYS_mount_setattr,
            [
                here.into(),
                c"/".into(),
                0.into(),
                (&mut attributes).into(),
                32.into(),
            ],
        ))
    }),
    attempt_for_root("change the root of the file system", |_| {
        check_permitted(make_syscall(
            libc::SYS_pivot_root,
            [c"/none".into(), c"/none".into()],
        ))
    }),
    attempt_for_root("change the root of the process", |g| {
        let at = to_c_string(&g.project);
        make_syscall(libc::SYS_chroot, [at.as_c_str().into()])?;
        Ok(())
    }),
    attempt_for_anyone("make a user namespace", |_| {
        unshare_namespaces(libc::CLONE_NEWUSER)
    }),
    attempt_for_root("make a mount namespace", |_| {
        unshare_namespaces(libc::CLONE_NEWNS)
    }),
    attempt_for_root("make a network namespace", |_| {
        unshare_namespaces(libc::CLONE_NEWNET)
    }),
    attempt_for_root("make a pid namespace", |_| {
        unshare_namespaces(libc::CLONE_NEWPID)
    }),
    attempt_for_root("make a control group namespace", |_| {
        unshare_namespaces(libc::CLONE_NEWCGROUP)
    }),
    attempt_for_anyone("start a process in a user namespace", |_| {
        Ok(clone_with_flags(libc::CLONE_NEWUSER)?)
    }),
    attempt_for_anyone(
        "start a process in a user namespace by the newer call",
        |_| Ok(clone3_with_flags(libc::CLONE_NEWUSER)?),
    ),
    attempt_for_anyone("make user and mount namespaces and mount there", |g| {
        unshare_namespaces(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        let at = to_c_string(&g.outside);
        make_syscall(
            libc::SYS_mount,
            [
                c"none".into(),
                at.as_c_str().into(),
                c"tmpfs".into(),
                0.into(),
                0.into(),
            ],
        )?;
        Ok(())
    }),
    attempt_for_some_machines("enter the mount namespace of the first process", |_| {
        enter_namespace("/proc/1/ns/mnt")
    }),
    attempt_for_some_machines("enter the network namespace of the first process", |_| {
        enter_namespace("/proc/1/ns/net")
    }),
    attempt_for_root("enter the namespaces of a process outside", |g| {
        enter_namespace(&format!("/proc/{}/ns/net", g.process))
    }),
    attempt_for_root("enter its own network namespace", |_| {
        enter_namespace("/proc/self/ns/net")
    }),
    attempt_for_some_machines("make a namespace in the convention for 32 bits", |_| {
        unshare_in_32_bits()
    }),
    attempt_for_some_machines(
        "make a namespace in the convention of short pointers",
        |_| {
            check_permitted(make_syscall(
                libc::SYS_unshare | 0x4000_0000,
                [libc::CLONE_NEWUSER.into()],
            ))
        },
    ),
    attempt_for_root("find a file by its number", |g| {
        // The inode number of the root folder in most file systems; any number would do.
        let mut handle = [8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        let mount = File::open(&g.project)?;
        check_permitted(make_syscall(
            libc::SYS_open_by_handle_at,
            [mount.as_raw_fd().into(), (&mut handle).into(), 0.into()],
        ))
    }),
    attempt_for_root("become another user", |_| {
        check_success(make_syscall(libc::SYS_setuid, [1.into()]))
    }),
    attempt_for_root("become another group", |_| {
        check_success(make_syscall(libc::SYS_setgid, [1.into()]))
    }),
    attempt_for_root("join further groups", |_| {
        check_permitted(make_syscall(libc::SYS_setgroups, [0.into(), 0.into()]))
    }),
    attempt_for_root("hold the capability to administer", |_| {
        take_admin_capability()
    }),
    attempt_for_root("change what being root means", |_| {
        let bits = make_syscall(libc::SYS_prctl, [libc::PR_GET_SECUREBITS.into()])?;
        check_permitted(make_syscall(
            libc::SYS_prctl,
            [libc::PR_SET_SECUREBITS.into(), bits.into()],
        ))
    }),
    attempt_for_some_machines("load a program into the kernel", |_| {
        // Creates an array map with one element.
        let mut attributes = [0_u8; 72];
        for (at, value) in [(0, 2), (4, 4), (8, 4), (12, 1)] {
            attributes[at] = value;
        }
        check_permitted(make_syscall(
            libc::SYS_bpf,
            [0.into(), (&mut attributes).into(), 72.into()],
        ))
    }),
    attempt_for_some_machines("count events of the processor", |_| {
        let mut attributes = [0_u8; 112];
        // A software event: a clock of the kernel.
        attributes[0] = 1;
        attributes[4] = 112;
        let arguments: [SyscallArg<'_>; 5] = [
            (&mut attributes).into(),
            0.into(),
            (-1).into(),
            (-1).into(),
            0.into(),
        ];
        check_permitted(make_syscall(libc::SYS_perf_event_open, arguments))
    }),
    attempt_for_some_machines("handle its own page faults", |_| {
        check_permitted(make_syscall(libc::SYS_userfaultfd, [0.into()]))
    }),
    attempt_for_some_machines("queue calls past the filter", |_| {
        let mut parameters = [0_u8; 120];
        check_permitted(make_syscall(
            libc::SYS_io_uring_setup,
            [4.into(), (&mut parameters).into()],
        ))
    }),
    attempt_for_some_machines("keep a key in the kernel", |_| {
        let ring = -2;
        let mut payload = [1_u8];
        let arguments: [SyscallArg<'_>; 5] = [
            c"user".into(),
            c"haft".into(),
            (&mut payload).into(),
            1.into(),
            ring.into(),
        ];
        check_permitted(make_syscall(libc::SYS_add_key, arguments))
    }),
    attempt_for_some_machines("ask for a key ring", |_| {
        check_permitted(make_syscall(
            libc::SYS_keyctl,
            [0.into(), (-3).into(), 0.into()],
        ))
    }),
    attempt_for_some_machines("load another kernel", |_| {
        check_permitted(make_syscall(
            libc::SYS_kexec_load,
            [0.into(), 0.into(), 0.into(), (-1).into()],
        ))
    }),
    attempt_for_some_machines("load a module", |_| {
        check_permitted(make_syscall(
            libc::SYS_init_module,
            [0.into(), 0.into(), c"".into()],
        ))
    }),
    attempt_for_some_machines("load a module from a file", |_| {
        check_permitted(make_syscall(
            libc::SYS_finit_module,
            [(-1).into(), c"".into(), 0.into()],
        ))
    }),
    attempt_for_some_machines("unload a module", |_| {
        check_permitted(make_syscall(
            libc::SYS_delete_module,
            [c"haft_none".into(), 0.into()],
        ))
    }),
    attempt_for_root("restart the machine", |_| {
        check_permitted(make_syscall(
            libc::SYS_reboot,
            [0.into(), 0.into(), 0.into(), 0.into()],
        ))
    }),
    attempt_for_some_machines("add swap space", |_| {
        check_permitted(make_syscall(libc::SYS_swapon, [c"/none".into(), 0.into()]))
    }),
    attempt_for_some_machines("take swap space away", |_| {
        check_permitted(make_syscall(libc::SYS_swapoff, [c"/none".into()]))
    }),
    attempt_for_some_machines("account for processes", |_| {
        check_permitted(make_syscall(libc::SYS_acct, [c"/none".into()]))
    }),
    attempt_for_root("set the clock", |_| {
        let mut time = [0_u8; 208];
        make_syscall(libc::SYS_adjtimex, [(&mut time).into()])?;
        // The current frequency is set again.
        time[0] = 2;
        check_permitted(make_syscall(libc::SYS_adjtimex, [(&mut time).into()]))
    }),
    attempt_for_root("name the machine", |_| {
        let name = rustix::system::uname().nodename().to_owned();
        let length = name.as_bytes().len() as u64;
        check_permitted(make_syscall(
            libc::SYS_sethostname,
            [name.as_c_str().into(), length.cast_signed().into()],
        ))
    }),
    attempt_for_root("read the kernel's messages by call", |_| {
        let mut text = [0_u8; 16];
        check_permitted(make_syscall(
            libc::SYS_syslog,
            [3.into(), (&mut text).into(), 16.into()],
        ))
    }),
    attempt_for_root("watch a whole file system", |_| {
        check_permitted(make_syscall(libc::SYS_fanotify_init, [0.into(), 0.into()]))
    }),
    #[cfg(target_arch = "x86_64")]
    attempt_for_some_machines("speak to hardware", |_| {
        check_permitted(make_syscall(
            libc::SYS_ioperm,
            [0x80.into(), 1.into(), 1.into()],
        ))
    }),
    attempt_for_root("run before everyone else", |_| {
        let mut priority = 1_i32.to_ne_bytes();
        check_permitted(make_syscall(
            libc::SYS_sched_setscheduler,
            [0.into(), 1.into(), (&mut priority).into()],
        ))
    }),
];

/// Succeeds if a system call passed the permission check, even if it then failed: any error other
/// than a permission error is caused by the arguments.
pub(crate) fn check_permitted(called: io::Result<i64>) -> AttemptResult {
    match called {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) | None => Err(error.into()),
            Some(_) => Ok(()),
        },
    }
}

fn check_success(called: io::Result<i64>) -> AttemptResult {
    called?;
    Ok(())
}

fn to_c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn unmount_path(at: &CString) -> AttemptResult {
    make_syscall(
        libc::SYS_umount2,
        [at.as_c_str().into(), libc::MNT_DETACH.into()],
    )?;
    Ok(())
}

fn unshare_namespaces(flags: libc::c_int) -> AttemptResult {
    make_syscall(libc::SYS_unshare, [flags.into()])?;
    Ok(())
}

fn enter_namespace(namespace: &str) -> AttemptResult {
    let name = to_c_string(Path::new(namespace));
    let place = make_syscall(
        libc::SYS_openat,
        [
            libc::AT_FDCWD.into(),
            name.as_c_str().into(),
            libc::O_RDONLY.into(),
        ],
    )?;
    let place = file_from_descriptor(place);
    make_syscall(libc::SYS_setns, [place.as_raw_fd().into(), 0.into()])?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn unshare_in_32_bits() -> AttemptResult {
    /// The number of the system call `unshare` in the 32-bit convention.
    const UNSHARE: i32 = 310;
    check_permitted(super::sys::make_syscall_32(UNSHARE, libc::CLONE_NEWUSER))
}

#[cfg(not(target_arch = "x86_64"))]
fn unshare_in_32_bits() -> AttemptResult {
    super::not_applicable("this processor has no such convention here")
}

/// Attempts to make the capability `CAP_SYS_ADMIN` effective for the current process.
fn take_admin_capability() -> AttemptResult {
    let mut header = [0_u8; 8];
    header[..4].copy_from_slice(&0x2008_0522_u32.to_ne_bytes());
    let mut held = [0_u8; 24];
    make_syscall(libc::SYS_capget, [(&mut header).into(), (&mut held).into()])?;
    // Effective and permitted: bit 21 of the first word of each.
    held[2] |= 1 << 5;
    held[6] |= 1 << 5;
    make_syscall(libc::SYS_capset, [(&mut header).into(), (&mut held).into()])?;
    Ok(())
}

/// Like [`check_permitted`], but a system call also counts as refused if the process in its
/// arguments doesn't exist.
pub(crate) fn check_process_call(called: io::Result<i64>) -> AttemptResult {
    match called {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            refused("there is no such process")
        }
        called => check_permitted(called),
    }
}
