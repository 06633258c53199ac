//! Attempts to reach processes outside of the sandbox, and what they share: descriptors, memory,
//! and privileges.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::kernel::check_process_call;
use crate::sys::{SyscallArg, file_from_descriptor, make_syscall, read_segment};
use crate::{
    Attempt, AttemptFailure, AttemptResult, ProbeTargets, attempt_for_anyone,
    attempt_for_some_machines, ensure, not_applicable, refused,
};

/// The null signal, which only checks whether a signal could be sent.
const NO_SIGNAL: i32 = 0;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("signal a process", |g| {
        call_on_target(g, libc::SYS_kill, [g.process.into(), NO_SIGNAL.into()])
    }),
    attempt_for_anyone("signal a thread", |g| {
        call_on_target(g, libc::SYS_tkill, [g.process.into(), NO_SIGNAL.into()])
    }),
    attempt_for_anyone("signal a process with a value", |g| {
        let mut about = [0_u8; 128];
        // The code of a signal that was sent by a program (`SI_QUEUE`).
        about[8..12].copy_from_slice(&(-1_i32).to_ne_bytes());
        let arguments = [g.process.into(), NO_SIGNAL.into(), (&mut about).into()];
        call_on_target(g, libc::SYS_rt_sigqueueinfo, arguments)
    }),
    attempt_for_anyone("hold a process by a descriptor", |g| {
        let held = make_syscall(libc::SYS_pidfd_open, [g.process.into(), 0.into()])?;
        let held = file_from_descriptor(held);
        check_is_target(g)?;
        call_on_target(
            g,
            libc::SYS_pidfd_send_signal,
            [
                held.as_raw_fd().into(),
                NO_SIGNAL.into(),
                0.into(),
                0.into(),
            ],
        )
    }),
    attempt_for_some_machines("take a descriptor out of a process", |g| {
        let held = file_from_descriptor(make_syscall(
            libc::SYS_pidfd_open,
            [g.process.into(), 0.into()],
        )?);
        call_on_target(
            g,
            libc::SYS_pidfd_getfd,
            [held.as_raw_fd().into(), 1.into(), 0.into()],
        )
    }),
    attempt_for_some_machines("take a descriptor out of the parent", |_| {
        let held = file_from_descriptor(make_syscall(
            libc::SYS_pidfd_open,
            [parent_pid().into(), 0.into()],
        )?);
        check_process_call(make_syscall(
            libc::SYS_pidfd_getfd,
            [held.as_raw_fd().into(), 1.into(), 0.into()],
        ))
    }),
    attempt_for_some_machines("trace a process", |g| {
        /// The number of the `ptrace` request that attaches to a process without stopping it.
        const PTRACE_SEIZE: i32 = 0x4206;
        call_on_target(
            g,
            libc::SYS_ptrace,
            [PTRACE_SEIZE.into(), g.process.into(), 0.into(), 0.into()],
        )
    }),
    attempt_for_some_machines("trace the first process", |_| {
        /// The `ptrace` request that attaches to a process. The request is made with an invalid
        /// option, so it always fails, but only after the kernel's permission check.
        const PTRACE_SEIZE: i32 = 0x4206;
        check_process_call(make_syscall(
            libc::SYS_ptrace,
            [PTRACE_SEIZE.into(), 1.into(), 0.into(), i64::MIN.into()],
        ))
    }),
    attempt_for_anyone("be traced", |_| {
        check_process_call(make_syscall(libc::SYS_ptrace, [0.into()]))
    }),
    attempt_for_some_machines("read the memory of a process", |g| {
        let mut empty = [0_u8; 16];
        let mut arguments: [SyscallArg<'_>; 6] = [
            g.process.into(),
            (&mut empty).into(),
            1.into(),
            0.into(),
            0.into(),
            0.into(),
        ];
        arguments[3] = 0.into();
        call_on_target(g, libc::SYS_process_vm_readv, arguments)
    }),
    attempt_for_anyone("see the limits of a process", |g| {
        let mut limits = [0_u8; 16];
        call_on_target(
            g,
            libc::SYS_prlimit64,
            [g.process.into(), 7.into(), 0.into(), (&mut limits).into()],
        )
    }),
    attempt_for_anyone("change the priority of a process to its own", |g| {
        let nice = 20 - make_syscall(libc::SYS_getpriority, [0.into(), g.process.into()])?;
        call_on_target(
            g,
            libc::SYS_setpriority,
            [0.into(), g.process.into(), nice.into()],
        )
    }),
    attempt_for_anyone("see the processors of a process", |g| {
        let mut set = [0_u8; 128];
        call_on_target(
            g,
            libc::SYS_sched_getaffinity,
            [g.process.into(), 128.into(), (&mut set).into()],
        )
    }),
    attempt_for_anyone("see the session of a process", |g| {
        call_on_target(g, libc::SYS_getsid, [g.process.into()])
    }),
    attempt_for_some_machines("compare a process with itself", |g| {
        call_on_target(
            g,
            libc::SYS_kcmp,
            [
                g.process.into(),
                g.process.into(),
                1.into(),
                0.into(),
                0.into(),
            ],
        )
    }),
    attempt_for_anyone("read shared memory by its number", |g| {
        let bytes = read_segment(g.segment)?;
        ensure(
            g.secret_text.as_bytes().starts_with(&bytes),
            "it holds something else",
        )
    }),
    attempt_for_anyone("read shared memory by its name", |g| {
        let text = fs::read_to_string(Path::new("/dev/shm").join(&g.shared))?;
        ensure(text == g.secret_text, "it holds something else")
    }),
    attempt_for_some_machines("see the queues of messages of others", |_| {
        let queues = fs::read_to_string("/proc/sysvipc/shm")?;
        ensure(queues.lines().count() > 1, "there are none")
    }),
    attempt_for_anyone("use a descriptor its parents had open", |g| {
        super::files::create_file_in(Path::new(&format!("/proc/self/fd/{}", g.descriptor)))
    }),
    attempt_for_anyone("find descriptors its parents had open", |g| {
        // This process has opened the pipe for its result and the folder that is being listed.
        let entries = fs::read_dir("/proc/self/fd")?.flatten();
        let numbers = entries.filter(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
                > Some(2)
        });
        let mut targets = numbers.filter_map(|entry| fs::read_link(entry.path()).ok());
        let _ = g;
        let has_unknown = targets.any(|target| {
            !target.starts_with("/proc") && !target.to_string_lossy().starts_with("pipe:")
        });
        ensure(has_unknown, "there are none")
    }),
    attempt_for_some_machines("gain privileges from a program that gives them", |_| {
        run_set_user_id_program()
    }),
    attempt_for_anyone("make a program that gives privileges", |g| {
        let file = g.in_project("set-user-id");
        fs::write(&file, "")?;
        let set = fs::set_permissions(&file, fs::Permissions::from_mode(0o4755));
        let has = fs::metadata(&file).is_ok_and(|of| of.permissions().mode() & 0o4000 != 0);
        fs::remove_file(file)?;
        set?;
        ensure(has, "the permission was dropped")
    }),
    attempt_for_anyone(
        "make a program that gives privileges by creating it so",
        |g| {
            let path = g.in_project("set-user-id-2");
            let file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o4755)
                .open(&path)?;
            let has = file.metadata()?.permissions().mode() & 0o4000 != 0;
            fs::remove_file(path)?;
            ensure(has, "the permission was dropped")
        },
    ),
    attempt_for_anyone(
        "make a program that gives privileges out of a nameless file",
        |g| {
            let mut options = fs::OpenOptions::new();
            match options
                .write(true)
                .mode(0o4755)
                .custom_flags(libc::O_TMPFILE)
                .open(&g.project)
            {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    not_applicable("this file system has no nameless files")
                }
                file => link_set_user_id_file(&file?, &g.in_project("set-user-id-3")),
            }
        },
    ),
];

/// Gives the open nameless file a name at `at`, and checks that its set-user-ID bit is still set.
fn link_set_user_id_file(file: &File, at: &Path) -> AttemptResult {
    let has = file.metadata()?.permissions().mode() & 0o4000 != 0;
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    let cwd = rustix::fs::CWD;
    let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(cwd, name, cwd, at, follow)?;
    fs::remove_file(at)?;
    ensure(has, "the permission was dropped")
}

fn parent_pid() -> i32 {
    std::os::unix::process::parent_id().cast_signed()
}

/// Makes a system call on the target process, which is outside of the sandbox. Fails if the call
/// instead reached a process inside the sandbox that has the number of the target.
fn call_on_target<const N: usize>(
    targets: &ProbeTargets,
    number: libc::c_long,
    arguments: [SyscallArg<'_>; N],
) -> AttemptResult {
    check_process_call(make_syscall(number, arguments))?;
    check_is_target(targets)
}

fn check_is_target(targets: &ProbeTargets) -> AttemptResult {
    let text = fs::read_to_string(format!("/proc/{}/cmdline", targets.process)).unwrap_or_default();
    ensure(
        text.contains(&targets.mark),
        "the process of that number is another one",
    )
}

/// Runs an installed set-user-ID program of root, and checks whether it runs as root.
fn run_set_user_id_program() -> AttemptResult {
    if rustix::process::geteuid().is_root() {
        return not_applicable("this is root already");
    }
    let is_set =
        |path: &&&str| fs::metadata(path).is_ok_and(|of| of.permissions().mode() & 0o4000 != 0);
    let Some(program) = [
        "/usr/bin/su",
        "/bin/su",
        "/usr/bin/passwd",
        "/usr/bin/newgrp",
    ]
    .iter()
    .find(is_set) else {
        return not_applicable("no such program is installed");
    };
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
    let _ = child.kill();
    let _ = child.wait();
    let status = status?;
    let Some(users) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else {
        return refused("it is not known as whom it runs");
    };
    let effective = users.split_ascii_whitespace().nth(1);
    if effective == Some("0") {
        Ok(())
    } else {
        Err(AttemptFailure::Refused(format!(
            "it runs as user {effective:?}"
        )))
    }
}
