//! `haft permissions`: what may happen without asking.

mod add;
mod explain;

use haft_permission::Confinement;
use haft_types::Decision;
use serde_json::json;

use crate::cli::{Common, PermissionsCommand};
use crate::exit::Exit;
use crate::output::{self, Table};
use crate::wiring;

pub(crate) use add::add;

pub(super) fn run(command: PermissionsCommand) -> anyhow::Result<Exit> {
    match command {
        PermissionsCommand::List { json, common } => list(json, &common)?,
        PermissionsCommand::Add { rules, ask, deny } => {
            let decision = match (ask, deny) {
                (_, true) => Decision::Deny,
                (true, false) => Decision::Ask,
                (false, false) => Decision::Allow,
            };
            add::run(decision, &rules)?;
        }
        PermissionsCommand::Explain(args) => explain::run(&args)?,
    }
    Ok(Exit::Completed)
}

fn list(as_json: bool, common: &Common) -> anyhow::Result<()> {
    let (_, loaded) = super::configuration(common)?;
    let config = loaded.config.permissions;
    let permissions = haft_agent::permissions(wiring::environment(), &config, config.mode, Confinement::None)?;
    let rules: Vec<_> = permissions.rules.iter().collect();
    let source = |of_project: bool| if of_project { "project" } else { "user" };
    if as_json {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| json!({ "decision": rule.decision, "rule": rule.rule, "source": source(rule.of_project) }))
            .collect();
        return output::print_json(&json!({ "mode": config.mode, "rules": rules }));
    }
    if rules.is_empty() {
        return output::print(&format!(
            "The mode is `{}` and there are no rules. `haft permissions add 'execute_command(git status:*)'` adds one.\n",
            config.mode
        ));
    }
    let mut table = Table::new(&["DECISION", "FROM", "RULE"]);
    for rule in &rules {
        table.row(vec![rule.decision.to_string(), source(rule.of_project).to_owned(), rule.rule.to_owned()]);
    }
    output::print(&format!("The mode is `{}`.\n\n{table}", config.mode))
}
