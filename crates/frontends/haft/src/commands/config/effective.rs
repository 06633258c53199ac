//! Finds the values in force, with reasons, for settings that the configuration leaves to the
//! model, the machine or the environment.
//!
//! A key that is absent from the configuration, or whose value is `auto`, still has a value in
//! force; `haft config get` and `haft config show` print it.

use std::collections::BTreeMap;

use haft_agent::config::{Config, LoadedConfig, ModelRole, ValueOrigin};
use haft_agent::{HostEnvironment, configured_model};
use haft_context::{Policy, ReductionReason};
use haft_messages::Language;
use haft_model::Declared;
use haft_sandbox::SandboxMode;
use haft_text::format_thousands;
use haft_types::{ModelProfile, ModelSpec, PermissionMode, SandboxLayer};
use toml::Value;

use crate::commands::models::{list_model_settings, profile_text};
use crate::haft::Settings;
use crate::wiring::language::{self, LanguageChoice};
use crate::{output, wiring};

pub(super) struct EffectiveValue {
    pub(super) value: Value,
    /// The reason why the value is in force, in the language of the output.
    pub(super) reason: String,
}

/// The values in force, by configuration key.
pub(super) type EffectiveValues = BTreeMap<String, EffectiveValue>;

/// Returns the values in force for `wanted` and the keys below it, if they differ from the
/// configuration or need a reason. Without `wanted`, returns all of them, including the settings of
/// the main model.
pub(super) fn find_effective_values(
    settings: &Settings,
    loaded: &LoadedConfig,
    wanted: Option<&str>,
) -> anyhow::Result<EffectiveValues> {
    let config = &settings.config;
    let is_wanted = |key: &str| {
        let is_below = |above: &str, key: &str| {
            key.strip_prefix(above)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        wanted.is_none_or(|wanted| key == wanted || is_below(wanted, key) || is_below(key, wanted))
    };
    let main = configured_model(config).and_then(|name| settings.resolve_model(&name).ok());
    let mut values = EffectiveValues::new();
    if config.model.is_none()
        && let Some(name) = configured_model(config)
    {
        add_value(
            &mut values,
            "model",
            name,
            text!("config-reason-model-role").to_owned(),
        );
    }
    add_reduction_settings(
        &mut values,
        loaded,
        main.as_ref().map(|declared| &declared.spec),
    )?;
    add_roles(&mut values, config);
    add_prompts(&mut values, config);
    add_language(&mut values, config, settings.environment())?;
    add_offered_tools(
        &mut values,
        config,
        main.as_ref().map(|declared| &declared.spec),
    );
    if config
        .read_section::<haft_tui::TuiConfig>("tui")
        .is_ok_and(|tui| !tui.plain)
        && settings
            .environment()
            .trimmed_variable("TERM")
            .is_some_and(|terminal| terminal == "dumb")
    {
        add_value(
            &mut values,
            "tui.plain",
            true,
            text!("config-reason-dumb").to_owned(),
        );
    }
    if is_wanted("sandbox.mode") && config.sandbox.mode == SandboxMode::Auto {
        add_sandbox_mode(&mut values, settings)?;
    }
    let named = wanted.and_then(|wanted| find_model_of_key(wanted, settings));
    if let Some(declared) = named.as_ref().or(main.as_ref()) {
        add_model_settings(&mut values, declared, loaded, settings.environment())?;
    }
    if let Some(provider) = wanted.and_then(|wanted| find_provider_of_key(wanted, settings)) {
        add_model_settings(&mut values, &provider, loaded, settings.environment())?;
    }
    values.retain(|key, _| is_wanted(key));
    Ok(values)
}

fn add_value(values: &mut EffectiveValues, key: &str, value: impl Into<Value>, reason: String) {
    values.insert(
        key.to_owned(),
        EffectiveValue {
            value: value.into(),
            reason,
        },
    );
}

/// Adds the four settings for reducing old results, whose defaults depend on the model.
fn add_reduction_settings(
    values: &mut EffectiveValues,
    loaded: &LoadedConfig,
    model: Option<&ModelSpec>,
) -> anyhow::Result<()> {
    let policy = &loaded.config.context;
    let (resolved, reason) = match model {
        Some(model) => (
            policy.resolve_for_model(model),
            reduction_reason(policy, model),
        ),
        None => (
            fill_in_defaults(policy),
            text!("config-reason-no-model").to_owned(),
        ),
    };
    let table = toml::Table::try_from(&resolved)?;
    for key in ["safe_zone", "prune_to", "prune_keep", "compress"] {
        let full_key = format!("context.{key}");
        let tokens = model
            .filter(|_| key == "safe_zone")
            .and_then(|model| resolved.safe_zone_tokens(model).ok());
        let is_set = loaded.values.contains_key(&full_key);
        let reason = match (is_set, tokens) {
            (true, None) => continue,
            (true, Some(tokens)) => {
                text!("config-reason-tokens", tokens = format_thousands(tokens))
            }
            (false, None) => reason.clone(),
            (false, Some(tokens)) => {
                text!(
                    "config-reason-and-tokens",
                    reason,
                    tokens = format_thousands(tokens)
                )
            }
        };
        if let Some(value) = table.get(key) {
            add_value(values, &full_key, value.clone(), reason);
        }
    }
    if let Some(most) = model.and_then(|model| model.max_output_tokens) {
        let reason = text!(
            "config-reason-reserve",
            tokens = format_thousands(u64::from(most))
        );
        add_value(
            values,
            "context.output_reserve",
            policy.output_reserve,
            reason,
        );
    }
    Ok(())
}

/// Returns the policy with the defaults that apply while no model is known.
fn fill_in_defaults(policy: &Policy) -> Policy {
    let usual = haft_context::Reduction::default();
    Policy {
        safe_zone: Some(policy.safe_zone.unwrap_or(usual.safe_zone)),
        prune_to: Some(policy.prune_to.unwrap_or(usual.prune_to)),
        prune_keep: Some(policy.prune_keep.unwrap_or(usual.prune_keep)),
        compress: Some(policy.compress.unwrap_or(usual.compress)),
        ..policy.clone()
    }
}

/// Returns the reason why the settings for reducing old results have their values for this model.
pub(crate) fn reduction_reason(policy: &Policy, model: &ModelSpec) -> String {
    let reason = match policy.reduction_and_reason(model).1 {
        ReductionReason::LongCache => text!("config-reason-long-cache"),
        ReductionReason::ShortCache => text!("config-reason-short-cache"),
        ReductionReason::NoPrice => text!("config-reason-no-price"),
        ReductionReason::LargeWindow => text!("config-reason-large-window"),
        ReductionReason::LongPrice => text!("config-reason-long-price"),
        ReductionReason::SmallWindow => text!("config-reason-small-window"),
    };
    reason.to_owned()
}

/// Adds the roles that have no model of their own and therefore use the main model.
fn add_roles(values: &mut EffectiveValues, config: &Config) {
    for role in ModelRole::ALL
        .into_iter()
        .filter(|role| !config.has_own_models(*role))
    {
        // These roles are off if they have no model of their own.
        if matches!(
            role,
            ModelRole::Main
                | ModelRole::Embedding
                | ModelRole::Vision
                | ModelRole::Designer
                | ModelRole::Title
        ) {
            continue;
        }
        let models = config.models_for_role(role);
        if !models.is_empty() {
            let reason = text!("config-reason-main-model").to_owned();
            add_value(
                values,
                &format!("model_roles.{}", role.name()),
                models,
                reason,
            );
        }
    }
}

/// Adds the prompts that are built in or read from a file instead of being part of the
/// configuration.
fn add_prompts(values: &mut EffectiveValues, config: &Config) {
    let roles = &config.roles;
    if roles.main.is_empty() {
        let reason = match &roles.main_file {
            Some(file) => text!("config-reason-file", file),
            None => text!("config-reason-built-in-role").to_owned(),
        };
        add_value(values, "roles.main", "", reason);
    }
    if roles.system_prompt.is_empty() {
        let reason = match &roles.system_prompt_file {
            Some(file) => text!("config-reason-file", file),
            None => text!("config-reason-built-in-prompt").to_owned(),
        };
        add_value(values, "roles.system_prompt", "", reason);
    }
}

/// Adds the language of the output for people, if it is chosen by the locale.
fn add_language(
    values: &mut EffectiveValues,
    config: &Config,
    environment: &HostEnvironment,
) -> anyhow::Result<()> {
    let chosen: LanguageChoice = config.read_section(language::CONFIG_KEY)?;
    if chosen != LanguageChoice::Auto {
        return Ok(());
    }
    let (locale, reason) = match language::find_locale(environment) {
        Some((variable, value)) => {
            let reason = text!("config-reason-locale", variable, value);
            (value, reason)
        }
        None => (String::new(), text!("config-reason-no-locale").to_owned()),
    };
    let name = match Language::from_locale(&locale) {
        Language::English => "en",
        Language::Chinese => "zh-CN",
    };
    add_value(values, language::CONFIG_KEY, name, reason);
    Ok(())
}

fn add_offered_tools(values: &mut EffectiveValues, config: &Config, model: Option<&ModelSpec>) {
    if !config.tools.offer.is_empty() {
        return;
    }
    let (set, reason) = match model.map(|model| model.profile) {
        Some(ModelProfile::Small) => ("small", text!("config-reason-small-set")),
        Some(ModelProfile::Full) | None => ("default", text!("config-reason-default-set")),
    };
    add_value(values, "tools.offer", vec![set], reason.to_owned());
}

/// Adds the sandbox layer that confines commands on this machine.
fn add_sandbox_mode(values: &mut EffectiveValues, settings: &Settings) -> anyhow::Result<()> {
    let set_up = haft_agent::set_up_sandbox(
        &settings.places,
        &settings.config.sandbox,
        PermissionMode::Auto,
        Vec::new(),
    );
    let Ok(found) = wiring::build_runtime()?.block_on(set_up) else {
        return Ok(());
    };
    let mode = match found.status().layer {
        SandboxLayer::Namespace => "namespace",
        SandboxLayer::Landlock => "landlock",
        SandboxLayer::None => "off",
    };
    add_value(
        values,
        "sandbox.mode",
        mode,
        text!(
            "config-reason-sandbox",
            layer = output::describe_layer(found.status())
        ),
    );
    Ok(())
}

/// Adds settings of a model and its provider that are known although the configuration does not set
/// them.
fn add_model_settings(
    values: &mut EffectiveValues,
    declared: &Declared,
    loaded: &LoadedConfig,
    environment: &HostEnvironment,
) -> anyhow::Result<()> {
    for setting in list_model_settings(declared, loaded)? {
        if loaded.values.contains_key(&setting.key)
            || loaded.value_origin(&setting.key) != ValueOrigin::BuiltIn
        {
            continue;
        }
        let is_from_environment = [".proxy", ".no_proxy"]
            .iter()
            .any(|end| setting.key.ends_with(end));
        let reason = if setting.key.ends_with(".profile") {
            profile_text(&declared.spec)
        } else if is_from_environment
            && haft_agent::environment_proxies(environment)
                .iter()
                .any(Option::is_some)
        {
            text!("config-reason-proxy").to_owned()
        } else if setting.origin == "built-in" {
            text!("config-reason-catalogue").to_owned()
        } else {
            text!("config-reason-unknown-model").to_owned()
        };
        values.insert(
            setting.key,
            EffectiveValue {
                value: setting.value,
                reason,
            },
        );
    }
    Ok(())
}

/// Returns the model that a key such as `models."openai/gpt-5".context_window` names.
fn find_model_of_key(key: &str, settings: &Settings) -> Option<Declared> {
    let path = toml_edit::Key::parse(key).ok()?;
    let [section, name, ..] = path.as_slice() else {
        return None;
    };
    (section.get() == "models")
        .then(|| settings.resolve_model(name.get()).ok())
        .flatten()
}

/// Returns a placeholder model of the provider that a key such as `providers.openai.base_url`
/// names, because a declaration includes the provider's settings.
fn find_provider_of_key(key: &str, settings: &Settings) -> Option<Declared> {
    let path = toml_edit::Key::parse(key).ok()?;
    let [section, name, ..] = path.as_slice() else {
        return None;
    };
    (section.get() == "providers")
        .then(|| settings.resolve_model(&format!("{}/any", name.get())).ok())
        .flatten()
}
