//! From a policy to a command that is held in.
//!
//! Two ways, best first. In a **namespace** of its own the command sees the file system read-only
//! but for the project, added folders and a private `/tmp`; secrets are covered, protected files
//! are sealed whether or not they exist, and there is no network that was not granted. With
//! **Landlock** alone it can write no more than that, but protected files inside the project cannot
//! be told from others. Both add what every confined command gets: no new privileges, no
//! capabilities that reach beyond files, and a filter that refuses the system calls by which
//! processes leave such places.
//!
//! Only Linux has either. Everything happens in the helper, between haft and the command.
//! Invariant: a command that was to be confined either runs confined, by exactly the way asked for,
//! or does not run.

#[cfg(target_os = "linux")]
mod linux;
mod policy;
mod step;

#[cfg(target_os = "linux")]
pub use linux::remove_left_covers;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    HostState, PROXY_SOCKET, PlacedCovers, Restrictions, bound_sockets, build, lock_in, lock_pipes,
    loopback_up,
};
pub use policy::{Network, SandboxPolicy, secret_places};
pub(crate) use policy::{PROXY_PORT, environment};
pub use step::ConfinementStep;
pub(crate) use step::{AtStep, ConfinementFailure};

use serde::Serialize;

/// No covers are made here, so none are left.
#[cfg(not(target_os = "linux"))]
pub fn remove_left_covers(_notes: &std::path::Path) -> std::io::Result<()> {
    Ok(())
}

/// How a command is held in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementMethod {
    /// In namespaces of its own, made by the helper.
    Namespace,
    /// By Landlock and a filter of system calls.
    Landlock,
}

/// What holds a command in: how, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementSpec {
    /// How.
    pub method: ConfinementMethod,
    /// What it may do.
    pub policy: SandboxPolicy,
}
