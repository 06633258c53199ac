//! System calls for attempts.
//!
//! Everything here runs in a process that was forked for one attempt and ends with it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::{AttemptFailure, AttemptResult, ProbeOutcome};

/// The time limit for one attempt. An attempt that takes longer is killed.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs an attempt in a forked process, so that the attempt may change or kill its process.
pub(crate) fn run_in_child(
    attempt: impl FnOnce() -> AttemptResult,
) -> io::Result<(ProbeOutcome, String)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: this process has one thread, so the child finds no held lock and no half-changed
    // state.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        drop(reader);
        let (outcome, detail) = match attempt() {
            Ok(()) => (b's', String::new()),
            Err(AttemptFailure::Refused(why)) => (b'r', why),
            Err(AttemptFailure::NotApplicable(why)) => (b'n', why),
        };
        let mut writer = File::from(writer);
        let written = writer.write_all(&[&[outcome], detail.as_bytes()].concat());
        // SAFETY: this ends the forked process, which has nothing left to do.
        unsafe { libc::_exit(i32::from(written.is_err())) }
    }
    drop(writer);
    let child = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
    let timeout = Timespec::try_from(ATTEMPT_TIMEOUT).ok();
    let replied = poll(&mut [PollFd::new(&reader, PollFlags::IN)], timeout.as_ref())? > 0;
    if !replied {
        kill_process(child, Signal::KILL)?;
    }
    let status = waitpid(Some(child), WaitOptions::empty())?.map(|(_, status)| status);
    let mut text = Vec::new();
    if replied {
        File::from(reader).read_to_end(&mut text)?;
    }
    let detail = String::from_utf8_lossy(text.get(1..).unwrap_or_default()).into_owned();
    Ok(
        match (
            text.first(),
            status.and_then(rustix::process::WaitStatus::terminating_signal),
        ) {
            (Some(b's'), _) => (ProbeOutcome::Succeeded, detail),
            (Some(b'n'), _) => (ProbeOutcome::NotApplicable, detail),
            (Some(_), _) => (ProbeOutcome::Refused, detail),
            // A hanging attempt is not proven to be refused, so it counts as succeeded.
            (None, _) if !replied => (ProbeOutcome::Succeeded, "it did not end in time".to_owned()),
            (None, signal) => (
                ProbeOutcome::Refused,
                format!("ended by signal {}", signal.unwrap_or_default()),
            ),
        },
    )
}

/// An argument of a system call: a number, or a pointer to a text or a buffer.
pub(crate) enum SyscallArg<'a> {
    Number(i64),
    Text(&'a CStr),
    Bytes(&'a mut [u8]),
}

impl From<i32> for SyscallArg<'_> {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for SyscallArg<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl<'a> From<&'a CStr> for SyscallArg<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a mut [u8]> for SyscallArg<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a mut [u8; N]> for SyscallArg<'a> {
    fn from(bytes: &'a mut [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

/// Makes a system call. Must not be used for calls that change memory of this process other than
/// the buffers in the arguments.
pub(crate) fn make_syscall<const N: usize>(
    number: libc::c_long,
    arguments: [SyscallArg<'_>; N],
) -> io::Result<i64> {
    let mut values = [0_i64; 6];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = match argument {
            SyscallArg::Number(number) => number,
            SyscallArg::Text(text) => text.as_ptr() as i64,
            SyscallArg::Bytes(bytes) => bytes.as_mut_ptr() as i64,
        };
    }
    // SAFETY: the pointers lead to terminated text and to buffers that live across the call and are
    // as large as the attempts declare; the process exists for one attempt only.
    let result = unsafe {
        libc::syscall(
            number, values[0], values[1], values[2], values[3], values[4], values[5],
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Makes a system call through the old 32-bit calling convention. Filters of system calls sometimes
/// miss such calls.
#[cfg(target_arch = "x86_64")]
pub(crate) fn make_syscall_32(number: i32, argument: i32) -> io::Result<i64> {
    let result: i32;
    // SAFETY: the call takes only numbers, and all registers that it may change are listed.
    unsafe {
        std::arch::asm!(
            "xchg rbx, {argument}", "int 0x80", "xchg rbx, {argument}",
            argument = inout(reg) i64::from(argument) => _,
            inlateout("eax") number => result,
            in("ecx") 0, in("edx") 0, in("esi") 0, in("edi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result))
    } else {
        Ok(result.into())
    }
}

/// Creates a child process with `flags` through the system call `clone`. The child exits at once.
pub(crate) fn clone_with_flags(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: like a fork, because no memory is shared and no stack is given. The child only ends.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags | libc::SIGCHLD),
            0,
            0,
            0,
            0,
        )
    };
    finish_clone(pid)
}

/// Creates a child process with `flags` through the system call `clone3`. The child exits at once.
pub(crate) fn clone3_with_flags(flags: libc::c_int) -> io::Result<()> {
    let mut arguments = [0_u64; 8];
    arguments[0] = flags as u64;
    arguments[4] = libc::SIGCHLD as u64;
    // SAFETY: like a fork, as above; the structure has eight numbers and lives across the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            arguments.as_ptr(),
            size_of_val(&arguments),
        )
    };
    finish_clone(pid)
}

fn finish_clone(pid: libc::c_long) -> io::Result<()> {
    match pid {
        // SAFETY: this ends the forked process.
        0 => unsafe { libc::_exit(0) },
        1.. => {
            let child = i32::try_from(pid).ok().and_then(Pid::from_raw);
            waitpid(child, WaitOptions::empty())?;
            Ok(())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Converts a file descriptor that a system call returned to a file that owns and closes the
/// descriptor.
pub(crate) fn file_from_descriptor(descriptor: i64) -> File {
    // SAFETY: the descriptor is new, and nothing else owns it.
    unsafe { File::from_raw_fd(descriptor as i32) }
}

/// Creates a System V shared memory segment that contains `text`.
pub(crate) fn create_segment(text: &[u8]) -> io::Result<i32> {
    // SAFETY: the call takes only numbers.
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600) };
    if id < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel chooses the address; one page is attached, and at most one page is
    // written.
    unsafe {
        let at = libc::shmat(id, std::ptr::null(), 0);
        if at as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast(), text.len().min(4096));
        libc::shmdt(at);
    }
    Ok(id)
}

pub(crate) fn remove_segment(id: i32) {
    // SAFETY: the call takes only numbers and a null pointer.
    unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Returns the first 16 bytes of a System V shared memory segment.
pub(crate) fn read_segment(id: i32) -> io::Result<[u8; 16]> {
    // SAFETY: the kernel chooses the address; one page is attached, and less is read.
    unsafe {
        let at = libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY);
        if at as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(at.cast::<[u8; 16]>().read_unaligned())
    }
}
