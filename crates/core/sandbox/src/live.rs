//! A look at a command while it runs: what it has written so far, and whether it waits for somebody
//! to type.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_text::CutLimits;
use rustix::process::Pid;
use tokio::sync::watch;

use crate::CapturedOutput;
use crate::capture::Ends;
use crate::waiting::{self, AwaitedInput, Terminals};

/// Which stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
    /// One that takes both, such as a terminal.
    Both,
}

/// Looks at a command while it runs. Clones look at the same command.
#[derive(Clone, Debug)]
pub struct LiveCommand(Arc<MonitorState>);

#[derive(Debug)]
struct MonitorState {
    stdout: Mutex<StreamOutput>,
    stderr: Mutex<StreamOutput>,
    /// What came since it was last taken, of both streams as it came.
    fresh: Mutex<Ends>,
    /// Bytes written so far, for those who wait for more.
    bytes: watch::Sender<u64>,
    /// The helper, while it lives.
    helper: Mutex<Option<Pid>>,
}

#[derive(Debug, Default)]
struct StreamOutput {
    ends: Ends,
    spill: Option<PathBuf>,
}

impl Default for LiveCommand {
    fn default() -> Self {
        Self::keeping(CutLimits { lines: 0, bytes: 0 })
    }
}

impl LiveCommand {
    /// Looks at a command not started yet, and keeps this much of what comes between two calls of
    /// [`LiveCommand::take_fresh`].
    pub fn keeping(fresh: CutLimits) -> Self {
        Self(Arc::new(MonitorState {
            stdout: Mutex::default(),
            stderr: Mutex::default(),
            fresh: Mutex::new(Ends::new(fresh)),
            bytes: watch::Sender::new(0),
            helper: Mutex::default(),
        }))
    }

    /// What it has written to standard output so far; both streams where they are one.
    pub fn stdout(&self) -> CapturedOutput {
        self.captured(OutputStream::Stdout)
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> CapturedOutput {
        self.captured(OutputStream::Stderr)
    }

    /// What came since this was last called. A control sequence that has only begun comes with its
    /// end.
    pub fn take_fresh(&self) -> CapturedOutput {
        let runs = lock(&self.0.helper).is_some();
        let mut fresh = lock(&self.0.fresh);
        if runs {
            fresh.take_whole()
        } else {
            fresh.take_all()
        }
    }

    /// How many bytes it has written so far.
    pub fn bytes(&self) -> u64 {
        *self.0.bytes.borrow()
    }

    /// Waits until it has written more than this many bytes.
    pub async fn wrote_more_than(&self, bytes: u64) {
        // The sender lives as long as we do.
        let _ = self.0.bytes.subscribe().wait_for(|now| *now > bytes).await;
    }

    /// Whether one of its processes waits for somebody to type, at whatever terminal. A command
    /// without a terminal can still make one of its own.
    pub fn awaits_input(&self) -> Option<AwaitedInput> {
        self.waiting(Terminals::Any).map(|waiting| waiting.what)
    }

    pub(crate) fn waiting(&self, terminals: Terminals<'_>) -> Option<waiting::InputWait> {
        let helper = *lock(&self.0.helper);
        waiting::find(helper?, terminals)
    }

    fn captured(&self, stream: OutputStream) -> CapturedOutput {
        let written = self.written(stream);
        CapturedOutput {
            spill: written.spill.clone(),
            ..written.ends.captured()
        }
    }

    fn written(&self, stream: OutputStream) -> MutexGuard<'_, StreamOutput> {
        lock(match stream {
            OutputStream::Stdout | OutputStream::Both => &self.0.stdout,
            OutputStream::Stderr => &self.0.stderr,
        })
    }

    pub(crate) fn begin(&self, stream: OutputStream, limits: CutLimits) {
        self.written(stream).ends = Ends::new(limits);
    }

    pub(crate) fn with<T>(&self, stream: OutputStream, look: impl FnOnce(&Ends) -> T) -> T {
        look(&self.written(stream).ends)
    }

    pub(crate) fn push(&self, stream: OutputStream, chunk: &[u8]) {
        self.written(stream).ends.push(chunk);
        lock(&self.0.fresh).push(chunk);
        self.0
            .bytes
            .send_modify(|bytes| *bytes += chunk.len() as u64);
    }

    pub(crate) fn spills_to(&self, stream: OutputStream, path: Option<PathBuf>) {
        self.written(stream).spill = path;
    }

    pub(crate) fn helper(&self, helper: Option<Pid>) {
        *lock(&self.0.helper) = helper;
    }
}

/// What a thread that panicked left behind is still counted right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
