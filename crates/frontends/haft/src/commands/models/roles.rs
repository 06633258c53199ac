//! `haft models roles`.

use haft_agent::config::ModelRole;
use serde_json::json;

use crate::commands::models::RolesArgs;
use crate::exit::ProcessExit;
use crate::output::{self, TextTable};

pub(super) fn run(args: &RolesArgs) -> anyhow::Result<ProcessExit> {
    let (_, loaded) = super::super::configuration(&args.common)?;
    let config = &loaded.config;
    // A name that leads to no model is reported here, not when the role is first needed.
    for role in ModelRole::ALL {
        for name in config.models_of(role) {
            crate::wiring::declared(config, &name)?;
        }
    }
    if args.json {
        let rows: Vec<_> = ModelRole::ALL
            .map(|role| json!({"role": role.name(), "models": config.models_of(role), "set": config.is_set(role)}))
            .into();
        output::print_json(&rows.into())?;
        return Ok(ProcessExit::Completed);
    }
    let mut table = TextTable::new(&[text!("table-role"), text!("table-model"), text!("table-then")]);
    for role in ModelRole::ALL {
        let models = config.models_of(role);
        let (first, rest) = models.split_first().map_or(("-", &[][..]), |(first, rest)| (first.as_str(), rest));
        let first = if config.is_set(role) { first.to_owned() } else { text!("models-role-main", first) };
        table.row(vec![role.name().to_owned(), first, rest.join(", ")]);
    }
    output::print(&table.to_string())?;
    Ok(ProcessExit::Completed)
}
