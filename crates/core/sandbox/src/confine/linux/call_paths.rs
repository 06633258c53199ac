//! Reads what a thread of the command is calling, and the paths in the arguments of its calls.
//!
//! The memory belongs to the command, which may change it at any time. The results are therefore
//! good for an error message, not for a guarantee.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::creating_calls::{PathArgument, find_creating_call};
use super::sys::NotifiedCall;

/// The maximum length of a path in bytes, including the terminator.
const MAX_PATH_BYTES: usize = 4_096;
/// The offset of the path in the address of a Unix socket.
const SOCKET_PATH_OFFSET: usize = 2;

/// True unless the thread is gone or waits in a call that creates no names.
pub(super) fn may_be_in_creating_call(thread: u32) -> bool {
    match fs::read_to_string(format!("/proc/{thread}/syscall")) {
        // `running` says nothing about where.
        Ok(text) => text
            .split(' ')
            .next()
            .and_then(|number| number.trim().parse().ok())
            .is_none_or(|number| number < 0 || find_creating_call(number).is_some()),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => false,
            _ => error.raw_os_error() != Some(libc::ESRCH),
        },
    }
}

/// Returns the path in an argument of a call, as a path for this process.
pub(super) fn read_named_path(call: &NotifiedCall, argument: PathArgument) -> Option<PathBuf> {
    let process = call.thread;
    let (folder, path) = match argument {
        PathArgument::Path { path } => (None, read_text(process, call.arguments[path], 0)?),
        PathArgument::PathAt { folder, path } => {
            // The kernel, too, takes only the lower half for a descriptor.
            let folder = call.arguments[folder] as i32;
            let folder = (folder != libc::AT_FDCWD).then_some(folder);
            (folder, read_text(process, call.arguments[path], 0)?)
        }
        PathArgument::SocketAddress { address } => {
            let address = call.arguments[address];
            let family = read_memory(process, address, SOCKET_PATH_OFFSET)?;
            let family = u16::from_ne_bytes(family.try_into().ok()?);
            if i32::from(family) != libc::AF_UNIX {
                return None;
            }
            (None, read_text(process, address, SOCKET_PATH_OFFSET)?)
        }
    };
    let path = Path::new(OsStr::from_bytes(&path));
    if path.as_os_str().is_empty() {
        return None;
    }
    let own = Path::new("/proc").join(process.to_string());
    if let Ok(below) = path.strip_prefix("/proc/self") {
        return Some(own.join(below));
    }
    let base = match folder {
        None => own.join("cwd"),
        Some(folder) => own.join("fd").join(folder.to_string()),
    };
    Some(base.join(path))
}

/// Reads a text that ends in NUL from the memory of a process.
fn read_text(process: u32, address: u64, offset: usize) -> Option<Vec<u8>> {
    let address = address.checked_add(offset as u64)?;
    let mut text = read_memory(process, address, MAX_PATH_BYTES)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    text.truncate(end);
    Some(text)
}

/// Reads at most `length` bytes, less if the memory ends before.
fn read_memory(process: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut bytes = vec![0; length];
    let read = memory.read_at(&mut bytes, address).ok()?;
    bytes.truncate(read);
    Some(bytes)
}
