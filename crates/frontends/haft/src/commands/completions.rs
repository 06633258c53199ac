//! `haft completions`: shell scripts that request candidates from haft itself, so that ids, models
//! and names are completed, too.
//!
//! The script calls haft with [`REQUEST_VARIABLE`] set. Such a call prints only candidates; data
//! that cannot be read yields none.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use haft_project::KnowledgeKind;
use haft_store::{ConversationRow, ConversationScope};

use crate::cli::Cli;
use crate::cli::options::Common;
use crate::commands::{catalogue, config};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::jobs::JobFolder;
use crate::wiring;

/// The environment variable that a shell sets to request candidates.
const REQUEST_VARIABLE: &str = "HAFT_COMPLETE";

pub(crate) fn print_script(shell: Shell) -> anyhow::Result<ProcessExit> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells
        .completer(&name)
        .ok_or_else(|| usage_error(name.clone()))?;
    let mut script = Vec::new();
    completer.write_registration(REQUEST_VARIABLE, "haft", "haft", "haft", &mut script)?;
    crate::output::print_exact(&String::from_utf8(script)?)?;
    Ok(ProcessExit::Completed)
}

/// Prints the candidates that a shell requested. Returns `None` if [`REQUEST_VARIABLE`] is not set.
pub(crate) fn answer_request(
    haft: &Haft,
    args: impl IntoIterator<Item = OsString>,
) -> Option<ExitCode> {
    std::env::var_os(REQUEST_VARIABLE)?;
    let here = std::env::current_dir().ok();
    let completed =
        CompleteEnv::with_factory(|| attach_candidates(haft, Cli::definition(), "haft"))
            .var(REQUEST_VARIABLE)
            .try_complete(args, here.as_deref());
    match completed {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Attaches candidates that only haft can list, such as ids, to the arguments of a command and of
/// its subcommands.
fn attach_candidates(haft: &Haft, command: Command, path: &str) -> Command {
    let parent = path.to_owned();
    let command =
        command.mut_args(
            |arg| match find_candidate_source(&parent, arg.get_id().as_str()) {
                Some(offer) => {
                    let haft = haft.clone();
                    arg.add(ArgValueCandidates::new(move || {
                        offer(&haft)
                            .into_iter()
                            .map(|(value, help)| {
                                CompletionCandidate::new(value).help(Some(help.into()))
                            })
                            .collect()
                    }))
                }
                None => arg,
            },
        );
    let haft = haft.clone();
    let inner = path.to_owned();
    command.mut_subcommands(move |sub| {
        let path = format!("{inner} {}", sub.get_name());
        attach_candidates(&haft, sub, &path)
    })
}

/// A function that lists completion candidates, each with a description.
type CandidateSource = fn(&Haft) -> Vec<(String, String)>;

/// Returns the function that lists the candidates for an argument of a command.
fn find_candidate_source(path: &str, arg: &str) -> Option<CandidateSource> {
    let noun = path.split(' ').nth(1).unwrap_or("run");
    Some(match (noun, arg) {
        ("jobs", "id" | "ids") => list_job_ids,
        ("worktrees", "ids") => list_worktrees,
        (
            "conversations" | "context" | "changes" | "undo" | "redo" | "rewind" | "useful",
            "id" | "ids" | "conversation",
        )
        | (_, "resume" | "conversation") => {
            if path.ends_with(" new") {
                return None;
            }
            if path.ends_with(" restore") {
                list_trash
            } else {
                list_conversations
            }
        }
        ("models", "name") if !path.ends_with(" add") => list_models,
        (_, "model") => list_models,
        (_, "agent") | ("agents", "name") => list_agents,
        ("rules", "name") => list_rules,
        ("skills", "name") => list_skills,
        ("commands", "name") => list_slash_commands,
        ("permissions", "rules") if path.ends_with(" remove") => list_permission_rules,
        (_, "allow" | "deny") if noun != "permissions" => list_permission_rules,
        ("config", "key") => list_config_keys,
        (_, "set") => list_assignments,
        _ => return None,
    })
}

fn list_stored_conversations(haft: &Haft, scope: ConversationScope<'_>) -> Vec<(String, String)> {
    read_stored_conversations(haft, scope)
        .unwrap_or_default()
        .iter()
        .map(|one| {
            let name = haft_text::sanitize(&one.name);
            let first_line = name.lines().next().unwrap_or_default();
            (one.id.to_string(), first_line.to_owned())
        })
        .collect()
}

fn read_stored_conversations(
    haft: &Haft,
    scope: ConversationScope<'_>,
) -> Option<Vec<ConversationRow>> {
    let settings = haft.load_quietly(&Common::default()).ok()?;
    // A completion must not create a database.
    if settings.config.store.url.is_none() && !settings.places.database_file().exists() {
        return None;
    }
    let store = settings.open_store().ok()?;
    wiring::build_runtime()
        .ok()?
        .block_on(store.list(scope))
        .ok()
}

fn list_conversations(haft: &Haft) -> Vec<(String, String)> {
    haft.project(None)
        .map(|project| {
            list_stored_conversations(haft, ConversationScope::Namespace(&project.namespace()))
        })
        .unwrap_or_default()
}

fn list_trash(haft: &Haft) -> Vec<(String, String)> {
    list_stored_conversations(haft, ConversationScope::Trash)
}

fn list_worktrees(haft: &Haft) -> Vec<(String, String)> {
    let Ok(places) = haft.places() else {
        return Vec::new();
    };
    let all = haft_changes::list_kept_copies(&places.worktrees_folder());
    all.into_iter()
        .map(|copy| (copy.name, copy.at.display().to_string()))
        .collect()
}

fn list_job_ids(haft: &Haft) -> Vec<(String, String)> {
    let Ok(places) = haft.places() else {
        return Vec::new();
    };
    let all = JobFolder::new(places.jobs_folder())
        .list_jobs()
        .unwrap_or_default();
    all.into_iter()
        .map(|job| (job.request.id, job.request.task.unwrap_or_default()))
        .collect()
}

fn list_models(haft: &Haft) -> Vec<(String, String)> {
    let Ok(settings) = haft.load_quietly(&Common::default()) else {
        return Vec::new();
    };
    let built_in = haft_model::BuiltIn::get().model_names();
    let mut names: Vec<String> = settings
        .config
        .models
        .keys()
        .cloned()
        .chain(built_in)
        .collect();
    names.extend(settings.config.model_aliases.keys().cloned());
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| (name, String::new()))
        .collect()
}

fn list_agents(haft: &Haft) -> Vec<(String, String)> {
    catalogue::list_names(haft, KnowledgeKind::Agents)
}

fn list_rules(haft: &Haft) -> Vec<(String, String)> {
    catalogue::list_names(haft, KnowledgeKind::Rules)
}

fn list_skills(haft: &Haft) -> Vec<(String, String)> {
    catalogue::list_names(haft, KnowledgeKind::Skills)
}

fn list_slash_commands(haft: &Haft) -> Vec<(String, String)> {
    catalogue::list_names(haft, KnowledgeKind::Commands)
}

fn list_permission_rules(haft: &Haft) -> Vec<(String, String)> {
    let Ok(settings) = haft.load_quietly(&Common::default()) else {
        return Vec::new();
    };
    let config = settings.config.permissions;
    let long = config
        .rules
        .iter()
        .map(|rule| (rule.rule.clone(), rule.decision.to_string()));
    let listed = [
        ("allow", &config.allow),
        ("ask", &config.ask),
        ("deny", &config.deny),
    ];
    let listed = listed
        .into_iter()
        .flat_map(|(decision, rules)| rules.iter().map(|rule| (rule.clone(), decision.to_owned())));
    listed.chain(long).collect()
}

fn list_config_keys(_: &Haft) -> Vec<(String, String)> {
    config::schema::list_keys()
        .into_iter()
        .map(|key| (key, String::new()))
        .collect()
}

fn list_assignments(_: &Haft) -> Vec<(String, String)> {
    config::schema::list_keys()
        .into_iter()
        .map(|key| (format!("{key}="), String::new()))
        .collect()
}

#[cfg(test)]
mod tests {
    use haft_agent::HostEnvironment;

    use super::*;

    /// Returns the candidates that complete the last of `words`, for a user without a
    /// configuration.
    fn completions_for(words: &[&str]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let environment = HostEnvironment::new([("HAFT_HOME".into(), home.path().into())]);
        let mut haft = attach_candidates(&Haft::new(environment), Cli::definition(), "haft");
        haft.build();
        let args = words.iter().map(OsString::from).collect();
        let found =
            clap_complete::engine::complete(&mut haft, args, words.len() - 1, None).unwrap();
        found
            .iter()
            .map(|one| one.get_value().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn completions_offer_every_command_and_option() {
        fn check(command: &Command, path: &[&str]) {
            let with = |last: &str| completions_for(&[path, &[last]].concat());
            let names = with("");
            let options = with("--");
            for arg in command
                .get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .filter_map(clap::Arg::get_long)
            {
                assert!(
                    options.contains(&format!("--{arg}")),
                    "{path:?} --{arg}: {options:?}"
                );
            }
            for inner in command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set())
            {
                assert!(
                    names.contains(&inner.get_name().to_owned()),
                    "{path:?} {}: {names:?}",
                    inner.get_name()
                );
                check(inner, &[path, &[inner.get_name()]].concat());
            }
        }
        let mut haft = Cli::definition();
        haft.build();
        check(&haft, &["haft"]);
    }

    #[test]
    fn completions_offer_keys_and_models() {
        assert!(
            completions_for(&["haft", "config", "get", "retry."])
                .contains(&"retry.attempts".to_owned())
        );
        assert!(
            completions_for(&["haft", "run", "--set", "retry."])
                .contains(&"retry.attempts=".to_owned())
        );
        assert!(!completions_for(&["haft", "run", "-m", "anthropic/"]).is_empty());
        assert!(!completions_for(&["haft", "models", "show", "anthropic/"]).is_empty());
    }

    #[test]
    fn completions_have_a_script_for_every_shell() {
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            assert!(
                Shells::builtins().completer(&shell.to_string()).is_some(),
                "{shell}"
            );
        }
    }
}
