//! The command helper: one [`Haft`] is created before anything is printed, and is passed to every
//! command.
//!
//! [`Haft`] holds the environment of the process and finds the user's folders, the project and the
//! configuration. [`Settings`] is a loaded configuration; it opens stores, sessions and prompt
//! sources. Invariant: no static holds the environment, so that a test can pass a command another
//! environment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use haft_agent::config::{Config, ConfigSources, LoadedConfig, load_config};
use haft_agent::{
    Agent, FolderError, HostEnvironment, KeyError, KeyState, Places, Project, ProjectPolicy,
    PromptSources, RunPlan, SetupError, WallClock,
};
use haft_attach::{PortSettings, SessionPort};
use haft_changes::versions::SqliteVersions;
use haft_changes::{FileChanges, GitWorktrees};
use haft_engine::Session;
use haft_model::{Declared, ProviderConfig, Secret};
use haft_sandbox::OwnProgram;
use haft_store::Store;
use haft_text::Masker;
use haft_tool::Workspace;

use crate::cli::options::Common;
use crate::output;
use crate::wiring::{self, ClientParts};

/// Returns the path by which this process was started: that of its first argument, looked up as a
/// shell does. Returns `None` if there is no such file.
fn find_invoked_program() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::args_os().next()?);
    let path = if name.components().count() > 1 || name.is_absolute() {
        std::env::current_dir().ok()?.join(name)
    } else {
        let search = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&search).map(|folder| folder.join(&name));
        places.find(|path| path.is_file())?
    };
    path.exists().then_some(path)
}

/// Holds the environment of the process, and finds the user's folders, the project and the
/// configuration with it. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Haft {
    environment: HostEnvironment,
    /// Ensures that each process reports environment variables without effect only once.
    reported: Arc<Once>,
}

impl Haft {
    /// Reads the environment of this process.
    pub(crate) fn from_process() -> Self {
        Self::new(
            HostEnvironment::new(std::env::vars_os())
                // A missing folder is reported by the operation that uses it.
                .with_cwd(std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")))
                // A haft that cannot open its own executable cannot run commands; the first command
                // reports the problem.
                .with_helper_program(
                    OwnProgram::open_running()
                        .unwrap_or_default()
                        .with_start_path(find_invoked_program()),
                ),
        )
    }

    pub(crate) fn new(environment: HostEnvironment) -> Self {
        Self {
            environment,
            reported: Arc::new(Once::new()),
        }
    }

    pub(crate) fn environment(&self) -> &HostEnvironment {
        &self.environment
    }

    /// Finds the folders in which haft stores this user's files.
    pub(crate) fn places(&self) -> Result<Places, FolderError> {
        Places::from_environment(self.environment.clone())
    }

    /// Finds the project that contains `cwd`, or the current folder if `cwd` is `None`.
    pub(crate) fn project(&self, cwd: Option<&Path>) -> Result<Project, FolderError> {
        Project::find(&self.environment, cwd)
    }

    /// Builds a masker that knows the secret values of the environment.
    pub(crate) fn masker(&self) -> Masker {
        Masker::with_values(self.environment.secret_values())
    }

    /// Loads this user's configuration, changed by the options in `common`. Reports environment
    /// variables that begin with `HAFT_` but have no effect.
    pub(crate) fn load(&self, common: &Common) -> anyhow::Result<Settings> {
        let settings = self.load_quietly(common)?;
        self.report_unknown_variables(&settings.config);
        Ok(settings)
    }

    /// Like [`Self::load`], but reports nothing: for shells that request completions, and for jobs,
    /// whose stderr is shown as the reason for a failure.
    pub(crate) fn load_quietly(&self, common: &Common) -> anyhow::Result<Settings> {
        let (places, loaded) = self.read_config(common)?;
        Ok(Settings::new(places, loaded.config))
    }

    /// Like [`Self::load`], but also returns the origin of each value.
    pub(crate) fn load_with_origins(
        &self,
        common: &Common,
    ) -> anyhow::Result<(Settings, LoadedConfig)> {
        let (places, loaded) = self.read_config(common)?;
        self.report_unknown_variables(&loaded.config);
        Ok((Settings::new(places, loaded.config.clone()), loaded))
    }

    /// Loads the configuration, and starts the log at the configured level.
    fn read_config(&self, common: &Common) -> anyhow::Result<(Places, LoadedConfig)> {
        let places = self.places()?;
        let loaded = load_config(&ConfigSources {
            user_file: places.config_file(),
            // Variables whose names or values are not UTF-8 cannot be settings of haft.
            environment: places.environment.text_variables(),
            set: common.set.clone(),
            sections: wiring::config_sections(),
        })?;
        let level: haft_log::LogLevel = loaded.config.read_section("log_level")?;
        haft_log::start_log(&places, level);
        Ok((places, loaded))
    }

    /// Prints one line on stderr for each variable that begins with `HAFT_` and has no effect, once
    /// per process.
    fn report_unknown_variables(&self, config: &Config) {
        self.reported.call_once(|| {
            for variable in &config.unknown_variables {
                output::print_to_stderr(&format!("haft: {}", output::localize_text(variable)));
            }
        });
    }
}

/// A loaded configuration with the user's folders. A command may change `config` after loading.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) places: Places,
    pub(crate) config: Config,
}

impl Settings {
    pub(crate) fn new(mut places: Places, config: Config) -> Self {
        let configured =
            haft_agent::configured_writable_folders(&places.environment, &config.sandbox);
        places.environment = places.environment.with_writable_folders(configured);
        Self { places, config }
    }

    pub(crate) fn environment(&self) -> &HostEnvironment {
        &self.places.environment
    }

    /// Opens the store of the user's conversations, for work without a session.
    pub(crate) fn open_store(&self) -> Result<Arc<dyn Store>, SetupError> {
        haft_agent::open_store(&self.places, &self.config, &wiring::list_extensions())
    }

    /// Opens the store of the contents that files had before haft changed them.
    pub(crate) fn open_versions(&self) -> Arc<SqliteVersions> {
        Arc::new(SqliteVersions::new(
            &self.places.versions_folder(),
            &self.config.store,
            Arc::new(WallClock),
        ))
    }

    /// Returns the declaration of a model, which is in the configuration or built in.
    pub(crate) fn resolve_model(&self, model: &str) -> Result<Declared, SetupError> {
        haft_agent::resolve_model(self.environment(), &self.config, model)
    }

    /// Reads the key of a model's provider. Returns `None` if the provider declares no source of
    /// keys.
    pub(crate) fn read_key(&self, declared: &Declared) -> Result<Option<Secret>, KeyError> {
        haft_agent::find_key(
            self.environment(),
            &declared.spec.provider,
            &declared.provider,
        )
    }

    /// Returns whether a provider's key is available, without running a command to get the key.
    pub(crate) fn key_state(&self, provider: &ProviderConfig) -> KeyState {
        haft_agent::find_key_state(self.environment(), provider)
    }

    /// Opens the prompts and resources of the extensions in this build, without starting a server.
    pub(crate) fn open_prompt_sources(
        &self,
        project: &Project,
    ) -> Result<PromptSources, SetupError> {
        PromptSources::collect_sources(
            &wiring::list_extensions(),
            &self.places,
            &self.config,
            project,
        )
    }

    /// Reads the restrictions that a project's configuration adds, whether or not the project is
    /// trusted.
    pub(crate) fn load_project_policy(&self, project: &Project) -> ProjectPolicy {
        ProjectPolicy::load(&project.root, self.environment().home().as_deref())
    }

    /// Returns the folders that tool calls may access in a project without an open session.
    pub(crate) fn workspace(&self, project: &Project) -> Workspace {
        Workspace {
            root: project.root.clone(),
            extra: Vec::new(),
            cwd: project.cwd.clone(),
            // Without a conversation, no outputs can be read.
            spill: self.places.spill_folder().join("none"),
            journal: self.places.journal_folder(),
        }
    }

    /// Builds an agent that uses these folders and this configuration, with all extensions of this
    /// build.
    pub(crate) fn build_agent(&self) -> Agent {
        self.build_agent_for_client(ClientParts::default())
    }

    /// Like [`Self::build_agent`], but adds the parts that the client of a session provides.
    pub(crate) fn build_agent_for_client(&self, client: ClientParts) -> Agent {
        let contribution = client.contribution.clone();
        let port = PortSettings {
            folder: self.places.attach_folder(),
            haft_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Agent::new(self.places.clone(), self.config.clone())
            .with_change_records(Arc::new(FileChanges::new(self.open_versions())))
            .with_project_copies(Arc::new(GitWorktrees))
            .with_extensions(wiring::list_extensions_for_client(client))
            .with_contribution(contribution)
            .with_masker_listener(|masker| haft_log::set_masker(masker.clone()))
            .with_attach_setup(move |task| SessionPort::add_to(task, port.clone()))
    }

    /// Opens a session for the run that `plan` describes.
    pub(crate) async fn open_session(&self, plan: RunPlan) -> Result<Session, SetupError> {
        self.open_driven_session(plan, ClientParts::default()).await
    }

    /// Like [`Self::open_session`], but adds the parts that the client of the session provides.
    pub(crate) async fn open_driven_session(
        &self,
        plan: RunPlan,
        client: ClientParts,
    ) -> Result<Session, SetupError> {
        self.places.log_configuration();
        haft_changes::clean_up_killed_merges(&self.places.worktrees_folder());
        Box::pin(self.build_agent_for_client(client).open(plan)).await
    }
}
