//! haft's side of supervision: starts a helper for each command, reads its output, and receives its
//! exit status.
//!
//! Invariant: the supervisor never waits forever and leaves no process behind. Dropping the future
//! of a command closes the socket, and that alone makes the helper end the command and everything
//! it started.
//!
//! Once the model has run a command, the helper of the next command is started in advance, while
//! the model is thinking: starting a helper takes longer than all its other work.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, empty};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::capture::OutputRecorder;
use crate::live::OutputStream;
use crate::program::OwnProgram;
use crate::terminal::{self, TerminalReader};
use crate::visibility::extract_output_end;
use crate::wire::{
    ALL_GONE, CommandOutcome, Console, HelperRequest, MAX_UNDONE_BYTES, REQUEST_TIMEOUT,
    UNDONE_PATHS, decode_undone_paths,
};
use crate::{
    Aftermath, Background, Capture, CapturedOutput, CommandExit, CommandSpec, FinishedCommand,
    HELPER_ARG, LiveCommand, PidNamespace, SandboxError, TerminalSession, TerminalSize,
};

/// The time limit for the helper to end all processes of a command, after which haft continues
/// without the helper.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs commands, each under its own helper process.
#[derive(Clone, Debug)]
pub struct Supervisor {
    helper: OwnProgram,
    namespace: PidNamespace,
    ready: ReadyHelper,
}

impl Supervisor {
    /// Creates a supervisor that starts `helper` for each command. `helper` is usually the running
    /// program; its `main` must begin with [`helper_entry`](crate::helper_entry).
    pub fn new(helper: OwnProgram) -> Self {
        Self {
            helper,
            namespace: PidNamespace::default(),
            ready: ReadyHelper::default(),
        }
    }

    #[must_use]
    pub fn with_pid_namespace(mut self, namespace: PidNamespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Runs a command until it and everything it started has ended.
    ///
    /// The command is ended early when `cancel` fires, its timeout passes, the returned future is
    /// dropped, or this process dies. An error means that the command did not run at all, except
    /// for [`SandboxError::HelperLost`].
    pub async fn run(
        &self,
        command: &CommandSpec,
        capture: &Capture,
        cancel: &CancellationToken,
    ) -> Result<FinishedCommand, SandboxError> {
        self.supervise_command(
            command,
            CommandStreams::Separate,
            capture,
            cancel,
            &LiveCommand::default(),
        )
        .await
    }

    /// Like [`Supervisor::run`], but `live` observes the command while it runs, and the helper for
    /// the next command is started afterwards. All calls must be made within one tokio runtime.
    pub async fn run_watched(
        &self,
        command: &CommandSpec,
        capture: &Capture,
        cancel: &CancellationToken,
        live: &LiveCommand,
    ) -> Result<FinishedCommand, SandboxError> {
        let wires = self
            .ready
            .take()
            .map_or(CommandStreams::Separate, CommandStreams::SeparateReady);
        let finished = self
            .supervise_command(command, wires, capture, cancel, live)
            .await;
        let next = self.clone();
        tokio::spawn(async move {
            next.ready
                .fill(|| next.start_helper(CommandStreams::Separate));
        });
        finished
    }

    /// Starts a command in the background. Standard output and standard error are joined in the
    /// order in which they are written. Must be called within a tokio runtime.
    pub fn start_background(&self, command: CommandSpec, capture: Capture) -> Background {
        self.spawn_background(
            command,
            CommandStreams::Joined,
            capture,
            LiveCommand::default(),
        )
    }

    /// Starts a command at its own terminal, which is also its standard input. Must be called
    /// within a tokio runtime.
    pub fn open_terminal(
        &self,
        command: CommandSpec,
        size: TerminalSize,
        capture: Capture,
    ) -> Result<TerminalSession, SandboxError> {
        let (master, other) =
            terminal::open_pair(size).map_err(|source| SandboxError::Terminal { source })?;
        let live = LiveCommand::with_unread_limits(capture.limits);
        let wires = CommandStreams::Terminal(TerminalReader(Arc::clone(&master)), other);
        Ok(TerminalSession::new(
            self.spawn_background(command, wires, capture, live),
            master,
        ))
    }

    /// Starts a command that has one socket as both its standard input and its standard output, and
    /// returns the other end of the socket. Standard error is captured; the data on the socket is
    /// not. Must be called within a tokio runtime.
    pub fn start_connected(
        &self,
        command: CommandSpec,
        capture: Capture,
    ) -> Result<(Background, UnixStream), SandboxError> {
        let (ours, theirs) = create_socket_pair().map_err(|source| self.helper_error(source))?;
        Ok((
            self.spawn_background(
                command,
                CommandStreams::Socket(theirs),
                capture,
                LiveCommand::default(),
            ),
            ours,
        ))
    }

    fn spawn_background(
        &self,
        command: CommandSpec,
        wires: CommandStreams,
        capture: Capture,
        live: LiveCommand,
    ) -> Background {
        let cancel = CancellationToken::new();
        let supervisor = self.clone();
        let watched = live.clone();
        let cancelled = cancel.clone();
        Background::spawn(live, cancel, async move {
            supervisor
                .supervise_command(&command, wires, &capture, &cancelled, &watched)
                .await
        })
    }

    fn helper_error(&self, source: io::Error) -> SandboxError {
        SandboxError::Helper {
            helper: self.helper.path().to_owned(),
            source,
        }
    }

    async fn supervise_command(
        &self,
        command: &CommandSpec,
        wires: CommandStreams,
        capture: &Capture,
        cancel: &CancellationToken,
        live: &LiveCommand,
    ) -> Result<FinishedCommand, SandboxError> {
        let started = Instant::now();
        let (console, [first, second]) = match wires {
            CommandStreams::Separate | CommandStreams::SeparateReady(_) => {
                (Console::None, [OutputStream::Stdout, OutputStream::Stderr])
            }
            CommandStreams::Joined => (Console::None, [OutputStream::Both, OutputStream::Stderr]),
            CommandStreams::Terminal(..) => (
                Console::Terminal,
                [OutputStream::Both, OutputStream::Stderr],
            ),
            CommandStreams::Socket(_) => (
                Console::Socket,
                [OutputStream::Stdout, OutputStream::Stderr],
            ),
        };
        let request = HelperRequest::new(command, self.namespace, console)?.encode()?;
        if cancel.is_cancelled() {
            return Ok(build_canceled_result());
        }
        let lost = || SandboxError::HelperLost {
            helper: self.helper.path().to_owned(),
        };
        let Helper {
            mut process,
            control,
            stdout,
            stderr,
            ..
        } = self.start_helper(wires)?;
        live.set_helper(
            process
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
        );
        let stop = CancellationToken::new();
        let conversation = async {
            let report = send_request_and_wait(control, &request, &mut process, cancel).await;
            live.set_helper(None);
            stop.cancel();
            report
        };
        let (report, stdout, stderr) = tokio::join!(
            conversation,
            OutputRecorder::new(capture, first, live).drain(stdout, &stop),
            OutputRecorder::new(capture, second, live).drain(stderr, &stop),
        );

        let HelperReport {
            outcome,
            aftermath,
            undone,
        } = report.ok_or_else(lost)?;
        let exit = match outcome {
            CommandOutcome::Code(code) => CommandExit::Code(code),
            CommandOutcome::Signal(signal) => CommandExit::Signal(signal),
            CommandOutcome::TimedOut => CommandExit::TimedOut,
            CommandOutcome::Cancelled => CommandExit::Cancelled,
            CommandOutcome::NoFolder(error) => {
                if let Some(path) = command
                    .confined
                    .as_ref()
                    .and_then(|confined| confined.hidden_path(&command.cwd))
                {
                    return Err(SandboxError::HiddenFolder { path });
                }
                let source = io::Error::from_raw_os_error(error);
                return Err(SandboxError::Folder {
                    cwd: command.cwd.clone(),
                    source,
                });
            }
            CommandOutcome::NoProgram(error) => {
                if let Some(path) = command.find_hidden_path("") {
                    return Err(SandboxError::HiddenProgram { path });
                }
                let source = io::Error::from_raw_os_error(error);
                let program = command
                    .argv
                    .first()
                    .map(|program| program.display().to_string())
                    .unwrap_or_default();
                return Err(SandboxError::Program { program, source });
            }
            CommandOutcome::NotConfined(failed) => {
                let source = io::Error::from_raw_os_error(failed.errno);
                return Err(SandboxError::Confinement {
                    step: failed.step,
                    source,
                });
            }
            CommandOutcome::NoNamespace | CommandOutcome::Lost => return Err(lost()),
        };
        let hidden = match exit {
            CommandExit::Code(0) | CommandExit::TimedOut | CommandExit::Cancelled => None,
            // If the streams are joined, error messages are in the first.
            CommandExit::Code(_) | CommandExit::Signal(_) => {
                let complaints = if first == OutputStream::Both {
                    &stdout
                } else {
                    &stderr
                };
                command.find_hidden_path(&extract_output_end(complaints))
            }
        };
        Ok(FinishedCommand {
            exit,
            stdout,
            stderr,
            duration: started.elapsed(),
            aftermath,
            hidden,
            undone,
        })
    }

    fn start_helper(&self, wires: CommandStreams) -> Result<Helper, SandboxError> {
        self.try_start_helper(wires)
            .map_err(|source| self.helper_error(source))
    }

    fn try_start_helper(&self, wires: CommandStreams) -> io::Result<Helper> {
        let (output, [stdout, stderr]): (Option<OutputSource>, _) = match wires {
            CommandStreams::SeparateReady(helper) => return Ok(*helper),
            CommandStreams::Separate => (None, [Stdio::piped(), Stdio::piped()]),
            CommandStreams::Joined => {
                let (ours, theirs) = io::pipe()?;
                // Only haft's end becomes non-blocking: a command would get "try again" on the
                // other end where it expects to wait.
                rustix::io::ioctl_fionbio(&ours, true)?;
                (
                    Some(Box::new(pipe::Receiver::from_owned_fd(ours.into())?)),
                    duplicate_as_stdio(theirs.into())?,
                )
            }
            CommandStreams::Terminal(screen, theirs) => {
                (Some(Box::new(screen)), duplicate_as_stdio(theirs)?)
            }
            CommandStreams::Socket(theirs) => {
                (Some(Box::new(empty())), [theirs.into(), Stdio::piped()])
            }
        };
        let (control, theirs) = create_socket_pair()?;
        let mut process = tokio::process::Command::from(self.helper.command())
            .arg(HELPER_ARG)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(stdout)
            .stderr(stderr)
            // A group of its own from the start keeps signals that a terminal sends to haft's
            // group away from the helper.
            .process_group(0)
            .spawn()?;
        let piped = process
            .stdout
            .take()
            .map(|stdout| Box::new(stdout) as OutputSource);
        let stdout = output.or(piped).ok_or(io::ErrorKind::BrokenPipe)?;
        let stderr: OutputSource = match process.stderr.take() {
            Some(stderr) => Box::new(stderr),
            None => Box::new(empty()),
        };
        Ok(Helper {
            started: Instant::now(),
            process,
            control,
            stdout,
            stderr,
        })
    }
}

/// Creates a socket pair: haft's end, and a blocking end for the helper or its command. Both ends
/// are closed on exec, so no other program can keep the socket open.
fn create_socket_pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// The streams that connect a command with haft.
enum CommandStreams {
    /// A separate pipe for each of the two output streams.
    Separate,
    /// Like `Separate`, but with the pipes of a helper that has already been started.
    SeparateReady(Box<Helper>),
    /// One pipe for both output streams.
    Joined,
    /// A terminal: haft's side, and the command's side.
    Terminal(TerminalReader, OwnedFd),
    /// A socket for input and output, and a pipe for standard error. The caller has the other end
    /// of the socket.
    Socket(OwnedFd),
}

type OutputSource = Box<dyn AsyncRead + Send + Unpin>;

fn duplicate_as_stdio(fd: OwnedFd) -> io::Result<[Stdio; 2]> {
    Ok([fd.try_clone()?.into(), fd.into()])
}

/// A running helper and haft's ends of its streams.
struct Helper {
    started: Instant,
    process: Child,
    control: UnixStream,
    stdout: OutputSource,
    stderr: OutputSource,
}

/// A helper that has already been started and is waiting for its request.
#[derive(Clone, Default)]
struct ReadyHelper(Arc<Mutex<Option<Box<Helper>>>>);

impl ReadyHelper {
    fn take(&self) -> Option<Box<Helper>> {
        let mut helper = self.0.lock().ok()?.take()?;
        // A helper that has ended, or will soon, is useless.
        let is_alive = helper.started.elapsed() < REQUEST_TIMEOUT / 2
            && matches!(helper.process.try_wait(), Ok(None));
        is_alive.then_some(helper)
    }

    /// Starts a helper and keeps it for the next command. A command that arrives meanwhile waits
    /// for this helper instead of starting another. If the start fails, the next command reports
    /// its own failure.
    fn fill(&self, start: impl FnOnce() -> Result<Helper, SandboxError>) {
        if let Ok(mut ready) = self.0.lock()
            && let Ok(helper) = start()
        {
            *ready = Some(Box::new(helper));
        }
    }
}

impl fmt::Debug for ReadyHelper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadyHelper")
    }
}

/// What a helper reports about its command.
struct HelperReport {
    outcome: CommandOutcome,
    aftermath: Aftermath,
    /// The protected entries that the helper removed or restored.
    undone: Vec<PathBuf>,
}

/// Sends the request, then waits for the report and for the end of all processes. Returns `None` if
/// the helper did not report.
async fn send_request_and_wait(
    control: UnixStream,
    request: &[u8],
    helper: &mut Child,
    cancel: &CancellationToken,
) -> Option<HelperReport> {
    let (mut reader, mut writer) = control.into_split();
    let sent = writer.write_all(request).await;
    let mut report = [0; CommandOutcome::ENCODED_LEN];
    let received = {
        let mut answer = pin!(reader.read_exact(&mut report));
        tokio::select! {
            heard = &mut answer => heard.ok(),
            () = cancel.cancelled() => {
                // Closing haft's side of the socket orders the helper to stop.
                drop(writer);
                timeout(SHUTDOWN_TIMEOUT, answer).await.ok().and_then(Result::ok)
            }
        }
    };
    if sent.is_err() || received.is_none() {
        // A working helper reports before it does anything slow, so this one is dead or another
        // program.
        let _ = helper.kill().await;
        return None;
    }
    // The helper itself lives a moment longer; the runtime reaps it.
    let mut undone = Vec::new();
    let aftermath = loop {
        match timeout(SHUTDOWN_TIMEOUT, reader.read_u8()).await {
            Ok(Ok(ALL_GONE)) => break Aftermath::AllGone,
            Ok(Ok(UNDONE_PATHS)) => undone.extend(read_undone_paths(&mut reader).await),
            Ok(_) | Err(_) => break Aftermath::StillDying,
        }
    };
    Some(HelperReport {
        outcome: CommandOutcome::decode(report)?,
        aftermath,
        undone,
    })
}

async fn read_undone_paths(reader: &mut (impl AsyncRead + Unpin)) -> Vec<PathBuf> {
    let Ok(length @ 0..=MAX_UNDONE_BYTES) = reader.read_u32_le().await else {
        return Vec::new();
    };
    let mut body = vec![0; length as usize];
    match timeout(SHUTDOWN_TIMEOUT, reader.read_exact(&mut body)).await {
        Ok(Ok(_)) => decode_undone_paths(&body),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn build_canceled_result() -> FinishedCommand {
    FinishedCommand {
        exit: CommandExit::Cancelled,
        stdout: CapturedOutput::default(),
        stderr: CapturedOutput::default(),
        duration: Duration::ZERO,
        aftermath: Aftermath::AllGone,
        hidden: None,
        undone: Vec::new(),
    }
}
