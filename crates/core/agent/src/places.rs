//! The folders in which haft stores its files: `HAFT_HOME`, or the XDG folders.

use std::path::{Path, PathBuf};

use crate::environment::HostEnvironment;
use crate::error::FolderError;

/// The folders of one user, and the environment from which they were derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The folder that contains `config.toml`.
    pub config: PathBuf,
    /// The folder of the conversations and other data of the user.
    pub data: PathBuf,
    /// The folder of local state, such as the list of trusted folders.
    pub state: PathBuf,
    /// The folder of files that can be regenerated.
    pub cache: PathBuf,
    /// The environment of the process.
    pub environment: HostEnvironment,
}

impl Places {
    /// Derives the folders from the environment.
    pub fn from_environment(environment: HostEnvironment) -> Result<Self, FolderError> {
        let variable = |name: &str| {
            environment
                .raw_variable(name)
                .map(PathBuf::from)
                .filter(|path| !path.as_os_str().is_empty())
        };
        if let Some(home) = variable("HAFT_HOME") {
            // Like `std::path::absolute`, but relative to the given working directory.
            let home =
                std::path::absolute(environment.cwd().join(home)).map_err(FolderError::Relative)?;
            return Ok(Self::under_home(&home, environment));
        }
        let home = variable("HOME");
        let xdg = |name: &'static str, fallback: &str| {
            // The XDG specification requires relative paths to be ignored.
            let folder = variable(name).filter(|path| path.is_absolute());
            let folder = folder.or_else(|| home.as_ref().map(|home| home.join(fallback)));
            folder
                .map(|folder| folder.join("haft"))
                .ok_or(FolderError::NoHome(name))
        };
        Ok(Self {
            config: xdg("XDG_CONFIG_HOME", ".config")?,
            data: xdg("XDG_DATA_HOME", ".local/share")?,
            state: xdg("XDG_STATE_HOME", ".local/state")?,
            cache: xdg("XDG_CACHE_HOME", ".cache")?,
            environment,
        })
    }

    /// Puts all folders below `home`.
    pub fn under_home(home: &Path, environment: HostEnvironment) -> Self {
        Self {
            config: home.to_owned(),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
            environment,
        }
    }

    /// Logs the sources of a session's settings: the file and the names of variables, never a
    /// value.
    pub fn log_configuration(&self) {
        let file = self.config_file();
        let exists = file.exists();
        let mut variables: Vec<_> = self
            .environment
            .text_variables()
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| is_config_variable(name))
            .collect();
        variables.sort();
        tracing::info!(file = %file.display(), exists, variables = variables.join(", "), "configuration loaded");
    }

    /// Removes the access of the group and of other users to the data, state and cache folders.
    /// Older versions of haft created these folders with the umask's mode. Symbolic links and
    /// folders of other users stay unchanged. The configuration folder is left unchanged, because
    /// users may share it or keep it among their dotfiles.
    pub(crate) fn restrict_access(&self) {
        for folder in [&self.data, &self.state, &self.cache] {
            // haft must run on file systems without modes too.
            drop(haft_files::tighten_mode(folder));
        }
    }

    /// Returns the user's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the database of conversations.
    pub fn database_file(&self) -> PathBuf {
        self.data.join("conversations.db")
    }

    /// Returns the folder for copies of the database.
    pub fn backups_folder(&self) -> PathBuf {
        self.data.join("backups")
    }

    /// Returns the folder that stores the content of files from before haft changed them.
    pub fn versions_folder(&self) -> PathBuf {
        self.data.join("versions")
    }

    /// Returns the folder for the documentation of libraries.
    pub fn libraries_folder(&self) -> PathBuf {
        self.data.join("libraries")
    }

    /// Returns the folder for the indexes of document collections.
    pub fn rag_folder(&self) -> PathBuf {
        self.data.join("rag")
    }

    /// Returns the folder for copies of projects in which sub-agents work.
    pub fn worktrees_folder(&self) -> PathBuf {
        self.data.join("worktrees")
    }

    /// Returns the folder for temporary views of repositories that are passed to git.
    pub fn git_folder(&self) -> PathBuf {
        self.data.join("git")
    }

    /// Returns the folder for journals of file changes in progress.
    pub fn journal_folder(&self) -> PathBuf {
        self.data.join("journal")
    }

    /// Returns the file with the version of the defaults that the user has seen.
    pub fn seen_defaults_file(&self) -> PathBuf {
        self.state.join("defaults")
    }

    /// Returns the file that lists the trusted folders.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.toml")
    }

    /// Returns the folder that contains the private working folders of MCP servers.
    pub fn mcp_work_folder(&self) -> PathBuf {
        self.cache.join("mcp")
    }

    /// Returns the file with the names of the own MCP servers that have been started confined.
    pub fn mcp_confined_file(&self) -> PathBuf {
        self.state.join("mcp/confined")
    }

    /// Returns the folder for cached tool lists of MCP servers.
    pub fn mcp_lists_folder(&self) -> PathBuf {
        self.state.join("mcp/lists")
    }

    /// Returns the folder for login tokens of MCP servers.
    pub fn mcp_tokens_folder(&self) -> PathBuf {
        self.state.join("mcp/tokens")
    }

    /// Returns haft's four folders (configuration, data, state, cache), each as it is written and
    /// with links in its path resolved.
    pub(crate) fn own_folders(&self) -> Vec<PathBuf> {
        let folders = [&self.config, &self.data, &self.state, &self.cache];
        let real = folders
            .iter()
            .filter_map(|folder| folder.canonicalize().ok());
        let mut all: Vec<_> = folders
            .iter()
            .map(|folder| (*folder).clone())
            .chain(real)
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// True if `folder` is the configuration folder or inside it, but not in the data, state or
    /// cache folder: these contain copies of projects.
    pub(crate) fn is_among_settings(&self, folder: &Path) -> bool {
        let contains = |own: &PathBuf| {
            let real = own.canonicalize();
            folder.starts_with(own) || real.is_ok_and(|real| folder.starts_with(real))
        };
        contains(&self.config)
            && ![&self.data, &self.state, &self.cache]
                .into_iter()
                .any(contains)
    }

    /// Returns the targets of the links that lie directly in haft's four folders. Dotfile managers
    /// create such links.
    pub(crate) fn linked_paths(&self) -> Vec<PathBuf> {
        let folders = [&self.config, &self.data, &self.state, &self.cache];
        let entries = folders.into_iter().flat_map(std::fs::read_dir).flatten();
        entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
            .filter_map(|entry| entry.path().canonicalize().ok())
            .collect()
    }

    /// Returns the folder for the full output of commands whose output was shortened for the model.
    /// It contains a folder for each conversation.
    pub fn spill_folder(&self) -> PathBuf {
        self.cache.join("spill")
    }

    /// Returns the folder of log files.
    pub fn log_folder(&self) -> PathBuf {
        self.state.join("log")
    }

    /// Returns the folder for background runs.
    pub fn jobs_folder(&self) -> PathBuf {
        self.state.join("jobs")
    }

    /// Returns the folder for the sockets of running sessions, at which further front ends attach.
    pub fn attach_folder(&self) -> PathBuf {
        self.state.join("attach")
    }

    /// Returns the file with the input history of a project. `namespace` is the namespace of its
    /// conversations.
    pub fn history_file(&self, namespace: &str) -> PathBuf {
        let hash = blake3::hash(namespace.as_bytes()).to_hex();
        self.state
            .join("history")
            .join(&hash[..16])
            .with_extension("jsonl")
    }

    /// Returns the folder for runs of workflows.
    pub fn workflows_folder(&self) -> PathBuf {
        self.state.join("workflows")
    }

    /// Returns the folder for cached help output of external tools.
    pub fn tool_help_folder(&self) -> PathBuf {
        self.cache.join("tool-help")
    }

    /// Returns the folder that contains the private `/tmp` folders of commands.
    pub fn private_tmp_folder(&self) -> PathBuf {
        self.cache.join("tmp")
    }

    /// Returns the folder in which the sandbox remembers the folders of projects that it searched for
    /// protected files.
    pub fn cover_notes_folder(&self) -> PathBuf {
        self.state.join("covers")
    }
}

/// True if an environment variable sets a configuration value; `HAFT_HOME` does not.
fn is_config_variable(name: &str) -> bool {
    name.starts_with("HAFT_") && name != "HAFT_HOME"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> Result<Places, FolderError> {
        Places::from_environment(HostEnvironment::new(
            variables
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        ))
    }

    #[test]
    fn haft_home_contains_all_places() {
        let places =
            places(&[("HAFT_HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("HOME", "/u")]).unwrap();
        assert_eq!(places.config_file(), Path::new("/h/config.toml"));
        assert_eq!(
            places.database_file(),
            Path::new("/h/data/conversations.db")
        );
    }

    #[test]
    fn places_default_to_the_xdg_folders() {
        let places = places(&[
            ("XDG_DATA_HOME", "/x"),
            ("XDG_CONFIG_HOME", "relative"),
            ("HOME", "/u"),
        ])
        .unwrap();
        assert_eq!(
            places.config_file(),
            Path::new("/u/.config/haft/config.toml")
        );
        assert_eq!(
            places.database_file(),
            Path::new("/x/haft/conversations.db")
        );
    }

    #[test]
    fn places_error_names_the_variable_to_set() {
        assert!(places(&[]).unwrap_err().to_string().contains("HAFT_HOME"));
    }
}
