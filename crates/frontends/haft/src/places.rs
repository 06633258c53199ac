//! Where haft keeps its files: everything under `HAFT_HOME`, or the XDG folders.

use std::path::{Path, PathBuf};

use crate::exit::mistake;

/// The folders of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// `config.toml` lies here.
    pub(crate) config: PathBuf,
    /// Conversations.
    pub(crate) data: PathBuf,
    /// What a machine remembers of its user: which folders are trusted.
    pub(crate) state: PathBuf,
    /// What can be made again.
    pub(crate) cache: PathBuf,
}

impl Places {
    /// The folders as the environment gives them.
    pub(crate) fn from_environment() -> anyhow::Result<Self> {
        Self::find(|name| std::env::var_os(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty()))
    }

    fn find(variable: impl Fn(&str) -> Option<PathBuf>) -> anyhow::Result<Self> {
        if let Some(home) = variable("HAFT_HOME") {
            return Ok(Self::under(&std::path::absolute(home)?));
        }
        let home = variable("HOME");
        let xdg = |name: &str, fallback: &str| {
            // The XDG specification says to ignore a relative path.
            let folder = variable(name).filter(|path| path.is_absolute());
            let folder = folder.or_else(|| home.as_ref().map(|home| home.join(fallback)));
            let missing = || {
                mistake(format!(
                    "neither `HAFT_HOME`, `{name}` nor `HOME` is set; set one so that haft knows where to keep its files"
                ))
            };
            folder.map(|folder| folder.join("haft")).ok_or_else(missing)
        };
        Ok(Self {
            config: xdg("XDG_CONFIG_HOME", ".config")?,
            data: xdg("XDG_DATA_HOME", ".local/share")?,
            state: xdg("XDG_STATE_HOME", ".local/state")?,
            cache: xdg("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Everything under one folder.
    pub(crate) fn under(home: &Path) -> Self {
        Self { config: home.to_owned(), data: home.join("data"), state: home.join("state"), cache: home.join("cache") }
    }

    /// The user's configuration file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The database of conversations.
    pub(crate) fn database(&self) -> PathBuf {
        self.data.join("conversations.db")
    }

    /// Copies of that database.
    pub(crate) fn backups(&self) -> PathBuf {
        self.data.join("backups")
    }

    /// What files were before haft changed them.
    pub(crate) fn versions(&self) -> PathBuf {
        self.data.join("versions")
    }

    /// Documentation of libraries.
    pub(crate) fn libraries(&self) -> PathBuf {
        self.data.join("libraries")
    }

    /// Indexes of collections.
    pub(crate) fn rag(&self) -> PathBuf {
        self.data.join("rag")
    }

    /// Copies of projects in which sub-agents work.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.data.join("worktrees")
    }

    /// Notes on changes of files that are under way.
    pub(crate) fn journal(&self) -> PathBuf {
        self.data.join("journal")
    }

    /// The folders the user trusts.
    pub(crate) fn trust_file(&self) -> PathBuf {
        self.state.join("trust.toml")
    }

    /// What MCP servers offer.
    pub(crate) fn mcp_lists(&self) -> PathBuf {
        self.state.join("mcp/lists")
    }

    /// Logins to MCP servers.
    pub(crate) fn mcp_tokens(&self) -> PathBuf {
        self.state.join("mcp/tokens")
    }

    /// Whole outputs of commands that were too long for the model.
    pub(crate) fn spill(&self) -> PathBuf {
        self.cache.join("spill")
    }

    /// What went wrong without stopping anything.
    pub(crate) fn log(&self) -> PathBuf {
        self.state.join("log")
    }

    /// Runs in the background.
    pub(crate) fn jobs(&self) -> PathBuf {
        self.state.join("jobs")
    }

    /// What was typed in a project, by the name of its conversations.
    pub(crate) fn history(&self, namespace: &str) -> PathBuf {
        let hash = blake3::hash(namespace.as_bytes()).to_hex();
        self.state.join("history").join(&hash[..16]).with_extension("jsonl")
    }

    /// Runs of workflows.
    pub(crate) fn workflows(&self) -> PathBuf {
        self.state.join("workflows")
    }

    /// What external tools said of their use.
    pub(crate) fn tool_help(&self) -> PathBuf {
        self.cache.join("tool-help")
    }

    /// Where the private `/tmp` of commands lie.
    pub(crate) fn private_tmp(&self) -> PathBuf {
        self.cache.join("tmp")
    }

    /// Notes on what stands in projects while commands run.
    pub(crate) fn covers(&self) -> PathBuf {
        self.state.join("covers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> anyhow::Result<Places> {
        Places::find(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value)))
    }

    #[test]
    fn haft_home_holds_everything() {
        let places = places(&[("HAFT_HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("HOME", "/u")]).unwrap();
        assert_eq!(places.config_file(), Path::new("/h/config.toml"));
        assert_eq!(places.database(), Path::new("/h/data/conversations.db"));
    }

    #[test]
    fn otherwise_the_xdg_folders() {
        let places = places(&[("XDG_DATA_HOME", "/x"), ("XDG_CONFIG_HOME", "relative"), ("HOME", "/u")]).unwrap();
        assert_eq!(places.config_file(), Path::new("/u/.config/haft/config.toml"));
        assert_eq!(places.database(), Path::new("/x/haft/conversations.db"));
    }

    #[test]
    fn without_any_the_error_says_what_to_set() {
        assert!(places(&[]).unwrap_err().to_string().contains("HAFT_HOME"));
    }
}
