//! The system calls of the helper that need `unsafe`, each behind a safe function. The helper has
//! one thread when any of them is used.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::wire::Console;

pub(super) fn block_signals() -> io::Result<()> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes the set; the old mask is not requested.
    let failed = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut())
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Marks every descriptor except the standard three as close-on-exec, because the command must not
/// get descriptors that haft inherited.
pub(super) fn close_others_on_exec() {
    // SAFETY: no descriptor is closed here. An old kernel without this call changes nothing.
    #[cfg(target_os = "linux")]
    let _ = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    // SAFETY: no descriptor is closed here, and an invalid number is rejected.
    #[cfg(not(target_os = "linux"))]
    (3..1024).for_each(|fd| _ = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) });
}

/// Returns the session id of a process as a plain number, because rustix cannot represent the 0 of
/// kernel threads.
#[cfg(any(feature = "test-helper", not(target_os = "linux")))]
pub(super) fn session_id(process: rustix::process::Pid) -> i32 {
    // SAFETY: the argument is a number.
    unsafe { libc::getsid(process.as_raw_pid()) }
}

/// Configures the command to start as if from a fresh shell: in its own session, at its own
/// terminal if it has one, with no signal blocked or ignored. The new process calls `restrict`
/// last.
pub(super) fn configure_session(
    command: &mut Command,
    console: Console,
    restrict: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> &mut Command {
    let prepare = move || {
        rustix::process::setsid()?;
        match console {
            Console::None | Console::Socket => {}
            Console::Terminal => rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?,
        }
        reset_signals()?;
        // Applied last, because few system calls are allowed from here on.
        restrict()
    };
    // SAFETY: between fork and exec only system calls are made: no allocation, no lock.
    unsafe { command.pre_exec(prepare) }
}

fn reset_signals() -> io::Result<()> {
    let mut none = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set. Signals that cannot be reset, such as `SIGKILL`,
    // are rejected and keep their action.
    let failed = unsafe {
        for signal in 1..=31 {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
