//! The filtering proxy in haft. It listens on a Unix socket that only the user can open.
//!
//! Invariant: the proxy connects only if [`Hosts`] lists the host, and only to an address that the
//! proxy resolved itself and found permitted; the name is never resolved a second time.

use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_text::is_public_address;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixSocket, UnixStream, lookup_host};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::hosts::{CanonicalHost, Hosts};
use super::refused_hosts::RefusedHosts;
use super::request::{self, MAX_HEAD_BYTES, ProxyRefusal, ProxyRequest, ProxyRequestKind};

/// The time limit for receiving the head of a request from a client.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for resolving a name, and for connecting to each of its addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for which haft continues to read from a rejected client, so that the client receives
/// the response instead of a connection error.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of connections served at the same time. Further connections wait.
const MAX_CONNECTIONS: usize = 256;

/// A running proxy. Dropping it ends all its connections and removes its socket.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    refused: RefusedHosts,
    task: AbortHandle,
}

impl Proxy {
    /// Creates the socket at `socket`, a path that must not exist, and listens there. Its folder
    /// must not be writable by other users. Must be called within a tokio runtime.
    pub fn start(socket: PathBuf, hosts: Hosts) -> io::Result<Self> {
        let listener = UnixSocket::new_stream()?;
        listener.bind(&socket)?;
        // The mode is set before listening, so that another user cannot connect even for a moment.
        let listener = std::fs::set_permissions(&socket, Permissions::from_mode(0o600))
            .and_then(|()| listener.listen(128))
            .inspect_err(|_| drop(std::fs::remove_file(&socket)))?;
        let refused = RefusedHosts::default();
        let access = Arc::new(ProxyAccess {
            hosts,
            refused: refused.clone(),
        });
        let task = tokio::spawn(accept_connections(listener, access)).abort_handle();
        Ok(Self {
            socket,
            refused,
            task,
        })
    }

    /// Returns the hosts that the proxy refuses, which are recorded as long as it runs.
    pub fn refused_hosts(&self) -> RefusedHosts {
        self.refused.clone()
    }
}

/// The hosts that the proxy allows, and those that it has refused.
struct ProxyAccess {
    hosts: Hosts,
    refused: RefusedHosts,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The task owns the connections' tasks, which end with it.
        self.task.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn accept_connections(listener: UnixListener, access: Arc<ProxyAccess>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(serve_connection(client, Arc::clone(&access)));
                }
                // Most likely no descriptor is free; retry shortly.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves the single request of a connection. Errors while copying end only this connection and are
/// not reported.
async fn serve_connection(mut client: UnixStream, access: Arc<ProxyAccess>) {
    let answered = async {
        let (head, early) = timeout(HEAD_TIMEOUT, read_request_head(&mut client))
            .await
            .unwrap_or_else(|_| {
                Err(ProxyRefusal::new(
                    408,
                    "Request Timeout",
                    "the request did not arrive in time",
                ))
            })?;
        let ProxyRequest { host, port, kind } = request::parse_request(&head)?;
        let server = connect_to_host(&access, &host, port).await?;
        Ok((server, kind, early))
    };
    let _ended = match answered.await {
        Ok((server, ProxyRequestKind::Tunnel, early)) => tunnel_bytes(client, server, &early).await,
        Ok((
            server,
            ProxyRequestKind::Plain {
                head,
                body,
                expects_continue,
            },
            early,
        )) => {
            if expects_continue
                && client
                    .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                    .await
                    .is_err()
            {
                return;
            }
            relay_exchange(client, server, &head, body, &early).await
        }
        Err(refusal) => send_refusal(client, &refusal).await,
    };
}

/// Reads the head of a request. Returns the head and the bytes that arrived after it.
async fn read_request_head(client: &mut UnixStream) -> Result<(Vec<u8>, Vec<u8>), ProxyRefusal> {
    let gone = || ProxyRefusal::new(400, "Bad Request", "the request is not complete");
    let mut head = Vec::new();
    loop {
        let seen = head.len();
        let mut piece = [0; 4 << 10];
        let length = client.read(&mut piece).await.map_err(|_| gone())?;
        head.extend_from_slice(
            piece
                .get(..length)
                .filter(|piece| !piece.is_empty())
                .ok_or_else(gone)?,
        );
        let from = seen.saturating_sub(3);
        if let Some(end) = head.get(from..).and_then(request::find_head_end) {
            let early = head.split_off(from + end);
            return Ok((head, early));
        }
        if head.len() > MAX_HEAD_BYTES {
            let text = "the head of the request is longer than 32 KiB";
            return Err(ProxyRefusal::new(
                431,
                "Request Header Fields Too Large",
                text,
            ));
        }
    }
}

async fn connect_to_host(
    ProxyAccess { hosts, refused }: &ProxyAccess,
    host: &CanonicalHost,
    port: u16,
) -> Result<TcpStream, ProxyRefusal> {
    if !hosts.allows(host, port) {
        let text = format!("`{host}:{port}` is not among the hosts that commands may reach");
        refused.record(format!("{host}:{port}"));
        return Err(forbidden_refusal(&text, &format!("{host}:{port}")));
    }
    let unreachable =
        |why: String| ProxyRefusal::new(502, "Bad Gateway", format!("`{host}:{port}` {why}"));
    let found: Vec<IpAddr> = match host {
        CanonicalHost::Address(address) => vec![*address],
        CanonicalHost::Name(name) => {
            match timeout(CONNECT_TIMEOUT, lookup_host((name.as_str(), port))).await {
                Ok(Ok(found)) => found.map(|address| address.ip().to_canonical()).collect(),
                Ok(Err(error)) => return Err(unreachable(format!("has no address: {error}"))),
                Err(_elapsed) => {
                    return Err(unreachable(
                        "has no address: the name was not found in time".to_owned(),
                    ));
                }
            }
        }
    };
    let permitted = |address: &IpAddr| {
        is_public_address(*address) || hosts.allows(&CanonicalHost::Address(*address), port)
    };
    let (permitted, others): (Vec<_>, Vec<_>) = found.into_iter().partition(permitted);
    if let (true, Some(address)) = (permitted.is_empty(), others.first()) {
        let address = CanonicalHost::Address(*address);
        let text = format!(
            "`{host}:{port}` is at `{address}`, which is not an address of the public internet"
        );
        refused.record(format!("{address}:{port}"));
        return Err(forbidden_refusal(&text, &format!("{address}:{port}")));
    }
    let mut last = "has no address".to_owned();
    for address in permitted {
        match timeout(
            CONNECT_TIMEOUT,
            TcpStream::connect(SocketAddr::new(address, port)),
        )
        .await
        {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => last = format!("does not answer: {error}"),
            Err(_elapsed) => "does not answer in time".clone_into(&mut last),
        }
    }
    Err(unreachable(last))
}

fn forbidden_refusal(what: &str, missing: &str) -> ProxyRefusal {
    let text = format!(
        "{what}. To allow it the user adds \"{missing}\" to `[sandbox] network` in haft's configuration"
    );
    ProxyRefusal::new(403, "Forbidden by [sandbox] network", text)
}

async fn tunnel_bytes(
    mut client: UnixStream,
    mut server: TcpStream,
    early: &[u8],
) -> io::Result<()> {
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    server.write_all(early).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Forwards one request and its response. Bytes after the request's body are never read.
async fn relay_exchange(
    mut client: UnixStream,
    mut server: TcpStream,
    head: &[u8],
    length: u64,
    early: &[u8],
) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let send = async {
        to_server.write_all(head).await?;
        let early = early
            .get(..usize::try_from(length).unwrap_or(usize::MAX))
            .unwrap_or(early);
        to_server.write_all(early).await?;
        let rest = length.saturating_sub(early.len() as u64);
        if copy(&mut (&mut from_client).take(rest), &mut to_server).await? < rest {
            // Closing the connection prevents the server from taking a truncated body for a
            // complete one.
            to_server.shutdown().await?;
        }
        // The response ends the exchange, possibly before the whole request was sent.
        std::future::pending::<io::Result<()>>().await
    };
    let receive = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    let mut receive = std::pin::pin!(receive);
    tokio::select! {
        received = &mut receive => received,
        // A server that stops reading may have responded anyway.
        _ = send => receive.await,
    }
}

async fn send_refusal(mut client: UnixStream, refusal: &ProxyRefusal) -> io::Result<()> {
    let ProxyRefusal {
        status,
        reason,
        text,
    } = refusal;
    let body = format!("haft: {text}.\n");
    let answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await?;
    let mut rest = (&mut client).take(MAX_HEAD_BYTES as u64);
    let _ = timeout(LINGER_TIMEOUT, copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(())
}
