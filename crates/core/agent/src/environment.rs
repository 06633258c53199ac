//! What a front end has read of the process it is: variables, working folder, executable.
//!
//! Libraries read none of this themselves, so that a test, a server and a terminal can each give
//! their own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_sandbox::{OwnProgram, Supervisor};

/// The environment of a process, as a value. An empty one is a machine of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEnvironment {
    variables: Arc<BTreeMap<OsString, OsString>>,
    cwd: PathBuf,
    helper: OwnProgram,
}

impl HostEnvironment {
    /// These variables, such as those of `std::env::vars_os()`.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            variables: Arc::new(variables.into_iter().collect()),
            ..Self::default()
        }
    }

    /// The same with this folder, at which relative paths begin.
    #[must_use]
    pub fn in_folder(self, cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..self
        }
    }

    /// The same with this program as the supervisor of commands: one whose `main` begins with
    /// [`haft_sandbox::helper_entry`]. Usually the program itself, [`OwnProgram::running`].
    #[must_use]
    pub fn supervised_by(self, helper: OwnProgram) -> Self {
        Self { helper, ..self }
    }

    /// The program that supervises commands.
    pub fn own_program(&self) -> &OwnProgram {
        &self.helper
    }

    /// A variable that is text.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.raw(name)?.to_str().map(str::to_owned)
    }

    /// A variable that holds more than white space, without the white space around it.
    pub fn word(&self, name: &str) -> Option<String> {
        self.variable(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    /// A variable as it is, which need not be text.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// All variables, in order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The variables that are text, in order of their names.
    pub fn text_variables(&self) -> Vec<(String, String)> {
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
            .collect()
    }

    /// The user's home folder, as `HOME` has it.
    pub fn home(&self) -> Option<PathBuf> {
        self.raw("HOME").map(PathBuf::from)
    }

    /// The user's home folder where it can be relied on: a relative one would be another for every
    /// process.
    pub fn absolute_home(&self) -> Option<PathBuf> {
        self.home().filter(|home| home.is_absolute())
    }

    /// The folder at which relative paths begin.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Starts and ends the commands of a session.
    pub fn supervisor(&self) -> Supervisor {
        Supervisor::new(self.helper.clone())
    }

    /// What child processes are given of the variables.
    pub fn child_environment(&self) -> Vec<(String, String)> {
        haft_sandbox::child_environment(self.variables())
    }

    /// Values of variables that must not be shown or kept.
    pub fn secret_values(&self) -> Vec<String> {
        haft_sandbox::secret_values(self.variables())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_those_that_were_given() {
        let given = [("HOME", "/h"), ("KEY", " k \n"), ("EMPTY", " ")];
        let host = HostEnvironment::new(given.map(|(name, value)| (name.into(), value.into())))
            .in_folder("/w");
        assert_eq!(host.home(), Some("/h".into()));
        assert_eq!(
            (
                host.word("KEY").as_deref(),
                host.word("EMPTY"),
                host.word("NONE")
            ),
            (Some("k"), None, None)
        );
        assert_eq!(host.cwd(), Path::new("/w"));
        let none = HostEnvironment::default();
        assert_eq!((none.home(), none.text_variables()), (None, Vec::new()));
    }
}
