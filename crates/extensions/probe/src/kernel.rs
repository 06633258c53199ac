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

use crate::sys::{Arg, call, clone_with, clone3_with, owned};
use crate::{Attempt, Tried, anyone, depends, refused, root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    root("mount a file system", |g| {
        let at = text(&g.project);
        call(
            libc::SYS_mount,
            [
                c"none".into(),
                at.as_c_str().into(),
                c"tmpfs".into(),
                0.into(),
                0.into(),
            ],
        )?;
        unmount(&at)
    }),
    root("mount a folder somewhere else", |g| {
        let from = text(&g.outside);
        let to = text(&g.in_project("folder"));
        let flags = libc::MS_BIND.cast_signed();
        call(
            libc::SYS_mount,
            [
                from.as_c_str().into(),
                to.as_c_str().into(),
                0.into(),
                flags.into(),
                0.into(),
            ],
        )?;
        unmount(&to)
    }),
    root("make a mount writable again", |_| {
        // Outside, the call fails because this is not a mount point.
        let flags = (libc::MS_REMOUNT | libc::MS_BIND).cast_signed();
        reached(call(
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
    root("unmount what covers a secret", |g| {
        let at = text(g.secret_folder());
        reached(call(
            libc::SYS_umount2,
            [at.as_c_str().into(), libc::MNT_DETACH.into()],
        ))
    }),
    root("open a file system by the newer calls", |_| {
        reached(call(libc::SYS_fsopen, [c"tmpfs".into(), 0.into()]))
    }),
    root("copy a tree of mounts", |g| {
        let at = text(&g.outside);
        reached(call(
            libc::SYS_open_tree,
            [libc::AT_FDCWD.into(), at.as_c_str().into(), 1.into()],
        ))
    }),
    root("move a mount", |_| {
        let none = libc::AT_FDCWD;
        reached(call(
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
    root("change what a mount allows", |_| {
        // Sets and clears every attribute at once, which is invalid.
        let mut attributes = [0xff_u8; 32];
        let here = libc::AT_FDCWD;
        reached(call(
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
    root("change the root of the file system", |_| {
        reached(call(
            libc::SYS_pivot_root,
            [c"/none".into(), c"/none".into()],
        ))
    }),
    root("change the root of the process", |g| {
        let at = text(&g.project);
        call(libc::SYS_chroot, [at.as_c_str().into()])?;
        Ok(())
    }),
    anyone("make a user namespace", |_| unshare(libc::CLONE_NEWUSER)),
    root("make a mount namespace", |_| unshare(libc::CLONE_NEWNS)),
    root("make a network namespace", |_| unshare(libc::CLONE_NEWNET)),
    root("make a pid namespace", |_| unshare(libc::CLONE_NEWPID)),
    root("make a control group namespace", |_| {
        unshare(libc::CLONE_NEWCGROUP)
    }),
    anyone("start a process in a user namespace", |_| {
        Ok(clone_with(libc::CLONE_NEWUSER)?)
    }),
    anyone(
        "start a process in a user namespace by the newer call",
        |_| Ok(clone3_with(libc::CLONE_NEWUSER)?),
    ),
    anyone("make user and mount namespaces and mount there", |g| {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        let at = text(&g.outside);
        call(
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
    depends("enter the mount namespace of the first process", |_| {
        enter("/proc/1/ns/mnt")
    }),
    depends("enter the network namespace of the first process", |_| {
        enter("/proc/1/ns/net")
    }),
    root("enter the namespaces of a process outside", |g| {
        enter(&format!("/proc/{}/ns/net", g.process))
    }),
    root("enter its own network namespace", |_| {
        enter("/proc/self/ns/net")
    }),
    depends("make a namespace in the convention for 32 bits", |_| {
        in_32_bits()
    }),
    depends(
        "make a namespace in the convention of short pointers",
        |_| {
            reached(call(
                libc::SYS_unshare | 0x4000_0000,
                [libc::CLONE_NEWUSER.into()],
            ))
        },
    ),
    root("find a file by its number", |g| {
        // The inode number of the root folder in most file systems; any number would do.
        let mut handle = [8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        let mount = File::open(&g.project)?;
        reached(call(
            libc::SYS_open_by_handle_at,
            [mount.as_raw_fd().into(), (&mut handle).into(), 0.into()],
        ))
    }),
    root("become another user", |_| {
        done(call(libc::SYS_setuid, [1.into()]))
    }),
    root("become another group", |_| {
        done(call(libc::SYS_setgid, [1.into()]))
    }),
    root("join further groups", |_| {
        reached(call(libc::SYS_setgroups, [0.into(), 0.into()]))
    }),
    root("hold the capability to administer", |_| {
        holds_administration()
    }),
    root("change what being root means", |_| {
        let bits = call(libc::SYS_prctl, [libc::PR_GET_SECUREBITS.into()])?;
        reached(call(
            libc::SYS_prctl,
            [libc::PR_SET_SECUREBITS.into(), bits.into()],
        ))
    }),
    depends("load a program into the kernel", |_| {
        // Creates an array map with one element.
        let mut attributes = [0_u8; 72];
        for (at, value) in [(0, 2), (4, 4), (8, 4), (12, 1)] {
            attributes[at] = value;
        }
        reached(call(
            libc::SYS_bpf,
            [0.into(), (&mut attributes).into(), 72.into()],
        ))
    }),
    depends("count events of the processor", |_| {
        let mut attributes = [0_u8; 112];
        // A software event: a clock of the kernel.
        attributes[0] = 1;
        attributes[4] = 112;
        let arguments: [Arg<'_>; 5] = [
            (&mut attributes).into(),
            0.into(),
            (-1).into(),
            (-1).into(),
            0.into(),
        ];
        reached(call(libc::SYS_perf_event_open, arguments))
    }),
    depends("handle its own page faults", |_| {
        reached(call(libc::SYS_userfaultfd, [0.into()]))
    }),
    depends("queue calls past the filter", |_| {
        let mut parameters = [0_u8; 120];
        reached(call(
            libc::SYS_io_uring_setup,
            [4.into(), (&mut parameters).into()],
        ))
    }),
    depends("keep a key in the kernel", |_| {
        let ring = -2;
        let mut payload = [1_u8];
        let arguments: [Arg<'_>; 5] = [
            c"user".into(),
            c"haft".into(),
            (&mut payload).into(),
            1.into(),
            ring.into(),
        ];
        reached(call(libc::SYS_add_key, arguments))
    }),
    depends("ask for a key ring", |_| {
        reached(call(libc::SYS_keyctl, [0.into(), (-3).into(), 0.into()]))
    }),
    depends("load another kernel", |_| {
        reached(call(
            libc::SYS_kexec_load,
            [0.into(), 0.into(), 0.into(), (-1).into()],
        ))
    }),
    depends("load a module", |_| {
        reached(call(
            libc::SYS_init_module,
            [0.into(), 0.into(), c"".into()],
        ))
    }),
    depends("load a module from a file", |_| {
        reached(call(
            libc::SYS_finit_module,
            [(-1).into(), c"".into(), 0.into()],
        ))
    }),
    depends("unload a module", |_| {
        reached(call(
            libc::SYS_delete_module,
            [c"haft_none".into(), 0.into()],
        ))
    }),
    root("restart the machine", |_| {
        reached(call(
            libc::SYS_reboot,
            [0.into(), 0.into(), 0.into(), 0.into()],
        ))
    }),
    depends("add swap space", |_| {
        reached(call(libc::SYS_swapon, [c"/none".into(), 0.into()]))
    }),
    depends("take swap space away", |_| {
        reached(call(libc::SYS_swapoff, [c"/none".into()]))
    }),
    depends("account for processes", |_| {
        reached(call(libc::SYS_acct, [c"/none".into()]))
    }),
    root("set the clock", |_| {
        let mut time = [0_u8; 208];
        call(libc::SYS_adjtimex, [(&mut time).into()])?;
        // The current frequency is set again.
        time[0] = 2;
        reached(call(libc::SYS_adjtimex, [(&mut time).into()]))
    }),
    root("name the machine", |_| {
        let name = rustix::system::uname().nodename().to_owned();
        let length = name.as_bytes().len() as u64;
        reached(call(
            libc::SYS_sethostname,
            [name.as_c_str().into(), length.cast_signed().into()],
        ))
    }),
    root("read the kernel's messages by call", |_| {
        let mut text = [0_u8; 16];
        reached(call(
            libc::SYS_syslog,
            [3.into(), (&mut text).into(), 16.into()],
        ))
    }),
    root("watch a whole file system", |_| {
        reached(call(libc::SYS_fanotify_init, [0.into(), 0.into()]))
    }),
    #[cfg(target_arch = "x86_64")]
    depends("speak to hardware", |_| {
        reached(call(libc::SYS_ioperm, [0x80.into(), 1.into(), 1.into()]))
    }),
    root("run before everyone else", |_| {
        let mut priority = 1_i32.to_ne_bytes();
        reached(call(
            libc::SYS_sched_setscheduler,
            [0.into(), 1.into(), (&mut priority).into()],
        ))
    }),
];

/// Succeeds if the call passed the permission check: any error but one of permission comes from the
/// arguments.
pub(crate) fn reached(called: io::Result<i64>) -> Tried {
    match called {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) | None => Err(error.into()),
            Some(_) => Ok(()),
        },
    }
}

fn done(called: io::Result<i64>) -> Tried {
    called?;
    Ok(())
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn unmount(at: &CString) -> Tried {
    call(
        libc::SYS_umount2,
        [at.as_c_str().into(), libc::MNT_DETACH.into()],
    )?;
    Ok(())
}

fn unshare(flags: libc::c_int) -> Tried {
    call(libc::SYS_unshare, [flags.into()])?;
    Ok(())
}

fn enter(namespace: &str) -> Tried {
    let name = text(Path::new(namespace));
    let place = call(
        libc::SYS_openat,
        [
            libc::AT_FDCWD.into(),
            name.as_c_str().into(),
            libc::O_RDONLY.into(),
        ],
    )?;
    let place = owned(place);
    call(libc::SYS_setns, [place.as_raw_fd().into(), 0.into()])?;
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn in_32_bits() -> Tried {
    /// The number of `unshare` in the 32-bit convention.
    const UNSHARE: i32 = 310;
    reached(super::sys::call_32(UNSHARE, libc::CLONE_NEWUSER))
}

#[cfg(not(target_arch = "x86_64"))]
fn in_32_bits() -> Tried {
    super::not_applicable("this processor has no such convention here")
}

/// Makes the capability `CAP_SYS_ADMIN` effective.
fn holds_administration() -> Tried {
    let mut header = [0_u8; 8];
    header[..4].copy_from_slice(&0x2008_0522_u32.to_ne_bytes());
    let mut held = [0_u8; 24];
    call(libc::SYS_capget, [(&mut header).into(), (&mut held).into()])?;
    // Effective and permitted: bit 21 of the first word of each.
    held[2] |= 1 << 5;
    held[6] |= 1 << 5;
    call(libc::SYS_capset, [(&mut header).into(), (&mut held).into()])?;
    Ok(())
}

/// Like [`check_permitted`], but also counts as refused if the process in the arguments doesn't
/// exist.
pub(crate) fn on_process(called: io::Result<i64>) -> Tried {
    match called {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            refused("there is no such process")
        }
        called => reached(called),
    }
}
