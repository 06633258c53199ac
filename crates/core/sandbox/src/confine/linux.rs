//! Confinement on Linux.

mod covers;
mod known_folders;
mod landlock_rules;
mod mounts;
mod protected_names;
mod restrict;
mod seccomp;
mod sockets;
#[expect(
    unsafe_code,
    reason = "system calls that neither the standard library nor rustix offers"
)]
mod sys;

pub(crate) use covers::PlacedCovers;
pub use covers::remove_stale_covers;
pub(crate) use landlock_rules::{restrict_pipes, restrict_with_landlock};
pub(crate) use mounts::{HostState, PROXY_SOCKET, build_file_system};
pub(crate) use restrict::Restrictions;
pub(crate) use sockets::list_bound_sockets;
pub(crate) use sys::bring_up_loopback;

use super::{
    AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, Network,
    SandboxPolicy,
};
