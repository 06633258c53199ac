//! Where haft keeps its files: everything under `HAFT_HOME`, or the XDG folders.

use std::path::{Path, PathBuf};

use crate::environment::HostEnvironment;
use crate::error::FolderError;

/// The folders of one user, and the environment they were found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// `config.toml` lies here.
    pub config: PathBuf,
    /// Conversations.
    pub data: PathBuf,
    /// What a machine remembers of its user: which folders are trusted.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
    /// What is known of the process.
    pub environment: HostEnvironment,
}

impl Places {
    /// The folders as the environment gives them.
    pub fn find(environment: HostEnvironment) -> Result<Self, FolderError> {
        let variable = |name: &str| {
            environment
                .raw(name)
                .map(PathBuf::from)
                .filter(|path| !path.as_os_str().is_empty())
        };
        if let Some(home) = variable("HAFT_HOME") {
            // The same as `std::path::absolute` makes of it, at the folder that was given.
            let home =
                std::path::absolute(environment.cwd().join(home)).map_err(FolderError::Relative)?;
            return Ok(Self::under(&home, environment));
        }
        let home = variable("HOME");
        let xdg = |name: &'static str, fallback: &str| {
            // The XDG specification says to ignore a relative path.
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

    /// Everything under one folder.
    pub fn under(home: &Path, environment: HostEnvironment) -> Self {
        Self {
            config: home.to_owned(),
            data: home.join("data"),
            state: home.join("state"),
            cache: home.join("cache"),
            environment,
        }
    }

    /// Takes the rights of group and others away from the data, state, and cache folders, which
    /// older versions of haft created as the umask allowed. A symbolic link, a folder of
    /// another user, and the configuration folder, which its user may share or keep among their
    /// dotfiles, stay as they are.
    pub(crate) fn tighten(&self) {
        for folder in [&self.data, &self.state, &self.cache] {
            // A file system that has no modes must not keep haft from running.
            drop(haft_files::tighten(folder));
        }
    }

    /// The user's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The database of conversations.
    pub fn database(&self) -> PathBuf {
        self.data.join("conversations.db")
    }

    /// Copies of that database.
    pub fn backups(&self) -> PathBuf {
        self.data.join("backups")
    }

    /// What files were before haft changed them.
    pub fn versions(&self) -> PathBuf {
        self.data.join("versions")
    }

    /// Documentation of libraries.
    pub fn libraries(&self) -> PathBuf {
        self.data.join("libraries")
    }

    /// Indexes of collections.
    pub fn rag(&self) -> PathBuf {
        self.data.join("rag")
    }

    /// Copies of projects in which sub-agents work.
    pub fn worktrees(&self) -> PathBuf {
        self.data.join("worktrees")
    }

    /// What git is given of repositories while haft runs it.
    pub fn git(&self) -> PathBuf {
        self.data.join("git")
    }

    /// Notes on changes of files that are under way.
    pub fn journal(&self) -> PathBuf {
        self.data.join("journal")
    }

    /// Says which prompts and defaults the user has seen.
    pub fn defaults_file(&self) -> PathBuf {
        self.state.join("defaults")
    }

    /// The folders the user trusts.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.toml")
    }

    /// What MCP servers offer.
    pub fn mcp_folders(&self) -> PathBuf {
        self.cache.join("mcp")
    }

    /// Cached lists of what MCP servers offer.
    pub fn mcp_lists(&self) -> PathBuf {
        self.state.join("mcp/lists")
    }

    /// Logins to MCP servers.
    pub fn mcp_tokens(&self) -> PathBuf {
        self.state.join("mcp/tokens")
    }

    /// Whole outputs of commands that were too long for the model.
    pub fn spill(&self) -> PathBuf {
        self.cache.join("spill")
    }

    /// What went wrong without stopping anything.
    pub fn log(&self) -> PathBuf {
        self.state.join("log")
    }

    /// Runs in the background.
    pub fn jobs(&self) -> PathBuf {
        self.state.join("jobs")
    }

    /// What was typed in a project, by the name of its conversations.
    pub fn history(&self, namespace: &str) -> PathBuf {
        let hash = blake3::hash(namespace.as_bytes()).to_hex();
        self.state
            .join("history")
            .join(&hash[..16])
            .with_extension("jsonl")
    }

    /// Runs of workflows.
    pub fn workflows(&self) -> PathBuf {
        self.state.join("workflows")
    }

    /// What external tools said of their use.
    pub fn tool_help(&self) -> PathBuf {
        self.cache.join("tool-help")
    }

    /// Where the private `/tmp` of commands lie.
    pub fn private_tmp(&self) -> PathBuf {
        self.cache.join("tmp")
    }

    /// Notes on what stands in projects while commands run.
    pub fn covers(&self) -> PathBuf {
        self.state.join("covers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> Result<Places, FolderError> {
        Places::find(HostEnvironment::new(
            variables
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        ))
    }

    #[test]
    fn haft_home_holds_everything() {
        let places =
            places(&[("HAFT_HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("HOME", "/u")]).unwrap();
        assert_eq!(places.config_file(), Path::new("/h/config.toml"));
        assert_eq!(places.database(), Path::new("/h/data/conversations.db"));
    }

    #[test]
    fn otherwise_the_xdg_folders() {
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
        assert_eq!(places.database(), Path::new("/x/haft/conversations.db"));
    }

    #[test]
    fn without_any_the_error_says_what_to_set() {
        assert!(places(&[]).unwrap_err().to_string().contains("HAFT_HOME"));
    }
}
