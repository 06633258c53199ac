//! The socket of a session, and the connections of its clients.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream, unix};
use tokio::task::JoinHandle;

use crate::line_reader::LineReader;
use crate::lines::{AttachLine, ClientLine, PROTOCOL_VERSION, to_line};
use crate::outbox::Outbox;
use crate::room::Room;

/// The extension of the sockets.
pub(crate) const SOCKET_EXTENSION: &str = "sock";
/// The maximum length of a client's line, in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The time limit for a client's first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait after a failure to accept a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A socket that accepts clients. Dropping it removes the socket.
pub(crate) struct SocketServer {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl SocketServer {
    /// Creates a socket in `folder` whose name begins with the conversation's short id. Fails
    /// outside a tokio runtime with input and output.
    pub(crate) fn start(folder: &Path, short_id: &str, room: Arc<Room>) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let name = socket_name(short_id);
        let listener = haft_files::bind_private_socket(folder, &name)?;
        listener.set_nonblocking(true)?;
        let path = folder.join(name);
        let listener = UnixListener::from_std(listener)?;
        let accepting = runtime.spawn(accept_clients(listener, room));
        Ok(Self { path, accepting })
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.accepting.abort();
        // A socket that remains is removed by the next `haft attach`.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Returns the name of a new socket: the short id, as far as it fits a file name, and a random part.
fn socket_name(short_id: &str) -> String {
    let id: String = short_id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{id}-{}.{SOCKET_EXTENSION}", &random[..8])
}

async fn accept_clients(listener: UnixListener, room: Arc<Room>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let room = Arc::clone(&room);
                tokio::spawn(async move {
                    // An error means that the client is gone.
                    drop(serve_client(stream, &room).await);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// True if the process at the other end runs as this user.
pub(crate) fn is_own_peer(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}

async fn serve_client(mut stream: UnixStream, room: &Arc<Room>) -> io::Result<()> {
    if !is_own_peer(&stream)? {
        return send_farewell(&mut stream, "only the user who runs the session can attach").await;
    }
    let Some((client, info)) = room.greet_client() else {
        return send_farewell(&mut stream, "the session accepts no more clients").await;
    };
    stream
        .write_all(to_line(&AttachLine::Attach(info)).as_bytes())
        .await?;
    let (input, mut output) = stream.into_split();
    let mut input = LineReader::new(BufReader::new(input), MAX_LINE_BYTES);
    let first = match tokio::time::timeout(HELLO_TIMEOUT, input.next_line()).await {
        Ok(Ok(Some(line))) => line,
        // A client that only reads the description of the session.
        Ok(Ok(None)) | Err(_) => return Ok(()),
        Ok(Err(error)) => return send_farewell(&mut output, &error.to_string()).await,
    };
    if let Err(why) = check_first_line(&first) {
        return send_farewell(&mut output, &why).await;
    }
    let outbox = Arc::new(Outbox::default());
    room.add_client(client, &outbox);
    let writing = tokio::spawn(write_lines(output, Arc::clone(&outbox)));
    let ended = read_lines(&mut input, room, client, &outbox).await;
    room.remove_client(client);
    if let Err(error) = ended {
        let message = error.to_string();
        outbox.push_line(&to_line(&AttachLine::Detached { message }).into());
    }
    outbox.close();
    drop(writing.await);
    Ok(())
}

/// Checks that a client's first line is `attach` with the version of this protocol.
fn check_first_line(line: &str) -> Result<(), String> {
    match serde_json::from_str(line) {
        Ok(ClientLine::Attach { version }) if version == PROTOCOL_VERSION => Ok(()),
        Ok(ClientLine::Attach { version }) => Err(format!(
            "the session speaks version {PROTOCOL_VERSION} of the protocol, the client version {version}; use one version of haft for both"
        )),
        Ok(_) => Err("the first line must be of type `attach`".to_owned()),
        Err(error) => Err(format!("the first line cannot be read: {error}")),
    }
}

/// Handles the lines of a client until it disconnects or the session ends.
async fn read_lines(
    input: &mut LineReader<BufReader<unix::OwnedReadHalf>>,
    room: &Room,
    client: u64,
    outbox: &Outbox,
) -> io::Result<()> {
    while let Some(line) = input.next_line().await? {
        match serde_json::from_str::<ClientLine>(&line) {
            Ok(line) => room.handle_line(client, line),
            Err(error) => {
                let message = format!("a line cannot be read: {error}");
                let refused = AttachLine::Refused { id: None, message };
                if !outbox.push_line(&to_line(&refused).into()) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

async fn write_lines(mut output: unix::OwnedWriteHalf, outbox: Arc<Outbox>) {
    while let Some(line) = outbox.next_line().await {
        if output.write_all(line.as_bytes()).await.is_err() {
            return outbox.end();
        }
    }
    // The client reads the end even while its own side is open.
    drop(output.shutdown().await);
    outbox.end();
}

async fn send_farewell(output: &mut (impl AsyncWriteExt + Unpin), why: &str) -> io::Result<()> {
    let message = why.to_owned();
    let line = to_line(&AttachLine::Detached { message });
    output.write_all(line.as_bytes()).await
}
