//! Runs git for haft itself; no other code does.
//!
//! A repository's configuration can name programs in more ways than can be listed: filters,
//! monitors, hooks, drivers, helpers. Git therefore never reads it. Instead, git works on a *view*:
//! a repository folder made by haft, with a configuration written by haft, that borrows the
//! objects, refs, and index of the real repository. haft itself locates the real repository, and
//! only by the name `.git`: a bare repository that someone put into the project is not recognized.
//!
//! Invariants: no program but git itself is started; no submodule is entered; reading commands run
//! in a sandbox without network in which nothing can be written, and writing commands list every
//! folder that they may write to.

mod repository;
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_text::CutLimits;
use tokio_util::sync::CancellationToken;

use crate::commits;
use crate::find_git::find_git;
use crate::{
    Capture, CommandExit, CommandSpec, ConfinementSpec, Network, Sandbox, SandboxError,
    SandboxPolicy, Stdin, Supervisor,
};

pub use repository::Git;

/// Options of every [`GitCall`], which override any configuration.
const COMMON_OPTIONS: &[&str] = &[
    "--no-pager",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.pager=cat",
    "-c",
    "core.quotePath=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "fetch.recurseSubmodules=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "user.name=haft",
    "-c",
    "user.email=haft@localhost",
    "-c",
    "protocol.ext.allow=never",
];

/// Environment variables set for every [`GitCall`].
const FIXED_VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_CEILING_DIRECTORIES", "/"),
    ("LC_ALL", "C"),
];

/// The only variables of the caller's environment that are passed on to git. A command that may use
/// the network also gets the variables for proxies, certificates and the SSH agent.
const PASSED_VARIABLES: &[&str] = &["HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "TZ"];

/// True for the variables that only commands with network access get. `name` is in lower case.
fn is_network_variable(name: &str) -> bool {
    name.ends_with("_proxy") || name.contains("ssl_") || name == "ssh_auth_sock"
}

/// The maximum number of bytes in a command's output; more output is an error.
const MAX_OUTPUT_BYTES: usize = 256 << 20;
/// The maximum number of a server's lines in an error.
const MAX_REASONS: usize = 8;
const GIT_TIMEOUT: Duration = Duration::from_mins(10);

/// An error of a git command.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No trustworthy git program was found.
    #[error("git is not installed, or only where this project or others could have put it")]
    NoProgram,
    /// The project is not in a git repository.
    #[error("not a git repository")]
    NoRepository,
    /// The repository exists, but haft refuses to use it.
    #[error("`{}` is not used: {why}", .at.display())]
    Refused {
        /// The path that is refused.
        at: PathBuf,
        /// The reason for the refusal, as the second half of a sentence.
        why: String,
    },
    /// A folder or another resource that git needs could not be created.
    #[error("cannot prepare `{}`: {source}", .at.display())]
    Prepare { at: PathBuf, source: std::io::Error },
    /// Git could not be started or could not be confined.
    #[error("git cannot be run: {0}")]
    Run(#[from] SandboxError),
    /// Git failed with this message.
    #[error("git: {0}")]
    Failed(String),
}

/// The git program of this machine, with the sandbox that confines it.
#[derive(Clone, Debug)]
pub struct GitProgram {
    path: PathBuf,
    supervisor: Supervisor,
    /// The sandbox in which git runs. It is stored as a whole, because dropping it would end
    /// resources that git needs, such as the proxy.
    sandbox: Sandbox,
    environment: Vec<(String, String)>,
}

/// The changes that go into a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitScope {
    /// The staged changes.
    Staged,
    /// The staged changes and all changes of tracked files.
    Tracked,
}

/// The resources that a git command on one of haft's own repositories may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitReach<'a> {
    /// The repository's folder only, with no configuration except the repository's.
    Local,
    /// The repository's folder and the network, with the user's configuration and credentials.
    Network {
        /// The URL or folder to fetch from.
        source: &'a str,
        /// The socket of the user's SSH agent, if needed. It is the only writable path outside the
        /// repository's folder.
        agent: Option<&'a Path>,
    },
}

/// A git command with its environment and permissions.
#[derive(Default)]
struct GitCall<'a> {
    cwd: &'a str,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
    input: Option<String>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    network: bool,
}

impl GitProgram {
    /// Finds the first git in the `PATH` of `environment` that is outside `projects` and the folders
    /// that commands of `sandbox` may write, and that no other user could have put there. Git will
    /// run in `sandbox`.
    pub fn find(
        supervisor: &Supervisor,
        sandbox: &Sandbox,
        environment: &[(String, String)],
        projects: &[&Path],
    ) -> Result<Self, GitError> {
        let places = environment
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.as_str());
        let writable = sandbox.writable_folders().iter().map(PathBuf::as_path);
        let projects: Vec<_> = projects.iter().copied().chain(writable).collect();
        let path = find_git(places.unwrap_or_default(), &projects).ok_or(GitError::NoProgram)?;
        let supervisor = supervisor.clone();
        let environment = environment.to_vec();
        Ok(Self {
            path,
            supervisor,
            sandbox: sandbox.clone(),
            environment,
        })
    }

    /// Runs a git command on a repository that haft created in `folder`, and returns its output. The
    /// command may write to `folder`. `arguments` must contain the repository's path.
    pub fn run_in_own_folder(
        &self,
        folder: &Path,
        reach: GitReach<'_>,
        arguments: &[&str],
    ) -> Result<Vec<u8>, GitError> {
        let (network, readable, agent) = match reach {
            GitReach::Local => (false, None, None),
            GitReach::Network { source, agent } => (
                true,
                Some(PathBuf::from(source.trim_start_matches("file://"))),
                agent,
            ),
        };
        let readable = readable
            .into_iter()
            .filter(|source| source.is_absolute())
            .collect();
        let arguments = arguments.iter().map(OsString::from).collect();
        let cwd = path_text(folder)?;
        let writable = std::iter::once(folder)
            .chain(agent)
            .map(Path::to_owned)
            .collect();
        self.run(&GitCall {
            cwd,
            arguments,
            readable,
            writable,
            network,
            ..GitCall::default()
        })
    }

    /// Commits to the repository of a project as the user, and returns git's output.
    ///
    /// Programs that the configuration would run for a commit are switched off. If that is
    /// impossible, nothing is committed.
    pub fn commit(
        &self,
        project: &Path,
        scope: CommitScope,
        message: &str,
    ) -> Result<String, GitError> {
        let repository = project.join(".git");
        if !commits::prepare_for_commit(&repository) {
            let why =
                "it is not a plain repository, or its configuration has hooks, filters, drivers or includes".to_owned();
            return Err(GitError::Refused {
                at: repository,
                why,
            });
        }
        let confined = self
            .sandbox
            .confinement_for_commit(project)
            .or_else(|| self.sandbox.confinement());
        let mut argv = vec![
            self.path.clone().into_os_string(),
            "commit".into(),
            "--file=-".into(),
        ];
        match scope {
            CommitScope::Staged => {}
            CommitScope::Tracked => argv.push("--all".into()),
        }
        let mut env: Vec<_> = self
            .environment
            .iter()
            .filter(|(name, _)| PASSED_VARIABLES.contains(&name.as_str()))
            .cloned()
            .collect();
        env.extend([
            ("PATH".to_owned(), self.search_path()),
            ("LC_ALL".to_owned(), "C".to_owned()),
        ]);
        let env = commits::commit_environment(&env, &[project.to_owned()]);
        let stdin = Stdin::Text(message.to_owned());
        let command = CommandSpec {
            argv,
            cwd: project.to_owned(),
            env,
            timeout: GIT_TIMEOUT,
            stdin,
            confined,
        };
        self.run_blocking(&command)
            .map(|printed| String::from_utf8_lossy(&printed).into_owned())
    }

    /// Runs git and returns its output. Blocks the thread, so async code must call it on a thread
    /// for blocking work.
    fn run(&self, call: &GitCall<'_>) -> Result<Vec<u8>, GitError> {
        let mut argv = vec![self.path.clone().into_os_string()];
        argv.extend(COMMON_OPTIONS.iter().map(OsString::from));
        if !call.network {
            argv.extend(
                ["-c", "protocol.allow=never", "-c", "credential.helper="].map(OsString::from),
            );
        }
        argv.extend(call.arguments.iter().cloned());
        let stdin = call.input.clone().map_or(Stdin::Null, Stdin::Text);
        let env = self.call_environment(call);
        let confined = self.confinement(call).map(Arc::new);
        self.run_blocking(&CommandSpec {
            argv,
            cwd: call.cwd.into(),
            env,
            timeout: GIT_TIMEOUT,
            stdin,
            confined,
        })
    }

    fn run_blocking(&self, command: &CommandSpec) -> Result<Vec<u8>, GitError> {
        let capture = Capture {
            limits: CutLimits {
                lines: usize::MAX,
                bytes: MAX_OUTPUT_BYTES,
            },
            ..Capture::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|source| GitError::Prepare {
            at: self.path.clone(),
            source,
        })?;
        let ran = runtime.block_on(self.supervisor.run(
            command,
            &capture,
            &CancellationToken::new(),
        ))?;
        if ran.stdout.bytes > MAX_OUTPUT_BYTES as u64 {
            return Err(GitError::Failed("it printed too much".to_owned()));
        }
        if ran.exit == CommandExit::Code(0) {
            return Ok(ran.stdout.head);
        }
        let said = String::from_utf8_lossy(&ran.stderr.head).into_owned();
        let causes = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
        let line = said
            .lines()
            .find(causes)
            .or_else(|| said.lines().rfind(|line| !line.trim().is_empty()));
        let line = line.map_or_else(|| format!("it ended with {:?}", ran.exit), str::to_owned);
        let line = line.trim_start_matches("fatal: ");
        let line = match extract_refusal_reasons(&said) {
            reasons if reasons.is_empty() => line.to_owned(),
            reasons => format!("{line} ({reasons})"),
        };
        Err(GitError::Failed(match &ran.hidden {
            Some(path) => format!("{line}; {path}; {}", path.remedy()),
            None => line,
        }))
    }

    fn call_environment(&self, call: &GitCall<'_>) -> Vec<(String, String)> {
        let passed = self.environment.iter().filter(|(name, _)| {
            PASSED_VARIABLES.contains(&name.as_str())
                || (call.network && is_network_variable(&name.to_ascii_lowercase()))
        });
        let set = FIXED_VARIABLES
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let own = call
            .environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let mut all: Vec<_> = passed.cloned().chain(set).chain(own).collect();
        all.push(("PATH".to_owned(), self.search_path()));
        if !call.network {
            all.push(("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()));
        }
        all
    }

    /// Returns the `PATH` with which git finds its own programs.
    fn search_path(&self) -> String {
        let beside = self
            .path
            .parent()
            .unwrap_or(Path::new("/usr/bin"))
            .display();
        format!("{beside}:/usr/local/bin:/usr/bin:/bin")
    }

    /// Returns the confinement of a git command, or `None` without a sandbox. Only the folders in
    /// `call.writable` are writable. A command that uses the network may read paths that are
    /// otherwise hidden, such as the user's credentials.
    fn confinement(&self, call: &GitCall<'_>) -> Option<ConfinementSpec> {
        let ConfinementSpec { method, policy } = self.sandbox.confinement()?.as_ref().clone();
        let (hidden, network) = if call.network {
            (Vec::new(), Network::All)
        } else {
            (policy.hidden.clone(), Network::None)
        };
        let projects = Vec::new();
        let writable = call.writable.clone();
        let readable = policy
            .readable
            .iter()
            .chain(&call.readable)
            .cloned()
            .collect();
        Some(ConfinementSpec {
            method,
            policy: SandboxPolicy {
                projects,
                writable,
                hidden,
                readable,
                network,
                ..policy
            },
        })
    }
}

/// Returns the reasons that a server gave for refusing a push: its own lines, and those in which git
/// names the refused branches.
fn extract_refusal_reasons(said: &str) -> String {
    let reasons = said
        .lines()
        .filter_map(|line| match line.strip_prefix("remote:") {
            Some(told) => Some(told.trim()),
            None => line.trim_start().strip_prefix("! ").map(str::trim),
        });
    let reasons: Vec<_> = reasons.filter(|reason| !reason.is_empty()).collect();
    reasons[..reasons.len().min(MAX_REASONS)].join("; ")
}

fn path_text(path: &Path) -> Result<&str, GitError> {
    path.to_str().ok_or_else(|| GitError::Refused {
        at: path.to_owned(),
        why: "its name is not UTF-8".to_owned(),
    })
}

/// Formats paths as git reads them: one per line, quoted so that names may contain any byte.
fn quote_paths<'a>(paths: impl IntoIterator<Item = &'a OsStr>) -> String {
    let mut all = String::new();
    for path in paths {
        all.push('"');
        for byte in path.as_bytes() {
            let _ = match byte {
                b'"' | b'\\' | 0..=31 | 127.. => write!(all, "\\{byte:03o}"),
                _ => write!(all, "{}", char::from(*byte)),
            };
        }
        all.push_str("\"\n");
    }
    all
}
