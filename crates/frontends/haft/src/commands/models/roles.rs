//! `haft models roles`: lists the roles and the models that fill them.

use haft_agent::config::ModelRole;
use serde_json::json;

use crate::cli::options::JsonArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) fn run(haft: &Haft, args: &JsonArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let config = &settings.config;
    // Reports unknown model names here, not when a role is first used.
    for role in ModelRole::ALL {
        for name in config.models_for_role(role) {
            settings.resolve_model(&name)?;
        }
    }
    if args.json {
        let rows: Vec<_> = ModelRole::ALL
            .map(|role| {
                let models = config.models_for_role(role);
                let set = config.has_own_models(role);
                json!({"role": role.name(), "models": models, "set": set, "for": describe_use(role)})
            })
            .into();
        output::print_json(&rows.into())?;
        return Ok(ProcessExit::Completed);
    }
    let mut table = TextTable::new(&[
        text!("table-role"),
        text!("table-model"),
        text!("table-then"),
        text!("table-for"),
    ]);
    for role in ModelRole::ALL {
        let models = config.models_for_role(role);
        let (first, rest) = models
            .split_first()
            .map_or(("-", &[][..]), |(first, rest)| (first.as_str(), rest));
        let first = if config.has_own_models(role) {
            first.to_owned()
        } else {
            text!("models-role-main", first)
        };
        let use_of = describe_use(role).to_owned();
        table.add_row(vec![role.name().to_owned(), first, rest.join(", "), use_of]);
    }
    output::print_text(&table.to_string())?;
    Ok(ProcessExit::Completed)
}

/// Describes the tasks for which a role's model is used.
fn describe_use(role: ModelRole) -> &'static str {
    match role {
        ModelRole::Main => text!("models-use-main"),
        ModelRole::Code => text!("models-use-code"),
        ModelRole::Chat => text!("models-use-chat"),
        ModelRole::Summary => text!("models-use-summary"),
        ModelRole::SubAgent => text!("models-use-sub-agent"),
        ModelRole::Embedding => text!("models-use-embedding"),
        ModelRole::Vision => text!("models-use-vision"),
        ModelRole::Commit => text!("models-use-commit"),
        ModelRole::Index => text!("models-use-index"),
        ModelRole::Planner => text!("models-use-planner"),
        ModelRole::Designer => text!("models-use-designer"),
        ModelRole::Title => text!("models-use-title"),
    }
}
