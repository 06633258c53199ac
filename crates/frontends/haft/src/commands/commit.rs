//! `haft commit`: asks the model of the role `commit` for a message for the staged changes, and
//! commits with it.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use haft_agent::config::ModelRole;
use haft_agent::{Project, RunStep, find_knowledge_and_trust, set_up_sandbox};
use haft_engine::SharedBudget;
use haft_project::TrustState;
use haft_sandbox::{CommitScope, Git, GitProgram, resolve_configured_path, secret_paths};
use haft_text::sanitize;
use haft_types::{Event, Outcome, PermissionMode, TurnResult};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::review::diff;
use super::{permissions, run};
use crate::cli::options::{Common, RunArgs, parse_positive};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output;
use crate::wiring;

const PROMPT: &str = include_str!("commit/prompt.md");
/// The name of the conversation with the model. The name is stored, so it is not translated.
const TITLE: &str = "A commit message";
/// The `git log` option for the number of earlier messages in the prompt, from which the model
/// learns the project's style.
const EXAMPLE_COUNT_OPTION: &str = "-8";
/// Endings of the names of secret files, whose content must not be sent to the model.
const SECRET_ENDINGS: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".keystore", ".jks"];
/// Beginnings of the names of secret files, whose content must not be sent to the model.
const SECRET_BEGINNINGS: [&str; 4] = [".env", "id_rsa", "id_ed25519", ".npmrc"];

#[derive(Debug, Args)]
pub(crate) struct CommitArgs {
    /// What the message should say or stress.
    #[arg(value_name = "HINT")]
    pub(crate) words: Vec<String>,

    /// Like HINT, as an option.
    #[arg(short = 'm', long = "message", value_name = "HINT")]
    pub(crate) hint: Option<String>,

    /// Commit every change of files that git knows, as `git commit -a` does.
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Show the message, and commit nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Commit without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Commits with this message and asks no model. Used by the terminal interface after it has
    /// shown the message.
    #[arg(long, value_name = "TEXT", hide = true, conflicts_with_all = ["words", "hint", "dry_run"])]
    with_message: Option<String>,

    /// Prints the message, the usage and the cost as JSON. Used by the terminal interface.
    #[arg(long, hide = true)]
    json: bool,

    /// The model, as `provider/model`, instead of that of the role `commit`.
    #[arg(long)]
    pub(crate) model: Option<String>,

    /// Stop when this much money is spent.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) max_budget_usd: Option<f64>,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, args: &CommitArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let project = haft.project(None)?;
    // git runs programs that a repository configures, so it must not run in an untrusted
    // repository.
    let (_, trust_state) = find_knowledge_and_trust(&settings.places, &project)?;
    if !trust_state.is_trusted() {
        return Err(usage_error(text!(
            "review-untrusted",
            root = project.root.display()
        )));
    }
    let host = haft.environment();
    let root = project.root.as_path();
    let mode = PermissionMode::Ask;
    let projects = vec![root.to_owned()];
    let sandbox = wiring::build_runtime()?.block_on(set_up_sandbox(
        &settings.places,
        &settings.config.sandbox,
        mode,
        projects,
    ))?;
    let program = GitProgram::find(
        &host.supervisor(),
        &sandbox,
        &host.child_environment(),
        &[root],
    )
    .map_err(|error| usage_error(error.to_string()))?;
    let git = Git::open(program.clone(), root, &settings.places.git_folder())
        .map_err(|error| usage_error(error.to_string()))?;
    let hidden = list_hidden_paths(&settings, &project, &trust_state)?;
    let scope = if args.all {
        CommitScope::Tracked
    } else {
        CommitScope::Staged
    };
    if let Some(message) = &args.with_message {
        return commit_changes(&program, root, scope, message);
    }
    let change = diff::diff_for_commit(&git, scope, |path| is_secret_file(path, &hidden))?;
    let Some(change) = change else {
        return Err(usage_error(if args.all {
            text!("commit-nothing")
        } else {
            text!("commit-nothing-staged")
        }));
    };
    let task = haft
        .masker()
        .mask(&build_task(args, &git, &change))
        .into_owned();
    let result = request_message(args, &settings, &project, task)?;
    let message = extract_message(&result.text);
    match result.outcome {
        Outcome::Completed if !message.is_empty() => {}
        Outcome::Completed => return Err(usage_error(text!("commit-no-message"))),
        other => {
            output::print_to_stderr(&sanitize(&format!("haft: {}", result.message)));
            return Ok(other.into());
        }
    }
    if args.json {
        output::print_json(&json!({
            "message": message, "all": args.all, "usage": result.usage, "cost": result.cost,
        }))?;
    } else {
        output::print_text(&format!("{}\n", sanitize(&message)))?;
    }
    output::print_to_stderr(&format!("haft: {}", format_cost(&result)));
    if args.dry_run {
        return Ok(ProcessExit::Completed);
    }
    if !args.yes && !ask_to_commit()? {
        return Ok(ProcessExit::Waiting);
    }
    commit_changes(&program, root, scope, &message)
}

/// Commits and prints the first line of git's output.
fn commit_changes(
    program: &GitProgram,
    root: &Path,
    scope: CommitScope,
    message: &str,
) -> anyhow::Result<ProcessExit> {
    let said = program
        .commit(root, scope, message)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    output::print_to_stderr(&sanitize(&format!(
        "haft: {}",
        said.lines().next().unwrap_or_default()
    )));
    Ok(ProcessExit::Completed)
}

/// Builds the prompt: the instructions, the user's hint, earlier messages, and the change.
fn build_task(args: &CommitArgs, git: &Git, change: &str) -> String {
    let before = git
        .run_for_line([
            "log",
            EXAMPLE_COUNT_OPTION,
            "--format=%s",
            "--no-show-signature",
        ])
        .unwrap_or_default();
    let before = if before.is_empty() {
        before
    } else {
        format!("\n\nThe messages before it:\n{before}")
    };
    let words = args
        .words
        .iter()
        .map(String::as_str)
        .chain(args.hint.as_deref())
        .collect::<Vec<_>>()
        .join(" ");
    let hint = if words.trim().is_empty() {
        String::new()
    } else {
        format!("\n\nThe user says of it: {words}")
    };
    format!(
        "{}{hint}{before}\n\nThe change:\n\n{change}",
        PROMPT.trim_end()
    )
}

/// Asks the model for the message, without tools, in a conversation that is not listed with the
/// conversations of the project.
fn request_message(
    args: &CommitArgs,
    settings: &Settings,
    project: &Project,
    task: String,
) -> anyhow::Result<TurnResult> {
    let model = args.model.clone().or_else(|| {
        settings
            .config
            .models_for_role(ModelRole::Commit)
            .into_iter()
            .next()
    });
    let asked = RunArgs {
        model,
        permission_mode: Some(PermissionMode::Plan),
        allowed_tools: Some(vec!["none".to_owned()]),
        max_budget_usd: args.max_budget_usd,
        ..RunArgs::default()
    };
    let mut plan = run::lower_args(&asked, settings, project.clone(), Some(TITLE))?;
    plan.step = Some(RunStep {
        name: "commit".to_owned(),
        budget: SharedBudget::default(),
    });
    wiring::build_runtime()?.block_on(async {
        let mut session = settings
            .open_session(plan)
            .await
            .map_err(run::to_usage_error)?;
        let report = session
            .run(Some(task), &mut |_: &Event| {}, &CancellationToken::new())
            .await;
        run::close_session(&mut session).await;
        Ok(report.result)
    })
}

/// Returns the paths that are hidden from commands, and so from the model: secrets of well-known
/// programs, paths that the configuration hides, and paths that rules make unreadable.
fn list_hidden_paths(
    settings: &Settings,
    project: &Project,
    trust_state: &TrustState,
) -> anyhow::Result<Vec<PathBuf>> {
    let config = &settings.config;
    let home = settings.environment().home();
    let rules = haft_agent::load_permissions(
        settings.environment(),
        &config.permissions,
        config.permissions.mode,
        haft_permission::Confinement::None,
    )?;
    let rules = permissions::restrict_to_project(rules, settings, project, trust_state)?;
    let mut hidden = secret_paths(home.as_deref());
    hidden.extend(
        config
            .sandbox
            .hidden
            .iter()
            .filter_map(|path| resolve_configured_path(path, home.as_deref())),
    );
    hidden.extend(settings.load_project_policy(project).hidden);
    hidden.extend(rules.unreadable_paths(&settings.workspace(project)).paths);
    Ok(hidden)
}

fn is_secret_file(path: &Path, hidden: &[PathBuf]) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    hidden.iter().any(|hidden| path.starts_with(hidden))
        || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || SECRET_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// Returns the message in a reply, without the code fence that small models add despite the prompt.
fn extract_message(reply: &str) -> String {
    let reply = reply.trim();
    let inside = reply
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    let inside = inside
        .and_then(|inside| inside.split_once('\n'))
        .map_or(reply, |(_, inside)| inside);
    let lines: Vec<_> = inside.trim().lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Formats the tokens and, if known, the cost of the request.
fn format_cost(result: &TurnResult) -> String {
    let tokens = result.usage.all_input() + result.usage.output;
    match result.cost {
        Some(cost) => text!("commit-cost", tokens, money = format!("{:.4}", cost.total)),
        None => text!("commit-cost-unknown", tokens),
    }
}

/// Asks the user whether to commit, and returns true if the user agrees. Without a terminal,
/// returns false.
fn ask_to_commit() -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        output::print_to_stderr(&format!("haft: {}", text!("commit-needs-yes")));
        return Ok(false);
    }
    haft_tui::wait_and_discard_typed_ahead(&stdin);
    let mut stderr = std::io::stderr();
    write!(stderr, "{} ", text!("commit-ask"))?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    let agreed = haft_messages::parse_yes_no(&answer) == Some(true);
    if !agreed {
        output::print_to_stderr(&format!("haft: {}", text!("commit-not-done")));
    }
    Ok(agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extract_message_removes_the_code_fence() {
        for reply in [
            "Fix it\n\nBecause.",
            " Fix it  \n\nBecause.\n",
            "```\nFix it\n\nBecause.\n```",
            "```text\nFix it\n\nBecause.\n```",
        ] {
            assert_eq!(extract_message(reply), "Fix it\n\nBecause.", "{reply:?}");
        }
        assert_eq!(extract_message("``` "), "```");
        assert_eq!(extract_message("  "), "");
    }

    #[test]
    fn is_secret_checks_folder_and_file_name() {
        let hidden = [PathBuf::from("/p/private")];
        for path in [
            "/p/private/a",
            "/p/.env",
            "/p/sub/.env.local",
            "/p/x.PEM",
            "/p/id_rsa.pub",
        ] {
            assert!(is_secret_file(Path::new(path), &hidden), "{path}");
        }
        for path in ["/p/src/a.rs", "/p/privately", "/p/env.rs", "/p/keys.md"] {
            assert!(!is_secret_file(Path::new(path), &hidden), "{path}");
        }
    }
}
