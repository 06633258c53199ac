//! The last restrictions of every confined command, applied between fork and exec.

use std::io;

use rustix::thread::set_no_new_privs;
use seccompiler::BpfProgram;

use super::seccomp::{self, SocketFamilies};
use super::sys;
use super::{
    AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, Network,
};

/// The restrictions that a confined command applies last, prepared before the fork.
pub(crate) struct Restrictions {
    filter: BpfProgram,
}

impl Restrictions {
    pub(crate) fn for_spec(confined: &ConfinementSpec) -> Result<Self, ConfinementFailure> {
        let families = match (confined.method, &confined.policy.network) {
            (ConfinementMethod::Namespace, _) => SocketFamilies::UnixAndInternet,
            // Sockets of other programs are reachable because there is no network namespace.
            (ConfinementMethod::Landlock, Network::All) => SocketFamilies::Internet,
            (ConfinementMethod::Landlock, Network::None | Network::Through(_)) => {
                SocketFamilies::None
            }
        };
        let filter = seccomp::build_filter(families).at_step(ConfinementStep::Restrictions)?;
        Ok(Self { filter })
    }

    /// Permanently restricts the calling process. Makes only system calls, so it may run between
    /// fork and exec.
    pub(crate) fn apply(&self) -> io::Result<()> {
        sys::drop_capabilities()?;
        set_no_new_privs(true)?;
        seccompiler::apply_filter(&self.filter).map_err(|error| match error {
            seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
            seccompiler::Error::Backend(_)
            | seccompiler::Error::EmptyFilter
            | seccompiler::Error::ThreadSync(_) => io::Error::from_raw_os_error(libc::EINVAL),
        })
    }
}
