//! Exit codes, and how a failure is printed.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use haft_agent::{
    ConfigError, FolderError, HostEnvironment, KeyError, SandboxSetupError, SetupError,
};
use haft_claude::ClaudeError;
use haft_model::ModelError;
use haft_types::Outcome;

use crate::output::hints;

/// The documented exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessExit {
    /// The task is done.
    Completed,
    /// It could not go on.
    Failed,
    /// Wrong usage or configuration, or no request ever got a valid reply.
    Usage,
    /// A person is needed.
    Waiting,
    /// A limit was reached.
    Exhausted,
    /// Cancelled.
    Aborted,
}

impl From<ProcessExit> for ExitCode {
    fn from(exit: ProcessExit) -> Self {
        Self::from(match exit {
            ProcessExit::Completed => 0,
            ProcessExit::Failed => 1,
            ProcessExit::Usage => 2,
            ProcessExit::Waiting => 3,
            ProcessExit::Exhausted => 4,
            ProcessExit::Aborted => 130,
        })
    }
}

impl From<Outcome> for ProcessExit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Waiting => Self::Waiting,
            Outcome::Aborted => Self::Aborted,
            Outcome::Exhausted => Self::Exhausted,
            Outcome::Failed => Self::Failed,
        }
    }
}

/// An error in usage or configuration, printed on one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// An [`anyhow::Error`] that exits with the code for usage errors.
pub(crate) fn usage_error(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Prints a panic like any failure: on one line, with secrets masked, those of `environment` too.
pub(crate) fn mask_panics(environment: HostEnvironment) {
    std::panic::set_hook(Box::new(move |panic| {
        // The message of a panic may hold anything; the log gets the place alone.
        let at = panic.location().map(ToString::to_string);
        tracing::error!(at, "panic");
        crate::wiring::log::flush();
        let text = haft_text::Masker::knowing(environment.secret_values())
            .mask(&panic.to_string())
            .replace('\n', " ");
        drop(writeln!(
            std::io::stderr(),
            "haft: this is a bug: {}",
            haft_text::sanitise(&text)
        ));
    }));
}

/// Logs a failure that ends a command: its kind, and for wrong configuration the place of the
/// mistake. Messages may repeat an argument, a prompt, a value, or an answer of a server, so they
/// are not logged.
pub(crate) fn log(failure: &anyhow::Error, environment: &HostEnvironment) {
    let (code, reason) = failure.chain().find_map(kind).unwrap_or(("failed", None));
    if reason.is_some() {
        // A configuration that cannot be loaded starts no log.
        crate::wiring::log::start_default(environment);
    }
    tracing::error!(code, reason, "command failed");
}

/// Returns the code of an error in a chain, and its message if that may be logged.
fn kind(cause: &(dyn Error + 'static)) -> Option<(&'static str, Option<String>)> {
    if let Some(error) = cause.downcast_ref::<SetupError>() {
        return Some(kind_of_setup(error));
    }
    if let Some(error) = cause.downcast_ref::<ConfigError>() {
        return Some(("configuration", Some(place_of(error))));
    }
    if let Some(error) = cause.downcast_ref::<KeyError>() {
        return Some(("key", Some(format!("provider `{}`", error.provider))));
    }
    if cause.is::<FolderError>() || cause.is::<SandboxSetupError>() {
        return Some((
            "folder",
            Some(haft_text::without_quoted(&cause.to_string())),
        ));
    }
    if let Some(error) = cause.downcast_ref::<ModelError>() {
        return Some((error.code(), None));
    }
    (cause.is::<UsageError>() || cause.is::<ClaudeError>()).then_some(("usage", None))
}

/// Like [`kind`], for what keeps a session from being opened.
fn kind_of_setup(error: &SetupError) -> (&'static str, Option<String>) {
    let in_own_words = || Some(haft_text::without_quoted(&error.to_string()));
    match error {
        SetupError::Config(error) => ("configuration", Some(place_of(error))),
        SetupError::Key(error) => ("key", Some(format!("provider `{}`", error.provider))),
        SetupError::Folder(_) | SetupError::Sandbox(_) | SetupError::Prompt { .. } => {
            ("folder", in_own_words())
        }
        SetupError::NoModel | SetupError::NoRole { .. } | SetupError::NoServer => {
            ("configuration", in_own_words())
        }
        SetupError::Client(error) => (error.code(), None),
        SetupError::Model(_) => ("model", None),
        SetupError::Policy(_) => ("project_policy", None),
        SetupError::Trust(_) => ("trust", None),
        SetupError::UnknownAgent { .. } => ("agent", None),
        SetupError::Schema(_) => ("schema", None),
        SetupError::Store(_) => ("store", None),
        // Names of conversations begin as prompts.
        SetupError::Open(_) => ("conversation", None),
        SetupError::Io(_) => ("io", None),
    }
}

/// Returns where a mistake in the configuration is, without the value that stands there.
fn place_of(error: &ConfigError) -> String {
    match error {
        ConfigError::InFile {
            file,
            line,
            column,
            problem,
        } => {
            let unknown = if problem.starts_with("unknown key") {
                problem.as_str()
            } else {
                "a value does not fit"
            };
            format!("{}:{line}:{column}: {unknown}", file.display())
        }
        ConfigError::Several(errors) => errors.iter().map(place_of).collect::<Vec<_>>().join("; "),
        ConfigError::InVariable { name, .. } => format!("environment variable `{name}`"),
        ConfigError::InSet { set, .. } => {
            format!("`--set {}`", set.split('=').next().unwrap_or_default())
        }
        ConfigError::Unreadable { .. }
        | ConfigError::Unwritable { .. }
        | ConfigError::NotAKey(_) => error.to_string(),
        ConfigError::Rules(_) => "a permission rule cannot be read".to_owned(),
        ConfigError::Value(_) | ConfigError::NotToml(_) => "a value does not fit".to_owned(),
    }
}

/// Prints a failure on stderr and gives its exit code.
pub(crate) fn report(failure: &anyhow::Error) -> ProcessExit {
    let code = failure
        .chain()
        .find_map(|cause| cause.downcast_ref().map(ModelError::code));
    let mut text = haft_tui::worded(code.unwrap_or_default(), &in_one_line(failure));
    if let Some(hint) = failure.chain().find_map(hints::for_error) {
        text = text!("hints-error", error = text, hint);
    }
    if failure
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(ConfigError::Several(_))))
    {
        text = text.replace('\n', "\nhaft: ");
    }
    drop(writeln!(
        std::io::stderr(),
        "haft: {}",
        haft_text::sanitise(&text)
    ));
    if failure.chain().any(is_usage) {
        ProcessExit::Usage
    } else {
        ProcessExit::Failed
    }
}

/// Whether the user can mend it in how haft was called or configured.
fn is_usage(cause: &(dyn Error + 'static)) -> bool {
    cause.is::<UsageError>()
        || cause.is::<ClaudeError>()
        || cause.is::<ConfigError>()
        || cause.is::<KeyError>()
        || cause.downcast_ref().is_some_and(FolderError::is_usage)
        || cause
            .downcast_ref()
            .is_some_and(SandboxSetupError::is_usage)
        || cause.downcast_ref().is_some_and(SetupError::is_usage)
}

/// The failure and its causes on one line, or one line for each broken place of a file. A cause
/// that only repeats the one before is left out.
pub(crate) fn in_one_line(failure: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in failure.chain().map(ToString::to_string) {
        let cause = cause
            .lines()
            .map(haft_messages::error_text)
            .collect::<Vec<_>>()
            .join("\n");
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = text!("hints-cause", error = text, cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_not_said_twice() {
        let failure = anyhow::Error::msg("disk is full")
            .context("cannot write a: disk is full")
            .context("cannot save");
        assert_eq!(
            in_one_line(&failure),
            "cannot save: cannot write a: disk is full"
        );
    }
}
