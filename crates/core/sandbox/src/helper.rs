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

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[cfg(target_os = "linux")]
use guard::guard;
#[cfg(not(target_os = "linux"))]
use portable::guard;

use crate::HELPER_ARG;
use crate::wire::{self, CommandOutcome, HelperRequest};

/// From the polite signal to the one that cannot be ignored.
const GRACE: Duration = Duration::from_millis(500);

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

/// Lets go of the command's output: nobody has to wait for our own end, not even who reads until
/// nobody can write any more.
fn let_go_of_output() {
    let _ = rustix::stdio::dup2_stdout(rustix::stdio::stdin());
    let _ = rustix::stdio::dup2_stderr(rustix::stdio::stdin());
}

fn wait_for_outcome(
    control: &mut UnixStream,
    link: &mut UnixStream,
    deadline: Option<Instant>,
) -> CommandOutcome {
    loop {
        let mut fds = [for_reading(link), for_reading(control)];
        match poll_until(&mut fds, deadline) {
            Ok(PollOutcome::Some) => {}
            Ok(PollOutcome::Interrupted) => continue,
            Ok(PollOutcome::Timeout) => return CommandOutcome::TimedOut,
            Err(_) => return CommandOutcome::Lost,
        }
        let [from_keeper, from_haft] = fds.map(|fd| is_ready(&fd));
        if from_keeper {
            // A keeper that says nothing was killed.
            let mut report = [0; CommandOutcome::LENGTH];
            let heard = link
                .read_exact(&mut report)
                .ok()
                .and_then(|()| CommandOutcome::decode(report));
            return heard.unwrap_or(CommandOutcome::Lost);
        }
        if from_haft {
            return CommandOutcome::Cancelled;
        }
    }
}

enum PollOutcome {
    Some,
    Timeout,
    Interrupted,
}

fn poll_until(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<PollOutcome> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // A time too long for the kernel is as good as none.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(fds, left.as_ref()) {
        Ok(0) => Ok(PollOutcome::Timeout),
        Ok(_) => Ok(PollOutcome::Some),
        Err(rustix::io::Errno::INTR) => Ok(PollOutcome::Interrupted),
        Err(error) => Err(error.into()),
    }
}

fn for_reading<Fd: AsFd>(fd: &Fd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// Whether there is something to read, the end included.
fn is_ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}
