//! Sets up the best sandbox that works on this machine and keeps its status.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_types::{SandboxLayer, SandboxStatus};
use tokio_util::sync::CancellationToken;

use crate::commits;
use crate::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, HELPER_ARG, Network,
    Proxy, RefusedHosts, SandboxError, SandboxMode, SandboxPolicy, Supervisor,
};

/// The time limit for a trial command, which does nothing. The limit is generous because a sandbox
/// that fails is replaced by a weaker one: a busy machine must not count as a failure.
const TRIAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The sandbox that confines commands, or the reason why there is none.
#[derive(Clone, Debug)]
pub struct Sandbox {
    status: SandboxStatus,
    confined: Option<Arc<ConfinementSpec>>,
    /// The folders that commands may write. They are known even if there is no sandbox.
    writable: Vec<PathBuf>,
    is_limited: bool,
    /// Objects, such as the proxy, that must live as long as commands run in this sandbox.
    resources: Vec<Arc<dyn Any + Send + Sync>>,
    /// The hosts that the proxy of this sandbox refused.
    refused_hosts: RefusedHosts,
}

impl Sandbox {
    /// Finds the best sandbox that works on this machine by confining a process that does nothing.
    pub async fn set_up(supervisor: &Supervisor, policy: SandboxPolicy, mode: SandboxMode) -> Self {
        if cfg!(not(target_os = "linux")) {
            return Self::disabled("haft has no sandbox for this system, only for Linux");
        }
        let methods: &[ConfinementMethod] = match mode {
            SandboxMode::Auto => &[ConfinementMethod::Namespace, ConfinementMethod::Landlock],
            SandboxMode::Namespace => &[ConfinementMethod::Namespace],
            SandboxMode::Landlock => &[ConfinementMethod::Landlock],
            SandboxMode::Off => {
                return Self::disabled("it is switched off (`[sandbox] mode = \"off\"`)");
            }
        };
        let mut reasons = Vec::new();
        for method in methods {
            match try_confinement(supervisor, &policy, *method).await {
                Ok(()) => {
                    let layer = match method {
                        ConfinementMethod::Namespace => SandboxLayer::Namespace,
                        ConfinementMethod::Landlock => {
                            reasons.push(LANDLOCK_LIMITATION.to_owned());
                            if let Network::Through(_) = policy.network {
                                reasons.push(NO_HOSTS_LIMITATION.to_owned());
                            }
                            SandboxLayer::Landlock
                        }
                    };
                    let writable = [policy.projects.as_slice(), &policy.writable].concat();
                    let confined = Some(Arc::new(ConfinementSpec {
                        method: *method,
                        policy,
                    }));
                    return Self {
                        status: SandboxStatus { layer, reasons },
                        confined,
                        writable,
                        is_limited: false,
                        resources: Vec::new(),
                        refused_hosts: RefusedHosts::default(),
                    };
                }
                Err(why) => {
                    reasons.push(format!("{}: {why}", describe_unavailable_method(*method)));
                }
            }
        }
        Self {
            status: SandboxStatus {
                layer: SandboxLayer::None,
                reasons,
            },
            confined: None,
            writable: [policy.projects, policy.writable].concat(),
            is_limited: false,
            resources: Vec::new(),
            refused_hosts: RefusedHosts::default(),
        }
    }

    /// Returns a sandbox that confines nothing. `reason` is reported to the user.
    pub fn disabled(reason: &str) -> Self {
        let status = SandboxStatus {
            layer: SandboxLayer::None,
            reasons: vec![reason.to_owned()],
        };
        Self {
            status,
            confined: None,
            writable: Vec::new(),
            is_limited: false,
            resources: Vec::new(),
            refused_hosts: RefusedHosts::default(),
        }
    }

    /// Sets the folders that commands may write, for a sandbox that confines nothing.
    #[must_use]
    pub fn with_writable_folders(mut self, folders: Vec<PathBuf>) -> Self {
        self.writable = folders;
        self
    }

    /// Returns the folders that commands may write. Programs that haft runs by itself are not
    /// looked up there.
    pub fn writable_folders(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Returns this sandbox with `folder`, which is otherwise hidden, readable for commands.
    #[must_use]
    pub fn with_readable(&self, folder: PathBuf) -> Self {
        let shown = |confined: &Arc<ConfinementSpec>| {
            let mut shown = confined.as_ref().clone();
            shown.policy.readable.push(folder);
            Arc::new(shown)
        };
        Self {
            confined: self.confined.as_ref().map(shown),
            ..self.clone()
        }
    }

    /// Returns this sandbox with a limitation, which is reported to the user: commands in it need
    /// approval.
    #[must_use]
    pub fn with_limitation(mut self, reason: &str) -> Self {
        self.status.reasons.push(reason.to_owned());
        self.is_limited = true;
        self
    }

    /// True if the sandbox does not hold what its layer promises.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Keeps `thing`, for example a proxy, alive as long as this sandbox lives.
    #[must_use]
    pub fn with_resource(mut self, thing: Arc<dyn Any + Send + Sync>) -> Self {
        self.resources.push(thing);
        self
    }

    /// Lets `proxy` filter the network of this sandbox, and keeps the proxy alive.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.refused_hosts = proxy.refused_hosts();
        self.with_resource(Arc::new(proxy))
    }

    /// Returns the hosts that the proxy refused since `start`, as `HOST:PORT`.
    pub fn refused_hosts_since(&self, start: Instant) -> Vec<String> {
        self.refused_hosts.list_since(start)
    }

    /// Returns this sandbox with `projects` as the writable project folders.
    #[must_use]
    pub fn with_projects(&self, projects: Vec<PathBuf>) -> Self {
        let moved = |confined: &Arc<ConfinementSpec>| {
            Arc::new(ConfinementSpec {
                method: confined.method,
                policy: SandboxPolicy {
                    projects,
                    ..confined.policy.clone()
                },
            })
        };
        Self {
            confined: self.confined.as_ref().map(moved),
            ..self.clone()
        }
    }

    /// Returns the confinement for a command that may commit to the repository of `project`.
    ///
    /// Returns `None` without namespaces, and if the repository's configuration names unknown
    /// programs.
    pub fn confinement_for_commit(&self, project: &Path) -> Option<Arc<ConfinementSpec>> {
        let ConfinementSpec { method, policy } = self.confined.as_ref()?.as_ref();
        let repository = project.join(".git");
        let is_supported = *method == ConfinementMethod::Namespace
            && policy.projects.iter().any(|own| own == project);
        if !is_supported || !commits::prepare_for_commit(&repository) {
            return None;
        }
        let policy = SandboxPolicy {
            repositories: vec![repository],
            ..policy.clone()
        };
        Some(Arc::new(ConfinementSpec {
            method: *method,
            policy,
        }))
    }

    /// Returns the active layer and the reasons why no stronger one is used.
    pub fn status(&self) -> &SandboxStatus {
        &self.status
    }

    /// Returns the confinement that applies to every command, or `None` if commands run unconfined.
    pub fn confinement(&self) -> Option<Arc<ConfinementSpec>> {
        self.confined.clone()
    }
}

/// The limitation reported if only Landlock is available.
const LANDLOCK_LIMITATION: &str = "Landlock cannot protect files inside the project, such as `.git`: commands that write are asked for";

/// The limitation reported if hosts are listed and only Landlock is available.
const NO_HOSTS_LIMITATION: &str =
    "single hosts cannot be reached without namespaces: there is no network";

fn describe_unavailable_method(method: ConfinementMethod) -> &'static str {
    match method {
        ConfinementMethod::Namespace => "namespaces cannot be had",
        ConfinementMethod::Landlock => "Landlock cannot be had",
    }
}

/// Confines a process that does nothing and does not even start a program. The project folders are
/// left out, so that the trial leaves no trace in them.
async fn try_confinement(
    supervisor: &Supervisor,
    policy: &SandboxPolicy,
    method: ConfinementMethod,
) -> Result<(), String> {
    let policy = SandboxPolicy {
        projects: Vec::new(),
        ..policy.clone()
    };
    let confined = Some(Arc::new(ConfinementSpec { method, policy }));
    let command = CommandSpec {
        argv: vec![HELPER_ARG.into()],
        ..CommandSpec::shell("", "/")
    };
    let command = command
        .with_timeout(TRIAL_TIMEOUT)
        .with_confinement(confined);
    match supervisor
        .run(&command, &Capture::default(), &CancellationToken::new())
        .await
    {
        Ok(finished) if finished.exit == CommandExit::Code(0) => Ok(()),
        Ok(finished) => Err(format!(
            "a process that does nothing ended with {:?}",
            finished.exit
        )),
        Err(SandboxError::Confinement { step, source }) => Err(format!("{step}: {source}")),
        Err(other) => Err(other.to_string()),
    }
}

/// Returns a path from the configuration as an absolute path, with a leading `~/` replaced by the
/// home folder. Returns `None` for a relative path, and for `~/` without a home folder.
pub fn resolve_configured_path(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match (path.strip_prefix("~"), home) {
        (Ok(inside), Some(home)) => Some(home.join(inside)),
        (Ok(_), None) => None,
        (Err(_), _) => path.is_absolute().then(|| path.to_owned()),
    }
}
