//! From a policy to a command that is held in.
//!
//! Two ways, best first. In a **namespace** of its own the command sees the file system read-only but for the project, added
//! folders and a private `/tmp`; secrets are covered, protected files are sealed whether or not they exist, and there is no
//! network that was not granted. With **Landlock** alone it can write no more than that, but protected files inside the
//! project cannot be told from others. Both add what every confined command gets: no new privileges, no capabilities that
//! reach beyond files, and a filter that refuses the system calls by which processes leave such places.
//!
//! Everything happens in the helper, between haft and the command. Invariant: a command that was to be confined either runs
//! confined, by exactly the way asked for, or does not run.

mod covers;
mod filter;
mod known_folders;
mod locked;
mod mounts;
mod names;
mod policy;
mod restrict;
mod sockets;
mod step;
#[expect(unsafe_code, reason = "system calls that neither the standard library nor rustix offers")]
mod sys;

pub(crate) use covers::PlacedCovers;
pub use covers::remove_left_covers;
pub(crate) use locked::{lock_in, lock_pipes};
pub(crate) use mounts::{HostState, PROXY_SOCKET, build};
pub use policy::{Network, SandboxPolicy, secret_places};
pub(crate) use policy::{PROXY_PORT, environment};
pub(crate) use restrict::Restrictions;
pub(crate) use sockets::bound_sockets;
pub use step::ConfinementStep;
pub(crate) use step::{AtStep, ConfinementFailure};
pub(crate) use sys::loopback_up;

use serde::Serialize;

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
