//! Waits for the command's end; used by the guards and the keeper.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::wire::CommandOutcome;

/// The time that processes have to end after `SIGTERM` before they are sent `SIGKILL`.
pub(super) const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Replaces standard output and standard error with `/dev/null`, so that a reader of the command's
/// output reaches the end of the output before this process exits.
pub(super) fn release_output() {
    let _ = rustix::stdio::dup2_stdout(rustix::stdio::stdin());
    let _ = rustix::stdio::dup2_stderr(rustix::stdio::stdin());
}

/// Waits for the first of three events: a report arrives on `link`, haft's side of `control` is
/// closed, or `deadline` passes. Reports for which `is_notice` returns true are not the last.
pub(super) fn wait_for_outcome(
    control: &mut UnixStream,
    link: &mut UnixStream,
    deadline: Option<Instant>,
    mut is_notice: impl FnMut([u8; CommandOutcome::ENCODED_LEN]) -> bool,
) -> CommandOutcome {
    loop {
        let mut fds = [poll_fd_for_reading(link), poll_fd_for_reading(control)];
        match poll_until(&mut fds, deadline) {
            Ok(PollOutcome::Some) => {}
            Ok(PollOutcome::Interrupted) => continue,
            Ok(PollOutcome::Timeout) => return CommandOutcome::TimedOut,
            Err(_) => return CommandOutcome::Lost,
        }
        let [from_keeper, from_haft] = fds.map(|fd| is_ready(&fd));
        if from_keeper {
            // A link that closes without a report belongs to a killed keeper.
            let mut report = [0; CommandOutcome::ENCODED_LEN];
            if link.read_exact(&mut report).is_err() {
                return CommandOutcome::Lost;
            }
            if is_notice(report) {
                continue;
            }
            return CommandOutcome::decode(report).unwrap_or(CommandOutcome::Lost);
        }
        if from_haft {
            return CommandOutcome::Cancelled;
        }
    }
}

/// The reason why [`poll_until`] returned.
pub(super) enum PollOutcome {
    /// At least one descriptor is ready.
    Some,
    Timeout,
    Interrupted,
}

/// Waits until a descriptor is ready, a signal arrives, or `deadline` passes.
pub(super) fn poll_until(
    fds: &mut [PollFd<'_>],
    deadline: Option<Instant>,
) -> io::Result<PollOutcome> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // A duration that the kernel cannot represent means no deadline.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(fds, left.as_ref()) {
        Ok(0) => Ok(PollOutcome::Timeout),
        Ok(_) => Ok(PollOutcome::Some),
        Err(rustix::io::Errno::INTR) => Ok(PollOutcome::Interrupted),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn poll_fd_for_reading<Fd: AsFd>(fd: &Fd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// True if a read would return at once, because there is data or because the connection was closed
/// by the process at its other end.
pub(super) fn is_ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}
