//! The models of the configuration: resolves their names, opens clients, and opens standby models
//! on demand.

use std::collections::{BTreeSet, VecDeque};

use haft_engine::{ModelOpener, Standby};
use haft_model::{Catalogue, CatalogueError, Client, Declared, RetryConfig};

use crate::agent::ModelSource;
use crate::config::{Config, ModelRole};
use crate::environment::HostEnvironment;
use crate::error::SetupError;
use crate::keys::{self, KeyState};
use crate::proxy_variables;

/// Resolves the name of a model that is declared in the configuration or built in.
pub fn resolve_model(
    environment: &HostEnvironment,
    config: &Config,
    model: &str,
) -> Result<Declared, SetupError> {
    let declared = build_catalogue(config)
        .and_then(|catalogue| catalogue.resolve(model))
        .map_err(SetupError::Model)?;
    Ok(proxy_variables::apply_proxy_variables(
        environment,
        declared,
    ))
}

/// Returns all declared and built-in models, with the short names from the configuration.
pub fn build_catalogue(config: &Config) -> Result<Catalogue, CatalogueError> {
    let catalogue = Catalogue::with_built_in(config.providers.clone(), config.models.clone())?;
    Ok(catalogue
        .with_aliases_and_rates(config.model_aliases.clone(), config.currency_rates.clone()))
}

/// Returns the declared models, the main model, and the built-in models with an available key.
pub fn list_usable_models(
    environment: &HostEnvironment,
    config: &Config,
) -> Result<Vec<Declared>, CatalogueError> {
    let catalogue = build_catalogue(config)?;
    let main = configured_model(config).map(|name| catalogue.full_name(&name).unwrap_or(name));
    let mut names: BTreeSet<_> = catalogue
        .list_models()
        .map(|spec| spec.full_name())
        .collect();
    names.extend(main.clone());
    let mut usable = Vec::new();
    for name in names {
        let declared = catalogue.resolve(&name)?;
        let is_named = config.models.contains_key(&name) || main.as_ref() == Some(&name);
        if is_named || keys::find_key_state(environment, &declared.provider) == KeyState::Available
        {
            usable.push(declared);
        }
    }
    Ok(usable)
}

/// Returns the model for an agent whose file names the model `named`: that model if it can be used,
/// else the model of sub-agents or the main model. The second value is the reason why `named`
/// cannot be used.
pub fn resolve_agent_model(
    environment: &HostEnvironment,
    config: &Config,
    named: Option<&str>,
) -> (Option<String>, Option<String>) {
    let opened = named.map(|name| {
        let declared =
            resolve_model(environment, config, name).map_err(|error| error.to_string())?;
        let full_name = declared.spec.full_name();
        open_client(environment, declared, config.retry.clone()).map(|_| full_name)
    });
    let problem = match opened {
        Some(Ok(name)) => return (Some(name), None),
        Some(Err(problem)) => Some(problem),
        None => None,
    };
    let otherwise = config
        .model_roles
        .configured_models(ModelRole::SubAgent)
        .first()
        .cloned()
        .or_else(|| configured_model(config));
    let full_name = |name: String| {
        build_catalogue(config)
            .and_then(|known| known.full_name(&name))
            .unwrap_or(name)
    };
    (otherwise.map(full_name), problem)
}

/// Returns the configured model of the coding agent.
pub fn configured_model(config: &Config) -> Option<String> {
    config.models_for_role(ModelRole::Code).into_iter().next()
}

/// Creates standby models. Names are checked now; keys are checked when a model is opened on
/// demand. If `source` is given, it opens the models instead of their providers.
pub(crate) fn create_standby_models<'a>(
    environment: &HostEnvironment,
    config: &Config,
    source: Option<&ModelSource>,
    names: impl Iterator<Item = &'a String>,
) -> Result<VecDeque<Standby>, SetupError> {
    let one = |name: &String| {
        let declared = resolve_model(environment, config, name)?;
        let retry = config.retry.clone();
        let environment = environment.clone();
        let source = source.cloned();
        Ok(Standby::new(name, move || match source {
            Some(open) => open(&declared.spec.full_name()),
            None => open_client(&environment, declared, retry),
        }))
    };
    names.map(one).collect()
}

/// Opens a client for the model, with its key.
fn open_client(
    environment: &HostEnvironment,
    declared: Declared,
    retry: RetryConfig,
) -> Result<Client, String> {
    let key = keys::find_key(environment, &declared.spec.provider, &declared.provider);
    Client::new(declared, key.map_err(|error| error.to_string())?, retry)
        .map_err(|error| error.to_string())
}

/// Returns the opener of the models that sub-agents use. If `source` is given, it opens the models
/// instead of their providers.
pub(crate) fn create_model_opener(
    environment: &HostEnvironment,
    config: &Config,
    source: Option<ModelSource>,
) -> ModelOpener {
    let known = config.clone();
    let environment = environment.clone();
    let open = move |name: &str| {
        if let Some(open) = &source {
            return open(name);
        }
        let declared =
            resolve_model(&environment, &known, name).map_err(|error| error.to_string())?;
        open_client(&environment, declared, known.retry.clone())
    };
    ModelOpener::new(open)
        .with_subagent_model(
            config
                .model_roles
                .configured_models(ModelRole::SubAgent)
                .first()
                .cloned(),
        )
        .with_vision_models(
            config
                .model_roles
                .configured_models(ModelRole::Vision)
                .to_vec(),
        )
}
