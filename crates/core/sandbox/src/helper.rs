//! The helper's side of supervision: the processes between haft and the command.
//!
//! On Linux they are the [`guard`] and a keeper below it, on other systems only the `portable`
//! guard. They use the socket that is the helper's standard input. They wait for the first of three
//! events: the command ends, the timeout passes, haft's side of the socket closes. Then they end
//! all processes of the command with `SIGTERM` and, after a grace period, with `SIGKILL`.

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
use guard::run_guard;
#[cfg(not(target_os = "linux"))]
use portable::run_guard;

use crate::HELPER_ARG;
use crate::wire::{self, HelperRequest};

/// Runs this process as a supervisor helper if `arguments`, which include the program's name,
/// request that. Returns `None` in any other process.
///
/// `main` calls this first, before it starts a thread or reads anything, and returns the exit code
/// if there is one. A helper communicates over the socket that is its standard input and prints
/// nothing: its output is the command's.
pub fn helper_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let is_helper = arguments
        .into_iter()
        .nth(1)
        .is_some_and(|argument| argument == HELPER_ARG);
    is_helper.then(|| run_helper().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS))
}

fn run_helper() -> io::Result<()> {
    let mut control = take_control_socket()?;
    sys::block_signals()?;
    sys::close_others_on_exec();
    control.set_read_timeout(Some(wire::REQUEST_TIMEOUT))?;
    let request = HelperRequest::read(&mut control)?;
    // Tests on Linux use this to run the portable guard.
    #[cfg(feature = "test-helper")]
    if request
        .env
        .iter()
        .any(|(name, _)| name == "HAFT_TEST_PORTABLE_GUARD")
    {
        return portable::run_guard(control, &request);
    }
    run_guard(control, &request)
}

/// Takes the control socket from standard input, and replaces standard input with `/dev/null`.
/// Fails if standard input is not a socket, for example because a user started the helper.
fn take_control_socket() -> io::Result<UnixStream> {
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    control.peer_addr()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
}
