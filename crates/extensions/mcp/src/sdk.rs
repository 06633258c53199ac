//! Connects to servers through the official MCP SDK.
//!
//! Invariant: no type of the SDK leaves this module, and dropping a [`Connection`] ends the
//! server's process.

mod auth;
mod convert;
mod handler;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{
    Background, Capture, CommandSpec, ConfinementSpec, Stdin, Supervisor, filter_search_path,
    find_program, is_inheritable,
};
use haft_text::CutLimits;
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ServerNotification, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransportConfig,
    StreamableHttpError,
};
use serde_json::{Map, Value};

use crate::config::Protocol;
use crate::error::McpError;
use crate::listing::ServerListing;
use crate::output::ServerAnswer;
use crate::server::{ServerConfinement, ServerDefinition, ServerEndpoint, ServerOrigin};
use crate::servers::ServerConfiner;

pub(crate) use auth::{Authorization, TokenStore};
pub use handler::Elicitor;
use handler::Handler;
pub(crate) use handler::ServerNotifications;

/// The maximum number of redirects to follow.
const MAX_REDIRECTS: usize = 5;
/// The maximum size of a message from a server, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The limits on the part of a server's error output that error messages quote.
const ERROR_OUTPUT_LIMITS: CutLimits = CutLimits {
    lines: 20,
    bytes: 2 * 1024,
};
/// The maximum time to wait until a server that closed its connection exits, so that its exit
/// status and last output can be reported.
const ENDING_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time to wait until a server that refused the connection exits. Such a server may
/// keep running.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(200);
/// The time to wait for a server's part in closing the connection, after which haft ends the
/// server.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// An open connection to a server, with the server's process if haft started one.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    notifications: Arc<ServerNotifications>,
    /// The server's process, if haft started one.
    process: Option<Background>,
    /// True if the process runs without a sandbox.
    unconfined: bool,
    server: String,
}

/// The services and settings that are needed to start or reach a server.
pub(crate) struct Launch<'a> {
    pub(crate) supervisor: &'a Supervisor,
    /// The environment variables of every child process.
    pub(crate) environment: &'a [(String, String)],
    /// The folders that are skipped when the programs of the user's own servers are looked up.
    pub(crate) writable: &'a [PathBuf],
    /// The folder that contains the private working folders of the user's own servers.
    pub(crate) folders: &'a Path,
    pub(crate) tokens: &'a TokenStore,
    pub(crate) elicitor: Option<Arc<dyn Elicitor>>,
    /// The confinement of a server that is a program; see [`decide_confinement`].
    pub(crate) confined: Option<Arc<ConfinementSpec>>,
}

impl Connection {
    /// Starts the server if it is a program, connects to it, and negotiates the protocol. The
    /// caller must set a timeout.
    pub(crate) async fn open(
        server: &ServerDefinition,
        launch: &Launch<'_>,
    ) -> Result<Self, McpError> {
        let notifications = Arc::new(ServerNotifications::default());
        let handler = Handler::new(
            &server.name,
            Arc::clone(&notifications),
            launch.elicitor.clone(),
        );
        let (service, process) = match &server.endpoint {
            ServerEndpoint::Command { .. } => {
                let (process, socket) = start_program(server, launch)?;
                let (reader, writer) = socket.into_split();
                let transport = AsyncRwTransport::new_client(reader, writer)
                    .with_max_line_length(MAX_MESSAGE_BYTES);
                let service = serve_client_with_lifecycle(
                    handler,
                    transport,
                    to_lifecycle_mode(server.protocol),
                )
                .await;
                match service {
                    Ok(service) => (service, Some(process)),
                    Err(error) => {
                        let limit = match error {
                            ClientInitializeError::ConnectionClosed(_) => ENDING_TIMEOUT,
                            _ => REFUSAL_TIMEOUT,
                        };
                        let said = wait_for_error_output(&process, limit).await;
                        return Err(convert_start_error(server, &error, &said));
                    }
                }
            }
            ServerEndpoint::Linked(link) => {
                let (reader, writer) = tokio::io::split(link.0.connect(&server.name));
                let transport = AsyncRwTransport::new_client(reader, writer)
                    .with_max_line_length(MAX_MESSAGE_BYTES);
                let served = serve_client_with_lifecycle(
                    handler,
                    transport,
                    to_lifecycle_mode(server.protocol),
                )
                .await;
                (
                    served.map_err(|error| convert_start_error(server, &error, ""))?,
                    None,
                )
            }
            ServerEndpoint::Http { .. } => {
                (connect_over_http(server, launch, handler).await?, None)
            }
        };
        let unconfined = process.is_some() && launch.confined.is_none();
        let connection = Self {
            service,
            notifications,
            process,
            unconfined,
            server: server.name.clone(),
        };
        connection.subscribe_to_list_changes();
        Ok(connection)
    }

    /// Subscribes to changes of the tool list, if the protocol revision requires a subscription.
    fn subscribe_to_list_changes(&self) {
        let Some(info) = self.service.peer_info() else {
            return;
        };
        let changes = info
            .capabilities
            .tools
            .as_ref()
            .and_then(|tools| tools.list_changed)
            == Some(true);
        if info.protocol_version.has_initialize() || !changes {
            return;
        }
        let peer = self.service.peer().clone();
        let notifications = Arc::clone(&self.notifications);
        tokio::spawn(async move {
            let Ok(mut subscription) = peer
                .listen(SubscriptionFilter::builder().tools_list_changed().build())
                .await
            else {
                return;
            };
            while let Ok(Some(notification)) = subscription.next().await {
                if matches!(
                    notification,
                    ServerNotification::ToolListChangedNotification(_)
                ) {
                    notifications.mark_stale();
                }
            }
        });
    }

    /// True if requests can be sent, that is, if the connection has not been closed.
    pub(crate) fn is_alive(&self) -> bool {
        !self.service.is_closed()
            && !self.service.peer().is_transport_closed()
            && self
                .process
                .as_ref()
                .is_none_or(|process| process.ending().is_none())
    }

    /// True if the server is a program that runs without a sandbox.
    pub(crate) fn is_unconfined(&self) -> bool {
        self.unconfined
    }

    /// Returns the state that the server's notifications update.
    pub(crate) fn notifications(&self) -> &Arc<ServerNotifications> {
        &self.notifications
    }

    /// Fetches the server's tools, resources, and prompts. Errors while listing resources or
    /// prompts count as empty lists.
    pub(crate) async fn fetch_listing(&self) -> Result<ServerListing, McpError> {
        let info = self.service.peer_info();
        let capabilities = info
            .as_ref()
            .map(|info| info.capabilities.clone())
            .unwrap_or_default();
        let mut listing = info
            .as_deref()
            .map(convert::convert_server_info)
            .unwrap_or_default();
        self.service.peer().clear_response_cache().await;
        if capabilities.tools.is_some() {
            let tools = self.service.list_all_tools().await;
            listing.tools = tools
                .map_err(|error| self.convert_error(&error))?
                .into_iter()
                .map(convert::convert_tool)
                .collect();
        }
        if capabilities.resources.is_some() {
            let resources = self.service.list_all_resources().await.unwrap_or_default();
            let templates = self
                .service
                .list_all_resource_templates()
                .await
                .unwrap_or_default();
            listing.resources = resources
                .into_iter()
                .map(convert::convert_resource)
                .collect();
            listing
                .resources
                .extend(templates.into_iter().map(convert::convert_template));
        }
        if capabilities.prompts.is_some() {
            let prompts = self.service.list_all_prompts().await.unwrap_or_default();
            listing.prompts = prompts.into_iter().map(convert::convert_prompt).collect();
        }
        Ok(listing)
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(crate) async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ServerAnswer, McpError> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.service
            .call_tool(request)
            .await
            .map(convert::convert_tool_result)
            .map_err(|error| self.convert_error(&error))
    }

    pub(crate) async fn read_resource(&self, uri: &str) -> Result<ServerAnswer, McpError> {
        let read = self
            .service
            .read_resource(ReadResourceRequestParams::new(uri))
            .await;
        read.map(convert::convert_resource_result)
            .map_err(|error| self.convert_error(&error))
    }

    /// Gets a prompt from the server, filled in with `arguments`.
    pub(crate) async fn fill_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<ServerAnswer, McpError> {
        let request = GetPromptRequestParams::new(name).with_arguments(arguments);
        self.service
            .get_prompt(request)
            .await
            .map(convert::convert_prompt_result)
            .map_err(|error| self.convert_error(&error))
    }

    /// Closes the connection and ends the process, if haft started one.
    pub(crate) async fn close(mut self) {
        let _ = self.service.close_with_timeout(CLOSE_TIMEOUT).await;
        if let Some(process) = self.process.take() {
            process.stop();
            process.wait_for_end().await;
        }
    }

    /// Waits for the server's process to end and returns the last part of its error output, to be
    /// appended to an error message. Returns an empty string if haft started no process.
    pub(crate) async fn last_error_output(&self) -> String {
        match &self.process {
            Some(process) => wait_for_error_output(process, ENDING_TIMEOUT).await,
            None => String::new(),
        }
    }

    fn convert_error(&self, error: &ServiceError) -> McpError {
        let server = self.server.clone();
        match error {
            ServiceError::McpError(error) => McpError::Refused {
                server,
                message: error.message.to_string(),
            },
            ServiceError::TransportSend(error)
                if find_auth_challenge(error.error.as_ref()).is_some() =>
            {
                McpError::Login {
                    server,
                    challenge: find_auth_challenge(error.error.as_ref()),
                }
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => McpError::Gone {
                server,
                said: String::new(),
            },
            ServiceError::Cancelled { reason } => {
                let reason = reason.as_deref().unwrap_or("no reason given");
                McpError::Refused {
                    server,
                    message: format!("it cancelled the call ({reason})"),
                }
            }
            other => McpError::Refused {
                server,
                message: other.to_string(),
            },
        }
    }
}

/// Searches the causes of `error` for a refusal for lack of authorization, and returns its
/// `WWW-Authenticate` header.
fn find_auth_challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(insufficient) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(insufficient.www_authenticate_header.clone());
        }
        next = error.source();
    }
    None
}

fn to_lifecycle_mode(protocol: Protocol) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match protocol {
        Protocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        Protocol::Current => ClientLifecycleMode::Discover { preferred_versions },
        Protocol::Previous => ClientLifecycleMode::Initialize,
    }
}

/// Decides how a server that is about to start is confined. May ask the user, without a timeout.
pub(crate) async fn decide_confinement(
    server: &ServerDefinition,
    sandbox: Option<&dyn ServerConfiner>,
) -> Result<Option<Arc<ConfinementSpec>>, McpError> {
    let failed = |reason: String| McpError::Start {
        server: server.name.clone(),
        reason,
    };
    if matches!(
        server.endpoint,
        ServerEndpoint::Http { .. } | ServerEndpoint::Linked(_)
    ) {
        return Ok(None);
    }
    match (sandbox, server.confinement, server.origin) {
        (Some(sandbox), _, _) => sandbox.confine(server).await.map_err(failed),
        (None, ServerConfinement::Never, _)
        | (None, ServerConfinement::Default, ServerOrigin::User) => Ok(None),
        (None, _, _) => Err(failed(
            "it is to run in a sandbox, and there is none here".into(),
        )),
    }
}

fn start_program(
    server: &ServerDefinition,
    launch: &Launch<'_>,
) -> Result<(Background, tokio::net::UnixStream), McpError> {
    let failed = |reason: String| McpError::Start {
        server: server.name.clone(),
        reason,
    };
    let ServerEndpoint::Command {
        program,
        args,
        env,
        cwd,
        starts_apart,
    } = &server.endpoint
    else {
        return Err(failed("it is not a program".into()));
    };
    let mut cwd = cwd.clone();
    let private = launch.folders.join(&server.name);
    if *starts_apart {
        haft_files::create_folder(&private).map_err(|error| {
            failed(format!(
                "its folder `{}` cannot be created: {error}",
                private.display()
            ))
        })?;
        cwd.clone_from(&private);
    }
    let mut environment: Vec<_> = launch.environment.to_vec();
    environment.retain(|(name, _)| !env.iter().any(|(own, _)| own == name));
    environment.extend(env.iter().cloned());
    remove_writable_folders_from_environment(&mut environment, env, launch.writable);
    let program = find_server_program(program, &environment, launch.writable).map_err(failed)?;
    match server.origin {
        ServerOrigin::User if launch.confined.is_some() => {
            redirect_caches(&mut environment, env, &private);
        }
        ServerOrigin::User | ServerOrigin::Project => {}
    }
    let command = CommandSpec {
        argv: std::iter::once(&program)
            .chain(args)
            .map(Into::into)
            .collect(),
        cwd,
        env: environment,
        timeout: Duration::MAX,
        stdin: Stdin::default(),
        confined: launch.confined.clone(),
    };
    let capture = Capture {
        limits: ERROR_OUTPUT_LIMITS,
        ..Capture::default()
    };
    launch
        .supervisor
        .start_connected(command, capture)
        .map_err(|error| failed(error.to_string()))
}

/// Removes the folders that the model can write from the inherited `PATH`, and drops inherited
/// variables that name code or such a folder. The variables of the server's own entry (`own`) stay
/// unchanged.
fn remove_writable_folders_from_environment(
    environment: &mut Vec<(String, String)>,
    own: &[(String, String)],
    writable: &[PathBuf],
) {
    let is_own = |name: &str| own.iter().any(|(own, _)| own == name);
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map(|(_, value)| PathBuf::from(value));
    environment.retain(|(name, value)| {
        is_own(name) || is_inheritable(name, value, writable, home.as_deref())
    });
    for (_, value) in environment
        .iter_mut()
        .filter(|(name, _)| name == "PATH" && !is_own(name))
    {
        *value = filter_search_path(value, writable);
    }
}

/// The variables with which package managers keep their caches in a folder of a server, and the
/// names of the caches there. A confined server can't write the user's caches.
const CACHE_VARIABLES: [(&str, &str); 14] = [
    ("BUN_INSTALL_CACHE_DIR", "bun"),
    ("CARGO_HOME", "cargo"),
    ("COMPOSER_CACHE_DIR", "composer"),
    ("DENO_DIR", "deno"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    ("NUGET_PACKAGES", "nuget"),
    ("PIP_CACHE_DIR", "pip"),
    ("PIPX_HOME", "pipx"),
    ("UV_CACHE_DIR", "uv"),
    ("UV_PYTHON_INSTALL_DIR", "uv-python"),
    ("UV_TOOL_DIR", "uv-tools"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];

/// Directs the caches of package managers to the private folder of a server. Variables of the
/// server's own entry (`own`) stay unchanged.
fn redirect_caches(
    environment: &mut Vec<(String, String)>,
    own: &[(String, String)],
    private: &Path,
) {
    for (name, folder) in CACHE_VARIABLES {
        if own.iter().any(|(own, _)| own == name) {
            continue;
        }
        environment.retain(|(other, _)| other != name);
        let cache = private.join("cache").join(folder);
        environment.push((name.to_owned(), cache.display().to_string()));
    }
}

/// Looks up the program of a server in `PATH`, skipping folders that the model can write. A
/// `program` with a slash is returned unchanged, because it runs in the sandbox if it is in the
/// project.
fn find_server_program(
    program: &str,
    environment: &[(String, String)],
    writable: &[PathBuf],
) -> Result<String, String> {
    if program.contains('/') {
        return Ok(program.to_owned());
    }
    let path = environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("", |(_, value)| value.as_str());
    let found = find_program(program, path, writable).ok_or_else(|| {
        format!(
            "there is no program `{program}` in `PATH` outside the project; folders that the \
             model can write are skipped. Install it elsewhere, or name it by its path, which runs it in the sandbox without network"
        )
    })?;
    found
        .into_os_string()
        .into_string()
        .map_err(|path| format!("`{}` is not UTF-8", path.display()))
}

async fn connect_over_http(
    server: &ServerDefinition,
    launch: &Launch<'_>,
    handler: Handler,
) -> Result<RunningService<RoleClient, Handler>, McpError> {
    let failed = |reason: String| McpError::Start {
        server: server.name.clone(),
        reason,
    };
    let ServerEndpoint::Http {
        url,
        headers,
        bearer,
    } = &server.endpoint
    else {
        return Err(failed("it has no address".into()));
    };
    let mut header_map = HashMap::new();
    for (name, value) in headers {
        let wrong = || {
            failed(format!(
                "`{name}` is not a header that can be sent; see `headers`"
            ))
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        header_map.insert(header, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(header_map)
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    if let Some(bearer) = bearer {
        config = config.auth_header(bearer);
    }
    let client = build_http_client().map_err(|error| failed(error.to_string()))?;
    let mode = to_lifecycle_mode(server.protocol);
    let served = if let Some(authorised) = launch
        .tokens
        .create_authorized_client(server, client.clone())
        .await?
    {
        let transport = StreamableHttpClientTransport::with_client(authorised, config);
        serve_client_with_lifecycle(handler, transport, mode).await
    } else {
        let transport = StreamableHttpClientTransport::with_client(client, config);
        serve_client_with_lifecycle(handler, transport, mode).await
    };
    served.map_err(|error| convert_start_error(server, &error, ""))
}

fn build_http_client() -> reqwest::Result<reqwest::Client> {
    install_crypto_provider();
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(15))
        .redirect(build_redirect_policy())
        .build()
}

/// Allows redirects only within the origin of the first URL. Requests carry keys and the user's
/// text, which only the declared server may get.
fn build_redirect_policy() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let stays = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        match (stays, attempt.previous().len()) {
            (true, ..=MAX_REDIRECTS) => attempt.follow(),
            (true, _) => attempt.error("it leads from one address to the next without end"),
            (false, _) => {
                let to = attempt.url().origin().ascii_serialization();
                attempt.error(format!(
                    "it leads to another host (`{to}`); declare that address if it is meant"
                ))
            }
        }
    })
}

/// Installs the process-wide TLS crypto provider, unless one is installed already.
fn install_crypto_provider() {
    // An error means that a provider was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn convert_start_error(
    server: &ServerDefinition,
    error: &ClientInitializeError,
    said: &str,
) -> McpError {
    let name = server.name.clone();
    let challenge = error.auth_challenge().map(str::to_owned);
    if challenge.is_some() || error.is_authorization_required() {
        return McpError::Login {
            server: name,
            challenge,
        };
    }
    let reason = match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => {
            // The outer errors only name types of the library.
            format!("it cannot be reached: {}", find_root_cause(error))
        }
        other => other.to_string(),
    };
    McpError::Start {
        server: name,
        reason: format!("`{}`: {reason}{said}", server.endpoint),
    }
}

/// Returns the innermost cause of an error. The library doesn't expose the cause of a failed
/// request through `source`.
fn find_root_cause<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    let inner = match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(request)) => {
            Some(request as &(dyn std::error::Error + 'static))
        }
        Some(_) | None => error.source(),
    };
    inner.map_or(error, find_root_cause)
}

/// Returns the last part of a process's error output, or the reason why the process did not run.
/// Waits until the process exits, but no longer than `limit`.
async fn wait_for_error_output(process: &Background, limit: Duration) -> String {
    let ended = tokio::time::timeout(limit, process.wait_for_end())
        .await
        .ok()
        .flatten();
    let hidden = match ended.as_deref() {
        Some(Err(error)) => return format!(" ({error})"),
        Some(Ok(finished)) => finished.hidden.as_ref(),
        None => None,
    };
    let note = hidden.map_or_else(String::new, |hidden| {
        format!("; {hidden}; {}", hidden.remedy())
    });
    let text = process.live().stderr().text(ERROR_OUTPUT_LIMITS).text;
    match text.trim() {
        "" => note,
        last => format!("{note}; its last output was:\n{last}"),
    }
}
