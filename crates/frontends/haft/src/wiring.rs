//! The parts that this binary adds to the core: the list of the extensions that its build has, the
//! sections they add to the configuration, and the log.
//!
//! Sessions are opened through [`haft_agent::Agent`] alone. Extensions implement
//! [`haft_agent::Extension`] themselves.

pub(crate) mod language;
pub(crate) mod log;
mod readers;
#[cfg(feature = "otel")]
pub(crate) mod traces;

use std::path::Path;
use std::sync::Arc;

#[cfg(not(all(
    feature = "mcp",
    feature = "postgres",
    feature = "rag",
    feature = "web"
)))]
use haft_agent::AbsentExtension;
use haft_agent::config::{Config, Section};
use haft_agent::{ConfigError, Contribution, Extension, HostEnvironment, Places, PolicyExtension};
use haft_changes::versions::SqliteVersions;
use haft_tool::Tool;
use haft_tui::TuiConfig;

use language::LanguageChoice;
use log::LogLevel;

pub(crate) use readers::build_readers;

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

/// Returns the tools of extensions with nothing behind them, for lists and documentation.
pub(crate) fn described_tools(environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
    // Lists begin with the tools of the last extension.
    extensions()
        .iter()
        .rev()
        .flat_map(|extension| extension.described_tools(environment))
        .collect()
}

/// The extensions of this build, in the order their tools are offered.
pub(crate) fn extensions() -> Vec<Arc<dyn Extension>> {
    extensions_with(ClientParts::default())
}

/// Like [`extensions`], with the parts that the client of a session brings.
pub(crate) fn extensions_with(client: ClientParts) -> Vec<Arc<dyn Extension>> {
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
            build_readers(supervisor).documents
        })),
        #[cfg(not(feature = "web"))]
        Arc::new(AbsentExtension::new("web", "web", "web")),
        #[cfg(feature = "postgres")]
        Arc::new(haft_postgres::PostgresExtension::new(client.lease)),
        #[cfg(feature = "postgres")]
        Arc::new(haft_worker::WorkerExtension),
        #[cfg(not(feature = "postgres"))]
        Arc::new(AbsentExtension::new("worker", "worker", "postgres")),
    ]
}

/// The sections of the configuration in addition to those of the core: the extensions', the
/// terminal's, the log's, and the language.
pub(crate) fn sections() -> Vec<Section> {
    let of_extensions = extensions()
        .into_iter()
        .flat_map(|extension| extension.sections());
    let of_front_end = [
        Section::for_type::<LanguageChoice>(language::KEY),
        Section::for_type::<LogLevel>("log_level"),
        Section::for_type::<TuiConfig>("tui"),
    ];
    of_extensions.chain(of_front_end).collect()
}

/// Returns the cargo feature that adds the owner of the section of `key`, if this build lacks it.
pub(crate) fn missing_feature(key: &str) -> Option<&'static str> {
    let section = key.split('.').next().unwrap_or_default();
    let owners = [
        ("mcp_servers", "mcp", cfg!(feature = "mcp")),
        ("rag", "rag", cfg!(feature = "rag")),
        ("web", "web", cfg!(feature = "web")),
        ("worker", "postgres", cfg!(feature = "postgres")),
    ];
    owners
        .into_iter()
        .find(|(owned, _, is_built)| *owned == section && !is_built)
        .map(|(_, feature, _)| feature)
}

/// Checks the text of a configuration file.
pub(crate) fn check_config(file: &Path, text: &str) -> Result<toml::Table, ConfigError> {
    haft_agent::config::check_config_text(file, text, &sections())
}

/// The configuration that this table alone makes.
pub(crate) fn lower_config(table: toml::Table) -> Result<Config, ConfigError> {
    haft_agent::config::lower_table(table, &sections())
}

/// What the program that drives a session brings to it.
#[derive(Clone, Default)]
pub(crate) struct ClientParts {
    /// Its callbacks and observers, and what its user has open and not saved.
    pub(crate) contribution: Contribution,
    /// Who keeps what files were, in place of this machine alone.
    pub(crate) versions: Option<Arc<SqliteVersions>>,
    /// The run of a task in whose name everything is written.
    #[cfg(feature = "postgres")]
    pub(crate) lease: Option<haft_postgres::TaskLease>,
    /// MCP servers for this session alone.
    #[cfg(feature = "mcp")]
    pub(crate) servers: haft_mcp::GivenServers,
}

/// Logs where the settings of a session come from: files and names of variables, never a value.
pub(crate) fn log_configuration(places: &Places) {
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

#[cfg(test)]
mod tests {
    use haft_agent::config::{ConfigSources, ValueOrigin, load_config};

    use super::*;

    #[test]
    fn log_level_can_be_set_by_its_variable() {
        let folder = tempfile::tempdir().unwrap();
        let user_file = folder.path().join("config.toml");
        let level = |environment: &[(&str, &str)]| {
            let environment = environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let user_file = user_file.clone();
            let sections = sections();
            let loaded = load_config(&ConfigSources {
                user_file,
                environment,
                set: Vec::new(),
                sections,
            })
            .unwrap();
            let level: LogLevel = loaded.config.read_section("log_level").unwrap();
            (level, loaded.value_origin("log_level"))
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
