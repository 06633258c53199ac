//! The targets of the attempts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The locations of all targets of the attempts. Created by [`ProbeSite`](crate::ProbeSite).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeTargets {
    /// The project, writable except for its protected files. It has a `.git` and a `.vscode`, but
    /// no `.haft` and no `.mcp.json`.
    pub project: PathBuf,
    /// A folder that must not be written, with a `file` and a `folder` in it. The user owns it.
    pub outside: PathBuf,
    /// A file that must not be read, in a folder that must not be listed.
    pub secret: PathBuf,
    /// The content of the secret file.
    pub secret_text: String,
    /// The id of a process of the same user outside the sandbox, with the secret text in its
    /// environment.
    pub process: i32,
    /// A loopback port on which a TCP server and a UDP socket listen outside the sandbox.
    pub port: u16,
    /// The path of a Unix socket outside the sandbox.
    pub socket: PathBuf,
    /// The name of an abstract Unix socket outside the sandbox.
    pub abstract_socket: String,
    /// The path of a terminal outside the sandbox.
    pub terminal: PathBuf,
    /// The id of a System V shared memory segment outside the sandbox.
    pub segment: i32,
    /// The name of a POSIX shared memory object outside the sandbox.
    pub shared: String,
    /// The number of a descriptor of the `outside` folder, inherited from the command's parents.
    pub descriptor: i32,
    /// The name of files that may be created inside the sandbox, as in `/tmp`, but must not be seen
    /// outside of it.
    pub mark: String,
}

impl ProbeTargets {
    pub(crate) fn outside_file(&self) -> PathBuf {
        self.outside.join("file")
    }

    pub(crate) fn in_project(&self, path: &str) -> PathBuf {
        self.project.join(path)
    }

    pub(crate) fn secret_folder(&self) -> &Path {
        self.secret.parent().unwrap_or(&self.secret)
    }
}
