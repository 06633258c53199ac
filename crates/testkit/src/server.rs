//! The server: one port for four APIs; every request is checked, recorded and answered from the
//! script.
//!
//! Invariant: a request is recorded before the first byte of its reply is sent, so a client that
//! has a reply can read the record of its request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use haft_types::Api;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::record::{Handled, Recorded};
use crate::rules::Refusal;
use crate::script::Script;
use crate::select::Selector;
use crate::timing::{Socket, Timing, Timings, Watch};

mod handle;

/// The reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on 127.0.0.1:{port}; choose another port, or 0 for any free one")]
    Listen {
        /// The requested port; 0 stands for any free port.
        port: u16,
        source: std::io::Error,
    },
    /// The thread of [`Builder::start_in_thread`] could not be started.
    #[error("cannot start the scripted server's thread")]
    Thread { source: std::io::Error },
}

/// The work that the server does for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The server checks the rules and records the requests.
    Strict,
    /// The server records only timings. It checks no rules.
    Lean,
}

/// Options with which a server is started.
#[derive(Debug)]
pub struct Builder {
    script: Script,
    port: u16,
    mode: Mode,
}

impl Builder {
    /// Sets the port; the default is any free port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Makes the server lean, for benchmarks: it checks no rules and records only
    /// [`ScriptedServer::timings`].
    #[must_use]
    pub fn lean(mut self) -> Self {
        self.mode = Mode::Lean;
        self
    }

    /// Starts the server as tasks of the current tokio runtime.
    pub async fn start(self) -> Result<ScriptedServer, ServerError> {
        let (listener, address) = self.listen().await?;
        let shared = self.into_shared();
        let task = tokio::spawn(accept_connections(listener, Arc::clone(&shared)));
        Ok(ScriptedServer {
            shared,
            address,
            running: Running::Task(task.abort_handle()),
        })
    }

    /// Starts the server in a thread of its own, for callers that have no runtime or block it.
    pub fn start_in_thread(self) -> Result<ScriptedServer, ServerError> {
        let thread = |source| ServerError::Thread { source };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(thread)?;
        let (listener, address) = runtime.block_on(self.listen())?;
        let shared = self.into_shared();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Arc::clone(&shared);
        let handle = std::thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = accept_connections(listener, serving) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(thread)?;
        let running = Running::Thread {
            stop: Some(stop),
            handle: Some(handle),
        };
        Ok(ScriptedServer {
            shared,
            address,
            running,
        })
    }

    async fn listen(&self) -> Result<(TcpListener, SocketAddr), ServerError> {
        let fail = |source| ServerError::Listen {
            port: self.port,
            source,
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))
            .await
            .map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        Ok((listener, address))
    }

    fn into_shared(self) -> Arc<Shared> {
        Arc::new(Shared {
            script: self.script,
            mode: self.mode,
            selector: Mutex::default(),
            recorded: Mutex::default(),
            count: watch::Sender::new(0),
            timings: Timings::default(),
            connections: AtomicUsize::new(0),
        })
    }
}

/// The state that the tasks of a server share.
#[derive(Debug)]
struct Shared {
    script: Script,
    mode: Mode,
    selector: Mutex<Selector>,
    recorded: Mutex<Vec<Recorded>>,
    /// The number of requests recorded so far.
    count: watch::Sender<usize>,
    timings: Timings,
    connections: AtomicUsize,
}

/// A running server. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct ScriptedServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Task(AbortHandle),
    Thread {
        stop: Option<oneshot::Sender<()>>,
        handle: Option<JoinHandle<()>>,
    },
}

impl ScriptedServer {
    /// Starts a strict server on a free port, as tasks of the current tokio runtime.
    pub async fn start(script: Script) -> Result<Self, ServerError> {
        Self::builder(script).start().await
    }

    /// Starts a strict server on `port`.
    pub async fn start_on(script: Script, port: u16) -> Result<Self, ServerError> {
        Self::builder(script).port(port).start().await
    }

    /// Returns a builder, which can also start a lean server or a server in a thread of its own.
    pub fn builder(script: Script) -> Builder {
        Builder {
            script,
            port: 0,
            mode: Mode::Strict,
        }
    }

    /// Returns the base URL that clients of `api` need. It includes the version for OpenAI's APIs,
    /// but not for the others.
    pub fn base_url(&self, api: Api) -> String {
        match api {
            Api::OpenaiChat | Api::OpenaiResponses => format!("http://{}/v1", self.address),
            Api::Anthropic | Api::Gemini => format!("http://{}", self.address),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests so far, in order of arrival. Always empty for a lean server.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared
            .recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the requests that asked for a model reply, including rejected ones.
    pub fn generation_requests(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(|request| request.api().is_some());
        requests
    }

    /// Returns the errors of all rejected requests.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.requests()
            .into_iter()
            .filter_map(|request| match request.handled {
                Handled::Refused(refusal) => Some(refusal),
                Handled::Replied { .. }
                | Handled::RanOut
                | Handled::Unreadable { .. }
                | Handled::Informed
                | Handled::NotFound => None,
            })
            .collect()
    }

    /// Waits until `count` requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        // The sender lives as long as `self`, so waiting can't fail.
        let _ = self
            .shared
            .count
            .subscribe()
            .wait_for(|arrived| *arrived >= count)
            .await;
    }

    /// Returns the number of open connections.
    pub fn open_connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// Returns the times of each request and its reply. Always empty unless the server is lean.
    pub fn timings(&self) -> Vec<Timing> {
        self.shared.timings.to_vec()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        match &mut self.running {
            Running::Task(task) => task.abort(),
            Running::Thread { stop, handle } => {
                drop(stop.take());
                if let Some(handle) = handle.take() {
                    // A panic of the thread was reported by the thread.
                    let _ = handle.join();
                }
            }
        }
    }
}

/// Accepts connections until the future is dropped. Dropping the future also ends the connections.
async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Accept fails because of this one connection, or because descriptors ran out,
                    // which is temporary.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                // Otherwise the kernel would delay small events (Nagle's algorithm).
                let _ = stream.set_nodelay(true);
                connections.spawn(serve_connection(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: tokio::net::TcpStream, shared: Arc<Shared>) {
    let _connection = OpenConnection::new(Arc::clone(&shared));
    let watch = (shared.mode == Mode::Lean).then(|| Watch::new(shared.timings.clone()));
    let socket = TokioIo::new(Socket::new(stream, watch.clone()));
    let service = service_fn(move |request| {
        handle::handle_request(Arc::clone(&shared), watch.clone(), request)
    });
    // An error here means that the client disconnected or that the script dropped the connection.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(socket, service)
        .await;
}

/// Counts a connection as open until the value is dropped.
struct OpenConnection(Arc<Shared>);

impl OpenConnection {
    fn new(shared: Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::AcqRel);
        Self(shared)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}
