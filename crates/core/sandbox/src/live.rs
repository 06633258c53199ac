//! Observes a running command: its output so far, and whether it waits for input.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_text::CutLimits;
use rustix::process::Pid;
use tokio::sync::watch;

use crate::CapturedOutput;
use crate::capture::Ends;
use crate::waiting::{self, AwaitedInput, Terminals};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
    /// A stream that carries both, such as a terminal.
    Both,
}

/// A handle that observes a running command. Clones share their state.
#[derive(Clone, Debug)]
pub struct LiveCommand(Arc<MonitorState>);

#[derive(Debug)]
struct MonitorState {
    stdout: Mutex<StreamOutput>,
    stderr: Mutex<StreamOutput>,
    /// The output of both streams since it was last taken, in order of arrival.
    fresh: Mutex<Ends>,
    /// The bytes written so far, as a channel for tasks that wait for more.
    bytes: watch::Sender<u64>,
    /// The helper process while it lives.
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
    /// Creates a handle for a command that is not started yet, keeping output within `limits`
    /// between two calls of [`LiveCommand::take_unread`].
    pub fn keeping(fresh: CutLimits) -> Self {
        Self(Arc::new(MonitorState {
            stdout: Mutex::default(),
            stderr: Mutex::default(),
            fresh: Mutex::new(Ends::new(fresh)),
            bytes: watch::Sender::new(0),
            helper: Mutex::default(),
        }))
    }

    /// Returns the standard output so far; both streams if they are joined.
    pub fn stdout(&self) -> CapturedOutput {
        self.captured(OutputStream::Stdout)
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> CapturedOutput {
        self.captured(OutputStream::Stderr)
    }

    /// Returns the output since the previous call. An incomplete control sequence at the end is
    /// held back until it is complete.
    pub fn take_fresh(&self) -> CapturedOutput {
        let runs = lock(&self.0.helper).is_some();
        let mut fresh = lock(&self.0.fresh);
        if runs {
            fresh.take_whole()
        } else {
            fresh.take_all()
        }
    }

    /// Returns the number of bytes written so far.
    pub fn bytes(&self) -> u64 {
        *self.0.bytes.borrow()
    }

    /// Waits until the command has written more than `bytes` bytes.
    pub async fn wrote_more_than(&self, bytes: u64) {
        // The sender lives as long as this handle.
        let _ = self.0.bytes.subscribe().wait_for(|now| *now > bytes).await;
    }

    /// Returns the input that one of the command's processes waits for, at any terminal. Even a
    /// command without a terminal can create one.
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

/// Locks a mutex even if a thread panicked while holding it: the counts remain correct.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
