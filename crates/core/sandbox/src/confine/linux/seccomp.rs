//! The filter of system calls by which a process could leave its namespaces, reach other processes,
//! or use parts of the kernel that no command needs.
//!
//! A refused call gets the error that an unprivileged process would get. A call whose flags are in
//! memory, which a filter cannot read, is reported as not implemented: programs have a fallback for
//! that.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::creating_calls::CREATING_CALLS;

/// The families of sockets that a command may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketFamilies {
    /// Unix sockets, the internet protocols, and the kernel's list of interfaces.
    UnixAndInternet,
    /// Like `UnixAndInternet`, but without Unix sockets.
    Internet,
    None,
}

/// System calls that are refused regardless of their arguments.
const REFUSED_CALLS: &[libc::c_long] = &[
    // Mounts and roots
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Namespaces
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Files by number instead of name
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // The kernel itself
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_kexec_file_load];

/// System calls that are reported as not implemented, because their flags are in memory, which a
/// filter cannot read.
const UNSUPPORTED_CALLS: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// The flags of `clone` that create namespaces.
const NAMESPACE_FLAGS: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// An `ioctl` that inserts input into a terminal as if it had been typed.
const TIOCSTI: u64 = libc::TIOCSTI;
/// An `ioctl` that can insert input into a virtual console, among other things.
const TIOCLINUX: u64 = 0x541C;
/// The mode bits that make a program run with the rights of its file's owner or group.
const SET_ID_BITS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// The flags of `open` that create a file: `O_CREAT` creates one with a name, `O_TMPFILE` one
/// without.
const CREATE_FLAGS: [u64; 2] = [
    libc::O_CREAT as u64,
    (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
];

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// Returns the filter program to load into the kernel.
pub(super) fn build_filter(families: SocketFamilies) -> io::Result<BpfProgram> {
    let unsupported = |_| io::Error::from_raw_os_error(libc::ENOSYS);
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(unsupported)?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let rules = build_refusal_rules(families).map_err(unsupported)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, target).map_err(unsupported)?;
    let mut program = filter_prologue();
    program.extend(BpfProgram::try_from(filter).map_err(unsupported)?);
    Ok(program)
}

fn build_refusal_rules(families: SocketFamilies) -> Result<Rules, seccompiler::BackendError> {
    let is = |argument, value| compare_argument(argument, SeccompCmpOp::Eq, value);
    let is_not = |argument, value| compare_argument(argument, SeccompCmpOp::Ne, value);
    let has = |argument, bit| compare_argument(argument, SeccompCmpOp::MaskedEq(bit), bit);
    let all = |conditions: Vec<Result<SeccompCondition, _>>| {
        SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
    };

    let mut rules: Rules = REFUSED_CALLS
        .iter()
        .chain(REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let clone_flags = (0..32)
        .map(|bit| 1 << bit)
        .filter(|flag| NAMESPACE_FLAGS & flag != 0);
    let clone_rules =
        clone_flags.map(|flag: libc::c_int| all(vec![has(0, u64::from(flag.cast_unsigned()))]));
    rules.insert(libc::SYS_clone, clone_rules.collect::<Result<_, _>>()?);
    rules.insert(
        libc::SYS_ioctl,
        vec![all(vec![is(1, TIOCSTI)])?, all(vec![is(1, TIOCLINUX)])?],
    );

    let known = |families: &[libc::c_int]| {
        all(families
            .iter()
            .map(|family| is_not(0, u64::from(family.unsigned_abs())))
            .collect())
    };
    // Ordinary programs use only one part of netlink, the kernel's list of interfaces.
    let netlink = all(vec![
        is(0, libc::AF_NETLINK as u64),
        is_not(2, libc::NETLINK_ROUTE as u64),
    ]);
    let sockets = match families {
        SocketFamilies::UnixAndInternet => {
            vec![
                known(&[
                    libc::AF_UNIX,
                    libc::AF_INET,
                    libc::AF_INET6,
                    libc::AF_NETLINK,
                ])?,
                netlink?,
            ]
        }
        SocketFamilies::Internet => vec![
            known(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?,
            netlink?,
        ],
        SocketFamilies::None => Vec::new(),
    };
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![known(&[libc::AF_UNIX])?]);

    // Files that run with their owner's rights: created by root, they would outlive the sandbox.
    let mode_at = |call, argument: u8| (call, SET_ID_BITS.map(|bit| all(vec![has(argument, bit)])));
    let mut modes = vec![
        mode_at(libc::SYS_fchmod, 1),
        mode_at(libc::SYS_fchmodat, 2),
        mode_at(FCHMODAT2, 2),
    ];
    modes.extend([mode_at(libc::SYS_mkdirat, 2), mode_at(libc::SYS_mknodat, 2)]);
    let opened = |flags: u8, mode: u8| {
        CREATE_FLAGS.into_iter().flat_map(move |made| {
            SET_ID_BITS.map(|bit| all(vec![has(flags, made), has(mode, bit)]))
        })
    };
    rules.insert(libc::SYS_openat, opened(2, 3).collect::<Result<_, _>>()?);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, opened(1, 2).collect::<Result<_, _>>()?);
    #[cfg(target_arch = "x86_64")]
    modes.extend(
        [
            libc::SYS_chmod,
            libc::SYS_mkdir,
            libc::SYS_mknod,
            libc::SYS_creat,
        ]
        .map(|call| mode_at(call, 1)),
    );
    for (call, made) in modes {
        rules.insert(call, made.into_iter().collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// The number of the system call `fchmodat2`, which is equal on every architecture. Defined here
/// because libc does not define it for all architectures yet.
const FCHMODAT2: libc::c_long = 452;

/// Compares the lower 32 bits of an argument, because the kernel itself ignores the rest.
fn compare_argument(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// The calls about which a process that is not confined decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotifiedCalls {
    /// The calls that create or move a name.
    Creating,
    /// Also the calls that only remove one.
    CreatingAndRemoving,
}

/// Returns a filter that asks the process with the listener about the calls that create names. All
/// other calls are allowed; the filter of [`build_filter`] decides about them.
pub(super) fn build_notifying_filter(calls: NotifiedCalls) -> io::Result<BpfProgram> {
    const LOAD_NUMBER: sock_filter = instruction(LOAD, 0, 0, 0);
    const LOAD_ARCHITECTURE: sock_filter = instruction(LOAD, 0, 0, 4);
    const ARGUMENTS_OFFSET: u32 = 16;
    let Some(architecture) = AUDIT_ARCHITECTURE else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let mut program = vec![
        LOAD_ARCHITECTURE,
        instruction(JUMP_IF_EQUAL, 1, 0, architecture),
        instruction(RETURN, 0, 0, ALLOW),
        LOAD_NUMBER,
    ];
    for call in CREATING_CALLS {
        if calls == NotifiedCalls::Creating && call.created.is_none() {
            continue;
        }
        let Ok(number) = u32::try_from(call.number) else {
            continue;
        };
        match call.open_flags {
            None => program.extend([
                instruction(JUMP_IF_EQUAL, 0, 1, number),
                instruction(RETURN, 0, 0, USER_NOTIFICATION),
            ]),
            // The lower half of an argument comes first on all supported architectures.
            Some(flags) => program.extend([
                instruction(JUMP_IF_EQUAL, 0, 4, number),
                instruction(LOAD, 0, 0, ARGUMENTS_OFFSET + 8 * u32::from(flags)),
                instruction(JUMP_IF_ANY_BIT, 0, 1, libc::O_CREAT as u32),
                instruction(RETURN, 0, 0, USER_NOTIFICATION),
                instruction(RETURN, 0, 0, ALLOW),
            ]),
        }
    }
    program.push(instruction(RETURN, 0, 0, ALLOW));
    Ok(program)
}

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const USER_NOTIFICATION: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// The kernel's number for the calling convention of this program.
const AUDIT_ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Returns the instructions that run before the rules. They refuse the system call numbers of
/// another calling convention, which would bypass all rules, and report some system calls as not
/// implemented.
fn filter_prologue() -> BpfProgram {
    const ERRNO: u32 = 0x0005_0000;
    /// The bit that is set in every system call number of the x32 calling convention.
    const X32: u32 = 0x4000_0000;
    let error = |errno: libc::c_int| instruction(RETURN, 0, 0, ERRNO | errno.unsigned_abs());
    let mut program = vec![
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32),
        error(libc::EPERM),
    ];
    for call in UNSUPPORTED_CALLS
        .iter()
        .filter_map(|call| u32::try_from(*call).ok())
    {
        program.extend([instruction(JUMP_IF_EQUAL, 0, 1, call), error(libc::ENOSYS)]);
    }
    program
}
