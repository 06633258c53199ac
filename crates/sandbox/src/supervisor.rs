//! haft's side: starts a helper for each command, reads its output, hears how it ended.
//!
//! Responsible for never waiting for ever and for leaving nothing behind: dropping the future of [`Supervisor::run`]
//! closes the socket, and that alone makes the helper end the command and everything it started.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::capture::{Recorder, Stream};
use crate::wire::{Report, Request, Verdict};
use crate::{Aftermath, Capture, Captured, Command, Exit, Finished, HELPER_ARG, PidNamespace, Reaper, SandboxError};

/// How long the helper may take to end everything before haft goes on without it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs commands, each under a helper of its own.
#[derive(Clone, Debug)]
pub struct Supervisor {
    helper: PathBuf,
    namespace: PidNamespace,
}

impl Supervisor {
    /// A supervisor whose helper is this executable, usually the running one: its `main` must begin with
    /// [`helper_entry`](crate::helper_entry).
    pub fn new(helper: impl Into<PathBuf>) -> Self {
        Self { helper: helper.into(), namespace: PidNamespace::default() }
    }

    /// The same with this use of pid namespaces.
    #[must_use]
    pub fn with_namespace(mut self, namespace: PidNamespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Runs a command to its end and the end of everything it started.
    ///
    /// It is ended early when `cancel` fires, its time is over, the returned future is dropped, or this process dies. An
    /// error means that it did not run at all, except for [`SandboxError::HelperLost`].
    pub async fn run(
        &self,
        command: &Command,
        capture: &Capture,
        cancel: &CancellationToken,
    ) -> Result<Finished, SandboxError> {
        let started = Instant::now();
        let request = Request::new(command, self.namespace)?.encode()?;
        if cancel.is_cancelled() {
            return Ok(never_started());
        }
        let Helper { mut process, control, stdout, stderr } = self.start_helper()?;
        let stop = CancellationToken::new();
        let conversation = async {
            let said = converse(control, &request, &mut process, cancel).await;
            stop.cancel();
            said
        };
        let (said, stdout, stderr) = tokio::join!(
            conversation,
            Recorder::new(capture, Stream::Stdout).drain(stdout, &stop),
            Recorder::new(capture, Stream::Stderr).drain(stderr, &stop),
        );

        let lost = || SandboxError::HelperLost { helper: self.helper.clone() };
        let (report, aftermath) = said.ok_or_else(lost)?;
        let exit = match report.verdict {
            Verdict::Code(code) => Exit::Code(code),
            Verdict::Signal(signal) => Exit::Signal(signal),
            Verdict::TimedOut => Exit::TimedOut,
            Verdict::Cancelled => Exit::Cancelled,
            Verdict::NoFolder(error) => {
                let source = io::Error::from_raw_os_error(error);
                return Err(SandboxError::Folder { cwd: command.cwd.clone(), source });
            }
            Verdict::NoProgram(error) => {
                let source = io::Error::from_raw_os_error(error);
                let program = command.argv.first().map(|program| program.display().to_string()).unwrap_or_default();
                return Err(SandboxError::Program { program, source });
            }
            Verdict::NoNamespace | Verdict::Lost => return Err(lost()),
        };
        Ok(Finished { exit, stdout, stderr, duration: started.elapsed(), reaper: report.reaper, aftermath })
    }

    fn start_helper(&self) -> Result<Helper, SandboxError> {
        let start = || {
            // One end stays blocking, for the helper. Both are closed on exec: nobody else can keep the socket open.
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            let control = UnixStream::from_std(ours)?;
            let mut process = tokio::process::Command::new(&self.helper)
                .arg(HELPER_ARG)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                // Out of reach of what a terminal sends to haft's own group, from its first moment on.
                .process_group(0)
                .spawn()?;
            match (process.stdout.take(), process.stderr.take()) {
                (Some(stdout), Some(stderr)) => Ok(Helper { process, control, stdout, stderr }),
                _ => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        start().map_err(|source| SandboxError::Helper { helper: self.helper.clone(), source })
    }
}

/// A helper that was started, and the ends of what connects it with haft.
struct Helper {
    process: Child,
    control: UnixStream,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

/// Hands over the request, waits for the report and for the helper's end; `None` when the helper had nothing to say.
async fn converse(
    control: UnixStream,
    request: &[u8],
    helper: &mut Child,
    cancel: &CancellationToken,
) -> Option<(Report, Aftermath)> {
    let (mut hear, mut say) = control.into_split();
    let asked = say.write_all(request).await;
    let mut report = [0; Report::LENGTH];
    let heard = {
        let mut answer = pin!(hear.read_exact(&mut report));
        tokio::select! {
            heard = &mut answer => heard.ok(),
            () = cancel.cancelled() => {
                // Closing our side is the order to stop.
                drop(say);
                timeout(PATIENCE, answer).await.ok().and_then(Result::ok)
            }
        }
    };
    if asked.is_err() || heard.is_none() {
        // A guard reports before it does anything that takes time: this one is dead, or no guard at all.
        let _ = helper.kill().await;
        return None;
    }
    let aftermath = match timeout(PATIENCE, helper.wait()).await {
        Ok(Ok(status)) if status.success() => Aftermath::AllGone,
        Ok(_) | Err(_) => Aftermath::StillDying,
    };
    Some((Report::decode(report)?, aftermath))
}

fn never_started() -> Finished {
    Finished {
        exit: Exit::Cancelled,
        stdout: Captured::default(),
        stderr: Captured::default(),
        duration: Duration::ZERO,
        reaper: Reaper::Subreaper,
        aftermath: Aftermath::AllGone,
    }
}
