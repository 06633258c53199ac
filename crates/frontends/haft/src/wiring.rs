//! The parts that this binary adds to the core: the environment of its process, and the list of the
//! extensions that its build has.
//!
//! Sessions are opened through [`haft_agent::Agent`] alone. Extensions implement
//! [`haft_agent::Extension`] themselves.

pub(crate) mod language;
pub(crate) mod log;
mod readers;
#[cfg(feature = "otel")]
pub(crate) mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

#[cfg(not(all(
    feature = "mcp",
    feature = "postgres",
    feature = "rag",
    feature = "web"
)))]
use haft_agent::AbsentExtension;
use haft_agent::config::{Config, Section};
use haft_agent::{
    Agent, ConfigError, Contribution, Extension, ExtensionContext, FolderError, HostEnvironment,
    KeyError, KeyState, Places, PolicyExtension, Project, ProjectPolicy, PromptSources, RunPlan,
    SetupError, WallClock,
};
use haft_changes::versions::SqliteVersions;
use haft_changes::{FileChanges, GitWorktrees};
use haft_engine::{Callback, Session};
use haft_model::{Declared, ProviderConfig, Secret};
use haft_project::ServerGrant;
use haft_sandbox::OwnProgram;
use haft_store::Store;
use haft_tool::{CallObserver, EditorBuffers, Tool, Workspace};
use haft_tools::Readers;
use haft_tui::TuiConfig;

use language::LanguageChoice;
use log::LogLevel;

pub(crate) use readers::readers;

/// One thread is enough to wait for a model, and quick to start.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(Runtime(
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
    ))
}

/// A runtime for one piece of work.
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    /// Does the work and waits for nothing else: the system's lookup of a host's name cannot be
    /// cancelled, and must not hold up the end.
    pub(crate) fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        let done = self.0.block_on(work);
        self.0.shutdown_background();
        done
    }
}

/// The environment of this process, read once.
pub(crate) fn environment() -> &'static HostEnvironment {
    static PROCESS: LazyLock<HostEnvironment> = LazyLock::new(|| {
        HostEnvironment::new(std::env::vars_os())
            // A folder that is gone is reported by what works in it.
            .in_folder(std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")))
            // A haft that can't open itself runs no commands, and says so when it is to.
            .supervised_by(OwnProgram::running().unwrap_or_default())
    });
    &PROCESS
}

/// Returns the tools of extensions with nothing behind them, for lists and documentation.
pub(crate) fn described_tools() -> Vec<Arc<dyn Tool>> {
    // Lists begin with the tools of the last extension.
    extensions()
        .iter()
        .rev()
        .flat_map(|extension| extension.described_tools(environment()))
        .collect()
}

/// The folders of this user.
pub(crate) fn places() -> Result<Places, FolderError> {
    Places::find(environment().clone())
}

/// The project around this folder, or around the current one.
pub(crate) fn project(cwd: Option<&Path>) -> Result<Project, FolderError> {
    Project::find(environment(), cwd)
}

/// What calls may reach in a project, where no session is open.
pub(crate) fn workspace(places: &Places, project: &Project) -> Workspace {
    Workspace {
        root: project.root.clone(),
        extra: Vec::new(),
        cwd: project.cwd.clone(),
        spill: places.spill(),
        journal: places.journal(),
    }
}

/// The model of that name, as it is declared or built in.
pub(crate) fn declared(config: &Config, model: &str) -> Result<Declared, SetupError> {
    haft_agent::declared_model(environment(), config, model)
}

/// The key of a model's provider; none when it declares no source.
pub(crate) fn key_of(declared: &Declared) -> Result<Option<Secret>, KeyError> {
    haft_agent::key_of(environment(), &declared.spec.provider, &declared.provider)
}

/// Whether a provider's key is at hand, found out without running anything.
pub(crate) fn key_state(provider: &ProviderConfig) -> KeyState {
    haft_agent::key_state(environment(), provider)
}

/// The extensions of this build, in the order their tools are offered.
pub(crate) fn extensions() -> Vec<Arc<dyn Extension>> {
    extensions_with(ClientParts::default())
}

/// Like [`extensions`], with the parts that the client of a session brings.
fn extensions_with(client: ClientParts) -> Vec<Arc<dyn Extension>> {
    vec![
        Arc::new(PolicyExtension),
        Arc::new(readers::ReaderExtension),
        #[cfg(feature = "mcp")]
        Arc::new(haft_mcp::McpExtension::new(client.servers)),
        #[cfg(not(feature = "mcp"))]
        Arc::new(AbsentExtension::new("mcp_servers", "mcp_server", "mcp")),
        #[cfg(feature = "rag")]
        Arc::new(haft_rag::RagExtension),
        #[cfg(not(feature = "rag"))]
        Arc::new(AbsentExtension::new("rag", "rag", "rag")),
        #[cfg(feature = "web")]
        Arc::new(haft_web::WebExtension::new(|supervisor| {
            readers(supervisor).documents
        })),
        #[cfg(not(feature = "web"))]
        Arc::new(AbsentExtension::new("web", "web", "web")),
        #[cfg(feature = "postgres")]
        Arc::new(haft_postgres::PostgresExtension::new(client.lease)),
        #[cfg(feature = "postgres")]
        Arc::new(haft_worker::WorkerExtension),
        #[cfg(not(feature = "postgres"))]
        Arc::new(AbsentExtension::new("worker", "worker", "postgres")),
        Arc::new(ClientExtension {
            callbacks: client.callbacks,
            observers: client.observers,
            buffers: client.buffers,
        }),
    ]
}

/// Opens the prompts and resources that the extensions of this build offer. It starts nothing.
pub(crate) fn prompt_sources(
    places: &Places,
    config: &Config,
    project: &Project,
) -> Result<PromptSources, SetupError> {
    PromptSources::open(&extensions(), places, config, project)
}

/// Reads the policy of a project that is trusted or may become so.
pub(crate) fn project_policy(project: &Project) -> ProjectPolicy {
    ProjectPolicy::load(&project.root, environment().home().as_deref())
}

/// Returns what the servers of a project ask to reach outside the project, by server.
pub(crate) fn requested_grants(places: &Places, root: &Path) -> BTreeMap<String, ServerGrant> {
    extensions()
        .iter()
        .flat_map(|extension| extension.requested_grants(places, root))
        .collect()
}

/// The sections of the configuration in addition to those of the core: the extensions', the
/// terminal's, the log's, and the language.
pub(crate) fn sections() -> Vec<Section> {
    let of_extensions = extensions()
        .into_iter()
        .flat_map(|extension| extension.sections());
    let of_front_end = [
        Section::of::<LanguageChoice>(language::KEY),
        Section::of::<LogLevel>("log_level"),
        Section::of::<TuiConfig>("tui"),
    ];
    of_extensions.chain(of_front_end).collect()
}

/// The `[tui]` section.
pub(crate) fn tui_config(config: &Config) -> Result<TuiConfig, ConfigError> {
    config.section("tui")
}

/// How much is logged.
pub(crate) fn log_level(config: &Config) -> Result<LogLevel, ConfigError> {
    config.section("log_level")
}

/// Checks the text of a configuration file.
pub(crate) fn check_config(file: &Path, text: &str) -> Result<toml::Table, ConfigError> {
    haft_agent::config::check(file, text, &sections())
}

/// The configuration that this table alone makes.
pub(crate) fn lower_config(table: toml::Table) -> Result<Config, ConfigError> {
    haft_agent::config::lower(table, &sections())
}

/// The agent of these folders and this configuration, with everything this build has.
pub(crate) fn agent(places: &Places, config: Config) -> Agent {
    agent_with(places, config, ClientParts::default())
}

/// The same with what its client brings.
pub(crate) fn agent_with(places: &Places, config: Config, client: ClientParts) -> Agent {
    let versions = client
        .versions
        .clone()
        .unwrap_or_else(|| versions(places, &config));
    Agent::new(places.clone(), config)
        .with_change_records(Arc::new(FileChanges::new(versions)))
        .with_project_copies(Arc::new(GitWorktrees))
        .with_extensions(extensions_with(client))
        .on_masker(|masker| log::mask_with(masker.clone()))
}

/// What files were before haft changed them.
pub(crate) fn versions(places: &Places, config: &Config) -> Arc<SqliteVersions> {
    Arc::new(SqliteVersions::at(
        &places.versions(),
        &config.store,
        Arc::new(WallClock),
    ))
}

/// Opens the user's conversations for one look or one change.
pub(crate) fn open_store(places: &Places, config: &Config) -> Result<Arc<dyn Store>, SetupError> {
    haft_agent::open_store(places, config, &extensions())
}

/// What the program that drives a session brings to it.
#[derive(Clone, Default)]
pub(crate) struct ClientParts {
    /// Called at the points of the run.
    pub(crate) callbacks: Vec<Arc<dyn Callback>>,
    /// Observers of calls.
    pub(crate) observers: Vec<Arc<dyn CallObserver>>,
    /// What its user has open and not saved.
    pub(crate) buffers: Option<Arc<dyn EditorBuffers>>,
    /// Who keeps what files were, in place of this machine alone.
    pub(crate) versions: Option<Arc<SqliteVersions>>,
    /// The run of a task in whose name everything is written.
    #[cfg(feature = "postgres")]
    pub(crate) lease: Option<haft_postgres::TaskLease>,
    /// MCP servers for this session alone.
    #[cfg(feature = "mcp")]
    pub(crate) servers: haft_mcp::GivenServers,
}

/// Gives a session what its client has of its own.
struct ClientExtension {
    callbacks: Vec<Arc<dyn Callback>>,
    observers: Vec<Arc<dyn CallObserver>>,
    buffers: Option<Arc<dyn EditorBuffers>>,
}

impl Extension for ClientExtension {
    fn contribute(&self, _: &ExtensionContext<'_>) -> Contribution {
        Contribution {
            callbacks: self.callbacks.clone(),
            observers: self.observers.clone(),
            readers: Readers {
                buffers: self.buffers.clone(),
                ..Readers::default()
            },
            ..Contribution::default()
        }
    }
}

/// Opens the session a run works in, with what its client brings.
pub(crate) async fn open_driven_session(
    places: &Places,
    config: Config,
    plan: RunPlan,
    client: ClientParts,
) -> Result<Session, SetupError> {
    log_configuration(places);
    haft_changes::sweep_merges(&places.worktrees());
    Box::pin(agent_with(places, config, client).open(plan)).await
}

/// Logs where the settings of a session come from: files and names of variables, never a value.
fn log_configuration(places: &Places) {
    let file = places.config_file();
    let exists = places.config_file().exists();
    let mut variables: Vec<_> = places
        .environment
        .text_variables()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| is_setting(name))
        .collect();
    variables.sort();
    tracing::info!(file = %file.display(), exists, variables = variables.join(", "), "configuration loaded");
}

/// Whether a variable of the environment is a setting of haft.
fn is_setting(name: &str) -> bool {
    name.starts_with("HAFT_") && name != "HAFT_HOME"
}

/// Opens the session a run works in.
pub(crate) async fn open_session(
    places: &Places,
    config: Config,
    plan: RunPlan,
) -> Result<Session, SetupError> {
    open_driven_session(places, config, plan, ClientParts::default()).await
}

#[cfg(test)]
mod tests {
    use haft_agent::config::{Sources, ValueOrigin, load};

    use super::*;

    #[test]
    fn the_log_level_has_a_variable_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let user_file = folder.path().join("config.toml");
        let level = |environment: &[(&str, &str)]| {
            let environment = environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let user_file = user_file.clone();
            let sections = sections();
            let loaded = load(&Sources {
                user_file,
                environment,
                set: Vec::new(),
                sections,
            })
            .unwrap();
            (
                log_level(&loaded.config).unwrap(),
                loaded.origin("log_level"),
            )
        };
        assert_eq!(level(&[]).0, LogLevel::Info);
        std::fs::write(&user_file, "log_level = \"off\"\n").unwrap();
        assert_eq!(level(&[]).0, LogLevel::Off);
        let variable = ValueOrigin::Variable("HAFT_LOG_LEVEL".into());
        assert_eq!(
            level(&[("HAFT_LOG_LEVEL", "debug")]),
            (LogLevel::Debug, variable)
        );
    }
}
