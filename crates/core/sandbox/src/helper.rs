//! The helper's side: what stands between haft and the command.
//!
//! On Linux that is the [`guard`], with a keeper below it, on other systems the [`portable`] guard
//! alone. Both speak over the socket that is the helper's standard input, wait for the first of
//! these: the command's end, the timeout, the end of haft's side of the socket; and then end
//! everything: politely, and after a moment of grace with `SIGKILL`.

mod command;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "what neither the standard library nor rustix can do safely"
)]
mod namespaces;
#[cfg(any(feature = "test-helper", not(target_os = "linux")))]
mod portable;
#[expect(
    unsafe_code,
    reason = "what neither the standard library nor rustix can do safely"
)]
mod sys;
#[cfg(target_os = "linux")]
mod tree;
mod wait;

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use guard::guard;
#[cfg(not(target_os = "linux"))]
use portable::guard;

use crate::HELPER_ARG;
use crate::wire::{self, HelperRequest};

/// Runs this process as a supervisor helper if its arguments, the program's name included, say that
/// it is one.
///
/// `main` calls it first thing, before it starts a thread or reads anything, and returns the code
/// if there is one. A helper speaks over the socket that is its standard input and prints nothing:
/// its output is the command's.
pub fn helper_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let is_helper = arguments
        .into_iter()
        .nth(1)
        .is_some_and(|argument| argument == HELPER_ARG);
    is_helper.then(|| serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn serve() -> io::Result<()> {
    let mut control = take_control()?;
    sys::block_signals()?;
    sys::close_others_on_exec();
    control.set_read_timeout(Some(wire::IDLE))?;
    let request = HelperRequest::read_from(&mut control)?;
    // So that it can be tested where it is not used.
    #[cfg(feature = "test-helper")]
    if request
        .env
        .iter()
        .any(|(name, _)| name == "HAFT_TEST_PORTABLE_GUARD")
    {
        return portable::guard(control, &request);
    }
    guard(control, &request)
}

/// Standard input as our socket, with nothing in its place. Started by hand there is no socket:
/// that is an error.
fn take_control() -> io::Result<UnixStream> {
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    control.peer_addr()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
}
