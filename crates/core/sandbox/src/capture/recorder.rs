//! Reads a stream to its end, keeps the part to show, and spills the full output.

use std::pin::pin;
use std::time::Duration;

use haft_text::CutLimits;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::spill::Spill;
use super::{Capture, CapturedOutput, HeadAndTail, SpillFrom};
use crate::live::{LiveCommand, OutputStream};

/// The time limit for reading the remaining output after all processes that could write output are
/// gone.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 64 * 1024;

/// Records one output stream of a command.
pub(crate) struct OutputRecorder {
    limits: CutLimits,
    live: LiveCommand,
    stream: OutputStream,
    spill: Spill,
    spill_from: SpillFrom,
}

impl OutputRecorder {
    pub(crate) fn new(capture: &Capture, stream: OutputStream, live: &LiveCommand) -> Self {
        live.start_stream(stream, capture.limits);
        Self {
            limits: capture.limits,
            live: live.clone(),
            stream,
            spill: Spill::new(
                capture.spill_path(stream),
                capture.max_spill_bytes,
                capture.spill_from,
            ),
            spill_from: capture.spill_from,
        }
    }

    /// Reads `reader` to its end, or until [`DRAIN_TIMEOUT`] after `stop`: a process that the
    /// helper cannot end may hold the pipe open forever.
    pub(crate) async fn drain(
        mut self,
        mut reader: impl AsyncRead + Unpin,
        stop: &CancellationToken,
    ) -> CapturedOutput {
        let mut stopped = pin!(async {
            stop.cancelled().await;
            sleep(DRAIN_TIMEOUT).await;
        });
        match self.spill_from {
            SpillFrom::Start => self.open_spill(&[]).await,
            SpillFrom::Overflow => {}
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = tokio::select! {
                read = reader.read(&mut chunk) => read,
                () = &mut stopped => break,
            };
            match read {
                // A pipe that cannot be read has no more output.
                Ok(0) | Err(_) => break,
                Ok(length) => self.push_chunk(&chunk[..length]).await,
            }
        }
        self.finish().await
    }

    pub(super) async fn push_chunk(&mut self, chunk: &[u8]) {
        if self.spill.is_waiting() {
            // Nothing was dropped so far: head and tail together hold at least the limit.
            let before = self.live.inspect_stream(self.stream, |ends| {
                let (bytes, lines) = ends.counts_after(chunk);
                (bytes > self.limits.bytes as u64 || lines > self.limits.lines as u64)
                    .then(|| ends.held_bytes())
            });
            if let Some(before) = before {
                self.open_spill(&before).await;
            }
        }
        self.spill.append(chunk).await;
        self.live.push_chunk(self.stream, chunk);
    }

    async fn open_spill(&mut self, before: &[u8]) {
        self.spill.open(before).await;
        self.live.set_spill_path(self.stream, self.spill.path());
    }

    pub(super) async fn finish(self) -> CapturedOutput {
        let captured = self
            .live
            .inspect_stream(self.stream, HeadAndTail::to_captured);
        let (spill, spill_problem) = self.spill.finish().await;
        CapturedOutput {
            spill,
            spill_problem,
            ..captured
        }
    }
}
