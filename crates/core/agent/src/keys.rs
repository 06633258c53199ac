//! Provider keys from an environment variable, a file, a command, or the system's keyring. A
//! project's files never provide keys.

use std::process::Stdio;

use haft_model::{ProviderConfig, Secret};

use crate::environment::HostEnvironment;
use crate::error::KeyError;
use crate::own_programs::{own_command, own_shell_command};

/// The availability of a provider's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The provider needs no key, because it declares none.
    NotNeeded,
    /// The key is available: its source contains a key.
    Available,
    /// The key is missing: its source is empty or does not exist.
    Missing,
    /// The key comes from a command. Its availability is unknown until the command runs.
    Command,
    /// The key comes from the keyring. Its availability is unknown, because a query may prompt the
    /// user to unlock the keyring.
    Keyring,
}

impl KeyState {
    /// Returns the word for this state that is used in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotNeeded => "none",
            Self::Available => "yes",
            Self::Missing => "no",
            Self::Command => "command",
            Self::Keyring => "keyring",
        }
    }
}

/// Determines whether a provider's key is available, without running anything.
pub fn find_key_state(environment: &HostEnvironment, provider: &ProviderConfig) -> KeyState {
    let there = |there: bool| {
        if there {
            KeyState::Available
        } else {
            KeyState::Missing
        }
    };
    if let Some(variable) = key_variable(provider) {
        there(key_from_environment(environment, "", variable).is_ok())
    } else if let Some(path) = &provider.api_key_file {
        there(key_from_file(environment, "", path).is_ok())
    } else if provider.api_key_command.is_some() {
        KeyState::Command
    } else if provider.api_key_keyring.is_some() {
        KeyState::Keyring
    } else {
        KeyState::NotNeeded
    }
}

/// Returns the environment variable that contains the key. An empty name in the configuration
/// disables a built-in variable.
fn key_variable(provider: &ProviderConfig) -> Option<&str> {
    provider
        .api_key_env
        .as_deref()
        .filter(|variable| !variable.is_empty())
}

/// Returns the key of a provider, or `None` if the provider declares no source for a key. Fails if
/// a declared source contains no key.
pub fn find_key(
    environment: &HostEnvironment,
    name: &str,
    provider: &ProviderConfig,
) -> Result<Option<Secret>, KeyError> {
    let declared = [
        key_variable(provider).map(|variable| key_from_environment(environment, name, variable)),
        provider
            .api_key_file
            .as_ref()
            .map(|path| key_from_file(environment, name, path)),
        provider
            .api_key_command
            .as_ref()
            .map(|command| key_from_command(environment, name, command)),
        provider
            .api_key_keyring
            .as_ref()
            .map(|entry| key_from_keyring(environment, name, entry)),
    ];
    declared
        .into_iter()
        .flatten()
        .next()
        .transpose()
        .map(|key| key.map(Secret::new))
}

fn missing_key_error(provider: &str, problem: impl Into<String>) -> KeyError {
    KeyError {
        provider: provider.to_owned(),
        problem: problem.into(),
    }
}

fn key_from_environment(
    environment: &HostEnvironment,
    provider: &str,
    variable: &str,
) -> Result<String, KeyError> {
    environment.trimmed_variable(variable).ok_or_else(|| {
        let problem = format!(
            "the environment variable `{variable}` is not set; export it, or change `providers.{provider}.api_key_env`"
        );
        missing_key_error(provider, problem)
    })
}

fn key_from_file(
    environment: &HostEnvironment,
    provider: &str,
    path: &str,
) -> Result<String, KeyError> {
    let home = environment.variable("HOME").unwrap_or_default();
    let expanded = path
        .strip_prefix("~/")
        .map_or_else(|| path.to_owned(), |rest| format!("{home}/{rest}"));
    let text = std::fs::read_to_string(environment.cwd().join(&expanded)).map_err(|error| {
        missing_key_error(
            provider,
            format!("cannot read `{expanded}` (`api_key_file`): {error}"),
        )
    })?;
    require_non_empty(
        provider,
        &text,
        &format!("the file `{expanded}` (`api_key_file`) is empty"),
    )
}

fn key_from_command(
    environment: &HostEnvironment,
    provider: &str,
    command: &str,
) -> Result<String, KeyError> {
    let failed =
        |why: String| missing_key_error(provider, format!("`{command}` (`api_key_command`) {why}"));
    let output = own_shell_command(environment, command)
        .and_then(|mut shell| shell.stderr(Stdio::inherit()).output())
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !output.status.success() {
        // The shell ends with 126 or 127 if it cannot run or find a program.
        let hint = if matches!(output.status.code(), Some(126 | 127)) {
            "; it starts in `/`, so name files by absolute paths or `~`"
        } else {
            ""
        };
        return Err(failed(format!("failed with {}{hint}", output.status)));
    }
    let text = String::from_utf8(output.stdout)
        .map_err(|_| failed("printed something that is not text".into()))?;
    require_non_empty(
        provider,
        &text,
        &format!("`{command}` (`api_key_command`) printed nothing"),
    )
}

/// Reads the keyring with the command-line program of the system; linking a keyring library would
/// slow down every start.
fn key_from_keyring(
    environment: &HostEnvironment,
    provider: &str,
    entry: &str,
) -> Result<String, KeyError> {
    let (name, arguments) = lookup_command(entry);
    let problem = |why: String| {
        missing_key_error(
            provider,
            format!("the keyring entry `{entry}` (`api_key_keyring`) {why}"),
        )
    };
    let output = own_command(environment, name)
        .and_then(|mut command| command.args(arguments).stderr(Stdio::inherit()).output())
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                problem(format!("needs the program `{name}`; install it"))
            }
            _ => problem(format!("cannot be read: `{name}`: {error}")),
        })?;
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || key.is_empty() {
        return Err(problem(format!(
            "is not there; store it with `{}`",
            format_store_command(entry)
        )));
    }
    Ok(key)
}

fn split_keyring_entry(entry: &str) -> (&str, Option<&str>) {
    entry
        .split_once('/')
        .map_or((entry, None), |(service, account)| (service, Some(account)))
}

/// Returns the program that prints a keyring entry, and its arguments.
fn lookup_command(entry: &str) -> (&'static str, Vec<&str>) {
    let (service, account) = split_keyring_entry(entry);
    if cfg!(target_os = "macos") {
        let account = account.into_iter().flat_map(|account| ["-a", account]);
        (
            "security",
            ["find-generic-password", "-s", service]
                .into_iter()
                .chain(account)
                .chain(["-w"])
                .collect(),
        )
    } else {
        let account = account.into_iter().flat_map(|account| ["account", account]);
        (
            "secret-tool",
            ["lookup", "service", service]
                .into_iter()
                .chain(account)
                .collect(),
        )
    }
}

/// Returns the command line that stores a keyring entry.
fn format_store_command(entry: &str) -> String {
    let (service, account) = split_keyring_entry(entry);
    if cfg!(target_os = "macos") {
        format!(
            "security add-generic-password -s {service} -a {} -w",
            account.unwrap_or("haft")
        )
    } else {
        let account = account.map_or(String::new(), |account| format!(" account {account}"));
        format!("secret-tool store --label={service} service {service}{account}")
    }
}

fn require_non_empty(provider: &str, text: &str, problem: &str) -> Result<String, KeyError> {
    let key = text.trim();
    if key.is_empty() {
        Err(missing_key_error(provider, problem))
    } else {
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use haft_types::Api;

    use super::*;

    fn provider() -> ProviderConfig {
        ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1")
    }

    #[test]
    fn key_of_is_none_without_a_declared_source() {
        assert!(
            find_key(&HostEnvironment::default(), "p", &provider())
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn key_of_a_command_is_its_trimmed_output() {
        let with = |command: &str| {
            find_key(
                &HostEnvironment::default(),
                "p",
                &ProviderConfig {
                    api_key_command: Some(command.into()),
                    ..provider()
                },
            )
        };
        assert!(with("echo ' k '").unwrap().is_some());
        for (command, why) in [("true", "printed nothing"), ("exit 3", "failed with")] {
            let error = with(command).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("`p`"), "{error}");
        }
    }

    #[test]
    fn key_state_runs_no_command() {
        let with = |provider| find_key_state(&HostEnvironment::default(), &provider).name();
        assert_eq!(with(provider()), "none");
        assert_eq!(
            with(ProviderConfig {
                api_key_env: Some(String::new()),
                ..provider()
            }),
            "none"
        );
        assert_eq!(
            with(ProviderConfig {
                api_key_env: Some("HAFT_TEST_NO_SUCH_KEY".into()),
                ..provider()
            }),
            "no"
        );
        assert_eq!(
            with(ProviderConfig {
                api_key_file: Some("/nonexistent".into()),
                ..provider()
            }),
            "no"
        );
        assert_eq!(
            with(ProviderConfig {
                api_key_command: Some("exit 1".into()),
                ..provider()
            }),
            "command"
        );
    }

    #[test]
    fn key_of_names_an_unset_variable() {
        let with = ProviderConfig {
            api_key_env: Some("HAFT_TEST_NO_SUCH_KEY".into()),
            ..provider()
        };
        assert!(
            find_key(&HostEnvironment::default(), "p", &with)
                .unwrap_err()
                .to_string()
                .contains("`HAFT_TEST_NO_SUCH_KEY`")
        );
    }
}
