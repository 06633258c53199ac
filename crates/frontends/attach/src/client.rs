//! The client's side: finds running sessions and attaches to them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_types::Event;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixStream, unix};

use crate::line_reader::LineReader;
use crate::lines::{AttachLine, ClientLine, PROTOCOL_VERSION, SessionInfo, to_line};
use crate::server::{SOCKET_EXTENSION, is_own_peer};

/// The maximum length of a session's line, in bytes. The result of a call can be long.
const MAX_LINE_BYTES: usize = 64 << 20;
/// The time limit for the first line of a session.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a client cannot attach, or lost its session.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The folder of sockets cannot be read.
    #[error("cannot list `{folder}`: {error}")]
    Folder { folder: PathBuf, error: io::Error },
    /// The connection failed.
    #[error("the connection to the session failed: {0}")]
    Connection(#[from] io::Error),
    /// The session refused the client.
    #[error("the session refuses to be attached: {0}")]
    Refused(String),
    /// The session sent something other than its description.
    #[error("the socket does not belong to a session of haft: {0}")]
    NoSession(String),
    /// The session runs as another user.
    #[error("the session belongs to another user")]
    ForeignUser,
    /// The session did not answer in time.
    #[error("the session does not answer; its process may be stopped")]
    Silent,
    /// The session speaks another version of the protocol.
    #[error(
        "the session runs in haft {haft}, which speaks version {theirs} of the protocol; this haft speaks version {PROTOCOL_VERSION}. Use one version of haft for both"
    )]
    Version { haft: String, theirs: u32 },
}

/// A socket in the folder of sockets.
#[derive(Debug)]
pub enum Attachable {
    /// A running session.
    Session {
        info: Box<SessionInfo>,
        socket: String,
    },
    /// A running session at which this client cannot attach.
    Unusable { socket: String, error: AttachError },
    /// A socket whose session has ended without removing it. It was removed now. The short id is
    /// that of the session's conversation.
    Removed { short_id: String },
}

/// Lists the sockets in `folder`, and removes those of sessions that were killed.
pub async fn find_sessions(folder: &Path) -> Result<Vec<Attachable>, AttachError> {
    let failed = |error| AttachError::Folder {
        folder: folder.to_owned(),
        error,
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|end| end == SOCKET_EXTENSION)
        })
        .collect();
    names.sort();
    let mut found = Vec::new();
    for socket in names {
        match open_connection(folder, &socket).await {
            Ok((_, info)) => found.push(Attachable::Session {
                info: Box::new(info),
                socket,
            }),
            Err(AttachError::Connection(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(AttachError::Connection(error))
                if error.kind() == io::ErrorKind::ConnectionRefused =>
            {
                // A socket that cannot be removed is reported again next time.
                drop(std::fs::remove_file(folder.join(&socket)));
                let short_id = socket.split('-').next().unwrap_or_default().to_owned();
                found.push(Attachable::Removed { short_id });
            }
            Err(error) => found.push(Attachable::Unusable { socket, error }),
        }
    }
    Ok(found)
}

type SessionReader = LineReader<BufReader<unix::OwnedReadHalf>>;

/// Connects to a socket and reads the description of the session.
async fn open_connection(
    folder: &Path,
    socket: &str,
) -> Result<((SessionReader, unix::OwnedWriteHalf), SessionInfo), AttachError> {
    let stream = haft_files::connect_private_socket(folder, socket)?;
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    if !is_own_peer(&stream)? {
        return Err(AttachError::ForeignUser);
    }
    let (input, output) = stream.into_split();
    let mut input = LineReader::new(BufReader::new(input), MAX_LINE_BYTES);
    let first = tokio::time::timeout(HELLO_TIMEOUT, input.next_line())
        .await
        .map_err(|_elapsed| AttachError::Silent)??
        .ok_or_else(|| AttachError::NoSession("it closed the connection".to_owned()))?;
    match serde_json::from_str(&first) {
        Ok(AttachLine::Attach(info)) if info.version == PROTOCOL_VERSION => {
            Ok(((input, output), info))
        }
        Ok(AttachLine::Attach(info)) => Err(AttachError::Version {
            haft: info.haft,
            theirs: info.version,
        }),
        Ok(AttachLine::Detached { message }) => Err(AttachError::Refused(message)),
        Ok(other) => Err(AttachError::NoSession(format!("it sent {other:?}"))),
        Err(error) => Err(AttachError::NoSession(error.to_string())),
    }
}

/// A session to which this process is attached.
pub struct AttachedSession {
    pub info: SessionInfo,
    input: SessionReader,
    sender: SessionSender,
}

/// Sends lines to a session.
pub struct SessionSender(unix::OwnedWriteHalf);

/// A line of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum ReceivedLine {
    Control(Box<AttachLine>),
    Event(Box<Event>),
    /// A line of a newer version of haft.
    Unknown,
}

impl AttachedSession {
    /// Attaches to the session at a socket of `folder`, as listed by [`find_sessions`].
    pub async fn connect(folder: &Path, socket: &str) -> Result<Self, AttachError> {
        let ((input, output), info) = open_connection(folder, socket).await?;
        let mut sender = SessionSender(output);
        let version = PROTOCOL_VERSION;
        sender.send(&ClientLine::Attach { version }).await?;
        Ok(Self {
            info,
            input,
            sender,
        })
    }

    /// Returns the next line as text, or `None` if the session has ended or was killed. No line is
    /// lost if the future is dropped.
    pub async fn next_text(&mut self) -> Result<Option<String>, AttachError> {
        match self.input.next_line().await {
            // The process was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            line => Ok(line?),
        }
    }

    /// Sends a line to the session.
    pub async fn send(&mut self, line: &ClientLine) -> Result<(), AttachError> {
        self.sender.send(line).await
    }

    /// Sends a line of JSON to the session, unchecked.
    pub async fn send_text(&mut self, line: &str) -> Result<(), AttachError> {
        let line = format!("{}\n", line.trim_end());
        Ok(self.sender.0.write_all(line.as_bytes()).await?)
    }
}

impl SessionSender {
    async fn send(&mut self, line: &ClientLine) -> Result<(), AttachError> {
        Ok(self.0.write_all(to_line(line).as_bytes()).await?)
    }
}

impl ReceivedLine {
    /// Parses a line of a session.
    pub fn parse(line: &str) -> Self {
        if let Ok(control) = serde_json::from_str(line) {
            return Self::Control(Box::new(control));
        }
        match serde_json::from_str(line) {
            Ok(event) => Self::Event(Box::new(event)),
            Err(_) => Self::Unknown,
        }
    }
}
