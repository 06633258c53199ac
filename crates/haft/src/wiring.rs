//! Puts the parts together: store, model, session.

use std::path::PathBuf;
use std::sync::Arc;

use haft_context::Environment;
use haft_engine::turn::Limits;
use haft_engine::{Roles, Services, Session, SessionConfig, Which};
use haft_model::{Catalogue, Client, Declared, O200k};
use haft_sandbox::Supervisor;
use haft_store::{SqliteStore, Store};
use haft_tool::Workspace;
use haft_types::PermissionMode;

use crate::clock::{RandomIds, WallClock};
use crate::config::Config;
use crate::exit::mistake;
use crate::places::Places;
use crate::project::Project;
use crate::secrets;

/// One thread is enough to wait for a model, and quick to start.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Opens the user's conversations.
pub(crate) fn open_store(places: &Places, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(SqliteStore::open(&places.database(), &config.store, Arc::new(WallClock))?))
}

/// What a run was told, after flags and configuration are one.
pub(crate) struct RunPlan {
    pub(crate) model: String,
    pub(crate) project: Project,
    pub(crate) added_folders: Vec<PathBuf>,
    pub(crate) roles: Roles,
    pub(crate) mode: PermissionMode,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) focus_files: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) which: Which,
}

/// Opens the session a run works in.
pub(crate) async fn open_session(places: &Places, config: Config, plan: RunPlan) -> anyhow::Result<Session> {
    let store = open_store(places, &config)?;
    let catalogue = Catalogue::new(config.providers, config.models).map_err(|error| mistake(error.to_string()))?;
    let declared = catalogue.resolve(&plan.model).map_err(|error| mistake(error.to_string()))?;
    let model = declared.spec.clone();
    let services = Services {
        store,
        client: client(declared, config.retry)?,
        counter: Arc::new(O200k),
        supervisor: Arc::new(Supervisor::new(std::env::current_exe()?)),
        clock: Arc::new(WallClock),
        ids: Arc::new(RandomIds),
    };
    let spill = places.spill();
    let session = SessionConfig {
        environment: environment(&plan.project),
        policy: config.context,
        roles: plan.roles,
        workspace: Workspace {
            root: plan.project.root.clone(),
            extra: plan.added_folders,
            cwd: plan.project.cwd.clone(),
            spill,
        },
        child_environment: Arc::new(haft_sandbox::child_environment(std::env::vars_os())),
        mode: plan.mode,
        allowed_tools: plan.allowed_tools,
        focus_files: plan.focus_files,
        limits: plan.limits,
        namespace: plan.project.namespace(),
        model,
    };
    Ok(Session::open(session, services, plan.which).await?)
}

fn client(declared: Declared, retry: haft_model::RetryConfig) -> anyhow::Result<Client> {
    let key = secrets::key_of(&declared.spec.provider, &declared.provider)?;
    Client::new(declared, key, retry).map_err(|error| mistake(error.to_string()))
}

/// The machine as the model is told of it. No clock: it would change the prefix of every request.
fn environment(project: &Project) -> Environment {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Environment {
        os: operating_system(),
        shell: Some(variable("SHELL")).filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into()),
        encoding: encoding(&[variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")]),
        user: variable("USER"),
        home: variable("HOME"),
        cwd: project.cwd.display().to_string(),
        safe_zone_tokens: None,
    }
}

fn encoding(locales: &[String]) -> String {
    let locale = locales.iter().find(|locale| !locale.is_empty()).map_or("", String::as_str);
    locale.split_once('.').map_or("UTF-8", |(_, encoding)| encoding).to_owned()
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name {
        Some(name) => format!("{} ({})", std::env::consts::OS, name.trim_matches('"')),
        None => std::env::consts::OS.to_owned(),
    }
}
