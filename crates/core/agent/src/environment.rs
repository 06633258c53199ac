//! The environment of the process as a front end has read it: variables, working directory,
//! executable.
//!
//! Libraries never read these themselves, so a test, a server and a terminal can each provide their
//! own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_sandbox::{OwnProgram, Supervisor};

/// The environment of a process, as a value. The default has no variables and no helper program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEnvironment {
    variables: Arc<BTreeMap<OsString, OsString>>,
    cwd: PathBuf,
    helper: OwnProgram,
    writable: Vec<PathBuf>,
}

impl HostEnvironment {
    /// Creates an environment with the given variables, such as those of `std::env::vars_os()`.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            variables: Arc::new(variables.into_iter().collect()),
            ..Self::default()
        }
    }

    /// Sets the working directory, to which relative paths refer.
    #[must_use]
    pub fn with_cwd(self, cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..self
        }
    }

    /// Sets the program that supervises commands. The `main` function of that program must begin
    /// with [`haft_sandbox::helper_entry`]. Usually the running program,
    /// [`OwnProgram::open_running`].
    #[must_use]
    pub fn with_helper_program(self, helper: OwnProgram) -> Self {
        Self { helper, ..self }
    }

    /// Adds folders that the model can write, in addition to the project. Programs that haft starts
    /// for itself are not looked up in these folders.
    #[must_use]
    pub fn with_writable_folders(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        for folder in folders {
            if !self.writable.contains(&folder) {
                self.writable.push(folder);
            }
        }
        self
    }

    /// Returns the folders added with [`Self::with_writable_folders`].
    pub fn writable_folders(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Returns the program that supervises commands.
    pub fn helper_program(&self) -> &OwnProgram {
        &self.helper
    }

    /// Returns the value of a variable if it is valid UTF-8.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.raw_variable(name)?.to_str().map(str::to_owned)
    }

    /// Returns the trimmed value of a variable if it is valid UTF-8 and not blank.
    pub fn trimmed_variable(&self, name: &str) -> Option<String> {
        self.variable(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable, which need not be valid UTF-8.
    pub fn raw_variable(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Returns all variables, sorted by name.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Returns the variables whose values are valid UTF-8, sorted by name.
    pub fn text_variables(&self) -> Vec<(String, String)> {
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect()
    }

    /// Returns the value of `HOME`, the user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.raw_variable("HOME").map(PathBuf::from)
    }

    /// Returns the home folder if its path is absolute: a relative path would depend on the working
    /// directory.
    pub fn absolute_home(&self) -> Option<PathBuf> {
        self.home().filter(|home| home.is_absolute())
    }

    /// Returns the working directory, to which relative paths refer.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Creates a supervisor, which starts and ends the commands of a session.
    pub fn supervisor(&self) -> Supervisor {
        Supervisor::new(self.helper.clone())
    }

    /// Returns the environment variables for child processes.
    pub fn child_environment(&self) -> Vec<(String, String)> {
        haft_sandbox::child_environment(self.variables())
    }

    /// Returns the values of variables that must not be shown or stored.
    pub fn secret_values(&self) -> Vec<String> {
        haft_sandbox::secret_values(self.variables())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_environment_holds_only_the_given_variables() {
        let given = [("HOME", "/h"), ("KEY", " k \n"), ("EMPTY", " ")];
        let host = HostEnvironment::new(given.map(|(name, value)| (name.into(), value.into())))
            .with_cwd("/w");
        assert_eq!(host.home(), Some("/h".into()));
        assert_eq!(
            (
                host.trimmed_variable("KEY").as_deref(),
                host.trimmed_variable("EMPTY"),
                host.trimmed_variable("NONE")
            ),
            (Some("k"), None, None)
        );
        assert_eq!(host.cwd(), Path::new("/w"));
        let none = HostEnvironment::default();
        assert_eq!((none.home(), none.text_variables()), (None, Vec::new()));
    }
}
