//! A separate home folder for each test.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft_types::Api;
use tempfile::TempDir;

use crate::ScriptedServer;

/// A temporary `HAFT_HOME` for a child process, with a project folder beside it. Dropping this
/// value removes both.
#[derive(Debug)]
pub struct TempHome {
    root: TempDir,
}

/// The error for a temporary home that could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare a temporary home at `{path}`")]
pub struct HomeError {
    /// The file or folder that could not be prepared.
    pub path: PathBuf,
    pub source: std::io::Error,
}

impl TempHome {
    /// Creates an empty home and an empty project.
    pub fn new() -> Result<Self, HomeError> {
        let root = TempDir::with_prefix("haft-test-").map_err(|source| HomeError {
            path: PathBuf::from("(temporary folder)"),
            source,
        })?;
        let home = Self { root };
        for folder in [home.path(), home.project()] {
            std::fs::create_dir(&folder).map_err(|source| HomeError {
                path: folder,
                source,
            })?;
        }
        Ok(home)
    }

    /// Creates a home whose configuration contains `server` as the provider `mock`, and selects the
    /// model `mock/test-model`.
    pub fn for_server(server: &ScriptedServer, api: Api) -> Result<Self, HomeError> {
        let home = Self::new()?;
        home.write_config(&Self::default_config(&server.base_url(api), api))?;
        Ok(home)
    }

    /// Returns the configuration that [`TempHome::for_server`] writes, so that tests can extend it.
    pub fn default_config(base_url: &str, api: Api) -> String {
        let mut toml = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            toml,
            "model = \"mock/test-model\"\n\n\
             [providers.mock]\napi = \"{api}\"\nbase_url = \"{base_url}\"\n\n\
             [models.\"mock/test-model\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n\
             price = {{ input = 3.0, cached_input = 0.3, cache_write = 3.75, output = 15.0 }}\n"
        );
        toml
    }

    /// Replaces the content of `config.toml`.
    pub fn write_config(&self, toml: &str) -> Result<(), HomeError> {
        let path = self.path().join("config.toml");
        std::fs::write(&path, toml).map_err(|source| HomeError { path, source })
    }

    /// Returns the folder to which `HAFT_HOME` must be set.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Returns the project folder, in which haft runs.
    pub fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Returns the folder that contains the home and the project.
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_gone_when_dropped() {
        let home = TempHome::new().unwrap();
        home.write_config(&TempHome::default_config(
            "http://127.0.0.1:9/v1",
            Api::OpenaiChat,
        ))
        .unwrap();
        let path = home.root().to_owned();
        let config = home.path().join("config.toml");
        let text = std::fs::read_to_string(config).unwrap();
        assert!(
            text.contains("api = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\""),
            "{text}"
        );
        drop(home);
        assert!(!path.exists());
    }
}
