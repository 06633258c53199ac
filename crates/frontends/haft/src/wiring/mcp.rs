//! MCP servers as this machine has them: the user's, and those of a trusted project.

mod confine;
mod people;
mod prompts;
mod resources;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use async_trait::async_trait;
use haft_agent::config::{Config, Section};
use haft_agent::{Contribution, Extension, ExtensionContext, Places, Project, knowledge};
use haft_engine::{Approver, Callback, DecisionState, Notice};
use haft_mcp::{
    Cache, Gathered, ProjectFile, ServerCatalogue, ServerConfig, ServerDefinition, ServerEndpoint,
    ServerHost, ServerLink, ServerListing, ServerProblem, ServerReach, Servers, UseMcpTool, gather,
    gather_given,
};
use haft_model::O200k;
use haft_permission::PermissionRule;
use haft_project::{ServerGrant, TrustList, TrustState};
use haft_sandbox::Supervisor;
use haft_tool::{Tool, ToolCatalogue};
use haft_types::{Decision, ModelSpec, PermissionMode, TokenCounter};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::exit::usage_error;
use crate::wiring::OfferedPrompt;
use crate::wiring::prompts::PromptSource;

use confine::{ServerSandboxes, ServerWatch, StartNotices};
use people::Person;

/// How the names begin by which rules and people know what servers offer: `mcp__server__tool`.
pub(crate) const PREFIX: &str = "mcp__";
/// The file of a project that other agents know too.
const PROJECT_FILE: &str = ".mcp.json";
/// The most that is read of it.
const LARGEST: u64 = 1 << 20;
/// How much of a model's window the tools of servers may take, in percent; beyond it their
/// arguments are searched for.
const SHARE: u32 = 3;

/// The code of what is said of servers.
const NOTICE: &str = "mcp_server";

/// The section of the configuration.
const SECTION: &str = "mcp_servers";

/// Gives a session the tools through which a model reaches servers.
#[derive(Default)]
pub(crate) struct McpExtension {
    /// Servers for this session alone.
    pub(crate) given: GivenServers,
}

/// Servers that whoever opens a session declares for it.
#[derive(Clone, Default)]
pub(crate) struct GivenServers {
    /// Each as JSON in the shape of `.mcp.json`.
    pub(crate) declared: Vec<String>,
    /// Whether there are to be no others.
    pub(crate) alone: bool,
    /// Speaks with those of the type `sdk`.
    pub(crate) link: Option<Arc<dyn ServerLink>>,
    /// What those offer, as far as they were asked.
    pub(crate) listings: Vec<(String, Arc<ServerListing>)>,
}

impl GivenServers {
    /// Adds the servers to those that were found.
    fn join(
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
            gather_given(gathered, given, self.link.as_ref(), root, variable);
        }
    }

    /// Asks the servers of the type `sdk` what they offer. One that does not answer says so when it
    /// is used.
    pub(crate) async fn ask(&mut self) {
        let mut gathered = Gathered::default();
        for text in &self.declared {
            let given = ProjectFile {
                path: Path::new("--mcp-config"),
                text,
            };
            gather_given(
                &mut gathered,
                given,
                self.link.as_ref(),
                Path::new("/"),
                &|_| None,
            );
        }
        gathered
            .servers
            .retain(|server| matches!(server.reach, ServerEndpoint::Linked(_)));
        let names: Vec<_> = gathered
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        let servers = Servers::new(gathered.servers, bare_host());
        for name in names {
            if let Ok(listing) = servers.listing(&name, &CancellationToken::new()).await {
                self.listings.push((name, listing));
            }
        }
    }
}

impl Extension for McpExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::of::<BTreeMap<String, ServerConfig>>(SECTION)]
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
        let mut gathered = gathered(places, config, &project.root, trust_state);
        self.given.join(&mut gathered, &project.root, &|name| {
            places.environment.variable(name)
        });
        let secrets = secrets(&gathered.servers);
        let rules = rules(&gathered.servers);
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
        };
        let host = host(
            sandboxes,
            Arc::clone(supervisor),
            Arc::clone(child_environment),
            context.approver.cloned(),
        );
        let mcp = Mcp::new(gathered, host);
        for (name, listing) in &self.given.listings {
            mcp.servers.note_listing(name, Arc::clone(listing));
        }
        let notices = mcp.notices();
        if mcp.servers.iter().next().is_none() {
            return Contribution {
                rules,
                secrets,
                notices,
                ..Contribution::default()
            };
        }
        let tools = vec![mcp.tool(context.model, context.counter)];
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
}

/// The servers of a session, and what is wrong with others.
pub(crate) struct Mcp {
    pub(crate) servers: Arc<Servers>,
    pub(crate) problems: Vec<ServerProblem>,
    /// What is passed over in the declarations of those that are used.
    warnings: Vec<String>,
}

impl Mcp {
    /// These servers; none of them is started.
    fn new(gathered: Gathered, host: ServerHost) -> Self {
        let Gathered {
            servers,
            problems,
            warnings,
            ..
        } = gathered;
        if !servers.is_empty() {
            let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
            tracing::info!(names = names.join(", "), "MCP servers declared");
        }
        Self {
            servers: Arc::new(Servers::new(servers, host)),
            problems,
            warnings,
        }
    }

    /// Those of this project and the user, for a command of the user's own, and the names of those
    /// that are switched off.
    pub(crate) fn open(
        places: &Places,
        config: &Config,
        project: &Project,
    ) -> anyhow::Result<(Self, Vec<String>)> {
        let (_, trust_state) = knowledge(places, project)?;
        let record = TrustList::at(places.trust_file()).record(&project.root)?;
        let gathered = gathered(places, config, &project.root, &trust_state);
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
        };
        let host = host(sandboxes, supervisor, environment, None);
        Ok((Self::new(gathered, host), disabled))
    }

    /// The tool through which a model reaches them.
    fn tool(&self, model: &ModelSpec, counter: &Arc<dyn TokenCounter>) -> Arc<dyn Tool> {
        let budget = (model.context_window / 100 * SHARE) as usize;
        Arc::new(UseMcpTool::new(
            Arc::clone(&self.servers),
            budget,
            Arc::clone(counter),
        ))
    }

    /// A line for each declaration that cannot be used, or not as it is.
    fn notices(&self) -> Vec<Notice> {
        let problems = self
            .problems
            .iter()
            .map(ToString::to_string)
            .chain(self.warnings.iter().cloned());
        problems
            .map(|message| Notice {
                code: NOTICE,
                message,
                failed: true,
            })
            .collect()
    }
}

#[async_trait(?Send)]
impl PromptSource for Mcp {
    fn prompts(&self) -> Vec<OfferedPrompt> {
        prompts::known(&self.servers)
    }

    fn resources(&self) -> Vec<String> {
        resources::known(&self.servers)
    }

    fn is_call(&self, text: &str) -> bool {
        text.starts_with('/') && text.trim_start_matches('/').starts_with(PREFIX)
    }

    async fn expand(&self, called: &str) -> anyhow::Result<String> {
        prompts::expand(self, called).await
    }

    fn is_mentioned(&self, text: &str) -> bool {
        !resources::mentioned(text, self).is_empty()
    }

    async fn attach(&self, text: &str) -> anyhow::Result<String> {
        resources::attach(text, &resources::mentioned(text, self), self).await
    }

    async fn close(&self) {
        self.servers.close().await;
    }
}

/// What is declared: the user's servers, and the project's if it is trusted.
pub(crate) fn gathered(
    places: &Places,
    config: &Config,
    root: &Path,
    trust_state: &TrustState,
) -> Gathered {
    let path = root.join(PROJECT_FILE);
    let text = match trust_state {
        TrustState::Trusted => read(&path),
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
    // It was checked when it was loaded.
    let declared: BTreeMap<String, ServerConfig> = config.section(SECTION).unwrap_or_default();
    let mut gathered = gather(&declared, &places.config_file(), project, root, &variable);
    gathered.problems.extend(problem.map(|error| ServerProblem {
        server: "*".into(),
        place: format!("`{}`", path.display()),
        reason: format!("it cannot be read: {error}"),
    }));
    gathered
}

/// The file, if it is one: whoever made the project may have put anything there.
fn read(path: &Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if metadata.len() > LARGEST {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    fs::read_to_string(path).map(Some)
}

/// The server and what is meant of it, from a name such as `mcp__server__tool`.
pub(crate) fn named_tool(name: &str) -> anyhow::Result<(&str, &str)> {
    let parted = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once("__"));
    parted
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .ok_or_else(|| {
            usage_error(format!(
                "`{name}` does not name a tool of a server; write `mcp__SERVER__TOOL`"
            ))
        })
}

/// What servers are given on this machine. Who approves calls also fills in forms.
fn host(
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
        folders: places.mcp_folders(),
        cache: Cache::at(places.mcp_lists()),
        tokens: places.mcp_tokens(),
        elicitor: approver.map(|approver| {
            Arc::new(Person {
                approver,
                shared: Arc::clone(shared),
            }) as _
        }),
        sandbox: Some(Arc::new(sandboxes)),
    }
}

/// The tool through which a model reaches servers, as it would read of it without any.
pub(super) fn described() -> Arc<dyn Tool> {
    Arc::new(UseMcpTool::new(
        Arc::new(Servers::new(Vec::new(), bare_host())),
        0,
        Arc::new(O200k),
    ))
}

/// What servers are given that are no programs and need nothing of this machine.
fn bare_host() -> ServerHost {
    ServerHost {
        supervisor: Arc::new(super::environment().supervisor()),
        environment: Arc::default(),
        writable: Vec::new(),
        folders: "".into(),
        cache: Cache::at(""),
        tokens: "".into(),
        elicitor: None,
        sandbox: None,
    }
}

/// What the servers of a project ask to reach beside the project, whether or not it is trusted.
pub(crate) fn asked(places: &Places, root: &Path) -> BTreeMap<String, ServerGrant> {
    let of_project = gathered(places, &Config::default(), root, &TrustState::Trusted)
        .servers
        .into_iter();
    let asks = of_project.map(|server| {
        let ServerReach { network, writable } = server.asks;
        (server.name, ServerGrant { network, writable })
    });
    asks.filter(|(_, asks)| *asks != ServerGrant::default())
        .collect()
}

/// What the configuration says of whole servers, as permission rules. Asking is the default.
pub(crate) fn rules(servers: &[ServerDefinition]) -> Vec<(Decision, PermissionRule)> {
    let of = |server: &ServerDefinition| {
        let decision = server
            .permission
            .filter(|decision| *decision != Decision::Ask)?;
        Some((
            decision,
            PermissionRule::parse(&format!("mcp__{}", server.name), None).ok()?,
        ))
    };
    servers.iter().filter_map(of).collect()
}

/// What the configuration gives servers that must not be kept anywhere.
fn secrets(servers: &[ServerDefinition]) -> Vec<String> {
    let of = |server: &ServerDefinition| match &server.reach {
        ServerEndpoint::Command { env, .. } => haft_sandbox::secret_values(env.iter().cloned()),
        ServerEndpoint::Linked(_) => Vec::new(),
        ServerEndpoint::Http {
            headers, bearer, ..
        } => {
            // Of `Bearer …` only the second word is secret.
            let last = |value: &str| {
                value
                    .split_whitespace()
                    .next_back()
                    .unwrap_or_default()
                    .to_owned()
            };
            let values = headers
                .iter()
                .map(|(name, value)| (name.clone(), last(value)));
            haft_sandbox::secret_values(values)
                .into_iter()
                .chain(bearer.clone())
                .collect()
        }
    };
    servers.iter().flat_map(of).collect()
}
