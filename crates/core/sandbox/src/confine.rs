//! Confines a command according to a policy.
//!
//! There are two methods, the stronger first. In **namespaces** the command sees a read-only file
//! system except for the project, added folders, and a private `/tmp`. Secrets are covered,
//! protected files are sealed, protected names that don't exist are watched, and only the granted
//! network is reachable.
//! With **Landlock** alone the command can write to these folders only, too, but protected files
//! inside the project cannot be excluded. Both methods add the restrictions that every confined
//! command gets: no new privileges, no capabilities except those over files, and a filter that
//! refuses the system calls by which a process could escape.
//!
//! Only Linux supports these methods. The setup runs in the helper, between haft and the command.
//!
//! Invariant: a command with a confinement runs confined by exactly the requested method, or does
//! not run.

#[cfg(target_os = "linux")]
mod linux;
mod policy;
mod secret_places;
mod step;

#[cfg(target_os = "linux")]
pub use linux::remove_stale_covers;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    HostState, NameMonitor, NameNotice, PROXY_SOCKET, Restrictions, Watched, bring_up_loopback,
    build_file_system, restrict_with_landlock,
};
pub use policy::{Network, SandboxPolicy};
pub(crate) use policy::{PROXY_PORT, confined_environment};
pub use secret_places::secret_paths;
pub use step::ConfinementStep;
pub(crate) use step::{AtStep, ConfinementFailure};

use serde::Serialize;

/// Does nothing, because covers were created only on Linux.
#[cfg(not(target_os = "linux"))]
pub fn remove_stale_covers(_notes: &std::path::Path) -> std::io::Result<()> {
    Ok(())
}

/// The mechanism that confines a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementMethod {
    /// Namespaces, created by the helper.
    Namespace,
    /// Landlock and a system call filter.
    Landlock,
}

/// The confinement of a command: the method, and the policy that it enforces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementSpec {
    pub method: ConfinementMethod,
    pub policy: SandboxPolicy,
}
