//! MCP servers as this machine has them: the user's, and those of a trusted project.

use std::path::Path;
use std::sync::Arc;

use haft_engine::Notice;
use haft_mcp::{
    Cache, Document, Gathered, Host, Problem, ProjectFile, Reach, Server, Servers, ToolSearch, UseMcpTool, gather,
};
use haft_project::Standing;
use haft_sandbox::Supervisor;
use haft_tool::Tool;
use haft_tools::{Permissions, Rule};
use haft_types::{Decision, ModelSpec, TokenCounter};

use crate::config::Config;
use crate::exit::mistake;
use crate::places::Places;

/// The file of a project that other agents know too.
const PROJECT_FILE: &str = ".mcp.json";
/// How much of a model's window the tools of servers may take, in percent; beyond it their arguments are searched for.
const SHARE: u32 = 3;

/// The servers of a session, and what is wrong with others.
pub(crate) struct Mcp {
    pub(crate) servers: Arc<Servers>,
    pub(crate) problems: Vec<Problem>,
}

impl Mcp {
    /// These servers; none of them is started.
    pub(crate) fn new(gathered: Gathered, host: Host) -> Self {
        Self { servers: Arc::new(Servers::new(gathered.servers, host)), problems: gathered.problems }
    }

    /// The tools through which a model reaches them; none when there are no servers.
    pub(crate) fn tools(&self, model: &ModelSpec, counter: &dyn TokenCounter) -> Vec<Arc<dyn Tool>> {
        if self.servers.iter().next().is_none() {
            return Vec::new();
        }
        let budget = (model.context_window / 100 * SHARE) as usize;
        let document = Document::of(&self.servers, budget, &|text| counter.text(text) as usize);
        vec![
            Arc::new(UseMcpTool::new(Arc::clone(&self.servers), &document.text)),
            Arc::new(ToolSearch::new(Arc::clone(&self.servers))),
        ]
    }

    /// A line for each declaration that cannot be used.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.problems.iter().map(|problem| Notice { code: "mcp_server", message: problem.to_string() }).collect()
    }
}

/// What is declared: the user's servers, and the project's if it is trusted.
pub(crate) fn gathered(places: &Places, config: &Config, root: &Path, standing: &Standing) -> anyhow::Result<Gathered> {
    let path = root.join(PROJECT_FILE);
    let text = match standing {
        Standing::Trusted => match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(mistake(format!("cannot read `{}`: {error}", path.display()))),
        },
        Standing::Untrusted | Standing::Changed { .. } => None,
    };
    let project = text.as_deref().map(|text| ProjectFile { path: &path, text });
    let variable = |name: &str| std::env::var(name).ok();
    Ok(gather(&config.mcp_servers, &places.config_file(), project, root, &variable))
}

/// What servers are given on this machine.
pub(crate) fn host(places: &Places, supervisor: Arc<Supervisor>, environment: Arc<Vec<(String, String)>>) -> Host {
    Host { supervisor, environment, cache: Cache::at(places.mcp_lists()), tokens: places.mcp_tokens(), elicitor: None }
}

/// The permissions with what the configuration says of whole servers. To ask is what happens without a word.
pub(crate) fn permitted(mut permissions: Permissions, servers: &[Server]) -> Permissions {
    for server in servers {
        let Some(decision @ (Decision::Allow | Decision::Deny)) = server.permission else { continue };
        if let Ok(rule) = Rule::parse(&format!("mcp__{}", server.name), None) {
            permissions.rules = std::mem::take(&mut permissions.rules).with(decision, rule);
        }
    }
    permissions
}

/// What the configuration gives servers that must not be kept anywhere.
pub(crate) fn secrets(servers: &[Server]) -> Vec<String> {
    let of = |server: &Server| match &server.reach {
        Reach::Command { env, .. } => haft_sandbox::secret_values(env.iter().cloned()),
        Reach::Http { headers, bearer, .. } => {
            // Of `Bearer …` only the second word is secret.
            let last = |value: &str| value.split_whitespace().next_back().unwrap_or_default().to_owned();
            let values = headers.iter().map(|(name, value)| (name.clone(), last(value)));
            haft_sandbox::secret_values(values).into_iter().chain(bearer.clone()).collect()
        }
    };
    servers.iter().flat_map(of).collect()
}
