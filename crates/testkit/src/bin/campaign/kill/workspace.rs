//! The home and the project of one case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_testkit::ScriptedServer;
use haft_types::Api;
use tempfile::TempDir;

use super::task;

/// The name of the model. It makes the strict server require thought signatures, as Gemini 3 does.
const MODEL: &str = "gemini-3-scripted";

/// The folders of one case, and the binary to run in them. Dropping this value removes the folders.
pub(crate) struct Workspace {
    haft_binary: PathBuf,
    root: TempDir,
}

impl Workspace {
    pub(crate) fn new(haft: &Path, api: Api, server: &ScriptedServer) -> Result<Self, String> {
        let root = TempDir::with_prefix("haft-kill-")
            .map_err(|error| format!("no temporary folder: {error}"))?;
        let place = Self {
            haft_binary: haft.to_owned(),
            root,
        };
        let config = format!(
            "model = \"mock/{MODEL}\"\n\
             [providers.mock]\napi = \"{api}\"\nbase_url = \"{}\"\n\
             [models.\"mock/{MODEL}\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n\
             price = {{ input = 3.0, cached_input = 0.3, cache_write = 3.75, output = 15.0 }}\n\
             [retry]\nbase_delay_ms = 20\n",
            server.base_url(api)
        );
        for folder in [place.home(), place.project()] {
            fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let edited = task::EDITED_FILE.before.unwrap_or_default();
        let files = [
            (place.home().join("config.toml"), config.as_str()),
            (place.project().join(task::EDITED_FILE.name), edited),
            (place.project().join(task::READ_FILE.0), task::READ_FILE.1),
        ];
        for (path, content) in files {
            fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(place)
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Returns the content of a project file; `None` if it can't be read.
    pub(crate) fn read_file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.project().join(name)).ok()
    }

    /// Returns a command that runs haft with these arguments, in the project folder and with a
    /// clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.haft_binary);
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("HAFT_HOME", self.home())
            .stdin(Stdio::null());
        command
    }

    /// Disables the removal of the workspace's folder on drop, and returns its path.
    pub(crate) fn keep_folders(&mut self) -> String {
        self.root.disable_cleanup(true);
        self.root().display().to_string()
    }
}
