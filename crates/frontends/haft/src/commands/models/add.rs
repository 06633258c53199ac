//! `haft models add`: writes a model, and its provider if the provider is new, to config.toml and
//! keeps the file's comments and order.

use std::path::Path;

use toml_edit::{DocumentMut, InlineTable, Item, Table, Value, value};

use haft_agent::config;

use crate::commands::config::file as config_file;
use crate::commands::models::AddArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::{output, wiring};

pub(super) fn run(haft: &Haft, args: &AddArgs) -> anyhow::Result<ProcessExit> {
    let file = haft.places()?.config_file();
    config::edit_file(&file, |before| insert_model(&file, before, args))?;
    output::print_text_line(&text!(
        "models-declared",
        name = args.name,
        file = file.display()
    ))?;
    Ok(ProcessExit::Completed)
}

/// Returns the text of the file with the model added and everything else unchanged.
fn insert_model(file: &Path, before: &str, args: &AddArgs) -> anyhow::Result<String> {
    let mut document = config_file::parse_valid_config(file, before)?;
    let named = args
        .name
        .split_once('/')
        .filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let (provider, _) =
        named.ok_or_else(|| usage_error(text!("models-bad-name", name = args.name)))?;
    add_provider(&mut document, file, provider, args)?;
    let models = get_or_insert_section(&mut document, "models", file)?;
    if models.contains_key(&args.name) {
        return Err(usage_error(text!(
            "models-already-declared",
            name = args.name,
            file = file.display()
        )));
    }
    models.insert(&args.name, Item::Table(build_model_table(args)));
    if args.main {
        document.insert("model", value(&args.name));
    }
    let after = document.to_string();
    let table = wiring::check_config(file, &after)?;
    // Building the catalogue finds errors that the types do not: an unknown provider, or a cache
    // TTL that the provider does not offer.
    let config = wiring::lower_config(table)?;
    super::build_catalogue(&config)?;
    Ok(after)
}

/// Declares the provider if it is new. Returns an error if it is declared or built in and the
/// arguments contain settings for it.
fn add_provider(
    document: &mut DocumentMut,
    file: &Path,
    name: &str,
    args: &AddArgs,
) -> anyhow::Result<()> {
    let settings: [(&str, Option<String>); 5] = [
        ("api", args.api.map(|api| api.to_string())),
        ("base_url", args.base_url.clone()),
        ("api_key_env", args.api_key_env.clone()),
        ("api_key_file", args.api_key_file.clone()),
        ("api_key_command", args.api_key_command.clone()),
    ];
    let providers = get_or_insert_section(document, "providers", file)?;
    let known =
        providers.contains_key(name) || haft_model::BuiltIn::get().provider_keys(name).is_some();
    if known {
        let Some((key, _)) = settings.iter().find(|(_, value)| value.is_some()) else {
            return Ok(());
        };
        let flag = key.replace('_', "-");
        return Err(usage_error(text!(
            "models-provider-exists",
            name,
            flag,
            key,
            file = file.display()
        )));
    }
    if args.api.is_none() || args.base_url.is_none() {
        return Err(usage_error(text!("models-provider-new", name)));
    }
    let mut table = Table::new();
    for (key, told) in settings {
        if let Some(told) = told {
            table.insert(key, value(told));
        }
    }
    providers.insert(name, Item::Table(table));
    Ok(())
}

fn build_model_table(args: &AddArgs) -> Table {
    let mut table = Table::new();
    let numbers = [
        ("context_window", args.context_window),
        ("max_output_tokens", args.max_output_tokens),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            table.insert(key, value(i64::from(number)));
        }
    }
    let mut price = InlineTable::new();
    let prices = [
        ("input", args.price_input),
        ("cached_input", args.price_cached_input),
        ("cache_write", args.price_cache_write),
        ("output", args.price_output),
    ];
    for (key, usd) in prices {
        if let Some(usd) = usd {
            price.insert(key, Value::from(usd));
        }
    }
    if !price.is_empty() {
        table.insert("price", value(price));
    }
    if let Some(factor) = args.tokenizer_factor {
        table.insert("tokenizer_factor", value(factor));
    }
    table
}

/// Returns the named table of tables, and creates it if it is missing.
fn get_or_insert_section<'a>(
    document: &'a mut DocumentMut,
    name: &str,
    file: &Path,
) -> anyhow::Result<&'a mut Table> {
    let inline = || usage_error(text!("models-not-a-table", name, file = file.display()));
    config_file::get_or_insert_section(document, name).ok_or_else(inline)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, CliCommand};
    use crate::commands::models::ModelsCommand;

    fn parse_add_args(line: &str) -> AddArgs {
        let cli = Cli::try_parse_from(
            ["haft", "models", "add"]
                .into_iter()
                .chain(line.split_whitespace()),
        )
        .unwrap();
        let Some(CliCommand::Models(models)) = cli.command else {
            panic!("{cli:?}")
        };
        let Some(ModelsCommand::Add(args)) = models.command else {
            panic!("{models:?}")
        };
        *args
    }

    fn add(before: &str, line: &str) -> Result<String, String> {
        insert_model(Path::new("config.toml"), before, &parse_add_args(line))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn add_keeps_comments_and_order() {
        let before = "# mine\nmodel = \"a/b\" # for now\n\n[retry]\nattempts = 2\n\n[providers.a]\napi = \"gemini\"\nbase_url = \"http://127.0.0.1:1\"\n";
        let after = add(
            before,
            "local/qwen3:8b --api openai-chat --base-url http://127.0.0.1:8080/v1 --context-window 32768 --price-input 0.5 --price-output 2",
        )
        .unwrap();
        let added = "\n[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:8080/v1\"\n\n\
                     [models.\"local/qwen3:8b\"]\ncontext_window = 32768\nprice = { input = 0.5, output = 2.0 }\n";
        assert_eq!(after, format!("{before}{added}"));
    }

    #[test]
    fn add_needs_no_address_for_a_known_provider() {
        let after = add("", "anthropic/claude-next --context-window 500000 --main").unwrap();
        assert_eq!(
            after,
            "model = \"anthropic/claude-next\"\n\n[models.\"anthropic/claude-next\"]\ncontext_window = 500000\n"
        );
        let error = add("", "anthropic/claude-next --base-url http://127.0.0.1:1").unwrap_err();
        assert!(
            error.contains("provider `anthropic` already exists; leave `--base-url` out"),
            "{error}"
        );
    }

    #[test]
    fn add_rejects_invalid_arguments() {
        assert!(
            add("", "nobody/m")
                .unwrap_err()
                .contains("give its `--api` and `--base-url`")
        );
        assert!(add("", "m").unwrap_err().contains("write `provider/model`"));
        let once = add("", "openai/gpt-new").unwrap();
        assert!(
            add(&once, "openai/gpt-new")
                .unwrap_err()
                .contains("already declared in `config.toml`")
        );
        assert!(
            add("modle = 1\n", "openai/gpt-new")
                .unwrap_err()
                .contains("did you mean `model`")
        );
        assert!(
            add("", "openai/gpt-new --tokenizer-factor 40")
                .unwrap_err()
                .contains("tokenizer_factor")
        );
    }
}
