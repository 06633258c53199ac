//! Attempts to leave the sandbox: operations that a hostile command could try, one by one.
//!
//! A [`ProbeSite`] prepares files, sockets, and processes for the attempts, and its
//! [`ProbeTargets`] tell the probing program where they are. That program is this one, started as
//! `haft __probe TARGETS.json`. Each attempt is really made, in its own process, and is undone or
//! harmless if it succeeds.
//!
//! Inside the sandbox, each **escape** must be refused and each **control** must succeed. Outside,
//! escapes must succeed for users who are allowed to do such things, which reveals attempts that
//! could never succeed. The findings are then compared with what the [`ProbeSite`] has observed
//! from outside.
//!
//! Start with [`Finding`], one line of the output, and `files.rs`, which shows how attempts are
//! written. The sandbox exists only on Linux, so this crate is empty elsewhere.
#![expect(
    clippy::disallowed_methods,
    reason = "the probe starts the programs that try to escape"
)]
#![cfg(target_os = "linux")]

mod controls;
mod devices;
mod files;
mod kernel;
mod landlock;
mod links;
mod processes;
mod procfs;
mod protected;
mod secrets;
mod site;
mod sockets;
#[expect(
    unsafe_code,
    reason = "attempts are system calls, many of which no safe library offers"
)]
mod sys;
mod targets;
mod terminal;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

pub use site::ProbeSite;
pub use targets::ProbeTargets;

/// The first argument of a process that makes the attempts. The second argument is the path of the
/// file with the [`ProbeTargets`].
pub const PROBE_ARG: &str = "__probe";

/// The result of one attempt to leave the sandbox, or of one control. Each finding is a line of the
/// output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A phrase that describes the attempt, unique within its group.
    pub name: String,
    /// The name of the group to which the attempt belongs, such as `files`.
    pub group: String,
    /// The expected result: refused for an escape, success for a control.
    pub kind: ProbeKind,
    /// The users for whom the attempt succeeds outside of the sandbox.
    pub outside: Outside,
    pub outcome: ProbeOutcome,
    /// The error message of a refused attempt.
    pub detail: String,
}

impl Finding {
    /// True if the outcome is as expected inside the sandbox, or if the attempt could not be made.
    pub fn is_expected(&self) -> bool {
        match (self.kind, self.outcome) {
            (_, ProbeOutcome::NotApplicable)
            | (ProbeKind::Escape, ProbeOutcome::Refused)
            | (ProbeKind::Control, ProbeOutcome::Succeeded) => true,
            (ProbeKind::Escape, ProbeOutcome::Succeeded)
            | (ProbeKind::Control, ProbeOutcome::Refused) => false,
        }
    }

    /// True if an unexpected outcome of this attempt is a known limit of Landlock. In any other
    /// sandbox layer, it is a hole.
    pub fn is_landlock_limit(&self) -> bool {
        landlock::is_known_limit(self)
    }
}

/// The expected result of an attempt inside the sandbox: refused or successful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// The attempt must be refused.
    Escape,
    /// The attempt must succeed, because a sandbox that refuses everything is useless.
    Control,
}

/// The users for whom an attempt succeeds outside of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    Anyone,
    /// Outside of the sandbox, the attempt succeeds only for root.
    Root,
    /// Outside of the sandbox, the attempt succeeds only on some machines, depending on the kernel,
    /// its settings, the installed programs, and the capabilities of the first process.
    Depends,
}

/// The outcome of an attempt: refused, succeeded, or not applicable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    Refused,
    Succeeded,
    /// The machine lacks a feature or a program that the attempt needs.
    NotApplicable,
}

struct Attempt {
    name: &'static str,
    outside: Outside,
    run: fn(&ProbeTargets) -> AttemptResult,
}

/// Success if an attempt succeeded, else the reason why it was refused or could not be made.
type AttemptResult = Result<(), AttemptFailure>;

enum AttemptFailure {
    Refused(String),
    NotApplicable(String),
}

impl From<io::Error> for AttemptFailure {
    fn from(error: io::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<rustix::io::Errno> for AttemptFailure {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, AttemptFailure> {
    Err(AttemptFailure::Refused(why.into()))
}

fn not_applicable<T>(why: impl Into<String>) -> Result<T, AttemptFailure> {
    Err(AttemptFailure::NotApplicable(why.into()))
}

/// Returns success if `condition` is true, and a refusal with `reason` otherwise.
fn ensure(condition: bool, reason: &str) -> AttemptResult {
    if condition { Ok(()) } else { refused(reason) }
}

/// Creates an attempt that succeeds outside of the sandbox for any user.
const fn attempt_for_anyone(
    name: &'static str,
    run: fn(&ProbeTargets) -> AttemptResult,
) -> Attempt {
    Attempt {
        name,
        outside: Outside::Anyone,
        run,
    }
}

/// Creates an attempt that, outside of the sandbox, succeeds only for root.
const fn attempt_for_root(name: &'static str, run: fn(&ProbeTargets) -> AttemptResult) -> Attempt {
    Attempt {
        name,
        outside: Outside::Root,
        run,
    }
}

/// Creates an attempt that succeeds outside of the sandbox on some machines only.
const fn attempt_for_some_machines(
    name: &'static str,
    run: fn(&ProbeTargets) -> AttemptResult,
) -> Attempt {
    Attempt {
        name,
        outside: Outside::Depends,
        run,
    }
}

const GROUPS: &[(&str, ProbeKind, &[Attempt])] = &[
    ("files", ProbeKind::Escape, files::ATTEMPTS),
    ("links", ProbeKind::Escape, links::ATTEMPTS),
    ("proc", ProbeKind::Escape, procfs::ATTEMPTS),
    ("kernel", ProbeKind::Escape, kernel::ATTEMPTS),
    ("devices", ProbeKind::Escape, devices::ATTEMPTS),
    ("sockets", ProbeKind::Escape, sockets::ATTEMPTS),
    ("processes", ProbeKind::Escape, processes::ATTEMPTS),
    ("terminal", ProbeKind::Escape, terminal::ATTEMPTS),
    ("protected", ProbeKind::Escape, protected::ATTEMPTS),
    ("secrets", ProbeKind::Escape, secrets::ATTEMPTS),
    ("controls", ProbeKind::Control, controls::ATTEMPTS),
];

/// Makes all attempts if the first argument of this process is [`PROBE_ARG`], or else returns
/// `None`. `arguments` includes the program's name.
///
/// Must be called in `main` before any thread is started. Prints one [`Finding`] per line as JSON,
/// and succeeds if all attempts were made, whatever their outcomes.
pub fn probe_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != PROBE_ARG {
        return None;
    }
    let targets = arguments
        .next()
        .and_then(|file| read_targets(Path::new(&file)).ok());
    let done = targets
        .ok_or(io::ErrorKind::InvalidInput.into())
        .and_then(|targets| run_attempts(&targets, &mut io::stdout()));
    Some(if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read_targets(file: &Path) -> io::Result<ProbeTargets> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn run_attempts(targets: &ProbeTargets, out: &mut dyn Write) -> io::Result<()> {
    std::env::set_current_dir(&targets.project)?;
    for (group, kind, attempts) in GROUPS {
        for attempt in *attempts {
            let (outcome, detail) = sys::run_in_child(|| (attempt.run)(targets))?;
            let finding = Finding {
                name: attempt.name.to_owned(),
                group: (*group).to_owned(),
                kind: *kind,
                outside: attempt.outside,
                outcome,
                detail,
            };
            writeln!(out, "{}", serde_json::to_string(&finding)?)?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn attempts_are_many_and_have_unique_names() {
        let of = |wanted: ProbeKind| {
            let groups = GROUPS.iter().filter(move |(_, kind, _)| *kind == wanted);
            groups.flat_map(|(group, _, attempts)| {
                attempts
                    .iter()
                    .map(move |attempt| format!("{group}/{}", attempt.name))
            })
        };
        assert!(
            of(ProbeKind::Escape).count() >= 100,
            "{}",
            of(ProbeKind::Escape).count()
        );
        let all: Vec<_> = of(ProbeKind::Escape)
            .chain(of(ProbeKind::Control))
            .collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
