//! The targets of the attempts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The paths, ids and names of everything that the attempts try to reach. Created by
/// [`ProbeSite`](crate::ProbeSite).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeTargets {
    /// The project folder, which is writable except for its protected files. It contains `.git` and
    /// `.vscode`, but neither `.haft` nor `.mcp.json`.
    pub project: PathBuf,
    /// A folder of the user that commands must not write. It contains a `file` and a `folder`.
    pub outside: PathBuf,
    /// A file that commands must not read, in a folder that they must not list.
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
    /// The number of an inherited file descriptor that refers to the `outside` folder.
    pub descriptor: i32,
    /// The name of the files that attempts create in private folders such as `/tmp`. Files of this
    /// name must not appear outside of the sandbox.
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
