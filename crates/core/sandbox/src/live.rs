//! Observes a running command: its output so far, and whether it waits for input.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_text::CutLimits;
use rustix::process::Pid;
use tokio::sync::watch;

use crate::CapturedOutput;
use crate::capture::HeadAndTail;
use crate::waiting::{self, AwaitedInput, Terminals};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
    /// Standard output and standard error in one stream, such as the output of a terminal.
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
    unread: Mutex<HeadAndTail>,
    /// The number of bytes written so far. Tasks that wait for more output subscribe to this
    /// channel.
    bytes: watch::Sender<u64>,
    /// The pid of the helper process while the helper runs.
    helper: Mutex<Option<Pid>>,
}

#[derive(Debug, Default)]
struct StreamOutput {
    ends: HeadAndTail,
    spill: Option<PathBuf>,
}

impl Default for LiveCommand {
    fn default() -> Self {
        Self::with_unread_limits(CutLimits { lines: 0, bytes: 0 })
    }
}

impl LiveCommand {
    /// Creates a handle for a command that has not been started yet. Of the output that arrives
    /// between two calls of [`LiveCommand::take_unread`], the handle keeps as much as `limits`
    /// allow.
    pub fn with_unread_limits(limits: CutLimits) -> Self {
        Self(Arc::new(MonitorState {
            stdout: Mutex::default(),
            stderr: Mutex::default(),
            unread: Mutex::new(HeadAndTail::new(limits)),
            bytes: watch::Sender::new(0),
            helper: Mutex::default(),
        }))
    }

    /// Returns the standard output so far, or the output of both streams if they are joined.
    pub fn stdout(&self) -> CapturedOutput {
        self.captured_output(OutputStream::Stdout)
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> CapturedOutput {
        self.captured_output(OutputStream::Stderr)
    }

    /// Returns the output since the previous call. An incomplete control sequence at the end is
    /// held back until it is complete.
    pub fn take_unread(&self) -> CapturedOutput {
        let is_running = lock_ignoring_poison(&self.0.helper).is_some();
        let mut unread = lock_ignoring_poison(&self.0.unread);
        if is_running {
            unread.take_complete()
        } else {
            unread.take_all()
        }
    }

    /// Returns the number of bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        *self.0.bytes.borrow()
    }

    /// Waits until the command has written more than `bytes` bytes.
    pub async fn wait_for_more_bytes(&self, bytes: u64) {
        // The sender lives as long as this handle.
        let _ = self.0.bytes.subscribe().wait_for(|now| *now > bytes).await;
    }

    /// Returns the kind of input that a process of the command is waiting for, or `None` if none is
    /// waiting. All pseudo-terminals are searched, because even a command that was started without
    /// a terminal can create one.
    pub fn awaited_input(&self) -> Option<AwaitedInput> {
        self.find_input_wait(Terminals::Any)
            .map(|waiting| waiting.input)
    }

    pub(crate) fn find_input_wait(&self, terminals: Terminals<'_>) -> Option<waiting::InputWait> {
        let helper = *lock_ignoring_poison(&self.0.helper);
        waiting::find_input_wait(helper?, terminals)
    }

    fn captured_output(&self, stream: OutputStream) -> CapturedOutput {
        let written = self.lock_stream(stream);
        CapturedOutput {
            spill: written.spill.clone(),
            ..written.ends.to_captured()
        }
    }

    fn lock_stream(&self, stream: OutputStream) -> MutexGuard<'_, StreamOutput> {
        lock_ignoring_poison(match stream {
            OutputStream::Stdout | OutputStream::Both => &self.0.stdout,
            OutputStream::Stderr => &self.0.stderr,
        })
    }

    pub(crate) fn start_stream(&self, stream: OutputStream, limits: CutLimits) {
        self.lock_stream(stream).ends = HeadAndTail::new(limits);
    }

    pub(crate) fn inspect_stream<T>(
        &self,
        stream: OutputStream,
        inspect: impl FnOnce(&HeadAndTail) -> T,
    ) -> T {
        inspect(&self.lock_stream(stream).ends)
    }

    pub(crate) fn push_chunk(&self, stream: OutputStream, chunk: &[u8]) {
        self.lock_stream(stream).ends.push(chunk);
        lock_ignoring_poison(&self.0.unread).push(chunk);
        self.0
            .bytes
            .send_modify(|bytes| *bytes += chunk.len() as u64);
    }

    pub(crate) fn set_spill_path(&self, stream: OutputStream, path: Option<PathBuf>) {
        self.lock_stream(stream).spill = path;
    }

    pub(crate) fn set_helper(&self, helper: Option<Pid>) {
        *lock_ignoring_poison(&self.0.helper) = helper;
    }
}

/// Locks a mutex even if a thread panicked while holding the lock: the recorded output remains
/// valid.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
