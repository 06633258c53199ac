//! Standard input and output as lines of the protocol.
//!
//! Invariant: no input ends the connection. A line that is too long or not UTF-8 is replaced with
//! text that is not JSON, which is answered with an error.

use std::io;

use futures::{Sink, Stream, sink, stream};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};

/// The maximum length of an input line, in bytes. It is large enough for a prompt with several
/// images.
const MAX_LINE_BYTES: u64 = 64 << 20;

pub(crate) fn read_lines(
    input: impl AsyncRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<String>> + Send {
    stream::unfold(BufReader::new(input), async |mut input| {
        let line = read_line(&mut input).await.transpose()?;
        Some((line, input))
    })
}

pub(crate) fn create_line_writer(
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<String, Error = io::Error> + Send {
    sink::unfold(output, async |mut output, mut line: String| {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
        Ok(output)
    })
}

async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if (&mut *input)
        .take(MAX_LINE_BYTES + 1)
        .read_until(b'\n', &mut line)
        .await?
        == 0
    {
        return Ok(None);
    }
    if line.len() as u64 > MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        skip_line(input).await?;
        return Ok(Some(format!(
            "a line of more than {} MiB",
            MAX_LINE_BYTES >> 20
        )));
    }
    Ok(Some(
        String::from_utf8(line).unwrap_or_else(|_| "a line that is not UTF-8".to_owned()),
    ))
}

/// Skips the rest of the current line, including its line break.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let piece = input.fill_buf().await?;
        let (read, ended) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        input.consume(read);
        if ended {
            return Ok(());
        }
    }
}
