//! The server: one port for four APIs, every request checked, recorded and answered from the
//! script.
//!
//! Invariant: a request is recorded before the first byte of its reply is sent, so whoever has a
//! reply can look the request up.

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

/// The server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The port cannot be used.
    #[error("cannot listen on 127.0.0.1:{port}; choose another port, or 0 for any free one")]
    Listen {
        /// The port asked for.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The thread of a server that runs on its own could not be started.
    #[error("cannot start the scripted server's thread")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
}

/// How much the server does with each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Rules are checked and requests recorded.
    Strict,
    /// Neither; only times are kept.
    Lean,
}

/// How to start a server.
#[derive(Debug)]
pub struct Builder {
    script: Script,
    port: u16,
    mode: Mode,
}

impl Builder {
    /// Listens on this port rather than on any free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// For benchmarks: no rules, no recording, only [`ScriptedServer::timings`].
    #[must_use]
    pub fn lean(mut self) -> Self {
        self.mode = Mode::Lean;
        self
    }

    /// Starts it as tasks of the present tokio runtime.
    pub async fn start(self) -> Result<ScriptedServer, ServerError> {
        let (listener, address) = self.listen().await?;
        let shared = self.shared();
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(ScriptedServer {
            shared,
            address,
            running: Running::Task(task.abort_handle()),
        })
    }

    /// Starts it in a thread of its own, for callers without a runtime or that block theirs.
    pub fn start_in_thread(self) -> Result<ScriptedServer, ServerError> {
        let thread = |source| ServerError::Thread { source };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(thread)?;
        let (listener, address) = runtime.block_on(self.listen())?;
        let shared = self.shared();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Arc::clone(&shared);
        let handle = std::thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = accept(listener, serving) => {}
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

    fn shared(self) -> Arc<Shared> {
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

/// What the tasks of a server share.
#[derive(Debug)]
struct Shared {
    script: Script,
    mode: Mode,
    selector: Mutex<Selector>,
    recorded: Mutex<Vec<Recorded>>,
    /// The number of recorded requests.
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
    /// Starts a strict server on a free port, as tasks of the present tokio runtime.
    pub async fn start(script: Script) -> Result<Self, ServerError> {
        Self::builder(script).start().await
    }

    /// Starts a strict server on this port.
    pub async fn start_on(script: Script, port: u16) -> Result<Self, ServerError> {
        Self::builder(script).port(port).start().await
    }

    /// For everything else.
    pub fn builder(script: Script) -> Builder {
        Builder {
            script,
            port: 0,
            mode: Mode::Strict,
        }
    }

    /// The base URL a client of this API is given: with the version part for OpenAI's, without for
    /// the others.
    pub fn base_url(&self, api: Api) -> String {
        match api {
            Api::OpenaiChat | Api::OpenaiResponses => format!("http://{}/v1", self.address),
            Api::Anthropic | Api::Gemini => format!("http://{}", self.address),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, in order of arrival; nothing in a lean server.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared
            .recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The requests for a reply, refused ones included.
    pub fn generations(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(|request| request.api().is_some());
        requests
    }

    /// What was refused, and by which rule.
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

    /// Waits until this many requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        // The sender lives as long as `self`, so this cannot end otherwise.
        let _ = self
            .shared
            .count
            .subscribe()
            .wait_for(|arrived| *arrived >= count)
            .await;
    }

    /// The connections open now.
    pub fn open_connections(&self) -> usize {
        self.shared.connections.load(Ordering::Acquire)
    }

    /// When each request came and its reply went; only in a lean server.
    pub fn timings(&self) -> Vec<Timing> {
        self.shared.timings.all()
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

/// Accepts connections until dropped; its connections end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // An accept fails for reasons of that one connection, or for lack of descriptors, which passes.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                // Without it the kernel would hold back small events.
                let _ = stream.set_nodelay(true);
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: tokio::net::TcpStream, shared: Arc<Shared>) {
    let _open = Open::new(Arc::clone(&shared));
    let watch = (shared.mode == Mode::Lean).then(|| Watch::new(shared.timings.clone()));
    let socket = TokioIo::new(Socket::new(stream, watch.clone()));
    let service =
        service_fn(move |request| handle::handle(Arc::clone(&shared), watch.clone(), request));
    // An error here is a client that went away, or a drop the script asked for.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(socket, service)
        .await;
}

/// Counts a connection while it is open.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        shared.connections.fetch_add(1, Ordering::AcqRel);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}
