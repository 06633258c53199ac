//! A minimal HTTP/1.1 client that shows the exact bytes on the wire.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A client with one connection, which is kept open between requests.
#[derive(Debug)]
pub struct RawClient {
    stream: BufReader<TcpStream>,
}

/// A response exactly as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawReply {
    pub status: u16,
    /// The names (in lower case) and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was received.
    pub body: Vec<u8>,
    /// The sizes of the chunks, if the body was sent in chunks.
    pub pieces: Vec<usize>,
    /// True if the body was received completely.
    pub complete: bool,
}

impl RawReply {
    /// Returns the first value of the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON; returns null if it isn't JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the server-sent events, each as its name (empty if it has none) and its data.
    pub fn events(&self) -> Vec<(String, String)> {
        let text = String::from_utf8_lossy(&self.body);
        let field = |event: &str, name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
                .to_owned()
        };
        // Text after the last empty line is an event that was cut off.
        let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let events = whole.split("\n\n").filter(|event| !event.is_empty());
        events
            .map(|event| (field(event, "event: "), field(event, "data: ")))
            .collect()
    }
}

impl RawClient {
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a JSON body and reads the whole response.
    pub async fn post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> io::Result<RawReply> {
        self.send("POST", path, headers, body.to_string().as_bytes())
            .await?;
        self.receive().await
    }

    /// Requests a path and reads the whole response.
    pub async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> io::Result<RawReply> {
        self.send("GET", path, headers, b"").await?;
        self.receive().await
    }

    /// Sends a request without reading the response.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        self.stream.write_all(head.as_bytes()).await?;
        self.stream.write_all(body).await
    }

    /// Reads a response. If the body ends early, this is not an error; see [`RawReply::complete`].
    pub async fn receive(&mut self) -> io::Result<RawReply> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let first = self.read_line().await?;
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| bad("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line().await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("no header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = RawReply {
            status,
            headers,
            body: Vec::new(),
            pieces: Vec::new(),
            complete: false,
        };
        let read = match reply
            .header("content-length")
            .and_then(|length| length.parse().ok())
        {
            Some(length) => self.read_exactly(length, &mut reply.body).await,
            None => self.read_chunks(&mut reply).await,
        };
        match read {
            Ok(()) => reply.complete = true,
            Err(error) if is_disconnect(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(reply)
    }

    async fn read_chunks(&mut self, reply: &mut RawReply) -> io::Result<()> {
        loop {
            let size = self.read_line().await?;
            let size = usize::from_str_radix(&size, 16)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no size of a chunk"))?;
            if size > 0 {
                reply.pieces.push(size);
                self.read_exactly(size, &mut reply.body).await?;
            }
            self.read_line().await?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Reads `count` bytes into `into`. Bytes received before an error stay there.
    async fn read_exactly(&mut self, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let read = (&mut self.stream)
            .take(count as u64)
            .read_to_end(into)
            .await?;
        if read < count {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(())
        }
    }

    async fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}
