//! `haft models`.

use haft_model::Catalogue;
use haft_types::ModelSpec;
use serde_json::json;

use crate::cli::{Common, ModelsCommand};
use crate::exit::{Exit, mistake};
use crate::output::{self, Table};

pub(super) fn run(command: Option<ModelsCommand>) -> anyhow::Result<Exit> {
    let ModelsCommand::List { json, common } =
        command.unwrap_or(ModelsCommand::List { json: false, common: Common::default() });
    let (places, loaded) = super::configuration(&common)?;
    let config = loaded.config;
    let main = config.model.clone();
    let catalogue = Catalogue::new(config.providers, config.models).map_err(|error| mistake(error.to_string()))?;
    let models: Vec<_> = catalogue.list().collect();
    if json {
        let rows: Vec<_> = models.iter().map(|model| as_json(model, main.as_deref())).collect();
        output::print_json(&rows.into())?;
    } else if models.is_empty() {
        let file = places.config_file();
        output::print(&format!(
            "No models are declared. Declare a provider and a model in `{}`; the README shows how.\n",
            file.display()
        ))?;
    } else {
        output::print(&as_table(&models, main.as_deref()))?;
    }
    Ok(Exit::Completed)
}

fn as_json(model: &ModelSpec, main: Option<&str>) -> serde_json::Value {
    json!({
        "name": model.full_name(),
        "main": Some(model.full_name().as_str()) == main,
        "api": model.api,
        "context_window": model.context_window,
        "max_output_tokens": model.max_output_tokens,
        "price": model.price,
        "cache": model.cache,
    })
}

fn as_table(models: &[ModelSpec], main: Option<&str>) -> String {
    let mut table = Table::new(&["MODEL", "API", "WINDOW", "OUTPUT", "USD/M IN", "USD/M OUT"]);
    let unknown = || "-".to_owned();
    for model in models {
        let name = model.full_name();
        let mark = if Some(name.as_str()) == main { " (main)" } else { "" };
        table.row(vec![
            format!("{name}{mark}"),
            model.api.to_string(),
            model.context_window.to_string(),
            model.max_output_tokens.map_or_else(unknown, |tokens| tokens.to_string()),
            model.price.map_or_else(unknown, |price| price.input.to_string()),
            model.price.map_or_else(unknown, |price| price.output.to_string()),
        ]);
    }
    table.to_string()
}
