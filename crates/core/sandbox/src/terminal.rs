//! A pseudo-terminal: haft reads and writes the master side, the command gets the other side.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{Dev, fstat};
use rustix::io::{Errno, FdFlags, ioctl_fionbio};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, ReadBuf};

use crate::waiting::OwnTerminal;

/// The size that a terminal reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

impl Default for TerminalSize {
    /// Returns a size so wide that programs rarely break lines, which a model would have to join
    /// again.
    fn default() -> Self {
        Self {
            rows: 40,
            columns: 160,
        }
    }
}

/// The master side of a pseudo-terminal.
#[derive(Debug)]
pub(crate) struct Master {
    fd: AsyncFd<OwnedFd>,
    device: Dev,
}

/// Opens a pseudo-terminal and returns the master side and the side for the command.
pub(crate) fn open_pair(size: TerminalSize) -> io::Result<(Arc<Master>, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags)?;
    rustix::io::fcntl_setfd(&master, FdFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    // Not opened by name: `/dev/pts` may be another file system or missing.
    #[cfg(target_os = "linux")]
    let other = rustix::pty::ioctl_tiocgptpeer(&master, flags | OpenptFlags::CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let other = {
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(
            rustix::pty::ptsname(&master, Vec::new())?,
            flags,
            rustix::fs::Mode::empty(),
        )?
    };
    tcsetwinsize(
        &other,
        Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )?;
    ioctl_fionbio(&master, true)?;
    let device = fstat(&other)?.st_rdev;
    Ok((
        Arc::new(Master {
            fd: register_fd(master)?,
            device,
        }),
        other,
    ))
}

#[expect(
    unsafe_code,
    reason = "tokio cannot know by itself that a descriptor stays open"
)]
fn register_fd(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the returned `AsyncFd` owns the descriptor, which therefore stays open and unchanged
    // as long as it is registered.
    Ok(unsafe { AsyncFd::register(fd) }?)
}

impl Master {
    /// Returns the identity of this terminal, by which reads from this terminal are recognized.
    pub(crate) fn as_own_terminal(&self) -> OwnTerminal<'_> {
        OwnTerminal {
            master: self.as_fd(),
            device: self.device,
        }
    }

    /// True if the terminal is in line mode, which limits the length of a line.
    pub(crate) fn is_in_line_mode(&self) -> bool {
        tcgetattr(self).is_ok_and(|settings| settings.local_modes.contains(LocalModes::ICANON))
    }

    /// Types all of `bytes`, waiting while the other side does not read.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.fd.writable().await?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd, bytes)?)) {
                Ok(written) => bytes = &bytes[written?..],
                Err(_would_block) => {}
            }
        }
        Ok(())
    }
}

impl AsFd for Master {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}

/// Reads the output written to the terminal.
pub(crate) struct TerminalReader(pub(crate) Arc<Master>);

impl AsyncRead for TerminalReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.fd.poll_read_ready(context))?;
            let read = ready.try_io(|fd| Ok(rustix::io::read(fd, buffer.initialize_unfilled())?));
            match read {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // No process has the other side open any more: this is the end of the output.
                Ok(Err(error)) if Errno::from_io_error(&error) == Some(Errno::IO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}
