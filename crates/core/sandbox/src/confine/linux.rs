//! Confinement on Linux.

mod call_paths;
mod creating_calls;
mod host_state;
mod known_folders;
mod landlock_rules;
mod link_steps;
mod mount_aliases;
mod mounts;
mod name_monitor;
mod name_watch;
mod protected_names;
mod restrict;
mod seccomp;
mod sockets;
mod stale_covers;
#[expect(
    unsafe_code,
    reason = "system calls that neither the standard library nor rustix offers"
)]
mod sys;

pub(crate) use host_state::HostState;
pub(crate) use landlock_rules::restrict_with_landlock;
pub(crate) use mounts::{PROXY_SOCKET, build_file_system};
pub(crate) use name_monitor::{NameMonitor, Watched};
pub(crate) use name_watch::NameNotice;
pub(crate) use restrict::Restrictions;
pub use stale_covers::remove_stale_covers;
pub(crate) use sys::bring_up_loopback;

use super::{
    AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, Network,
    SandboxPolicy,
};
