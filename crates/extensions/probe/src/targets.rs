//! Where everything is that attempts are made on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where everything is that attempts are made on. [`ProbeSite`](crate::ProbeSite) makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeTargets {
    /// The project: writable but for what is protected in it. It has a `.git` and a `.vscode` and
    /// no `.haft` or `.mcp.json`.
    pub project: PathBuf,
    /// A folder that may not be written, with a `file` and a `folder` in it. The user owns it.
    pub outside: PathBuf,
    /// A file that may not be read, in a folder that may not be listed.
    pub secret: PathBuf,
    /// What it holds.
    pub secret_text: String,
    /// A process of the same user outside; the secret text stands in its environment.
    pub process: i32,
    /// A port of the loopback where a server listens outside, and, of the same number, one for
    /// datagrams.
    pub port: u16,
    /// A Unix socket outside.
    pub socket: PathBuf,
    /// A Unix socket outside that has no place in the file system.
    pub abstract_socket: String,
    /// A terminal outside.
    pub terminal: PathBuf,
    /// The number of a System V shared memory segment outside.
    pub segment: i32,
    /// The name of a POSIX shared memory object outside.
    pub shared: String,
    /// The number of a descriptor of the `outside` folder, which the command's parents had open.
    pub descriptor: i32,
    /// A name for files that must not be seen outside although they can be made inside, as in
    /// `/tmp`.
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
