//! The last restrictions of every confined command, applied between fork and exec.

use std::io;

use landlock::RulesetCreated;
use rustix::thread::set_no_new_privs;
use seccompiler::BpfProgram;

use super::landlock_rules::build_pipe_rules;
use super::seccomp::{self, SocketFamilies};
use super::sys;
use super::{
    AtStep, ConfinementFailure, ConfinementMethod, ConfinementSpec, ConfinementStep, Network,
};

/// The restrictions that a confined command applies last, prepared before the fork.
pub(crate) struct Restrictions {
    filter: BpfProgram,
    /// Rules that keep a command in namespaces from named pipes, if Landlock is available.
    pipes: Option<RulesetCreated>,
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
        let pipes = match confined.method {
            ConfinementMethod::Namespace => build_pipe_rules(&confined.policy),
            ConfinementMethod::Landlock => None,
        };
        Ok(Self { filter, pipes })
    }

    /// Permanently restricts the calling process. May run between fork and exec, because the
    /// process that forks has one thread.
    pub(crate) fn apply(&self) -> io::Result<()> {
        sys::drop_capabilities()?;
        set_no_new_privs(true)?;
        // The keeper itself must stay able to mount, which Landlock would forbid. Failures are
        // ignored, as on a machine without Landlock.
        if let Some(pipes) = &self.pipes {
            let _ = pipes.try_clone().map(RulesetCreated::restrict_self);
        }
        seccompiler::apply_filter(&self.filter).map_err(|error| match error {
            seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
            seccompiler::Error::Backend(_)
            | seccompiler::Error::EmptyFilter
            | seccompiler::Error::ThreadSync(_) => io::Error::from_raw_os_error(libc::EINVAL),
        })
    }
}
