//! `haft permissions`: the rules that decide what may run without approval.

mod add;
mod explain;
mod remove;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haft_agent::{Project, find_knowledge_and_trust};
use haft_permission::{Confinement, Permissions, RuleOrigin};
use haft_project::TrustState;
use haft_types::Decision;
use haft_types::PermissionMode;
use serde_json::json;

use crate::cli::options::{Common, JsonArgs, RunArgs};
use crate::exit::ProcessExit;
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};

pub(crate) use add::{add_rules, check_rule};

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the permission mode and the rules in force, the strictest first.
    List(JsonArgs),
    /// Add permission rules to your config.toml.
    ///
    /// A rule is `tool` or `tool(pattern)`: `execute_command(git status:*)` names the first words
    /// of a command, `:*` any further ones; `write_to_file(src/**)` names files by a glob.
    Add {
        /// The rules.
        #[arg(required = true)]
        rules: Vec<String>,
        /// Ask for what they match, even where it would be allowed.
        #[arg(long, conflicts_with = "deny")]
        ask: bool,
        /// Deny what they match.
        #[arg(long)]
        deny: bool,
    },
    /// Remove permission rules from your config.toml.
    Remove {
        /// The rules, as `list` shows them.
        #[arg(required = true)]
        rules: Vec<String>,
        /// Remove them from what is allowed.
        #[arg(long, conflicts_with_all = ["ask", "deny"])]
        allow: bool,
        /// Remove them from what is asked about.
        #[arg(long, conflicts_with = "deny")]
        ask: bool,
        /// Remove them from what is denied.
        #[arg(long)]
        deny: bool,
    },
    /// Explain whether a command line or a call would be allowed, and why, without running it.
    Explain(Box<ExplainArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The command line.
    #[arg(required_unless_present = "tool", conflicts_with = "tool")]
    pub(crate) command: Option<String>,

    /// Explain a call of this tool instead; `mcp__SERVER__TOOL` is a tool of an MCP server.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// The arguments of the call, as a JSON object; needed unless the tool is one of an MCP
    /// server.
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) args: Option<String>,

    /// Explain it in this mode: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Explain it for this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: PermissionsCommand) -> anyhow::Result<ProcessExit> {
    match command {
        PermissionsCommand::List(output) => list_rules(haft, &output)?,
        PermissionsCommand::Add { rules, ask, deny } => {
            let decision = match (ask, deny) {
                (_, true) => Decision::Deny,
                (true, false) => Decision::Ask,
                (false, false) => Decision::Allow,
            };
            add::run(&haft.places()?, decision, &rules)?;
        }
        PermissionsCommand::Remove {
            rules,
            allow,
            ask,
            deny,
        } => {
            let decision = [
                (allow, Decision::Allow),
                (ask, Decision::Ask),
                (deny, Decision::Deny),
            ];
            remove::run(
                &haft.places()?.config_file(),
                decision
                    .iter()
                    .find(|(is_chosen, _)| *is_chosen)
                    .map(|(_, decision)| *decision),
                &rules,
            )?;
        }
        PermissionsCommand::Explain(args) => explain::run(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}

/// Adds the rules of `--allow` and `--deny` to the rules of the configuration, for this run.
pub(crate) fn add_run_rules(settings: &mut Settings, args: &RunArgs) -> anyhow::Result<()> {
    for rule in args.allow.iter().chain(&args.deny) {
        check_rule(settings.environment(), rule)?;
    }
    let config = &mut settings.config.permissions;
    config.allow.extend(args.allow.iter().cloned());
    config.deny.extend(args.deny.iter().cloned());
    Ok(())
}

/// Restricts permissions for a project: a trusted project adds its own restrictions, and in an
/// untrusted project the built-in rules for git are disabled.
pub(crate) fn restrict_to_project(
    mut permissions: Permissions,
    settings: &Settings,
    project: &Project,
    trust_state: &TrustState,
) -> anyhow::Result<Permissions> {
    if trust_state.is_trusted() {
        let policy = settings.load_project_policy(project);
        permissions.rules = permissions
            .rules
            .tightened_by(&policy.rules, settings.environment().home().as_deref())?;
    } else {
        permissions.rules = permissions.rules.without_git_rules();
    }
    Ok(permissions)
}

fn list_rules(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let config = &settings.config.permissions;
    let permissions =
        haft_agent::load_permissions(haft.environment(), config, config.mode, Confinement::None)?;
    let project = haft.project(None)?;
    let (_, trust_state) = find_knowledge_and_trust(&settings.places, &project)?;
    let permissions = restrict_to_project(permissions, &settings, &project, &trust_state)?;
    let rules: Vec<_> = permissions.rules.iter().collect();
    if args.json {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| json!({ "decision": rule.decision, "rule": rule.rule, "source": rule.origin }))
            .collect();
        return output::print_json(&json!({ "mode": config.mode, "rules": rules }));
    }
    if rules.is_empty() {
        return output::print_text_line(&text!("permissions-none", mode = config.mode));
    }
    let mut table = TextTable::new(&[
        text!("table-decision"),
        text!("table-from"),
        text!("table-rule"),
    ]);
    for rule in &rules {
        table.add_row(vec![
            rule.decision.to_string(),
            output::localize_text(origin_name(rule.origin)),
            rule.rule.to_owned(),
        ]);
    }
    let mut shown = format!(
        "{}\n\n{table}",
        text!("permissions-mode", mode = config.mode)
    );
    if rules.iter().any(|rule| rule.origin == RuleOrigin::BuiltIn) {
        shown.extend(["\n", text!("permissions-built-in"), "\n"]);
    }
    output::print_text(&shown)
}

/// Returns the name of a rule's origin in the table.
fn origin_name(origin: RuleOrigin) -> &'static str {
    match origin {
        RuleOrigin::User => "user",
        RuleOrigin::Project => "project",
        RuleOrigin::BuiltIn => "built-in",
    }
}
