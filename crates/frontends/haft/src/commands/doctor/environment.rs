//! Checks the requirements of haft besides its store: environment variables, stored outputs,
//! commands, the sandbox, and servers.

use std::path::Path;
use std::time::Duration;

use haft_agent::config::{Config, UnknownVariable};
use haft_agent::{HostEnvironment, Places, set_up_sandbox};
use haft_model::{Client, RetryConfig};
use haft_rescue::{Check, CheckHealth};
use haft_sandbox::{Capture, CommandExit, CommandSpec, SandboxMode};
use haft_types::{PermissionMode, SandboxLayer};
use tokio_util::sync::CancellationToken;

use crate::exit::format_failure;
use crate::haft::Settings;
use crate::output;

/// The time limit for the answer of a server or a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks whether every environment variable that begins with `HAFT_` has an effect.
pub(super) fn check_variables(unknown: &[UnknownVariable]) -> Check {
    const NAME: &str = "environment";
    if unknown.is_empty() {
        return Check::new(NAME, CheckHealth::Ok, text!("doctor-variables"));
    }
    let message = text!("doctor-variables-unknown", count = unknown.len());
    Check::new(NAME, CheckHealth::Warning, message)
        .with_details(unknown.iter().map(ToString::to_string).collect())
}

/// Checks the files with the full outputs of commands, which are kept if an output was too long.
pub(super) fn check_outputs(folder: &Path) -> Check {
    const NAME: &str = "outputs";
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::new(NAME, CheckHealth::Skipped, text!("doctor-outputs-none"));
        }
        Err(error) => {
            return Check::new(
                NAME,
                CheckHealth::Warning,
                text!(
                    "doctor-outputs-unreadable-folder",
                    folder = folder.display(),
                    error
                ),
            );
        }
        Ok(entries) => entries,
    };
    let mut count = 0_u64;
    let mut bytes = 0;
    let mut unreadable = Vec::new();
    let mut open: Vec<_> = entries.collect();
    while let Some(entry) = open.pop() {
        match entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) {
            // A folder of a conversation, or of one output in it.
            Ok((path, metadata)) if metadata.is_dir() => match std::fs::read_dir(&path) {
                Ok(inside) => open.extend(inside),
                Err(error) => unreadable.push(format!("{}: {error}", path.display())),
            },
            Ok((path, metadata)) if metadata.is_file() => {
                (count, bytes) = (count + 1, bytes + metadata.len());
                if let Err(error) = std::fs::File::open(&path) {
                    unreadable.push(format!("{}: {error}", path.display()));
                }
            }
            Ok(_) => {}
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    if unreadable.is_empty() {
        return Check::new(
            NAME,
            CheckHealth::Ok,
            text!("doctor-outputs", count, size = output::format_bytes(bytes)),
        );
    }
    Check::new(
        NAME,
        CheckHealth::Warning,
        text!("doctor-outputs-unreadable"),
    )
    .with_details(unreadable)
}

/// Lists the user's own MCP servers that run outside the sandbox. Returns `None` if the
/// configuration declares no program as a server.
pub(super) fn check_own_servers(config: &Config) -> Option<Check> {
    const NAME: &str = "servers";
    let declared = config.sections.get("mcp_servers")?.as_table()?;
    let programs: Vec<_> = declared
        .iter()
        .filter(|(_, entry)| entry.get("command").is_some())
        .collect();
    let outside: Vec<_> = programs
        .iter()
        .filter(|(_, entry)| entry.get("sandbox") == Some(&toml::Value::Boolean(false)))
        .map(|(name, _)| name.as_str())
        .collect();
    let confined = programs.len() - outside.len();
    let check = Check::new(NAME, CheckHealth::Ok, text!("doctor-servers", confined));
    let names = outside.join(", ");
    let details = match names.as_str() {
        "" => Vec::new(),
        names => vec![text!("doctor-servers-outside", names)],
    };
    (!programs.is_empty()).then(|| check.with_details(details))
}

/// Checks whether the server that stores the conversations can be used. Does not check the data on
/// the server.
pub(super) async fn check_server(settings: &Settings) -> Check {
    const NAME: &str = "server";
    let totals = async { anyhow::Ok(settings.open_store()?.totals().await?) };
    match totals.await {
        Ok(totals) => {
            let message = text!("doctor-store", messages = totals.messages);
            Check::new(NAME, CheckHealth::Ok, message)
        }
        Err(error) => Check::new(NAME, CheckHealth::Warning, format_failure(&error)),
    }
}

/// Checks whether commands run under their supervisor.
pub(super) async fn check_commands(environment: &HostEnvironment) -> Check {
    const NAME: &str = "commands";
    let run = async {
        let supervisor = environment.supervisor();
        let command =
            CommandSpec::shell("exit 7", std::env::temp_dir()).with_timeout(ANSWER_TIMEOUT);
        anyhow::Ok(
            supervisor
                .run(&command, &Capture::default(), &CancellationToken::new())
                .await?
                .exit,
        )
    };
    match run.await {
        Ok(CommandExit::Code(7)) => Check::new(NAME, CheckHealth::Ok, text!("doctor-commands")),
        Ok(other) => Check::new(
            NAME,
            CheckHealth::Warning,
            text!(
                "doctor-commands-wrong-exit",
                outcome = format_args!("{other:?}")
            ),
        ),
        Err(error) => Check::new(
            NAME,
            CheckHealth::Warning,
            text!("doctor-commands-failed", error = format_failure(&error)),
        ),
    }
}

/// Checks whether commands are confined, and how.
pub(super) async fn check_sandbox(places: &Places, config: &Config) -> Check {
    const NAME: &str = "sandbox";
    let found =
        match set_up_sandbox(places, &config.sandbox, PermissionMode::Auto, Vec::new()).await {
            Ok(found) => found,
            Err(error) => {
                return Check::new(
                    NAME,
                    CheckHealth::Warning,
                    text!(
                        "doctor-sandbox-failed",
                        error = format_failure(&error.into())
                    ),
                );
            }
        };
    let health = match (found.status().layer, config.sandbox.mode) {
        (SandboxLayer::Namespace, _) => CheckHealth::Ok,
        (SandboxLayer::None, SandboxMode::Off) => CheckHealth::Skipped,
        (SandboxLayer::Landlock | SandboxLayer::None, _) => CheckHealth::Warning,
    };
    Check::new(NAME, health, output::describe_layer(found.status()))
}

/// Checks whether the server of the main model answers. A failure does not concern the store, so it
/// is never damage.
pub(super) async fn check_provider(settings: &Settings) -> Check {
    const NAME: &str = "model";
    let Some(name) = haft_agent::configured_model(&settings.config) else {
        return Check::new(NAME, CheckHealth::Skipped, text!("doctor-model-none"));
    };
    match count_listed_models(settings, &name).await {
        Ok(models) => Check::new(NAME, CheckHealth::Ok, text!("doctor-model", name, models)),
        Err(error) => {
            let message = text!("doctor-model-failed", name, error = format_failure(&error));
            Check::new(NAME, CheckHealth::Warning, message)
        }
    }
}

async fn count_listed_models(settings: &Settings, name: &str) -> anyhow::Result<usize> {
    let declared = settings.resolve_model(name)?;
    let key = settings.read_key(&declared)?;
    let retry = RetryConfig {
        attempts: 0,
        ..settings.config.retry.clone()
    };
    let client = Client::new(declared, key, retry)?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let timer = tokio::spawn(async move {
        tokio::time::sleep(ANSWER_TIMEOUT).await;
        stop.cancel();
    });
    let listed = client.list_models(&cancel).await;
    timer.abort();
    match listed {
        Ok(names) => Ok(names.len()),
        Err(_) if cancel.is_cancelled() => {
            anyhow::bail!(text!(
                "doctor-model-timeout",
                seconds = ANSWER_TIMEOUT.as_secs()
            ))
        }
        Err(error) => Err(error.into()),
    }
}
