//! The life of all servers: each is started when it is first used, and again when it ended, but not
//! for ever.
//!
//! Invariant: making [`Servers`] and looking at what they offer starts nothing and waits for
//! nothing; a server that hangs or dies holds up only whoever uses it, and no longer than its own
//! limits.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use haft_sandbox::{ConfinementSpec, Supervisor};
use haft_tool::CallProgress;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::cache::Cache;
use crate::document::{self, READ_RESOURCE};
use crate::error::McpError;
use crate::listing::ServerListing;
use crate::output::ServerAnswer;
use crate::scope::ToolScope;
use crate::sdk::{self, Connection, Elicitor, Launch, TokenStore};
use crate::server::ServerDefinition;

/// A server may be started this often …
const STARTS: usize = 4;
/// … within this time; then it is left alone for as long.
const PERIOD: Duration = Duration::from_mins(5);

/// So many starts in a row may fail; then it is left alone for as long.
const FAILURES: usize = 3;

/// What servers are given.
#[derive(Clone)]
pub struct ServerHost {
    /// Starts those that are programs.
    pub supervisor: Arc<Supervisor>,
    /// The environment of every child.
    pub environment: Arc<Vec<(String, String)>>,
    /// Folders that the model can write. Programs of the user's own servers are not looked up in
    /// them.
    pub writable: Vec<std::path::PathBuf>,
    /// The folder that holds the private folders of the user's own servers.
    pub folders: std::path::PathBuf,
    /// Where it is kept what servers offer.
    pub cache: Cache,
    /// The folder of tokens.
    pub tokens: std::path::PathBuf,
    /// Who answers their questions; without one they are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Decides what holds them in. Without it only those of the user start that need not be held.
    pub sandbox: Option<Arc<dyn Confines>>,
}

/// Decides on the start of servers that are programs.
#[async_trait]
pub trait Confines: Send + Sync {
    /// What holds this one in; nothing where it may run without. The error says why it must not
    /// start.
    async fn confined(
        &self,
        server: &ServerDefinition,
    ) -> Result<Option<Arc<ConfinementSpec>>, String>;

    /// Whether this one may not run without by now, however it was started.
    fn must_be_confined(&self, server: &ServerDefinition) -> bool;
}

/// All servers of a session. Dropping it ends them.
pub struct Servers {
    slots: Vec<ServerSlot>,
    host: ServerHost,
}

/// The tool that is called, and its server.
#[derive(Clone, Copy)]
pub(crate) struct CalledTool<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
}

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It was not used yet, or has ended.
    Idle,
    /// It can be spoken with.
    Running,
}

struct ServerSlot {
    server: ServerDefinition,
    life: Mutex<Life>,
    listing: RwLock<Option<Arc<ServerListing>>>,
}

#[derive(Default)]
struct Life {
    connection: Option<Arc<Connection>>,
    starts: VecDeque<Instant>,
    /// Starts in a row that failed, and when the last one did.
    failed: Option<(usize, Instant)>,
}

impl Servers {
    /// These servers, none of them started; what they offer is as it was when it was last kept.
    pub fn new(servers: Vec<ServerDefinition>, host: ServerHost) -> Self {
        let slot = |server: ServerDefinition| {
            let listing = host.cache.load(&server).map(Arc::new);
            ServerSlot {
                server,
                life: Mutex::default(),
                listing: RwLock::new(listing),
            }
        };
        Self {
            slots: servers.into_iter().map(slot).collect(),
            host,
        }
    }

    /// The servers, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ServerDefinition> {
        self.slots.iter().map(|slot| &slot.server)
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.iter().map(|server| server.name.as_str()).collect()
    }

    /// A hash of what the user declares: which servers there are, how they are reached and which
    /// tools are offered. What is secret of it, and may change by itself, is left out.
    pub fn declaration(&self) -> String {
        let declared: Vec<_> = self
            .iter()
            .map(|server| format!("{server:?} {:?}", server.filter))
            .collect();
        blake3::hash(declared.join("\n").as_bytes())
            .to_hex()
            .to_string()
    }

    /// What a server offers, as far as it is known; nothing is started.
    pub fn known(&self, name: &str) -> Option<Arc<ServerListing>> {
        self.slot(name).ok()?.known()
    }

    /// Takes over what a server offers from who has asked it; without this a model is told only
    /// that there is one.
    pub fn note_listing(&self, name: &str, listing: Arc<ServerListing>) {
        if let Ok(slot) = self.slot(name) {
            *slot.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(listing);
        }
    }

    /// How a server is.
    pub fn state(&self, name: &str) -> ServerState {
        let running = self.slot(name).is_ok_and(|slot| {
            // Whoever holds it is just starting it.
            slot.life
                .try_lock()
                .is_ok_and(|life| life.connection.as_ref().is_some_and(|one| one.is_alive()))
        });
        if running {
            ServerState::Running
        } else {
            ServerState::Idle
        }
    }

    /// Whether the user has logged in to a server.
    pub fn has_login(&self, name: &str) -> bool {
        self.slot(name)
            .is_ok_and(|slot| self.tokens().has(&slot.server))
    }

    /// What a server offers now. It is started if it is not.
    pub async fn listing(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<ServerListing>, McpError> {
        let slot = self.slot(name)?;
        let connection = self.connection(slot, cancel).await?;
        if connection.notifications().take_stale() || slot.known().is_none() {
            self.refresh(slot, &connection).await?;
        }
        Ok(slot.known().unwrap_or_default())
    }

    /// What a server offers, from its own mouth even when it is known.
    pub async fn ask_anew(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<ServerListing>, McpError> {
        let slot = self.slot(name)?;
        let connection = self.connection(slot, cancel).await?;
        self.refresh(slot, &connection).await?;
        Ok(slot.known().unwrap_or_default())
    }

    /// The same of several servers, side by side, in the order of their names here.
    pub async fn ask_all_anew(
        &self,
        names: &[&str],
        cancel: &CancellationToken,
    ) -> Vec<Result<Arc<ServerListing>, McpError>> {
        futures::future::join_all(names.iter().map(|name| self.ask_anew(name, cancel))).await
    }

    /// Calls a tool of a server, which is started if it is not. Progress extends the time it may
    /// take.
    pub async fn call(
        &self,
        name: &str,
        tool: &str,
        arguments: Map<String, Value>,
        progress: CallProgress,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let called = CalledTool { server: name, tool };
        self.call_within(&ToolScope::default(), called, arguments, progress, cancel)
            .await
    }

    /// The same, of what is within a scope.
    pub(crate) async fn call_within(
        &self,
        scope: &ToolScope,
        CalledTool { server: name, tool }: CalledTool<'_>,
        arguments: Map<String, Value>,
        progress: CallProgress,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        scope.check(name, tool)?;
        let slot = self.slot(name)?;
        if !slot.server.filter.admits(tool) {
            let hint = "; the configuration does not offer it".to_owned();
            return Err(McpError::UnknownTool {
                server: name.to_owned(),
                tool: tool.to_owned(),
                hint,
            });
        }
        let connection = self.connection(slot, cancel).await?;
        let has = |listing: Arc<ServerListing>| {
            tool == READ_RESOURCE || listing.tools.iter().any(|known| known.name == tool)
        };
        // The word that a list has changed may come after the answer it came with: before a tool is
        // unknown, its server is asked.
        if connection.notifications().take_stale() || !slot.known().is_none_or(has) {
            self.refresh(slot, &connection).await?;
        }
        if let Some(listing) = slot.known()
            && !listing.tools.iter().any(|known| known.name == tool)
        {
            return match (tool, arguments.get("uri").and_then(Value::as_str)) {
                (READ_RESOURCE, _) if listing.resources.is_empty() => {
                    Err(slot.unknown_tool(tool, &listing, scope))
                }
                (READ_RESOURCE, Some(uri)) => {
                    self.wait(slot, &connection, connection.read(uri), cancel)
                        .await
                }
                (READ_RESOURCE, None) => Ok(document::resources(&listing)),
                (_, _) => Err(slot.unknown_tool(tool, &listing, scope)),
            };
        }
        let _shown = connection.notifications().show_to(progress);
        let called = connection.call(tool, arguments);
        self.wait(slot, &connection, called, cancel).await
    }

    /// Reads a resource of a server.
    pub async fn read(
        &self,
        name: &str,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let slot = self.slot(name)?;
        let connection = self.connection(slot, cancel).await?;
        self.wait(slot, &connection, connection.read(uri), cancel)
            .await
    }

    /// Fills in a prompt of a server.
    pub async fn prompt(
        &self,
        name: &str,
        prompt: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let slot = self.slot(name)?;
        let connection = self.connection(slot, cancel).await?;
        self.wait(
            slot,
            &connection,
            connection.prompt(prompt, arguments),
            cancel,
        )
        .await
    }

    /// Ends all servers and waits until nothing of them is left.
    pub async fn close(&self) {
        let closing = self.slots.iter().map(|slot| async {
            slot.life.lock().await.end().await;
        });
        futures::future::join_all(closing).await;
    }

    /// Whether a server runs that would not be started like that any more.
    pub fn has_outgrown(&self) -> bool {
        self.slots.iter().any(|slot| {
            slot.life
                .try_lock()
                .is_ok_and(|life| self.is_outgrown(slot, &life))
        })
    }

    /// Ends the servers that would not be started like that any more.
    pub async fn end_outgrown(&self) {
        for slot in &self.slots {
            let mut life = slot.life.lock().await;
            if self.is_outgrown(slot, &life) {
                life.end().await;
            }
        }
    }

    fn is_outgrown(&self, slot: &ServerSlot, life: &Life) -> bool {
        let unconfined = life
            .connection
            .as_ref()
            .is_some_and(|connection| connection.is_unconfined());
        unconfined
            && self
                .host
                .sandbox
                .as_ref()
                .is_some_and(|sandbox| sandbox.must_be_confined(&slot.server))
    }

    /// Waits for an answer as long as the server shows signs of life.
    async fn wait<T>(
        &self,
        slot: &ServerSlot,
        connection: &Connection,
        answer: impl Future<Output = Result<T, McpError>>,
        cancel: &CancellationToken,
    ) -> Result<T, McpError> {
        let mut answer = std::pin::pin!(answer);
        let mut signs = connection.notifications().signs();
        let silent = || McpError::Silent {
            server: slot.server.name.clone(),
            seconds: slot.server.timeout.as_secs(),
        };
        loop {
            tokio::select! {
                answered = &mut answer => {
                    return match answered {
                        Err(error @ McpError::Login { .. }) => {
                            // After a login it is reached anew.
                            slot.life.lock().await.connection = None;
                            Err(error)
                        }
                        Err(McpError::Gone { server, .. }) => {
                            Err(McpError::Gone { server, said: connection.last_words().await })
                        }
                        other => other,
                    };
                }
                () = cancel.cancelled() => {
                    connection.notifications().give_up();
                    return Err(McpError::Cancelled);
                }
                changed = signs.changed() => {
                    if changed.is_err() {
                        return Err(silent());
                    }
                }
                () = tokio::time::sleep(slot.server.timeout) => {
                    if !connection.notifications().is_asking() {
                        return Err(silent());
                    }
                }
            }
        }
    }

    /// The connection to a server; it is started if there is none.
    async fn connection(
        &self,
        slot: &ServerSlot,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, McpError> {
        let starting = async {
            let mut life = slot.life.lock().await;
            if self.is_outgrown(slot, &life) {
                life.end().await;
            }
            if let Some(alive) = life
                .connection
                .as_ref()
                .filter(|connection| connection.is_alive())
            {
                return Ok(Arc::clone(alive));
            }
            life.connection = None;
            life.note_start(&slot.server.name)?;
            let since = Instant::now();
            let opened = self.open(slot).await;
            log_start(slot, opened.as_ref().err(), since.elapsed());
            life.note_end(opened.as_ref().err());
            let connection = opened?;
            life.connection = Some(Arc::clone(&connection));
            Ok(connection)
        };
        tokio::select! {
            connection = starting => connection,
            () = cancel.cancelled() => Err(McpError::Cancelled),
        }
    }

    /// Starts a server and asks what it offers, within its time.
    async fn open(&self, slot: &ServerSlot) -> Result<Arc<Connection>, McpError> {
        let ServerDefinition { name, startup, .. } = &slot.server;
        let tokens = self.tokens();
        let launch = Launch {
            supervisor: &self.host.supervisor,
            environment: &self.host.environment,
            writable: &self.host.writable,
            folders: &self.host.folders,
            tokens: &tokens,
            elicitor: self.host.elicitor.clone(),
            // Before its time begins: who is asked may think about it.
            confined: sdk::confinement(&slot.server, self.host.sandbox.as_deref()).await?,
        };
        let opening = async {
            let connection = Connection::open(&slot.server, &launch).await?;
            self.refresh(slot, &connection).await?;
            Ok(Arc::new(connection))
        };
        tokio::time::timeout(*startup, opening)
            .await
            .unwrap_or_else(|_elapsed| {
                let reason = format!(
                    "`{}` did not answer within {} s; `startup_timeout` gives it more",
                    slot.server.reach,
                    startup.as_secs()
                );
                Err(McpError::Start {
                    server: name.clone(),
                    reason,
                })
            })
    }

    async fn refresh(&self, slot: &ServerSlot, connection: &Connection) -> Result<(), McpError> {
        let listing = connection.list().await?;
        self.host.cache.keep(&slot.server, &listing);
        *slot.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listing));
        Ok(())
    }

    fn tokens(&self) -> TokenStore {
        TokenStore::at(self.host.tokens.clone())
    }

    fn slot(&self, name: &str) -> Result<&ServerSlot, McpError> {
        self.slots
            .iter()
            .find(|slot| slot.server.name == name)
            .ok_or_else(|| {
                let names: Vec<_> = self
                    .iter()
                    .map(|server| format!("`{}`", server.name))
                    .collect();
                let known = match names.as_slice() {
                    [] => "is none".to_owned(),
                    [one] => format!("is only {one}"),
                    several => format!("are {}", several.join(", ")),
                };
                McpError::UnknownServer {
                    name: name.to_owned(),
                    known,
                }
            })
    }
}

/// Logs how a start ended. What the server wrote is not part of it.
fn log_start(slot: &ServerSlot, error: Option<&McpError>, took: Duration) {
    let server = &slot.server.name;
    let ms = took.as_millis() as u64;
    match error {
        None => {
            let tools = slot.known().map(|listing| listing.tools.len());
            tracing::info!(server, ms, tools, "MCP server started");
        }
        Some(error) => tracing::warn!(server, ms, code = error.code(), "MCP server not started"),
    }
}

impl ServerSlot {
    fn known(&self) -> Option<Arc<ServerListing>> {
        self.listing
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn unknown_tool(&self, tool: &str, listing: &ServerListing, scope: &ToolScope) -> McpError {
        let names: Vec<_> = listing
            .tools
            .iter()
            .filter(|known| scope.offers(&self.server, &known.name))
            .map(|known| format!("`{}`", known.name))
            .collect();
        let hint = match names.as_slice() {
            [] => "; it has none at all".to_owned(),
            few if few.len() <= 30 => format!("; it has {}", few.join(", ")),
            many => format!("; it has {} tools", many.len()),
        };
        McpError::UnknownTool {
            server: self.server.name.clone(),
            tool: tool.to_owned(),
            hint,
        }
    }
}

impl Life {
    /// Ends what runs. Whoever waits for an answer of it still gets one.
    async fn end(&mut self) {
        if let Some(connection) = self.connection.take().and_then(Arc::into_inner) {
            connection.close().await;
        }
    }

    /// Takes note of one more start, if there may be one.
    fn note_start(&mut self, server: &str) -> Result<(), McpError> {
        let now = Instant::now();
        while self
            .starts
            .front()
            .is_some_and(|start| now.duration_since(*start) >= PERIOD)
        {
            self.starts.pop_front();
        }
        if let Some((failures, last)) = self.failed.filter(|(failures, _)| *failures >= FAILURES) {
            let left = PERIOD.saturating_sub(now.duration_since(last));
            if !left.is_zero() {
                let seconds = left.as_secs().max(1);
                return Err(McpError::Failing {
                    server: server.to_owned(),
                    failures,
                    seconds,
                });
            }
            self.failed = None;
        }
        if let (true, Some(last)) = (self.starts.len() >= STARTS, self.starts.front()) {
            let seconds = PERIOD
                .saturating_sub(now.duration_since(*last))
                .as_secs()
                .max(1);
            return Err(McpError::Resting {
                server: server.to_owned(),
                starts: STARTS,
                seconds,
            });
        }
        self.starts.push_back(now);
        Ok(())
    }

    /// Takes note of how a start went. One that wants a login is there.
    fn note_end(&mut self, error: Option<&McpError>) {
        let before = self.failed.map_or(0, |(failures, _)| failures);
        let failed = error.is_some_and(|error| !matches!(error, McpError::Login { .. }));
        self.failed = failed.then(|| (before + 1, Instant::now()));
    }
}
