//! The client and the upstream, on plain sockets, so that tests see every byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use haft_model::Catalogue;
use haft_proxy::{ProxyEvent, RecorderSetup, TrafficRecorder, Upstreams, serve};
use haft_store::{SqliteStore, Store, StoreConfig};
use haft_testkit::support::{FakeClock, SequentialIds};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// An upstream's answer: pieces to write, each after the test has allowed it.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) pieces: Vec<Vec<u8>>,
    /// True if the connection is closed after the last piece.
    pub(crate) close: bool,
}

impl Answer {
    pub(crate) fn raw(text: impl AsRef<[u8]>) -> Self {
        Self {
            pieces: vec![text.as_ref().to_vec()],
            close: false,
        }
    }

    pub(crate) fn json(body: &str) -> Self {
        Self::raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }
}

/// An upstream that records every request, byte for byte.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(crate) next_piece: mpsc::UnboundedSender<()>,
}

impl Upstream {
    /// Starts an upstream that gives one answer to every request.
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::with(move |_| answer.clone()).await
    }

    pub(crate) async fn with(answer: impl Fn(&[u8]) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (next_piece, allowed) = mpsc::unbounded_channel();
        let allowed = Arc::new(tokio::sync::Mutex::new(allowed));
        let kept = Arc::clone(&seen);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let kept = Arc::clone(&kept);
                let answer = Arc::clone(&answer);
                let allowed = Arc::clone(&allowed);
                tokio::spawn(async move {
                    while let Some(message) = read_message(&mut stream).await {
                        let Answer { pieces, close } = answer(&message);
                        kept.lock().unwrap().push(message);
                        for (index, piece) in pieces.iter().enumerate() {
                            if index > 0 && allowed.lock().await.recv().await.is_none() {
                                break;
                            }
                            let _ = stream.write_all(piece).await;
                        }
                        if close {
                            break;
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            next_piece,
        }
    }

    /// Waits until `count` requests have arrived.
    pub(crate) async fn wait_for(&self, count: usize) {
        while self.seen.lock().unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.lock().unwrap().clone()
    }
}

/// Reads one whole HTTP message: the head, and the body by its length or in chunks, unchanged.
pub(crate) async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        if is_whole(&message) {
            return Some(message);
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return (!message.is_empty()).then_some(message),
            Ok(count) => message.extend_from_slice(&buffer[..count]),
        }
    }
}

pub(crate) fn head_of(message: &[u8]) -> Option<(String, &[u8])> {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((
        String::from_utf8_lossy(&message[..end]).into_owned(),
        &message[end + 4..],
    ))
}

fn is_whole(message: &[u8]) -> bool {
    let Some((head, body)) = head_of(message) else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with(b"0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    body.len() >= length.unwrap_or(0_usize)
}

/// Returns the content of a chunked body.
pub(crate) fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size =
            usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap().trim(), 16).unwrap();
        body = &body[end + 2..];
        if size == 0 || body.len() < size {
            out.extend_from_slice(&body[..body.len().min(size)]);
            break;
        }
        out.extend_from_slice(&body[..size]);
        body = &body[size + 2..];
    }
    out
}

/// Returns the sorted header lines of a message, without those of the connection.
pub(crate) fn end_to_end_headers(message: &[u8]) -> Vec<String> {
    let (head, _) = head_of(message).unwrap();
    let hop = [
        "host:",
        "connection:",
        "keep-alive:",
        "transfer-encoding:",
        "te:",
        "trailer:",
        "upgrade:",
        "date:",
    ];
    let mut lines: Vec<_> = head
        .lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect();
    lines.retain(|line| {
        !hop.iter()
            .any(|name| line.to_ascii_lowercase().starts_with(name))
    });
    lines.sort();
    lines
}

/// A proxy with its record.
pub(crate) struct TestProxy {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) folder: Arc<TempDir>,
    events: Arc<Mutex<Vec<ProxyEvent>>>,
    stop: oneshot::Sender<()>,
    recorder: JoinHandle<()>,
}

impl TestProxy {
    pub(crate) async fn before(upstream: &Upstream) -> Self {
        Self::at(upstream, Arc::new(tempfile::tempdir().unwrap()), 0).await
    }

    /// Starts a proxy that records into `folder`; `round` makes its ids differ from those of other
    /// rounds.
    pub(crate) async fn at(upstream: &Upstream, folder: Arc<TempDir>, round: u64) -> Self {
        let clock = Arc::new(FakeClock::starting_at(
            "2026-11-16T10:00:00Z".parse().unwrap(),
        ));
        let path = folder.path().join("haft.db");
        let store =
            Arc::new(SqliteStore::open(&path, &StoreConfig::default(), clock.clone()).unwrap());
        let ids = SequentialIds::starting_at(round * 1_000 + 1);
        let catalogue = Catalogue::with_built_in([].into(), [].into()).unwrap();
        let (traffic, received) = mpsc::unbounded_channel();
        let setup = RecorderSetup {
            store: store.clone(),
            catalogue,
            secrets: Vec::new(),
            saver: None,
            clock,
            ids: Arc::new(ids),
        };
        let events: Arc<Mutex<Vec<ProxyEvent>>> = Arc::default();
        let seen = Arc::clone(&events);
        let observe = move |event| seen.lock().unwrap().push(event);
        let recorder = tokio::spawn(TrafficRecorder::new(setup).run(received, observe));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let upstreams =
            Upstreams::new(Some(&format!("http://{}", upstream.address)), |_| None).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let end = async {
            let _ = stopped.await;
        };
        tokio::spawn(async move {
            serve(listener, upstreams, None, traffic, end)
                .await
                .unwrap()
        });
        Self {
            address,
            store,
            folder,
            events,
            stop,
            recorder,
        }
    }

    /// Sends one request on a new connection and reads the whole answer.
    pub(crate) async fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        read_message(&mut stream).await.unwrap_or_default()
    }

    /// Stops the proxy; returns its events, the store and the folder.
    pub(crate) async fn finish(self) -> (Vec<ProxyEvent>, Arc<SqliteStore>, Arc<TempDir>) {
        let _ = self.stop.send(());
        self.recorder.await.unwrap();
        self.store.flush().await.unwrap();
        let events = self.events.lock().unwrap().clone();
        (events, self.store, self.folder)
    }
}

/// Returns a POST request with this body.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {KEY}\r\nUser-Agent: testagent/1.0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A key that no stored data may contain.
pub(crate) const KEY: &str = "quiet-key-4711-abcdefgh";
