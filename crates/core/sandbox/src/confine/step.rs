//! The steps of confining a command, so that an error can name the failed one.

use std::fmt;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementStep {
    /// Searching the projects for protected files.
    Search,
    /// Creating namespaces.
    Namespaces,
    /// Mapping the user into the user namespace.
    Users,
    /// Making the file system private and read-only.
    Root,
    /// Mounting a separate `/proc`.
    Proc,
    /// Mounting a minimal `/dev`.
    Devices,
    /// Opening the folders of the policy, before they are mounted.
    Folders,
    /// Mounting the folders that the command may use, and the covers of secrets.
    Places,
    /// Sealing protected files.
    Protected,
    /// Setting up the network of the command.
    Network,
    /// Applying the Landlock rules.
    Landlock,
    /// Dropping privileges, and filtering system calls.
    Restrictions,
}

/// Every step with its description. The index in this list is the step's number in the protocol.
const STEPS: [(ConfinementStep, &str); 12] = [
    (
        ConfinementStep::Search,
        "searching the project for protected files (at most 100,000 folders)",
    ),
    (ConfinementStep::Namespaces, "making namespaces"),
    (ConfinementStep::Users, "mapping the user into a namespace"),
    (ConfinementStep::Root, "making the file system read-only"),
    (ConfinementStep::Proc, "mounting a `/proc` of its own"),
    (ConfinementStep::Devices, "mounting a small `/dev`"),
    (ConfinementStep::Folders, "opening the folders it may use"),
    (
        ConfinementStep::Places,
        "putting folders and covers in place",
    ),
    (ConfinementStep::Protected, "sealing protected files"),
    (ConfinementStep::Network, "setting up its network"),
    (ConfinementStep::Landlock, "restricting it with Landlock"),
    (
        ConfinementStep::Restrictions,
        "dropping privileges and filtering system calls",
    ),
];

impl ConfinementStep {
    fn index(self) -> usize {
        STEPS
            .iter()
            .position(|(step, _)| *step == self)
            .unwrap_or_default()
    }
}

impl fmt::Display for ConfinementStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(STEPS[self.index()].1)
    }
}

/// A failed step with the system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfinementFailure {
    pub(crate) step: ConfinementStep,
    pub(crate) errno: i32,
}

impl ConfinementFailure {
    pub(crate) fn new(step: ConfinementStep, error: &io::Error) -> Self {
        Self {
            step,
            errno: error.raw_os_error().unwrap_or(libc::EINVAL),
        }
    }

    /// Encodes the failure as one number for the protocol.
    pub(crate) fn to_code(self) -> i32 {
        i32::try_from(self.step.index()).unwrap_or_default() << 16 | (self.errno & 0xffff)
    }

    pub(crate) fn from_code(code: i32) -> Option<Self> {
        let step = usize::try_from(code >> 16)
            .ok()
            .and_then(|step| STEPS.get(step))?
            .0;
        Some(Self {
            step,
            errno: code & 0xffff,
        })
    }
}

/// Converts an error to the failure of a confinement step.
pub(crate) trait AtStep<T> {
    fn at_step(self, step: ConfinementStep) -> Result<T, ConfinementFailure>;
}

impl<T, Error: Into<io::Error>> AtStep<T> for Result<T, Error> {
    fn at_step(self, step: ConfinementStep) -> Result<T, ConfinementFailure> {
        self.map_err(|error| ConfinementFailure::new(step, &error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_code_round_trips_for_every_step() {
        for (step, _) in STEPS {
            let failed = ConfinementFailure {
                step,
                errno: libc::EPERM,
            };
            assert_eq!(
                ConfinementFailure::from_code(failed.to_code()),
                Some(failed)
            );
        }
        assert_eq!(ConfinementFailure::from_code(0x7fff_0000), None);
        assert_eq!(ConfinementFailure::from_code(-1), None);
    }
}
