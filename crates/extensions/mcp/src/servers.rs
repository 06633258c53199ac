//! Starts, calls, restarts, and stops the MCP servers of a session.
//!
//! A server is started on first use, and again if it ended, up to a limit.
//!
//! Invariant: creating [`Servers`] and reading known listings start nothing and wait for nothing. A
//! server that hangs or dies delays only the calls to that server, and no longer than its own
//! timeouts.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use haft_sandbox::{ConfinementSpec, Supervisor};
use haft_tool::{BreakerLimits, CallProgress};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::cache::ListingCache;
use crate::error::McpError;
use crate::listing::ServerListing;
use crate::output::ServerAnswer;
use crate::scope::ToolScope;
use crate::sdk::{self, Connection, Elicitor, Launch, TokenStore};
use crate::server::ServerDefinition;
use crate::server_document::{self, READ_RESOURCE};

/// The maximum number of starts of one server within [`START_PERIOD`].
const MAX_STARTS: usize = 4;
/// The time over which starts are counted.
const START_PERIOD: Duration = Duration::from_mins(5);

/// The services of the session that servers need: the supervisor of processes, folders, the cache,
/// and the sandbox.
#[derive(Clone)]
pub struct ServerHost {
    /// The supervisor that starts servers that are programs.
    pub supervisor: Arc<Supervisor>,
    /// The environment variables of every child process.
    pub environment: Arc<Vec<(String, String)>>,
    /// Folders that the model can write. They are skipped when the programs of the user's own
    /// servers are looked up.
    pub writable: Vec<std::path::PathBuf>,
    /// The folder that contains the private working folders of the user's own servers.
    pub folders: std::path::PathBuf,
    pub cache: ListingCache,
    /// The folder that contains the OAuth tokens for servers.
    pub tokens: std::path::PathBuf,
    /// Answers the questions that servers ask the user. If `None`, questions are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    /// Confines servers. If `None`, no server can start except the user's own servers that may run
    /// unconfined.
    pub sandbox: Option<Arc<dyn ServerConfiner>>,
}

/// Decides how servers that are programs are confined.
#[async_trait]
pub trait ServerConfiner: Send + Sync {
    /// Returns the confinement of `server`, or `None` if it may run unconfined. The error is the
    /// reason why the server must not start.
    async fn confine(
        &self,
        server: &ServerDefinition,
    ) -> Result<Option<Arc<ConfinementSpec>>, String>;

    /// True if `server` is currently not allowed to run unconfined. The result may change while the
    /// server runs.
    fn must_be_confined(&self, server: &ServerDefinition) -> bool;
}

/// All servers of a session. Dropping this value stops the servers.
pub struct Servers {
    slots: Vec<ServerSlot>,
    host: ServerHost,
    /// The limits after which a server that fails to start is not restarted.
    breaker: BreakerLimits,
}

/// The names of a tool to be called and of its server.
#[derive(Clone, Copy)]
pub(crate) struct CalledTool<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
}

/// The state of a server's connection: connected or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// The server has not been started yet, or has ended.
    Idle,
    /// The server is connected.
    Running,
}

struct ServerSlot {
    server: ServerDefinition,
    life: Mutex<ServerRun>,
    listing: RwLock<Option<Arc<ServerListing>>>,
}

#[derive(Default)]
struct ServerRun {
    connection: Option<Arc<Connection>>,
    starts: VecDeque<Instant>,
    /// The number of failed starts in a row, and the time of the last failure. `None` if the last
    /// start did not fail.
    failed: Option<(usize, Instant)>,
}

impl Servers {
    /// Creates the servers without starting any, and reads their listings from the cache.
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
            breaker: BreakerLimits::default(),
        }
    }

    /// Sets the limits after which a server that fails to start is not restarted.
    #[must_use]
    pub fn with_breaker(self, breaker: BreakerLimits) -> Self {
        Self { breaker, ..self }
    }

    /// Returns the definitions of all servers, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &ServerDefinition> {
        self.slots.iter().map(|slot| &slot.server)
    }

    pub(crate) fn server_names(&self) -> Vec<&str> {
        self.iter().map(|server| server.name.as_str()).collect()
    }

    /// Hashes the declarations of all servers: their names, endpoints, and tool filters. Secrets,
    /// and values that may change without a change to the declaration, are not included.
    pub fn declaration_hash(&self) -> String {
        let declared: Vec<_> = self
            .iter()
            .map(|server| format!("{server:?} {:?}", server.filter))
            .collect();
        blake3::hash(declared.join("\n").as_bytes())
            .to_hex()
            .to_string()
    }

    /// Returns the listing of a server, or `None` if it is not known yet. Does not start the
    /// server.
    pub fn known_listing(&self, name: &str) -> Option<Arc<ServerListing>> {
        self.find_slot(name).ok()?.known_listing()
    }

    /// Stores a listing that the caller has fetched from the server. As long as a server has no
    /// listing, the model sees only its name.
    pub fn set_listing(&self, name: &str, listing: Arc<ServerListing>) {
        if let Ok(slot) = self.find_slot(name) {
            *slot.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(listing);
        }
    }

    /// Returns the state of the server `name`. A server that is being started counts as idle.
    pub fn state(&self, name: &str) -> ServerState {
        let running = self.find_slot(name).is_ok_and(|slot| {
            // The lock is held while the server is being started.
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

    /// True if the user has logged in to the server.
    pub fn has_login(&self, name: &str) -> bool {
        self.find_slot(name)
            .is_ok_and(|slot| self.token_store().has_tokens(&slot.server))
    }

    /// Returns the current listing of a server, starting the server if needed. Fetches the listing
    /// only if it is unknown or has changed.
    pub async fn current_listing(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<ServerListing>, McpError> {
        let slot = self.find_slot(name)?;
        let connection = self.ensure_connection(slot, cancel).await?;
        if connection.notifications().take_stale_flag() || slot.known_listing().is_none() {
            self.refresh_listing(slot, &connection).await?;
        }
        Ok(slot.known_listing().unwrap_or_default())
    }

    /// Fetches the listing of a server, even if a listing is known already. Starts the server if
    /// needed.
    pub async fn refetch_listing(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Arc<ServerListing>, McpError> {
        let slot = self.find_slot(name)?;
        let connection = self.ensure_connection(slot, cancel).await?;
        self.refresh_listing(slot, &connection).await?;
        Ok(slot.known_listing().unwrap_or_default())
    }

    /// Like [`Self::refetch_listing`], but for several servers concurrently. The results are in the
    /// order of `names`.
    pub async fn refetch_listings(
        &self,
        names: &[&str],
        cancel: &CancellationToken,
    ) -> Vec<Result<Arc<ServerListing>, McpError>> {
        futures::future::join_all(names.iter().map(|name| self.refetch_listing(name, cancel))).await
    }

    /// Calls a tool of a server, starting the server if needed. Every progress notification
    /// restarts the timeout.
    pub async fn call_tool(
        &self,
        name: &str,
        tool: &str,
        arguments: Map<String, Value>,
        progress: CallProgress,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let called = CalledTool { server: name, tool };
        self.call_tool_in_scope(&ToolScope::default(), called, arguments, progress, cancel)
            .await
    }

    /// Like [`Self::call_tool`], but fails if the tool is not in `scope`.
    pub(crate) async fn call_tool_in_scope(
        &self,
        scope: &ToolScope,
        CalledTool { server: name, tool }: CalledTool<'_>,
        arguments: Map<String, Value>,
        progress: CallProgress,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        scope.check_tool(name, tool)?;
        let slot = self.find_slot(name)?;
        if !slot.server.filter.allows(tool) {
            let hint = "; the configuration does not offer it".to_owned();
            return Err(McpError::UnknownTool {
                server: name.to_owned(),
                tool: tool.to_owned(),
                hint,
            });
        }
        let connection = self.ensure_connection(slot, cancel).await?;
        let has_tool = |listing: Arc<ServerListing>| {
            tool == READ_RESOURCE || listing.tools.iter().any(|known| known.name == tool)
        };
        // The notification that a list has changed may arrive after the answer it came with. So the
        // server is asked before a tool is reported as unknown.
        if connection.notifications().take_stale_flag()
            || !slot.known_listing().is_none_or(has_tool)
        {
            self.refresh_listing(slot, &connection).await?;
        }
        if let Some(listing) = slot.known_listing()
            && !listing.tools.iter().any(|known| known.name == tool)
        {
            return match (tool, arguments.get("uri").and_then(Value::as_str)) {
                (READ_RESOURCE, _) if listing.resources.is_empty() => {
                    Err(slot.unknown_tool_error(tool, &listing, scope))
                }
                (READ_RESOURCE, Some(uri)) => {
                    self.wait_for_answer(slot, &connection, connection.read_resource(uri), cancel)
                        .await
                }
                (READ_RESOURCE, None) => Ok(server_document::list_resources(&listing)),
                (_, _) => Err(slot.unknown_tool_error(tool, &listing, scope)),
            };
        }
        let _shown = connection.notifications().forward_progress_to(progress);
        let called = connection.call_tool(tool, arguments);
        self.wait_for_answer(slot, &connection, called, cancel)
            .await
    }

    pub async fn read_resource(
        &self,
        name: &str,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let slot = self.find_slot(name)?;
        let connection = self.ensure_connection(slot, cancel).await?;
        self.wait_for_answer(slot, &connection, connection.read_resource(uri), cancel)
            .await
    }

    /// Gets a prompt of a server, filled in with `arguments`.
    pub async fn fill_prompt(
        &self,
        name: &str,
        prompt: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<ServerAnswer, McpError> {
        let slot = self.find_slot(name)?;
        let connection = self.ensure_connection(slot, cancel).await?;
        self.wait_for_answer(
            slot,
            &connection,
            connection.fill_prompt(prompt, arguments),
            cancel,
        )
        .await
    }

    /// Ends all servers and waits until their processes have ended.
    pub async fn close(&self) {
        let closing = self.slots.iter().map(|slot| async {
            slot.life.lock().await.close().await;
        });
        futures::future::join_all(closing).await;
    }

    /// True if a server runs unconfined although, after a change of the permission mode, it has to
    /// be confined.
    pub fn has_wrongly_unconfined_server(&self) -> bool {
        self.slots.iter().any(|slot| {
            slot.life
                .try_lock()
                .is_ok_and(|life| self.is_wrongly_unconfined(slot, &life))
        })
    }

    /// Ends the servers that run unconfined although, after a change of the permission mode, they
    /// have to be confined.
    pub async fn end_wrongly_unconfined_servers(&self) {
        for slot in &self.slots {
            let mut life = slot.life.lock().await;
            if self.is_wrongly_unconfined(slot, &life) {
                life.close().await;
            }
        }
    }

    fn is_wrongly_unconfined(&self, slot: &ServerSlot, life: &ServerRun) -> bool {
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

    /// Waits for `answer`. Fails if the server sends neither the answer nor a progress notification
    /// within its timeout. The time for which a question of the server waits for the user doesn't
    /// count.
    async fn wait_for_answer<T>(
        &self,
        slot: &ServerSlot,
        connection: &Connection,
        answer: impl Future<Output = Result<T, McpError>>,
        cancel: &CancellationToken,
    ) -> Result<T, McpError> {
        let mut answer = std::pin::pin!(answer);
        let mut signs = connection.notifications().subscribe_to_activity();
        let silent = || McpError::Silent {
            server: slot.server.name.clone(),
            seconds: slot.server.timeout.as_secs(),
        };
        loop {
            tokio::select! {
                answered = &mut answer => {
                    return match answered {
                        Err(error @ McpError::Login { .. }) => {
                            // The next call reconnects with the tokens of the login.
                            slot.life.lock().await.connection = None;
                            Err(error)
                        }
                        Err(McpError::Gone { server, .. }) => {
                            Err(McpError::Gone { server, said: connection.last_error_output().await })
                        }
                        other => other,
                    };
                }
                () = cancel.cancelled() => {
                    connection.notifications().cancel_questions();
                    return Err(McpError::Cancelled);
                }
                changed = signs.changed() => {
                    if changed.is_err() {
                        return Err(silent());
                    }
                }
                () = tokio::time::sleep(slot.server.timeout) => {
                    if !connection.notifications().is_asking_user() {
                        return Err(silent());
                    }
                }
            }
        }
    }

    /// Returns the open connection to a server, starting the server if needed.
    async fn ensure_connection(
        &self,
        slot: &ServerSlot,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, McpError> {
        let starting = async {
            let mut life = slot.life.lock().await;
            if self.is_wrongly_unconfined(slot, &life) {
                life.close().await;
            }
            if let Some(alive) = life
                .connection
                .as_ref()
                .filter(|connection| connection.is_alive())
            {
                return Ok(Arc::clone(alive));
            }
            life.connection = None;
            life.record_start(&slot.server.name, self.breaker)?;
            let since = Instant::now();
            let opened = self.start_server(slot).await;
            log_start(slot, opened.as_ref().err(), since.elapsed());
            life.record_start_result(opened.as_ref().err());
            let connection = opened?;
            life.connection = Some(Arc::clone(&connection));
            Ok(connection)
        };
        tokio::select! {
            connection = starting => connection,
            () = cancel.cancelled() => Err(McpError::Cancelled),
        }
    }

    /// Starts a server and fetches its listing within the startup timeout.
    async fn start_server(&self, slot: &ServerSlot) -> Result<Arc<Connection>, McpError> {
        let ServerDefinition {
            name,
            startup_timeout: startup,
            ..
        } = &slot.server;
        let tokens = self.token_store();
        let launch = Launch {
            supervisor: &self.host.supervisor,
            environment: &self.host.environment,
            writable: &self.host.writable,
            folders: &self.host.folders,
            tokens: &tokens,
            elicitor: self.host.elicitor.clone(),
            // Decided before the startup timeout begins: the user may be asked and take any time.
            confined: sdk::decide_confinement(&slot.server, self.host.sandbox.as_deref()).await?,
        };
        let opening = async {
            let connection = Connection::open(&slot.server, &launch).await?;
            self.refresh_listing(slot, &connection).await?;
            Ok(Arc::new(connection))
        };
        tokio::time::timeout(*startup, opening)
            .await
            .unwrap_or_else(|_elapsed| {
                let reason = format!(
                    "`{}` did not answer within {} s; `startup_timeout` gives it more",
                    slot.server.endpoint,
                    startup.as_secs()
                );
                Err(McpError::Start {
                    server: name.clone(),
                    reason,
                })
            })
    }

    async fn refresh_listing(
        &self,
        slot: &ServerSlot,
        connection: &Connection,
    ) -> Result<(), McpError> {
        let listing = connection.fetch_listing().await?;
        self.host.cache.store(&slot.server, &listing);
        *slot.listing.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listing));
        Ok(())
    }

    fn token_store(&self) -> TokenStore {
        TokenStore::new(self.host.tokens.clone())
    }

    fn find_slot(&self, name: &str) -> Result<&ServerSlot, McpError> {
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

/// Logs whether a start of a server succeeded, and how long it took. The server's output is not
/// logged.
fn log_start(slot: &ServerSlot, error: Option<&McpError>, took: Duration) {
    let server = &slot.server.name;
    let ms = took.as_millis() as u64;
    match error {
        None => {
            let tools = slot.known_listing().map(|listing| listing.tools.len());
            tracing::info!(server, ms, tools, "MCP server started");
        }
        Some(error) => tracing::warn!(server, ms, code = error.code(), "MCP server not started"),
    }
}

impl ServerSlot {
    fn known_listing(&self) -> Option<Arc<ServerListing>> {
        self.listing
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn unknown_tool_error(
        &self,
        tool: &str,
        listing: &ServerListing,
        scope: &ToolScope,
    ) -> McpError {
        let names: Vec<_> = listing
            .tools
            .iter()
            .filter(|known| scope.offers_tool(&self.server, &known.name))
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

impl ServerRun {
    /// Drops the connection. It is closed at once, or, if calls are still using it, when the last
    /// call has ended.
    async fn close(&mut self) {
        if let Some(connection) = self.connection.take().and_then(Arc::into_inner) {
            connection.close().await;
        }
    }

    /// Records a start. Fails if there were too many recent starts, or if the last starts all
    /// failed.
    fn record_start(&mut self, server: &str, breaker: BreakerLimits) -> Result<(), McpError> {
        let now = Instant::now();
        while self
            .starts
            .front()
            .is_some_and(|start| now.duration_since(*start) >= START_PERIOD)
        {
            self.starts.pop_front();
        }
        if let Some((failures, last)) = self
            .failed
            .filter(|(failures, _)| *failures >= breaker.failures as usize)
        {
            let left = breaker.pause.saturating_sub(now.duration_since(last));
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
        if let (true, Some(last)) = (self.starts.len() >= MAX_STARTS, self.starts.front()) {
            let seconds = START_PERIOD
                .saturating_sub(now.duration_since(*last))
                .as_secs()
                .max(1);
            return Err(McpError::Resting {
                server: server.to_owned(),
                starts: MAX_STARTS,
                seconds,
            });
        }
        self.starts.push_back(now);
        Ok(())
    }

    /// Records whether a start of a server succeeded. A server that requires a login is not counted
    /// as failed.
    fn record_start_result(&mut self, error: Option<&McpError>) {
        let before = self.failed.map_or(0, |(failures, _)| failures);
        let failed = error.is_some_and(|error| !matches!(error, McpError::Login { .. }));
        self.failed = failed.then(|| (before + 1, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_start_follows_the_breaker_limits() {
        let error = McpError::Resting {
            server: "s".into(),
            starts: 1,
            seconds: 1,
        };
        for (failures, seconds, may_start) in [(1, 60, false), (2, 60, true), (1, 0, true)] {
            let limits = BreakerLimits {
                failures,
                pause: Duration::from_secs(seconds),
            };
            let mut run = ServerRun::default();
            run.record_start("s", limits).unwrap();
            run.record_start_result(Some(&error));
            let again = run.record_start("s", limits);
            assert_eq!(again.is_ok(), may_start, "{limits:?}");
        }
    }
}
