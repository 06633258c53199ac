//! The setup at the first start: asks for a provider, a key and a model, until a model answers.
//!
//! Invariant: nothing is written before the model has answered. Then either both the key, which
//! only its user can read, and the configuration that names the key's file are written, or neither.

mod local_server;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft_agent::config;
use haft_agent::{KeyState, Places};
use haft_files::Durability;
use haft_model::{BuiltIn, ModelError, ProviderConfig, Secret};
use haft_tui::{Answered, InputEcho, ask_line, wrap_to_terminal};
use haft_types::Api;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::commands::config::file as config_file;
use crate::commands::models::ModelTrial;
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::{output, wiring};

/// The provider name of a server whose address the user typed.
const OWN_PROVIDER: &str = "own";
/// The currency of prices that are listed without a word on their currency.
const BASE_CURRENCY: &str = "USD";
/// The maximum number of a server's models that are listed.
const MAX_LISTED_MODELS: usize = 20;

/// The outcome of the setup.
pub(super) enum SetupOutcome {
    /// A model is configured and has answered.
    Model,
    /// The user wants to see the demo.
    Demo,
    /// The user canceled the setup, so nothing was written.
    Left,
}

/// The source of the provider's API key.
enum KeySource {
    /// No key is needed.
    None,
    /// The source that the provider's declaration names.
    Declared,
    /// A key that the user just typed.
    Typed(String),
}

/// The question to repeat after a failure.
enum RetryFrom {
    Provider,
    Key,
    Model,
}

/// Asks for a provider, a key and a model, until a model answers or the user leaves or chooses the
/// demo.
pub(super) fn run(settings: &Settings) -> anyhow::Result<SetupOutcome> {
    show_line(text!("setup-welcome"))?;
    'provider: loop {
        let choice = match choose_provider(settings)? {
            Answered::Given(choice) => choice,
            Answered::Back | Answered::Left => return Ok(SetupOutcome::Left),
        };
        let mut settings = settings.clone();
        let provider = match choice {
            ProviderChoice::Demo => return Ok(SetupOutcome::Demo),
            ProviderChoice::Known(name) => name,
            ProviderChoice::Own => {
                let declared = match ask_server()? {
                    Answered::Given(declared) => declared,
                    Answered::Back => continue 'provider,
                    Answered::Left => return Ok(SetupOutcome::Left),
                };
                settings
                    .config
                    .providers
                    .insert(OWN_PROVIDER.to_owned(), declared);
                OWN_PROVIDER.to_owned()
            }
        };
        let mut refused = false;
        'key: loop {
            let declared = ModelTrial(&settings).find_provider(&provider)?;
            let key = match ask_key(&settings, &provider, &declared, refused)? {
                Answered::Given(key) => key,
                Answered::Back => continue 'provider,
                Answered::Left => return Ok(SetupOutcome::Left),
            };
            loop {
                let failure = match ask_model(&settings, &provider, &key)? {
                    Answered::Left => return Ok(SetupOutcome::Left),
                    Answered::Back => continue 'provider,
                    Answered::Given(ModelChoice::Failed(failure)) => failure,
                    Answered::Given(ModelChoice::Named(model)) => {
                        let name = format!("{provider}/{model}");
                        show_line(&text!("setup-trying", name))?;
                        match ModelTrial(&settings)
                            .test_model(&name, key.find_secret(&settings, &provider, &declared)?)?
                        {
                            Ok(()) => {
                                write_key_and_config(&settings, &provider, &name, &key)?;
                                show_text(&format!(
                                    "{}\n\n",
                                    text!(
                                        "setup-done",
                                        file = settings.places.config_file().display()
                                    )
                                ))?;
                                return Ok(SetupOutcome::Model);
                            }
                            Err(failure) => failure,
                        }
                    }
                };
                show_line(&text!(
                    "setup-failed",
                    failure = output::localize_text(&failure)
                ))?;
                match choose_retry(&failure) {
                    RetryFrom::Provider => continue 'provider,
                    RetryFrom::Key => {
                        refused = true;
                        continue 'key;
                    }
                    RetryFrom::Model => {}
                }
            }
        }
    }
}

fn choose_retry(failure: &ModelError) -> RetryFrom {
    match failure {
        ModelError::Unauthorized { .. } => RetryFrom::Key,
        ModelError::Unreachable { .. }
        | ModelError::NotAnApi { .. }
        | ModelError::Config { .. } => RetryFrom::Provider,
        ModelError::Exhausted { last, .. } | ModelError::NeverValid { last } => choose_retry(last),
        ModelError::SpendLimit { .. }
        | ModelError::Status { .. }
        | ModelError::BadReply { .. }
        | ModelError::Dropped { .. }
        | ModelError::Timeout { .. }
        | ModelError::Cancelled
        | ModelError::OverBudget(_)
        | ModelError::NoPrice(_) => RetryFrom::Model,
    }
}

/// Prints a line that wraps between words.
fn show_line(text: &str) -> anyhow::Result<()> {
    show_text(&format!("{text}\n"))
}

fn show_text(text: &str) -> anyhow::Result<()> {
    output::print_text(&wrap_to_terminal(text))
}

enum ProviderChoice {
    Known(String),
    Own,
    Demo,
}

fn choose_provider(settings: &Settings) -> anyhow::Result<Answered<ProviderChoice>> {
    let names = list_providers(settings)?;
    let mut text = String::from(&format!("\n{}\n\n", text!("setup-provider-title")));
    let wide = names
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let mut others = Vec::new();
    let mut silent = Vec::new();
    for (at, (name, answers)) in names.iter().enumerate() {
        let declared = ModelTrial(settings).find_provider(name)?;
        // `deepseek` and `deepseek-cn` differ only in the currency of their prices.
        let currency = ModelTrial(settings)
            .find_currency(name)
            .filter(|currency| currency != BASE_CURRENCY);
        let note = match (settings.key_state(&declared), &declared.api_key_env) {
            _ if *answers => text!("setup-local-answers", url = declared.base_url),
            // Several providers of one company use one variable.
            (KeyState::Available, Some(variable)) => {
                let host = host_name(&declared.base_url);
                match &currency {
                    Some(currency) => text!("setup-variable-set-in", variable, host, currency),
                    None => text!("setup-variable-set", variable, host),
                }
            }
            (KeyState::Available, None) => text!("setup-key-present").to_owned(),
            // A row for each provider without a key would push the usable providers off a small
            // screen.
            (KeyState::Missing, _) => {
                let currency = currency.map(|currency| format!("\u{a0}({currency})"));
                let currency = currency.unwrap_or_default();
                others.push(format!("{}\u{a0}{name}{currency}", at + 1));
                continue;
            }
            (KeyState::NotNeeded, _) => {
                silent.push(format!("{}\u{a0}{name}", at + 1));
                continue;
            }
            (KeyState::Command | KeyState::Keyring, _) => text!("setup-key-set").to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:>4}  {name:<wide$} {note}", at + 1);
    }
    if !others.is_empty() {
        let _ = writeln!(
            text,
            "      {}",
            text!("setup-key-missing", listed = others.join(", "))
        );
    }
    if !silent.is_empty() {
        let _ = writeln!(
            text,
            "      {}",
            text!("setup-local-silent", listed = silent.join(", "))
        );
    }
    text.extend(["   ", text!("setup-other-choices"), "\n\n"]);
    show_text(&text)?;
    loop {
        let typed = match ask_line(text!("setup-provider-question"), InputEcho::Visible)? {
            Answered::Given(typed) => typed,
            Answered::Back => return Ok(Answered::Back),
            Answered::Left => return Ok(Answered::Left),
        };
        let typed = typed.trim();
        let by_number = typed
            .parse::<usize>()
            .ok()
            .and_then(|number| names.get(number.checked_sub(1)?));
        let by_name = || names.iter().find(|(name, _)| *name == typed);
        match typed {
            "s" | "S" => return Ok(Answered::Given(ProviderChoice::Own)),
            "d" | "D" => return Ok(Answered::Given(ProviderChoice::Demo)),
            _ => {
                if let Some((name, _)) = by_number.or_else(by_name) {
                    return Ok(Answered::Given(ProviderChoice::Known(name.clone())));
                }
                report_unknown_choice(typed, names.len(), text!("setup-provider-letters"))?;
            }
        }
    }
}

/// Returns the names of the built-in providers. The flag is true if the provider's server on this
/// machine answers. Answering servers come first, then providers whose key is present; servers that
/// don't answer come last.
fn list_providers(settings: &Settings) -> anyhow::Result<Vec<(String, bool)>> {
    let mut known = Vec::new();
    for name in BuiltIn::get().provider_names() {
        let declared = ModelTrial(settings).find_provider(name)?;
        let state = settings.key_state(&declared);
        let url = (state == KeyState::NotNeeded).then(|| declared.base_url.clone());
        let probe = url.map(|url| std::thread::spawn(move || local_server::is_model_server(&url)));
        known.push((name.to_owned(), state, probe));
    }
    let mut ranked: Vec<_> = known
        .into_iter()
        .map(|(name, state, probe)| {
            let answers = probe.is_some_and(|probe| probe.join().unwrap_or(false));
            let rank = match state {
                _ if answers => 0,
                KeyState::Available | KeyState::Command | KeyState::Keyring => 1,
                KeyState::Missing => 2,
                KeyState::NotNeeded => 3,
            };
            (rank, name, answers)
        })
        .collect();
    ranked.sort_by_key(|(rank, ..)| *rank);
    Ok(ranked
        .into_iter()
        .map(|(_, name, answers)| (name, answers))
        .collect())
}

/// Reports an unknown choice, and the valid choices.
fn report_unknown_choice(typed: &str, count: usize, others: &str) -> anyhow::Result<()> {
    let typed = haft_text::sanitize(typed);
    if typed.is_empty() {
        return show_line(&text!("setup-no-choice", count, others));
    }
    show_line(&text!("setup-unknown-choice", typed, count, others))
}

/// Returns the host of a base URL.
fn host_name(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Adds the scheme to an address without one: `http` for this machine, else `https`. Returns `None`
/// if the text is no address.
fn complete_url(typed: &str) -> Option<String> {
    let is_whole = |rest: &str| !rest.is_empty() && !rest.contains(char::is_whitespace);
    if let Some((scheme, rest)) = typed.split_once("://") {
        return (matches!(scheme, "http" | "https") && is_whole(rest)).then(|| typed.to_owned());
    }
    let host = host_name(typed);
    let is_local = ["localhost", "127.", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local));
    let is_address = is_whole(typed) && (is_local || host.contains(['.', ':']));
    let scheme = if is_local { "http" } else { "https" };
    is_address.then(|| format!("{scheme}://{typed}"))
}

/// Asks for the address of a server and its API.
fn ask_server() -> anyhow::Result<Answered<ProviderConfig>> {
    let url = loop {
        let typed = match ask_line(text!("setup-url-question"), InputEcho::Visible)? {
            Answered::Given(typed) => typed,
            Answered::Back => return Ok(Answered::Back),
            Answered::Left => return Ok(Answered::Left),
        };
        match complete_url(typed.trim()) {
            Some(url) => break url,
            None => show_line(text!("setup-bad-url"))?,
        }
    };
    let known = [
        Api::OpenaiChat,
        Api::OpenaiResponses,
        Api::Anthropic,
        Api::Gemini,
    ];
    let listed = output::join_names(&known.map(|api| api.to_string()));
    show_line(&text!("setup-apis", listed, api = Api::OpenaiChat))?;
    loop {
        let typed = match ask_line(text!("setup-api-question"), InputEcho::Visible)? {
            Answered::Given(typed) => typed,
            Answered::Back => return Ok(Answered::Back),
            Answered::Left => return Ok(Answered::Left),
        };
        match typed.trim() {
            "" => return Ok(Answered::Given(ProviderConfig::new(Api::OpenaiChat, url))),
            typed => {
                if let Some(api) = known.into_iter().find(|api| api.to_string() == typed) {
                    return Ok(Answered::Given(ProviderConfig::new(api, url)));
                }
                show_line(&text!("setup-unknown-api", typed, listed))?;
            }
        }
    }
}

fn ask_key(
    settings: &Settings,
    name: &str,
    provider: &ProviderConfig,
    refused: bool,
) -> anyhow::Result<Answered<KeySource>> {
    let file = key_file_path(&settings.places, name);
    let kept = format!("{}\n", text!("setup-key-kept", file = file.display()));
    let state = settings.key_state(provider);
    match state {
        KeyState::Available | KeyState::Command | KeyState::Keyring if !refused => {
            return Ok(Answered::Given(KeySource::Declared));
        }
        KeyState::NotNeeded if name != OWN_PROVIDER && !refused => {
            return Ok(Answered::Given(KeySource::None));
        }
        KeyState::NotNeeded => show_text(&text!("setup-key-optional", kept))?,
        KeyState::Available | KeyState::Missing | KeyState::Command | KeyState::Keyring => {
            let variable = provider.api_key_env.as_deref().unwrap_or_default();
            show_line(&text!("setup-key-needed", name, kept, variable))?;
        }
    }
    let question = if state == KeyState::NotNeeded {
        text!("setup-key-question-optional")
    } else {
        text!("setup-key-question")
    };
    loop {
        let typed = match ask_line(question, InputEcho::Masked)? {
            Answered::Given(typed) => typed,
            Answered::Back => return Ok(Answered::Back),
            Answered::Left => return Ok(Answered::Left),
        };
        match typed.trim() {
            "" if state == KeyState::NotNeeded => return Ok(Answered::Given(KeySource::None)),
            "" => show_line(text!("setup-empty-key"))?,
            key => return Ok(Answered::Given(KeySource::Typed(key.to_owned()))),
        }
    }
}

impl KeySource {
    fn find_secret(
        &self,
        settings: &Settings,
        name: &str,
        provider: &ProviderConfig,
    ) -> anyhow::Result<Option<Secret>> {
        match self {
            Self::None => Ok(None),
            Self::Declared => Ok(haft_agent::find_key(
                settings.environment(),
                name,
                provider,
            )?),
            Self::Typed(key) => Ok(Some(Secret::new(key.clone()))),
        }
    }
}

enum ModelChoice {
    Named(String),
    Failed(ModelError),
}

/// Asks for a model from the models that haft knows, else from the server's list. If there is no
/// list, asks for a name.
fn ask_model(
    settings: &Settings,
    provider: &str,
    key: &KeySource,
) -> anyhow::Result<Answered<ModelChoice>> {
    let front = format!("{provider}/");
    let known: Vec<_> = BuiltIn::get()
        .model_names()
        .filter_map(|name| Some(name.strip_prefix(&front)?.to_owned()))
        .collect();
    let names = if known.is_empty() {
        let declared = ModelTrial(settings).find_provider(provider)?;
        match ModelTrial(settings)
            .list_models(provider, key.find_secret(settings, provider, &declared)?)?
        {
            Ok(names) => names,
            Err(failure) => match choose_retry(&failure) {
                RetryFrom::Provider | RetryFrom::Key => {
                    return Ok(Answered::Given(ModelChoice::Failed(failure)));
                }
                // Not every server can list its models.
                RetryFrom::Model => Vec::new(),
            },
        }
    } else {
        known
    };
    let mut text = String::from(&format!("\n{}\n\n", text!("setup-model-title")));
    for (at, name) in names.iter().take(MAX_LISTED_MODELS).enumerate() {
        let price = ModelTrial(settings)
            .price_text(&format!("{front}{name}"))
            .unwrap_or_default();
        let _ = writeln!(text, "{:>4}  {name:<28} {price}", at + 1);
    }
    let more = names.len().saturating_sub(MAX_LISTED_MODELS);
    if more > 0 {
        let _ = writeln!(text, "      {}", text!("setup-more", more));
    }
    if !names.is_empty() {
        show_text(&(text + "\n"))?;
    }
    let question = if names.is_empty() {
        text!("setup-model-question-name")
    } else {
        text!("setup-model-question")
    };
    loop {
        let typed = match ask_line(question, InputEcho::Visible)? {
            Answered::Given(typed) => typed,
            Answered::Back => return Ok(Answered::Back),
            Answered::Left => return Ok(Answered::Left),
        };
        let typed = typed.trim();
        let by_number = typed
            .parse::<usize>()
            .ok()
            .and_then(|number| names.get(number.checked_sub(1)?));
        match by_number {
            Some(name) => return Ok(Answered::Given(ModelChoice::Named(name.clone()))),
            None if typed.is_empty() || !names.is_empty() && typed.parse::<usize>().is_ok() => {
                report_unknown_choice(typed, names.len(), text!("setup-model-letters"))?;
            }
            None => {
                let name = typed.strip_prefix(&front).unwrap_or(typed);
                return Ok(Answered::Given(ModelChoice::Named(name.to_owned())));
            }
        }
    }
}

fn key_file_path(places: &Places, provider: &str) -> PathBuf {
    places
        .config
        .join("keys")
        .join(haft_types::encode_file_name(provider))
}

/// Writes the key and the configuration, or neither.
fn write_key_and_config(
    settings: &Settings,
    provider: &str,
    model: &str,
    key: &KeySource,
) -> anyhow::Result<()> {
    let kept = match key {
        KeySource::None | KeySource::Declared => None,
        KeySource::Typed(key) => Some(write_key(&key_file_path(&settings.places, provider), key)?),
    };
    let own = (provider == OWN_PROVIDER)
        .then(|| settings.config.providers.get(OWN_PROVIDER))
        .flatten();
    let file = settings.places.config_file();
    let written = config::edit_file(&file, |before| {
        insert_model(&file, before, provider, model, own, kept.as_deref())
    });
    if let (Err(_), Some(kept)) = (&written, &kept) {
        // The error is reported; a key file that nothing names must not stay.
        drop(std::fs::remove_file(kept));
    }
    written
}

fn write_key(file: &Path, key: &str) -> anyhow::Result<PathBuf> {
    let told = |error: std::io::Error| {
        usage_error(text!("setup-key-unwritable", file = file.display(), error))
    };
    // Replacing the file also removes its former permissions, or a link in its place.
    haft_files::replace_file(file, format!("{key}\n").as_bytes(), Durability::PowerCut)
        .map_err(told)?;
    Ok(file.to_owned())
}

/// Returns the text of the file with the model, its provider if the provider is new, and the
/// location of the provider's key.
fn insert_model(
    file: &Path,
    before: &str,
    provider: &str,
    model: &str,
    own: Option<&ProviderConfig>,
    key: Option<&Path>,
) -> anyhow::Result<String> {
    let mut document = config_file::parse_document(file, before)?;
    document.insert("model", value(model));
    if own.is_some() || key.is_some() {
        let table = get_or_insert_provider(&mut document, provider)
            .ok_or_else(|| usage_error(text!("setup-not-a-table", file = file.display())))?;
        if let Some(own) = own {
            table.insert("api", value(own.api.to_string()));
            table.insert("base_url", value(&own.base_url));
        }
        if let Some(key) = key {
            if BuiltIn::get().provider_keys(provider).is_some() {
                // The built-in variable would take precedence over the file.
                table.insert("api_key_env", value(""));
            }
            table.insert("api_key_file", value(key.display().to_string()));
        }
    }
    let after = document.to_string();
    wiring::check_config(file, &after)?;
    Ok(after)
}

/// Returns the provider's table, which is created if missing.
fn get_or_insert_provider<'a>(
    document: &'a mut DocumentMut,
    provider: &str,
) -> Option<&'a mut Table> {
    let providers = config_file::get_or_insert_section(document, "providers")?;
    providers
        .entry(provider)
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_with_provider(
        before: &str,
        provider: &str,
        own: Option<&ProviderConfig>,
        key: Option<&str>,
    ) -> String {
        let model = format!("{provider}/m");
        insert_model(
            Path::new("config.toml"),
            before,
            provider,
            &model,
            own,
            key.map(Path::new),
        )
        .unwrap()
    }

    #[test]
    fn complete_url_adds_a_missing_scheme() {
        for (typed, url) in [
            ("http://a.test/v1", Some("http://a.test/v1")),
            ("127.0.0.1:8080/v1", Some("http://127.0.0.1:8080/v1")),
            ("localhost:1234", Some("http://localhost:1234")),
            ("api.example.com/v1", Some("https://api.example.com/v1")),
            ("gpu:8000", Some("https://gpu:8000")),
            ("ftp://a.test", None),
            ("http://", None),
            ("my server", None),
            ("server", None),
            ("", None),
        ] {
            assert_eq!(complete_url(typed).as_deref(), url, "{typed}");
        }
    }

    #[test]
    fn insert_model_writes_no_more_than_needed() {
        assert_eq!(
            config_with_provider("", "openai", None, None),
            "model = \"openai/m\"\n"
        );
        assert_eq!(
            config_with_provider(
                "# mine\n[retry]\nattempts = 2\n",
                "openai",
                None,
                Some("/k/openai")
            ),
            "model = \"openai/m\"\n# mine\n[retry]\nattempts = 2\n\n[providers.openai]\napi_key_env = \"\"\napi_key_file = \"/k/openai\"\n"
        );
        let own = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:1/v1");
        assert_eq!(
            config_with_provider("", OWN_PROVIDER, Some(&own), None),
            "model = \"own/m\"\n\n[providers.own]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n"
        );
    }
}
