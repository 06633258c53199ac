//! Connects the binary to the core: the extensions of this build, their configuration sections, and
//! the log.
//!
//! Sessions are opened through [`haft_agent::Agent`] alone. Extensions implement
//! [`haft_agent::Extension`] themselves.

pub(crate) mod language;
mod readers;

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
use haft_agent::{
    ConfigError, Contribution, Extension, HostEnvironment, PolicyExtension, WrittenToolsExtension,
};
use haft_log::LogLevel;
use haft_tool::Tool;
use haft_tui::TuiConfig;

use language::LanguageChoice;

pub(crate) use readers::build_readers;

/// Creates a runtime with one thread, which is enough to wait for a model and quick to start.
pub(crate) fn build_runtime() -> anyhow::Result<Runtime> {
    Ok(Runtime(
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
    ))
}

/// A runtime that runs one future and then shuts down.
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    /// Runs `work` to completion, then shuts down without waiting for other tasks: the system's
    /// host name lookup cannot be canceled, and must not delay the exit.
    pub(crate) fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        let done = self.0.block_on(work);
        self.0.shutdown_background();
        done
    }
}

/// Returns the tools of the extensions for use in lists and documentation. The tools cannot be
/// called.
pub(crate) fn list_described_tools(environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
    // Lists begin with the tools of the last extension.
    list_extensions()
        .iter()
        .rev()
        .flat_map(|extension| extension.tools_without_backend(environment))
        .collect()
}

/// Returns the extensions of this build, in the order in which their tools are offered.
pub(crate) fn list_extensions() -> Vec<Arc<dyn Extension>> {
    list_extensions_for_client(ClientParts::default())
}

/// Like [`list_extensions`], but adds the parts that the client of a session provides.
pub(crate) fn list_extensions_for_client(client: ClientParts) -> Vec<Arc<dyn Extension>> {
    vec![
        Arc::new(PolicyExtension),
        Arc::new(WrittenToolsExtension),
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
        Arc::new(
            haft_postgres::PostgresExtension::new(client.lease).with_timeout(client.store_timeout),
        ),
        #[cfg(feature = "postgres")]
        Arc::new(haft_worker::WorkerExtension),
        #[cfg(not(feature = "postgres"))]
        Arc::new(AbsentExtension::new("worker", "worker", "postgres")),
    ]
}

/// Returns the configuration sections that the core does not define: those of the extensions, the
/// terminal interface, the log, and the language.
pub(crate) fn config_sections() -> Vec<Section> {
    let of_extensions = list_extensions()
        .into_iter()
        .flat_map(|extension| extension.sections());
    let of_front_end = [
        Section::for_type::<LanguageChoice>(language::CONFIG_KEY),
        Section::for_type::<LogLevel>("log_level"),
        Section::for_type::<TuiConfig>("tui"),
    ];
    of_extensions.chain(of_front_end).collect()
}

/// Returns the cargo feature that the configuration section of `key` needs, if this build lacks the
/// feature.
pub(crate) fn find_missing_feature(key: &str) -> Option<&'static str> {
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

/// Parses the text of a configuration file and checks it against the sections of this build.
pub(crate) fn check_config(file: &Path, text: &str) -> Result<toml::Table, ConfigError> {
    haft_agent::config::check_config_text(file, text, &config_sections())
}

/// Builds the configuration from `table` alone, without other sources.
pub(crate) fn lower_config(table: toml::Table) -> Result<Config, ConfigError> {
    haft_agent::config::config_from_table(table, &config_sections())
}

/// The parts of a session that its client provides. The client is the program that drives the
/// session, such as an editor.
#[derive(Clone, Default)]
pub(crate) struct ClientParts {
    /// The client's callbacks and observers, and the unsaved files that its user has open.
    pub(crate) contribution: Contribution,
    /// The lease of the queued task that the session runs. Everything is stored under this lease.
    #[cfg(feature = "postgres")]
    pub(crate) lease: Option<haft_postgres::TaskLease>,
    /// The time limit of each operation on the team store.
    #[cfg(feature = "postgres")]
    pub(crate) store_timeout: Option<std::time::Duration>,
    /// The MCP servers that only this session uses.
    #[cfg(feature = "mcp")]
    pub(crate) servers: haft_mcp::GivenServers,
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
            let sections = config_sections();
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
