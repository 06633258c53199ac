//! Defines the exit codes, and logs and prints the failure that ends a command.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use haft_agent::{
    ConfigError, FolderError, HostEnvironment, KeyError, SandboxSetupError, SetupError,
};
use haft_claude::ClaudeError;
use haft_inspect::InspectError;
use haft_model::ModelError;
use haft_types::Outcome;

use crate::output::hints;

/// The exit status of haft. Each variant has a documented exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessExit {
    /// The task is done.
    Completed,
    /// The task failed.
    Failed,
    /// Wrong usage or configuration, or no request ever got a valid reply.
    Usage,
    /// The run stopped because it needs a person, such as for an approval.
    Waiting,
    /// A limit of the run was reached, such as its budget or its time.
    Exhausted,
    /// The run was canceled.
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

/// Returns an error that exits with [`ProcessExit::Usage`].
pub(crate) fn usage_error(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Installs a panic hook that prints a panic like any failure: on one line, with secrets masked,
/// including the secret values in `environment`.
pub(crate) fn install_panic_hook(environment: HostEnvironment) {
    std::panic::set_hook(Box::new(move |panic| {
        // A panic message may contain anything, so the log gets only the location.
        let at = panic.location().map(ToString::to_string);
        tracing::error!(at, "panic");
        haft_log::flush_log();
        let text = haft_text::Masker::with_values(environment.secret_values())
            .mask(&panic.to_string())
            .replace('\n', " ");
        drop(writeln!(
            std::io::stderr(),
            "haft: this is a bug: {}",
            haft_text::sanitize(&text)
        ));
    }));
}

/// Logs the failure that ends a command: the kind of failure and, if the configuration is wrong,
/// the location of the mistake.
///
/// Messages are not logged, because they may repeat an argument, a prompt, a value, or a server's
/// answer.
pub(crate) fn log_failure(failure: &anyhow::Error, environment: &HostEnvironment) {
    let (code, reason) = failure
        .chain()
        .find_map(classify_error)
        .unwrap_or(("failed", None));
    if reason.is_some() {
        // A run whose configuration cannot be loaded has not started the log.
        haft_log::start_default_log(environment);
    }
    tracing::error!(code, reason, "command failed");
}

/// Returns the code of a known error, and a description of the error if it may be logged.
fn classify_error(cause: &(dyn Error + 'static)) -> Option<(&'static str, Option<String>)> {
    if let Some(error) = cause.downcast_ref::<SetupError>() {
        return Some(classify_setup_error(error));
    }
    if let Some(error) = cause.downcast_ref::<ConfigError>() {
        return Some(("configuration", Some(config_error_place(error))));
    }
    if let Some(error) = cause.downcast_ref::<KeyError>() {
        return Some(("key", Some(format!("provider `{}`", error.provider))));
    }
    if cause.is::<FolderError>() || cause.is::<SandboxSetupError>() {
        return Some(("folder", Some(haft_text::redact_quoted(&cause.to_string()))));
    }
    if let Some(error) = cause.downcast_ref::<ModelError>() {
        return Some((error.code(), None));
    }
    if let Some(error) = cause.downcast_ref::<InspectError>() {
        return error.is_usage_error().then_some(("usage", None));
    }
    (cause.is::<UsageError>() || cause.is::<ClaudeError>()).then_some(("usage", None))
}

/// Like [`classify_error`], for errors that prevent opening a session.
fn classify_setup_error(error: &SetupError) -> (&'static str, Option<String>) {
    let unquoted_message = || Some(haft_text::redact_quoted(&error.to_string()));
    match error {
        SetupError::Config(error) => ("configuration", Some(config_error_place(error))),
        SetupError::Key(error) => ("key", Some(format!("provider `{}`", error.provider))),
        SetupError::Folder(_) | SetupError::Sandbox(_) | SetupError::Prompt { .. } => {
            ("folder", unquoted_message())
        }
        SetupError::NoModel | SetupError::NoRole { .. } | SetupError::NoServer => {
            ("configuration", unquoted_message())
        }
        SetupError::Client(error) => (error.code(), None),
        SetupError::Model(_) | SetupError::RoleModel { .. } => ("model", None),
        SetupError::Policy(_) => ("project_policy", None),
        SetupError::Trust(_) => ("trust", None),
        SetupError::UnknownAgent { .. } => ("agent", None),
        SetupError::Schema(_) => ("schema", None),
        SetupError::Store(_) => ("store", None),
        // The message contains the conversation's name, which is initially the text of a prompt.
        SetupError::Open(_) => ("conversation", None),
        SetupError::Io(_) => ("io", None),
    }
}

/// Returns the location of a mistake in the configuration, without the invalid value.
fn config_error_place(error: &ConfigError) -> String {
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
        ConfigError::Several(errors) => errors
            .iter()
            .map(config_error_place)
            .collect::<Vec<_>>()
            .join("; "),
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

/// Prints a failure on stderr and returns its exit code.
pub(crate) fn report_failure(failure: &anyhow::Error) -> ProcessExit {
    let code = failure
        .chain()
        .find_map(|cause| cause.downcast_ref().map(ModelError::code));
    let mut text = haft_tui::translate_message(code.unwrap_or_default(), &format_failure(failure));
    if let Some(hint) = failure.chain().find_map(hints::find_error_hint) {
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
        haft_text::sanitize(&text)
    ));
    if failure.chain().any(is_usage_error) {
        ProcessExit::Usage
    } else {
        ProcessExit::Failed
    }
}

/// Returns true if the user can fix the error by changing the command line or the configuration.
fn is_usage_error(cause: &(dyn Error + 'static)) -> bool {
    cause.is::<UsageError>()
        || cause.is::<ClaudeError>()
        || cause.is::<ConfigError>()
        || cause.is::<KeyError>()
        || cause
            .downcast_ref()
            .is_some_and(FolderError::is_usage_error)
        || cause
            .downcast_ref()
            .is_some_and(SandboxSetupError::is_usage_error)
        || cause.downcast_ref().is_some_and(SetupError::is_usage_error)
        || cause
            .downcast_ref()
            .is_some_and(InspectError::is_usage_error)
}

/// Formats the failure and its causes on one line, or on one line per mistake if a configuration
/// file has several. Omits causes whose text is already included.
pub(crate) fn format_failure(failure: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in failure.chain().map(ToString::to_string) {
        let cause = cause
            .lines()
            .map(haft_messages::translate_error)
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
    fn format_failure_omits_repeated_causes() {
        let failure = anyhow::Error::msg("disk is full")
            .context("cannot write a: disk is full")
            .context("cannot save");
        assert_eq!(
            format_failure(&failure),
            "cannot save: cannot write a: disk is full"
        );
    }
}
