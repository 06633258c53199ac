//! The sandbox commands run in: the best one that can be had here, and what is known of it.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_types::{SandboxLayer, SandboxStatus};
use tokio_util::sync::CancellationToken;

use crate::commits;
use crate::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, HELPER_ARG, Network,
    SandboxError, SandboxMode, SandboxPolicy, Supervisor,
};

/// How long a command that does nothing may take in a sandbox that is tried. A sandbox that fails
/// is replaced by a weaker one, so a busy machine must not be taken for a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// The sandbox that commands run in.
#[derive(Clone, Debug)]
pub struct Sandbox {
    status: SandboxStatus,
    confined: Option<Arc<ConfinementSpec>>,
    /// What must be there as long as commands run in it.
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Sandbox {
    /// Finds the best sandbox that can be had here, by trying: a process that does nothing is
    /// confined.
    pub async fn set_up(supervisor: &Supervisor, policy: SandboxPolicy, mode: SandboxMode) -> Self {
        if cfg!(not(target_os = "linux")) {
            return Self::off("haft has no sandbox for this system, only for Linux");
        }
        let methods: &[ConfinementMethod] = match mode {
            SandboxMode::Auto => &[ConfinementMethod::Namespace, ConfinementMethod::Landlock],
            SandboxMode::Namespace => &[ConfinementMethod::Namespace],
            SandboxMode::Landlock => &[ConfinementMethod::Landlock],
            SandboxMode::Off => {
                return Self::off("it is switched off (`[sandbox] mode = \"off\"`)");
            }
        };
        let mut reasons = Vec::new();
        for method in methods {
            match attempt(supervisor, &policy, *method).await {
                Ok(()) => {
                    let layer = match method {
                        ConfinementMethod::Namespace => SandboxLayer::Namespace,
                        ConfinementMethod::Landlock => {
                            reasons.push(LANDLOCK.to_owned());
                            if let Network::Through(_) = policy.network {
                                reasons.push(NO_HOSTS.to_owned());
                            }
                            SandboxLayer::Landlock
                        }
                    };
                    let confined = Some(Arc::new(ConfinementSpec {
                        method: *method,
                        policy,
                    }));
                    return Self {
                        status: SandboxStatus { layer, reasons },
                        confined,
                        kept: Vec::new(),
                    };
                }
                Err(why) => reasons.push(format!("{}: {why}", name(*method))),
            }
        }
        Self {
            status: SandboxStatus {
                layer: SandboxLayer::None,
                reasons,
            },
            confined: None,
            kept: Vec::new(),
        }
    }

    /// None, for this reason.
    pub fn off(reason: &str) -> Self {
        let status = SandboxStatus {
            layer: SandboxLayer::None,
            reasons: vec![reason.to_owned()],
        };
        Self {
            status,
            confined: None,
            kept: Vec::new(),
        }
    }

    /// The same, which keeps this as long as it is there itself.
    #[must_use]
    pub fn keeping(mut self, thing: Arc<dyn Any + Send + Sync>) -> Self {
        self.kept.push(thing);
        self
    }

    /// The same for commands that work in these folders, and not in those of the project.
    #[must_use]
    pub fn for_work_in(&self, projects: Vec<PathBuf>) -> Self {
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

    /// What is put on a command that may commit to the repository of a project; nothing where it
    /// may not: without namespaces, and where the repository's configuration names programs
    /// that are not known.
    pub fn for_commit(&self, project: &Path) -> Option<Arc<ConfinementSpec>> {
        let ConfinementSpec { method, policy } = self.confined.as_ref()?.as_ref();
        let repository = project.join(".git");
        let may = *method == ConfinementMethod::Namespace
            && policy.projects.iter().any(|own| own == project);
        if !may || !commits::may_be_written(&repository) {
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

    /// What holds commands in, and why it is no more.
    pub fn status(&self) -> &SandboxStatus {
        &self.status
    }

    /// What is put on each command; nothing when there is no sandbox.
    pub fn confined(&self) -> Option<Arc<ConfinementSpec>> {
        self.confined.clone()
    }
}

/// What Landlock alone leaves open.
const LANDLOCK: &str = "Landlock cannot protect files inside the project, such as `.git`: commands that write are asked for";

/// What it takes away beside.
const NO_HOSTS: &str = "single hosts cannot be reached without namespaces: there is no network";

fn name(method: ConfinementMethod) -> &'static str {
    match method {
        ConfinementMethod::Namespace => "namespaces cannot be had",
        ConfinementMethod::Landlock => "Landlock cannot be had",
    }
}

/// Confines a process that does nothing else, not even start a program. The project is left out:
/// nothing is to be seen of this in it.
async fn attempt(
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
    let command = command.timeout(PATIENCE).confined(confined);
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

/// A path of the configuration: absolute, or below the home folder with `~/`.
pub fn configured_path(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match (path.strip_prefix("~"), home) {
        (Ok(inside), Some(home)) => Some(home.join(inside)),
        (Ok(_), None) => None,
        (Err(_), _) => path.is_absolute().then(|| path.to_owned()),
    }
}
