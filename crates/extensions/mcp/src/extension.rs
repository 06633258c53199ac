//! The MCP extension of a session: the user's servers, and those of a trusted project.

mod confinement;
mod elicitor;
mod launchers;
mod prompts;
mod resources;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use async_trait::async_trait;
use haft_agent::config::{Config, Section};
use haft_agent::{
    Approver, Callback, Contribution, DecisionState, Extension, ExtensionContext, HostEnvironment,
    Notice, OfferedPrompt, PermissionRule, Places, Project, PromptError, PromptSource, ServerGrant,
    SetupError, TrustList, TrustState, find_knowledge_and_trust,
};
use haft_model::O200k;
use haft_sandbox::Supervisor;
use haft_tool::{BreakerLimits, Tool, ToolCatalogue};
use haft_types::{Decision, ModelSpec, PermissionMode, TokenCounter};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::confinement::{ServerSandboxes, ServerWatch, StartNotices};
use self::elicitor::ApproverElicitor;
use crate::cache::ListingCache;
use crate::catalogue::ServerCatalogue;
use crate::config::{ServerConfig, ServerReach};
use crate::gather::{Gathered, ProjectFile, gather_declared, gather_given_servers};
use crate::listing::ServerListing;
use crate::server::{ServerDefinition, ServerEndpoint, ServerLink, ServerProblem};
use crate::servers::{ServerHost, Servers};
use crate::use_mcp_tool::UseMcpTool;

/// The prefix of the names of server tools and prompts, as in `mcp__server__tool`.
pub const PREFIX: &str = "mcp__";
/// The name of the project's file that declares servers. The file is shared with other agents that
/// read it.
const PROJECT_FILE: &str = ".mcp.json";
/// The size limit of the project's `.mcp.json`, in bytes.
const MAX_PROJECT_FILE_BYTES: u64 = 1 << 20;
/// The share of the model's context window that the description of the servers may take, in
/// percent. If the complete description is longer, the model has to search for tools.
const MAX_WINDOW_PERCENT: u32 = 3;

/// The code of all notices about MCP servers.
const NOTICE_CODE: &str = "mcp_server";

/// The name of the configuration section that declares servers.
const SECTION: &str = "mcp_servers";

/// Adds the tools, prompts, and resources of MCP servers to a session.
#[derive(Default)]
pub struct McpExtension {
    given: GivenServers,
}

impl McpExtension {
    /// Creates the extension with the servers that the session's client declares.
    pub fn new(given: GivenServers) -> Self {
        Self { given }
    }
}

/// Servers that the client of a session declares for this session alone.
#[derive(Clone, Default)]
pub struct GivenServers {
    /// The declarations of servers, each as JSON in the format of `.mcp.json`.
    pub declared: Vec<String>,
    /// True if the session uses only these servers, and none from the configuration.
    pub alone: bool,
    /// The connection to servers of the type `sdk`.
    pub link: Option<Arc<dyn ServerLink>>,
    /// The listings of servers of the type `sdk`, filled by [`Self::fetch_listings`].
    pub listings: Vec<(String, Arc<ServerListing>)>,
}

impl GivenServers {
    /// Adds the client's servers to `gathered`, which contains the servers from the configuration.
    fn add_to(
        &self,
        gathered: &mut Gathered,
        root: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) {
        if self.alone {
            *gathered = Gathered::default();
        }
        for text in &self.declared {
            let given = ProjectFile {
                path: Path::new("--mcp-config"),
                text,
            };
            gather_given_servers(gathered, given, self.link.as_ref(), root, variable);
        }
    }

    /// Fetches the listings of the servers of the type `sdk`. A server that doesn't answer has no
    /// listing; its error is reported when the server is used.
    pub async fn fetch_listings(&mut self, environment: &HostEnvironment) {
        let mut gathered = Gathered::default();
        for text in &self.declared {
            let given = ProjectFile {
                path: Path::new("--mcp-config"),
                text,
            };
            gather_given_servers(
                &mut gathered,
                given,
                self.link.as_ref(),
                Path::new("/"),
                &|_| None,
            );
        }
        gathered
            .servers
            .retain(|server| matches!(server.endpoint, ServerEndpoint::Linked(_)));
        let names: Vec<_> = gathered
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        let servers = Servers::new(gathered.servers, create_bare_host(environment));
        for name in names {
            if let Ok(listing) = servers
                .current_listing(&name, &CancellationToken::new())
                .await
            {
                self.listings.push((name, listing));
            }
        }
    }
}

impl Extension for McpExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<BTreeMap<String, ServerConfig>>(SECTION)]
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let ExtensionContext {
            places,
            config,
            project,
            trust_state,
            supervisor,
            child_environment,
            ..
        } = *context;
        let mut gathered = gather_servers(places, config, &project.root, trust_state);
        self.given.add_to(&mut gathered, &project.root, &|name| {
            places.environment.variable(name)
        });
        let secrets = collect_secrets(&gathered.servers);
        let rules = server_permission_rules(&gathered.servers);
        let told = Arc::new(StartNotices::default());
        let sandboxes = ServerSandboxes {
            places: places.clone(),
            config: config.sandbox.clone(),
            project: project.root.clone(),
            record: context.record.clone(),
            trusted: trust_state.is_trusted(),
            shared: Arc::clone(context.shared),
            guard: Some(Arc::clone(context.guard)),
            notices: Arc::clone(&told),
            set_up: Mutex::default(),
            lacks_sandbox: AtomicBool::default(),
        };
        let host = create_host(
            sandboxes,
            Arc::clone(supervisor),
            Arc::clone(child_environment),
            context.approver.cloned(),
        );
        let mcp = DeclaredServers::new(gathered, host, config.limits.breaker_limits());
        for (name, listing) in &self.given.listings {
            mcp.servers.set_listing(name, Arc::clone(listing));
        }
        let notices = mcp.problem_notices();
        if mcp.servers.iter().next().is_none() {
            return Contribution {
                rules,
                secrets,
                notices,
                ..Contribution::default()
            };
        }
        let tools = vec![mcp.create_tool(context.model, context.counter)];
        let catalogues: Vec<Arc<dyn ToolCatalogue>> =
            vec![Arc::new(ServerCatalogue::new(Arc::clone(&mcp.servers)))];
        let watch = ServerWatch {
            servers: Arc::clone(&mcp.servers),
            notices: told,
        };
        let callbacks: Vec<Arc<dyn Callback>> = vec![Arc::new(watch)];
        Contribution {
            tools,
            catalogues,
            callbacks,
            rules,
            secrets,
            notices,
            ..Contribution::default()
        }
    }

    fn tools_without_backend(&self, environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(UseMcpTool::new(
            Arc::new(Servers::new(Vec::new(), create_bare_host(environment))),
            0,
            Arc::new(O200k),
        ))]
    }

    fn prompt_source(
        &self,
        places: &Places,
        config: &Config,
        project: &Project,
    ) -> Result<Option<Box<dyn PromptSource>>, SetupError> {
        let (servers, _) = DeclaredServers::open(places, config, project)?;
        Ok(Some(Box::new(servers)))
    }

    fn requested_grants(&self, places: &Places, root: &Path) -> BTreeMap<String, ServerGrant> {
        let servers = gather_servers(places, &Config::default(), root, &TrustState::Trusted)
            .servers
            .into_iter();
        let grants = servers.map(|server| {
            let ServerReach {
                network, writable, ..
            } = server.requested_reach;
            (server.name, ServerGrant { network, writable })
        });
        grants
            .filter(|(_, grant)| *grant != ServerGrant::default())
            .collect()
    }
}

/// The servers that the user and a trusted project declare.
pub struct DeclaredServers {
    /// The servers that can be used.
    pub servers: Arc<Servers>,
    /// The server declarations that cannot be used, each with the reason.
    pub problems: Vec<ServerProblem>,
    /// Warnings about ignored settings in otherwise valid declarations.
    warnings: Vec<String>,
}

impl DeclaredServers {
    /// Creates the declared servers from the gathered declarations, without starting any server.
    fn new(gathered: Gathered, host: ServerHost, breaker: BreakerLimits) -> Self {
        let Gathered {
            servers,
            disabled,
            problems,
            warnings,
        } = gathered;
        for server in disabled {
            tracing::info!(server, reason = "disabled", "MCP server skipped");
        }
        for ServerProblem {
            server,
            place,
            reason,
        } in &problems
        {
            let reason = haft_text::redact_quoted(reason);
            tracing::warn!(server, place, reason, "MCP server skipped");
        }
        if !servers.is_empty() {
            let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
            tracing::info!(names = names.join(", "), "MCP servers declared");
        }
        Self {
            servers: Arc::new(Servers::new(servers, host).with_breaker(breaker)),
            problems,
            warnings,
        }
    }

    /// Loads the servers that the user and `project` declare, for a subcommand of haft, without
    /// starting them. Returns them with the names of the disabled servers.
    pub fn open(
        places: &Places,
        config: &Config,
        project: &Project,
    ) -> Result<(Self, Vec<String>), SetupError> {
        let (_, trust_state) = find_knowledge_and_trust(places, project)?;
        let record = TrustList::at_path(places.trust_file())
            .find_record(&project.root)
            .map_err(SetupError::Trust)?;
        let gathered = gather_servers(places, config, &project.root, &trust_state);
        let supervisor = Arc::new(places.environment.supervisor());
        let environment = Arc::new(places.environment.child_environment());
        let disabled = gathered.disabled.clone();
        let sandboxes = ServerSandboxes {
            places: places.clone(),
            config: config.sandbox.clone(),
            project: project.root.clone(),
            record,
            trusted: trust_state.is_trusted(),
            shared: Arc::new(DecisionState::new(PermissionMode::Ask)),
            guard: None,
            notices: Arc::default(),
            set_up: Mutex::default(),
            lacks_sandbox: AtomicBool::default(),
        };
        let host = create_host(sandboxes, supervisor, environment, None);
        let breaker = config.limits.breaker_limits();
        Ok((Self::new(gathered, host, breaker), disabled))
    }

    /// Creates the tool through which a model reaches the servers.
    fn create_tool(&self, model: &ModelSpec, counter: &Arc<dyn TokenCounter>) -> Arc<dyn Tool> {
        let budget = (model.context_window / 100 * MAX_WINDOW_PERCENT) as usize;
        Arc::new(UseMcpTool::new(
            Arc::clone(&self.servers),
            budget,
            Arc::clone(counter),
        ))
    }

    /// Returns a notice for each server declaration that is unusable or was only partly accepted.
    fn problem_notices(&self) -> Vec<Notice> {
        let problems = self
            .problems
            .iter()
            .map(ToString::to_string)
            .chain(self.warnings.iter().cloned());
        problems
            .map(|message| Notice {
                code: NOTICE_CODE,
                message,
                failed: true,
            })
            .collect()
    }
}

#[async_trait(?Send)]
impl PromptSource for DeclaredServers {
    fn prompts(&self) -> Vec<OfferedPrompt> {
        prompts::list_prompts(&self.servers)
    }

    fn resources(&self) -> Vec<String> {
        resources::list_resources(&self.servers)
    }

    fn calls_prompt(&self, text: &str) -> bool {
        text.starts_with('/') && text.trim_start_matches('/').starts_with(PREFIX)
    }

    async fn expand_prompt(&self, text: &str) -> Result<String, PromptError> {
        prompts::expand_prompt_call(&self.servers, text).await
    }

    fn mentions_resource(&self, text: &str) -> bool {
        !resources::find_mentions(text, &self.servers).is_empty()
    }

    async fn attach_resources(&self, text: &str) -> Result<String, PromptError> {
        let mentioned = resources::find_mentions(text, &self.servers);
        resources::attach_resources(text, &mentioned, &self.servers).await
    }

    async fn stop_servers(&self) {
        self.servers.close().await;
    }
}

/// Gathers the servers that the user declares and, if the project is trusted, those that the
/// project declares.
pub fn gather_servers(
    places: &Places,
    config: &Config,
    root: &Path,
    trust_state: &TrustState,
) -> Gathered {
    let path = root.join(PROJECT_FILE);
    let text = match trust_state {
        TrustState::Trusted => read_project_file(&path),
        TrustState::Untrusted | TrustState::Changed { .. } | TrustState::Outdated { .. } => {
            Ok(None)
        }
    };
    let (text, problem) = match text {
        Ok(text) => (text, None),
        Err(error) => (None, Some(error)),
    };
    let project = text
        .as_deref()
        .map(|text| ProjectFile { path: &path, text });
    let variable = |name: &str| places.environment.variable(name);
    // The section was checked when the configuration was loaded.
    let declared: BTreeMap<String, ServerConfig> = config.read_section(SECTION).unwrap_or_default();
    let mut gathered = gather_declared(&declared, &places.config_file(), project, root, &variable);
    gathered.problems.extend(problem.map(|error| ServerProblem {
        server: "*".into(),
        place: format!("`{}`", path.display()),
        reason: format!("it cannot be read: {error}"),
    }));
    gathered
}

/// Reads the project's file of servers, if there is one. The path is untrusted, because it may lead
/// to something other than a regular file.
fn read_project_file(path: &Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.len() > MAX_PROJECT_FILE_BYTES {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    fs::read_to_string(path).map(Some)
}

/// The error for a name that does not have the form `mcp__SERVER__TOOL`.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` does not name a tool of a server; write `mcp__SERVER__TOOL`")]
pub struct ToolNameError(String);

/// Splits a name such as `mcp__server__tool` into the server and its tool or prompt.
pub fn split_tool_name(name: &str) -> Result<(&str, &str), ToolNameError> {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once("__"))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .ok_or_else(|| ToolNameError(name.to_owned()))
}

/// Creates the host that a session's servers run on. `approver` also answers forms that servers
/// send to the user.
fn create_host(
    sandboxes: ServerSandboxes,
    supervisor: Arc<Supervisor>,
    environment: Arc<Vec<(String, String)>>,
    approver: Option<Arc<dyn Approver>>,
) -> ServerHost {
    let places = &sandboxes.places;
    let shared = &sandboxes.shared;
    ServerHost {
        supervisor,
        environment,
        writable: sandboxes.writable_folders(),
        folders: places.mcp_work_folder(),
        cache: ListingCache::new(places.mcp_lists_folder()),
        tokens: places.mcp_tokens_folder(),
        elicitor: approver.map(|approver| {
            Arc::new(ApproverElicitor {
                approver,
                shared: Arc::clone(shared),
            }) as _
        }),
        sandbox: Some(Arc::new(sandboxes)),
    }
}

/// Creates a host for linked and HTTP servers, which start no program and need no files.
fn create_bare_host(environment: &HostEnvironment) -> ServerHost {
    ServerHost {
        supervisor: Arc::new(environment.supervisor()),
        environment: Arc::default(),
        writable: Vec::new(),
        folders: "".into(),
        cache: ListingCache::new(""),
        tokens: "".into(),
        elicitor: None,
        sandbox: None,
    }
}

/// Returns a permission rule for each server whose declaration sets `permission` to something other
/// than the default `ask`.
pub fn server_permission_rules(servers: &[ServerDefinition]) -> Vec<(Decision, PermissionRule)> {
    let rule_for_server = |server: &ServerDefinition| {
        let decision = server
            .permission
            .filter(|decision| *decision != Decision::Ask)?;
        Some((
            decision,
            PermissionRule::parse(&format!("{PREFIX}{}", server.name), None).ok()?,
        ))
    };
    servers.iter().filter_map(rule_for_server).collect()
}

/// Returns the secrets in the declarations of servers, which must not be shown or stored.
fn collect_secrets(servers: &[ServerDefinition]) -> Vec<String> {
    let secrets_of_server = |server: &ServerDefinition| match &server.endpoint {
        ServerEndpoint::Command { env, .. } => haft_sandbox::secret_values(env.iter().cloned()),
        ServerEndpoint::Linked(_) => Vec::new(),
        ServerEndpoint::Http {
            headers, bearer, ..
        } => {
            // In `Bearer TOKEN`, only the second word is secret.
            let values = headers.iter().map(|(name, value)| {
                let last_word = value.split_whitespace().next_back().unwrap_or_default();
                (name.clone(), last_word.to_owned())
            });
            haft_sandbox::secret_values(values)
                .into_iter()
                .chain(bearer.clone())
                .collect()
        }
    };
    servers.iter().flat_map(secrets_of_server).collect()
}
