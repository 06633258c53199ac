//! `haft models list`: lists the usable models, or all known models.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use haft_agent::KeyState;
use haft_agent::config::Config;
use haft_model::{BuiltIn, Catalogue, Declared};
use haft_text::format_thousands;
use serde_json::{Value, json};

use super::format_number;
use crate::commands::models::ListArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};

struct ModelRow {
    declared: Declared,
    main: bool,
    key: KeyState,
    built_in: bool,
}

pub(super) fn run(haft: &Haft, args: &ListArgs) -> anyhow::Result<ProcessExit> {
    if args.markdown {
        output::print_text(&render_models_page()?)?;
        return Ok(ProcessExit::Completed);
    }
    let settings = haft.load(&args.common)?;
    let rows = collect_rows(
        &settings,
        if args.all {
            ModelFilter::All
        } else {
            ModelFilter::Usable
        },
    )?;
    if args.json {
        let rows: Vec<_> = rows.iter().map(row_to_json).collect();
        output::print_json(&rows.into())?;
    } else if rows.is_empty() {
        let file = settings.places.config_file();
        output::print_text_line(&text!(
            "models-none",
            file = file.display(),
            models = built_in_table(&settings.config)?
        ))?;
    } else {
        output::print_text(&rows_to_table(&rows))?;
    }
    Ok(ProcessExit::Completed)
}

/// Lists the built-in models and the environment variable of the key that each provider needs.
fn built_in_table(config: &Config) -> anyhow::Result<TextTable> {
    let mut table = TextTable::new(&[text!("table-set"), text!("table-models")]);
    let mut by_provider: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let catalogue = super::build_catalogue(config)?;
    for (name, provider) in catalogue.providers() {
        let key = provider
            .api_key_env
            .clone()
            .filter(|variable| !variable.is_empty());
        by_provider.insert(
            (
                name.to_owned(),
                key.unwrap_or_else(|| text!("models-no-key-needed").to_owned()),
            ),
            Vec::new(),
        );
    }
    for spec in catalogue.list_models() {
        if let Some((_, names)) = by_provider
            .iter_mut()
            .find(|((provider, _), _)| *provider == spec.provider)
        {
            names.push(spec.full_name());
        }
    }
    for ((provider, key), names) in by_provider {
        table.add_row(vec![
            key,
            if names.is_empty() {
                format!("{provider}/…")
            } else {
                names.join(", ")
            },
        ]);
    }
    Ok(table)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelFilter {
    /// Declared models, and built-in models with a key.
    Usable,
    /// All models, including those without a key.
    All,
}

/// Collects the models to list. Declared models and the main model are always included; built-in
/// models only if their key is set or `wanted` is [`ModelFilter::All`].
fn collect_rows(settings: &Settings, wanted: ModelFilter) -> anyhow::Result<Vec<ModelRow>> {
    let config = &settings.config;
    let catalogue = super::build_catalogue(config)?;
    let main =
        haft_agent::configured_model(config).map(|name| catalogue.full_name(&name).unwrap_or(name));
    let mut names: BTreeSet<_> = catalogue
        .list_models()
        .map(|spec| spec.full_name())
        .collect();
    names.extend(main.clone());
    let mut rows = Vec::new();
    for name in names {
        let declared = catalogue
            .resolve(&name)
            .map_err(|error| usage_error(error.to_string()))?;
        let key = settings.key_state(&declared.provider);
        let is_main = main.as_ref() == Some(&name);
        let built_in = !config.models.contains_key(&name) && !is_main;
        if wanted == ModelFilter::All || !built_in || key == KeyState::Available {
            rows.push(ModelRow {
                declared,
                main: is_main,
                key,
                built_in,
            });
        }
    }
    Ok(rows)
}

fn row_to_json(row: &ModelRow) -> Value {
    let model = &row.declared.spec;
    json!({
        "name": model.full_name(),
        "main": row.main,
        "built_in": row.built_in,
        "key": row.key.name(),
        "api": model.api,
        "base_url": row.declared.provider.base_url,
        "context_window": model.context_window,
        "max_output_tokens": model.max_output_tokens,
        "price": model.price,
        "listed_price": row.declared.listed.as_ref().map(|(_, price)| price),
        "currency": row.declared.listed.as_ref().map(|(currency, _)| currency),
        "cache": model.cache,
        "tokenizer_factor": model.tokenizer_factor,
        "profile": model.profile,
        "profile_reason": super::profile_reason_name(model),
    })
}

const UNKNOWN: &str = "-";

fn rows_to_table(rows: &[ModelRow]) -> String {
    let headings = [
        text!("table-model"),
        text!("table-api"),
        text!("table-key"),
        text!("table-window"),
        text!("table-output"),
        text!("table-usd-m-in"),
        text!("table-cached"),
        text!("table-out"),
    ];
    let mut table = TextTable::new(&headings);
    for row in rows {
        let model = &row.declared.spec;
        let mark = if row.main { text!("models-main") } else { "" };
        let mut cells = vec![
            format!("{}{mark}", model.full_name()),
            model.api.to_string(),
            output::localize_text(row.key.name()),
            format_thousands(model.context_window),
            model
                .max_output_tokens
                .map_or_else(|| UNKNOWN.to_owned(), format_thousands),
        ];
        cells.extend(price_cells(&row.declared));
        table.add_row(cells);
    }
    table.to_string()
}

/// Returns the prices of input, cached input and output. Prices in currencies other than USD
/// contain the currency's sign.
fn price_cells(model: &Declared) -> [String; 3] {
    let Some((currency, price)) = &model.listed else {
        return [UNKNOWN, UNKNOWN, UNKNOWN].map(str::to_owned);
    };
    let amount = |price: f64| {
        if currency == "USD" {
            format_number(price)
        } else {
            super::format_money(currency, price)
        }
    };
    let cached = price
        .cached_input
        .map_or_else(|| UNKNOWN.to_owned(), amount);
    [amount(price.input), cached, amount(price.output)]
}

/// Renders `docs/models.md`.
fn render_models_page() -> anyhow::Result<String> {
    let catalogue = Catalogue::with_built_in([].into(), [].into())
        .map_err(|error| usage_error(error.to_string()))?;
    let mut page = include_str!("page.md").to_owned();
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "\n## Providers\n\n| provider | API | address | key |\n| --- | --- | --- | --- |"
    );
    for (name, provider) in catalogue.providers() {
        let key = provider
            .api_key_env
            .as_ref()
            .map_or_else(|| "none".to_owned(), |key| format!("`{key}`"));
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {key} |",
            provider.api, provider.base_url
        );
    }
    page.push_str(
        "\n## Models\n\nPrices are in USD per million tokens, those with a sign in another currency: input, input read from the \
         cache, input written to it, output.\n\n\
         | model | window | output | input | cached | written | output price | cache | factor | source |\n\
         | --- | --: | --: | --: | --: | --: | --: | --- | --: | --- |\n",
    );
    let mut notes = String::new();
    for name in catalogue.list_models().map(|model| model.full_name()) {
        let Declared {
            spec: model,
            listed,
            ..
        } = catalogue
            .resolve(&name)
            .map_err(|error| usage_error(error.to_string()))?;
        let (currency, listed) = listed.unzip();
        let amount = |price: f64| match currency.as_deref() {
            None | Some("USD") => format_number(price),
            Some(other) => super::format_money(other, price),
        };
        let price = |of: fn(&haft_types::Price) -> Option<f64>| {
            listed
                .as_ref()
                .and_then(of)
                .map_or_else(String::new, amount)
        };
        let cache = serde_json::to_value(model.cache.rule)?;
        let about = BuiltIn::get().provenance(&name);
        let source = about.map_or_else(String::new, |about| {
            format!("[{}]({})", about.as_of, about.source)
        });
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {} | {} | {} | {} | {} from {} | {} | {source} |",
            model.context_window,
            model
                .max_output_tokens
                .map_or_else(String::new, |tokens| tokens.to_string()),
            price(|price| Some(price.input)),
            price(|price| price.cached_input),
            price(|price| price.cache_write),
            price(|price| Some(price.output)),
            cache.as_str().unwrap_or_default(),
            model.cache.min,
            format_number(model.tokenizer_factor),
        );
        if let Some(long) = listed.and_then(|price| price.long) {
            let _ = writeln!(
                notes,
                "- `{name}`: a request of more than {} input tokens costs {} for input and {} for output.",
                long.above,
                amount(long.input),
                amount(long.output)
            );
        }
        if let Some(note) = about.and_then(|about| about.note.as_ref()) {
            let _ = writeln!(notes, "- `{name}`: {note}.");
        }
    }
    if !notes.is_empty() {
        let _ = write!(page, "\n{notes}");
    }
    Ok(page)
}
