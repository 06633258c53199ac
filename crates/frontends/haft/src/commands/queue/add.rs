//! `haft queue add`: adds tasks to the team's queue.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use haft_agent::{HostEnvironment, RandomIds, WallClock};
use haft_postgres::{NewTask, TaskRequest, has_address_password, hide_address_password};
use haft_types::{Clock as _, IdSource as _, PermissionMode, Timestamp};
use serde_json::json;

use crate::cli::options::{JsonArgs, parse_positive, parse_seconds, parse_workflow_input};
use crate::commands::permissions;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// The size limit of a bundle in the queue. Larger repositories belong on a server.
const MAX_BUNDLE_BYTES: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(crate) struct AddTaskArgs {
    /// The task; read from standard input when `-`.
    #[arg(required_unless_present = "workflow")]
    pub(crate) prompt: Option<String>,

    /// Run this workflow instead: one of the worker's own, or of a repository it trusts.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["prompt", "agent"])]
    pub(crate) workflow: Option<String>,

    /// Set an input of the workflow; may be repeated.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = parse_workflow_input, requires = "workflow")]
    pub(crate) inputs: Vec<(String, String)>,

    /// The repository to work on: a URL, a folder that every worker reaches under this path, or a
    /// bundle (`git bundle create`), which goes into the queue. An empty folder when absent.
    #[arg(short, long, value_name = "REPOSITORY", conflicts_with = "each")]
    pub(crate) repository: Option<String>,

    /// Add a task for each repository in this file, one a line; `#` begins a comment.
    #[arg(long, value_name = "FILE")]
    pub(crate) each: Option<PathBuf>,

    /// Check out this commit, tag or branch; the repository's default branch when absent.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,

    /// Push the change to this branch of the repository.
    #[arg(long, value_name = "BRANCH")]
    pub(crate) push: Option<String>,

    /// Use the role, tools and model of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The model, as `provider/model`; the worker's when absent.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The permission mode: plan, ask, accept-edits or auto; the worker's when absent.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Allow what this rule matches; may be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Deny what this rule matches; may be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,

    /// Stop when this much money is spent, by all workers that had the task.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop when this many tokens are used, by all workers that had the task.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) max_total_tokens: Option<i64>,

    /// Stop after this many seconds of one run.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_wall_time: Option<Duration>,

    /// Stop after this many replies of the model in one run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Give up the task after this many workers have started but not finished it.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) max_attempts: i64,

    /// Run it again this many times if its run fails, each time in a new conversation.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=100))]
    pub(crate) retries: i64,

    /// Wait this many seconds before the first of these runs, and twice as long before each
    /// further one.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) retry_wait: Duration,

    /// Take tasks with a higher number first.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    pub(crate) priority: i64,

    /// Take it no earlier: a time such as `2026-11-17T02:00:00Z`, or seconds from now.
    #[arg(long, value_name = "TIME", value_parser = parse_not_before)]
    pub(crate) not_before: Option<NotBefore>,

    /// Add it only if no task has this key; with `--each`, each repository is added to the key.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Label it; may be repeated. Workers choose by labels, and limits and costs are summed by
    /// them.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,

    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

/// The earliest time at which a task may start.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NotBefore {
    At(Timestamp),
    In(Duration),
}

fn parse_not_before(text: &str) -> Result<NotBefore, String> {
    if let Ok(at) = text.parse() {
        return Ok(NotBefore::At(at));
    }
    parse_seconds(text)
        .map(NotBefore::In)
        .map_err(|_| text!("queue-bad-time").into())
}

pub(super) fn add_tasks(haft: &Haft, args: &AddTaskArgs) -> anyhow::Result<()> {
    check_task_args(haft.environment(), args)?;
    let repositories = read_repositories(args)?;
    let prompt = read_prompt(args)?;
    let queue = super::open_queue(haft, &args.output.common)?;
    let mut rows = Vec::new();
    for repository in repositories {
        let task = build_task(args, &prompt, repository)?;
        let added = queue.add_task(&task)?;
        rows.push(json!({
            "id": added.id,
            "added": added.is_new,
            "repository": task.request.repository,
            "conversation_id": added.is_new.then_some(task.conversation),
        }));
        if !args.output.json {
            let id = added.id;
            output::print_text_line(&if added.is_new {
                id.to_string()
            } else {
                text!("queue-key-taken", id)
            })?;
        }
    }
    if args.output.json {
        output::print_json(&json!(rows))
    } else {
        Ok(())
    }
}

fn check_task_args(environment: &HostEnvironment, args: &AddTaskArgs) -> anyhow::Result<()> {
    if args.permission_mode == Some(PermissionMode::Yolo) {
        return Err(usage_error(haft_worker::yolo_refusal()));
    }
    for rule in args.allow.iter().chain(&args.deny) {
        permissions::check_rule(environment, rule)?;
    }
    if let Some(repository) = &args.repository {
        check_repository(repository)?;
    }
    if args.push.is_some() && args.repository.is_none() && args.each.is_none() {
        return Err(usage_error(text!("queue-push-where")));
    }
    Ok(())
}

/// Rejects an address with a password or a token: it would be stored for everybody to read.
fn check_repository(repository: &str) -> anyhow::Result<()> {
    if has_address_password(repository) {
        let address = hide_address_password(repository);
        return Err(usage_error(text!("queue-password", address)));
    }
    Ok(())
}

fn read_prompt(args: &AddTaskArgs) -> anyhow::Result<String> {
    if let Some(name) = &args.workflow {
        return Ok(format!("workflow {name}"));
    }
    let mut prompt = args.prompt.clone().unwrap_or_default();
    if prompt == "-" {
        prompt.clear();
        let read = std::io::stdin().lock().read_to_string(&mut prompt);
        read.map_err(|error| usage_error(text!("run-stdin-unreadable", error)))?;
    }
    if prompt.trim().is_empty() {
        Err(usage_error(text!("run-empty-prompt")))
    } else {
        Ok(prompt)
    }
}

fn read_repositories(args: &AddTaskArgs) -> anyhow::Result<Vec<Option<String>>> {
    let Some(file) = &args.each else {
        return Ok(vec![args.repository.clone()]);
    };
    let text = fs::read_to_string(file)
        .map_err(|error| usage_error(format!("`{}`: {error}", file.display())))?;
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let all: Vec<_> = lines.map(|line| Some(line.to_owned())).collect();
    for repository in all.iter().flatten() {
        check_repository(repository)?;
    }
    if all.is_empty() {
        Err(usage_error(text!(
            "queue-each-empty",
            file = file.display()
        )))
    } else {
        Ok(all)
    }
}

fn build_task(
    args: &AddTaskArgs,
    prompt: &str,
    repository: Option<String>,
) -> anyhow::Result<NewTask> {
    let key = match (&args.key, &repository, &args.each) {
        (Some(key), Some(repository), Some(_)) => Some(format!("{key} {repository}")),
        (key, ..) => key.clone(),
    };
    let (repository, bundle) = match repository {
        Some(given) => locate_repository(given)?,
        None => (None, None),
    };
    let not_before = args.not_before.map(|time| match time {
        NotBefore::At(at) => at.as_millisecond(),
        NotBefore::In(time) => WallClock
            .now()
            .as_millisecond()
            .saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)),
    });
    Ok(NewTask {
        request: TaskRequest {
            prompt: prompt.to_owned(),
            workflow: args.workflow.clone(),
            inputs: args.inputs.iter().cloned().collect(),
            repository,
            commit: args.commit.clone(),
            agent: args.agent.clone(),
            model: args.model.clone(),
            mode: args.permission_mode.map(|mode| mode.to_string()),
            allow: args.allow.clone(),
            deny: args.deny.clone(),
            max_turns: args.max_turns,
            max_seconds: args.max_wall_time.map(|time| time.as_secs_f64()),
            push: args.push.clone(),
        },
        bundle,
        conversation: RandomIds.new_uuid().to_string(),
        priority: args.priority,
        not_before,
        unique_key: key,
        labels: args.labels.clone(),
        usd_limit: args.max_budget_usd,
        token_limit: args.max_total_tokens,
        max_attempts: args.max_attempts,
        retries: args.retries,
        retry_after: args.retry_wait,
    })
}

/// Returns a repository in a form that workers can use: a URL unchanged, a folder by its absolute
/// path, a bundle with its content.
fn locate_repository(given: String) -> anyhow::Result<(Option<String>, Option<Vec<u8>>)> {
    let path = Path::new(&given);
    let Ok(found) = path.metadata() else {
        return Ok((Some(given), None));
    };
    let refused = |error: std::io::Error| usage_error(format!("`{given}`: {error}"));
    let whole = path.canonicalize().map_err(refused)?;
    let whole = whole
        .to_str()
        .ok_or_else(|| usage_error(text!("worker-folder-not-text", folder = path.display())))?;
    if found.is_dir() {
        return Ok((Some(whole.to_owned()), None));
    }
    if found.len() > MAX_BUNDLE_BYTES {
        return Err(usage_error(text!(
            "queue-bundle-too-large",
            file = given.as_str()
        )));
    }
    Ok((
        Some(whole.to_owned()),
        Some(fs::read(path).map_err(refused)?),
    ))
}
