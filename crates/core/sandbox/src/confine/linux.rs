//! Confinement on Linux.

mod covers;
mod known_folders;
mod locked;
mod mounts;
mod names;
mod restrict;
mod seccomp;
mod sockets;
#[expect(
    unsafe_code,
    reason = "system calls that neither the standard library nor rustix offers"
)]
mod sys;

pub(crate) use covers::PlacedCovers;
pub use covers::remove_left_covers;
pub(crate) use locked::{lock_in, lock_pipes};
pub(crate) use mounts::{HostState, PROXY_SOCKET, build};
pub(crate) use restrict::Restrictions;
pub(crate) use sockets::bound_sockets;
pub(crate) use sys::loopback_up;

use super::{
    AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, Network,
    SandboxPolicy,
};
