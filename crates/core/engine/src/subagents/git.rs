//! git, run for haft itself: without hooks, questions or anything of the user's environment that points it elsewhere.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What is decided for every command, whatever the repository says.
const ALWAYS: [&str; 12] = [
    "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c",
    "user.name=haft", "-c", "user.email=haft@localhost", "--literal-pathspecs",
];

/// Runs git in a folder. It blocks; call it from a thread that may.
#[derive(Clone)]
pub(super) struct Git {
    folder: PathBuf,
    environment: Arc<Vec<(String, String)>>,
    /// Another index than the folder's own.
    index: Option<PathBuf>,
}

impl Git {
    pub(super) fn at(folder: &Path, environment: &Arc<Vec<(String, String)>>) -> Self {
        Self { folder: folder.to_owned(), environment: Arc::clone(environment), index: None }
    }

    /// The same with another index.
    pub(super) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    /// What a command prints, or why it failed.
    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Vec<u8>, String> {
        let inherited = self.environment.iter().filter(|(name, _)| !name.starts_with("GIT_"));
        let index = self.index.as_ref().map(|index| ("GIT_INDEX_FILE", index));
        let output = Command::new("git")
            .args(ALWAYS)
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(inherited.map(|(name, value)| (name, value)))
            .envs([("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")])
            .envs(index)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("git cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let line = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        Err(format!("git: {}", line.trim_start_matches("fatal: ")))
    }

    /// The one line a command prints.
    pub(super) fn line<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String, String> {
        let printed = self.run(arguments)?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
    }
}
