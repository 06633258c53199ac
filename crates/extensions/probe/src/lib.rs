//! Attempts to leave the sandbox: what a hostile command would try, one by one.
//!
//! A [`ProbeSite`] is a small world on disk with something to reach in every forbidden direction;
//! its [`ProbeTargets`] tell the program that tries, which is this one started as `haft __probe
//! TARGETS.json`, where all of it is. Every attempt is really made, in a process of its own, and
//! undone or harmless if it succeeds. Inside the sandbox each **escape** must be refused and each
//! **control** must succeed; outside it is the other way round for whoever may do such things, so
//! that an attempt that could never succeed is noticed. What the attempts say is then compared with
//! what the [`ProbeSite`] has seen from outside.
//!
//! Read first: [`Finding`], one line of the output; `files.rs` for what an attempt looks like.
//! There is a sandbox on Linux only, so elsewhere this crate is empty.
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

/// The first argument with which a program is started to make the attempts; the second is the file
/// of the [`ProbeTargets`].
pub const PROBE_ARG: &str = "__probe";

/// What came of an attempt: a line of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was attempted.
    pub name: String,
    /// Where attempts of its kind are.
    pub group: String,
    /// Whether it should be refused.
    pub kind: ProbeKind,
    /// Who could do it outside.
    pub outside: Outside,
    /// What came of it.
    pub outcome: ProbeOutcome,
    /// What the system said.
    pub detail: String,
}

impl Finding {
    /// Whether this is as it should be inside the sandbox.
    pub fn holds(&self) -> bool {
        match (self.kind, self.outcome) {
            (_, ProbeOutcome::NotApplicable)
            | (ProbeKind::Escape, ProbeOutcome::Refused)
            | (ProbeKind::Control, ProbeOutcome::Succeeded) => true,
            (ProbeKind::Escape, ProbeOutcome::Succeeded)
            | (ProbeKind::Control, ProbeOutcome::Refused) => false,
        }
    }

    /// Whether Landlock alone is known to leave this as it is: no surprise in that layer, a hole in
    /// any other.
    pub fn is_limit_of_landlock(&self) -> bool {
        landlock::is_limit(self)
    }
}

/// Whether an attempt should be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// It must not succeed.
    Escape,
    /// It must: a sandbox that refuses everything is of no use.
    Control,
}

/// Who can do outside the sandbox what is attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// Every user.
    Anyone,
    /// Root.
    Root,
    /// That depends on the kernel, its settings, what is installed, and what the first process
    /// holds that root may not.
    Depends,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// It failed.
    Refused,
    /// It succeeded.
    Succeeded,
    /// There is nothing to attempt it on.
    NotApplicable,
}

/// An attempt.
struct Attempt {
    name: &'static str,
    outside: Outside,
    run: fn(&ProbeTargets) -> Tried,
}

/// Succeeded, or why not.
type Tried = Result<(), AttemptFailure>;

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

/// Succeeded if so.
fn holds(so: bool, otherwise: &str) -> Tried {
    if so { Ok(()) } else { refused(otherwise) }
}

/// An attempt that any user could make outside.
const fn anyone(name: &'static str, run: fn(&ProbeTargets) -> Tried) -> Attempt {
    Attempt {
        name,
        outside: Outside::Anyone,
        run,
    }
}

/// An attempt that root could make outside.
const fn root(name: &'static str, run: fn(&ProbeTargets) -> Tried) -> Attempt {
    Attempt {
        name,
        outside: Outside::Root,
        run,
    }
}

/// An attempt that can be made outside on some machines.
const fn depends(name: &'static str, run: fn(&ProbeTargets) -> Tried) -> Attempt {
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

/// Makes all attempts if the arguments of this process, the program's name included, say so.
///
/// `main` calls it early, before it starts a thread. It prints one [`Finding`] a line, in JSON, and
/// succeeds if all attempts were made, whatever came of them.
pub fn probe_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != PROBE_ARG {
        return None;
    }
    let targets = arguments
        .next()
        .and_then(|file| read(Path::new(&file)).ok());
    let done = targets
        .ok_or(io::ErrorKind::InvalidInput.into())
        .and_then(|targets| probe(&targets, &mut io::stdout()));
    Some(if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read(file: &Path) -> io::Result<ProbeTargets> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn probe(targets: &ProbeTargets, out: &mut dyn Write) -> io::Result<()> {
    std::env::set_current_dir(&targets.project)?;
    for (group, kind, attempts) in GROUPS {
        for attempt in *attempts {
            let (outcome, detail) = sys::in_a_process(|| (attempt.run)(targets))?;
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
    fn there_are_many_attempts_and_each_has_a_name() {
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
