//! The declared and built-in providers and models. A full name is `provider/model`; the model's own
//! name may contain slashes. An alias, or the last part of a name if only one model has it,
//! resolves to a full name.

mod builtin;
mod profile;

use std::collections::{BTreeMap, BTreeSet};

use haft_types::{Api, CacheKind, CacheRule, ModelSpec, Price};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{ModelConfig, ProviderConfig};

pub use builtin::{BuiltIn, Provenance};
pub use profile::ProfileReason;

/// The reason why a name or a configuration entry does not identify a usable model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CatalogueError {
    /// The name does not have the form `provider/model`.
    #[error("`{name}` is not a model name; write `provider/model`, such as `{example}`")]
    Form {
        /// The name, which does not have the form `provider/model`.
        name: String,
        /// An example of a valid name.
        example: String,
    },
    /// The name is the last part of several models' full names.
    #[error("`{name}` is several models: {}; write one of these", .models.join(", "))]
    Ambiguous {
        /// The name, which is the last part of several full names.
        name: String,
        /// The full names of the matching models.
        models: Vec<String>,
    },
    /// No provider with this name is declared.
    #[error("`{name}`: no provider `{provider}` is declared; {}", describe_known_providers(.known, .nearest.as_deref()))]
    UnknownProvider {
        /// The full name of the model.
        name: String,
        /// The provider part of the name.
        provider: String,
        /// The names of the known providers.
        known: Vec<String>,
        /// The known provider name that was probably meant.
        nearest: Option<String>,
    },
    /// `extra_body` sets a field that only haft itself may set.
    #[error("`{name}`: `extra_body` may not set `{key}`, haft sets it itself")]
    ReservedKey {
        /// The name of the provider or model whose `extra_body` sets the field.
        name: String,
        /// The field of the request body that only haft itself may set.
        key: String,
    },
    /// The provider's cache does not offer this lifetime.
    #[error("`{name}`: `cache.ttl = \"{ttl}\"` is not offered; use {}", .ttls.join(" or "))]
    Ttl {
        /// The name of the model.
        name: String,
        /// The configured lifetime.
        ttl: String,
        /// The lifetimes that the provider offers.
        ttls: Vec<String>,
    },
    /// The tokenizer factor is outside the plausible range.
    #[error("`{name}`: `tokenizer_factor = {factor}` is not a number from 0.1 to 10")]
    Factor {
        /// The name of the model.
        name: String,
        /// The configured factor, as written.
        factor: String,
    },
}

fn describe_known_providers(known: &[String], nearest: Option<&str>) -> String {
    let list = known.join(", ");
    match nearest {
        _ if known.is_empty() => "there are none: add a `[providers.NAME]` section".to_owned(),
        Some(nearest) => format!("did you mean `{nearest}`? declared are: {list}"),
        None => format!("declared are: {list}"),
    }
}

/// A model ready for use, with its provider and the fields added to every request body.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The properties of the model.
    pub spec: ModelSpec,
    /// The provider that serves the model.
    pub provider: ProviderConfig,
    /// Fields added to every request body. The model's fields take precedence over the provider's.
    pub extra_body: Map<String, Value>,
    /// The prices as listed by the provider, and their currency. The prices in `spec` are converted
    /// to USD.
    pub listed: Option<(String, Price)>,
    /// The lifetimes of cache entries that the provider sells and whose prices are known, with the
    /// price of writing a million tokens, in USD. Empty unless there are at least two.
    pub lifetimes: Vec<(String, f64)>,
}

/// Returns the lifetimes that the provider sells, with the price of writing a million tokens.
fn sold_lifetimes(
    cache: &CacheRule,
    price: Option<Price>,
    written_for_an_hour: Option<f64>,
) -> Vec<(String, f64)> {
    let price_of = |ttl: &String| {
        let write = match ttl.as_str() {
            "5m" => price?.cache_write,
            "1h" => written_for_an_hour,
            _ => None,
        };
        Some((ttl.clone(), write?))
    };
    let sold: Vec<_> = cache.ttls.iter().filter_map(price_of).collect();
    if sold.len() > 1 { sold } else { Vec::new() }
}

/// All providers and models. Declared entries take precedence over built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    providers: BTreeMap<String, ProviderConfig>,
    models: BTreeMap<String, ModelConfig>,
    /// The model of each alias: a full name, or the last part of one.
    aliases: BTreeMap<String, String>,
    /// The exchange rates: for each currency's name, the amount of that currency that equals one
    /// USD.
    rates: BTreeMap<String, f64>,
    /// The built-in entries, used for names that are not declared; `None` if the catalogue has
    /// none.
    built_in: Option<&'static BuiltIn>,
}

/// The body fields that only the encoder may set.
const RESERVED_KEYS: [&str; 9] = [
    "model",
    "stream",
    "messages",
    "input",
    "contents",
    "tools",
    "system",
    "instructions",
    "systemInstruction",
];

impl Catalogue {
    /// Creates a catalogue without built-in entries. Fails if a model names an undeclared provider
    /// or an extra field breaks a request.
    pub fn new(
        providers: BTreeMap<String, ProviderConfig>,
        models: BTreeMap<String, ModelConfig>,
    ) -> Result<Self, CatalogueError> {
        Self {
            providers,
            models,
            ..Self::default()
        }
        .validate()
    }

    fn validate(self) -> Result<Self, CatalogueError> {
        for (name, provider) in &self.providers {
            check_extra_body(name, &provider.extra_body)?;
        }
        for (name, model) in &self.models {
            self.split_name(name)?;
            check_extra_body(name, &model.extra_body)?;
            check_model(name, model)?;
        }
        Ok(self)
    }

    /// Like [`Self::new`], but with all built-in providers and models. A declared entry entirely
    /// replaces the built-in entry with the same name. The caller therefore merges the
    /// configuration with [`BuiltIn::matching_keys`] first, so that absent keys keep their built-in
    /// values.
    pub fn with_built_in(
        providers: BTreeMap<String, ProviderConfig>,
        models: BTreeMap<String, ModelConfig>,
    ) -> Result<Self, CatalogueError> {
        Self {
            providers,
            models,
            built_in: Some(BuiltIn::get()),
            ..Self::default()
        }
        .validate()
    }

    /// Adds aliases, which take precedence over built-in ones, and currency rates: the amount of
    /// each currency that equals one USD. Without a rate, a price in another currency is shown but
    /// not added up.
    #[must_use]
    pub fn with_aliases_and_rates(
        self,
        aliases: BTreeMap<String, String>,
        rates: BTreeMap<String, f64>,
    ) -> Self {
        Self {
            aliases,
            rates,
            ..self
        }
    }

    /// Returns the full name, `provider/model`, of the model that `name` refers to. `name` may be a
    /// full name, an alias, or a last part that only one model has.
    pub fn full_name(&self, name: &str) -> Result<String, CatalogueError> {
        let name = name.trim();
        // No built-in alias contains a slash.
        let built_in = || {
            self.built_in
                .filter(|_| !name.contains('/'))
                .and_then(|built_in| built_in.resolve_alias(name))
        };
        if let Some(meant) = self.aliases.get(name).cloned().or_else(built_in) {
            return self.resolve_last_part(meant.trim());
        }
        self.resolve_last_part(name)
    }

    fn resolve_last_part(&self, name: &str) -> Result<String, CatalogueError> {
        let Err(wrong) = self.split_name(name) else {
            return Ok(name.to_owned());
        };
        let ends_so = |full: &&String| {
            full.strip_suffix(name)
                .is_some_and(|before| before.ends_with('/'))
        };
        let declared: Vec<_> = self.models.keys().filter(ends_so).cloned().collect();
        let names = self.model_names();
        // If a model is also served from mainland China, the name means the international one.
        let found = if declared.is_empty() {
            names
                .iter()
                .filter(ends_so)
                .filter(|name| {
                    !(name.contains("-cn/") && names.contains(&name.replacen("-cn/", "/", 1)))
                })
                .cloned()
                .collect()
        } else {
            declared
        };
        match <[String; 1]>::try_from(found) {
            Ok([one]) => Ok(one),
            Err(none) if none.is_empty() => Err(wrong),
            Err(models) => Err(CatalogueError::Ambiguous {
                name: name.to_owned(),
                models,
            }),
        }
    }

    /// Returns the model with this name. If the provider is known but the model is not declared,
    /// the model gets default properties.
    pub fn resolve(&self, name: &str) -> Result<Declared, CatalogueError> {
        let name = &*self.full_name(name)?;
        let (provider_name, provider, model_name) = self.split_name(name)?;
        let model = self
            .models
            .get(name)
            .cloned()
            .unwrap_or_else(|| self.built_in_config(name));
        let mut extra_body = provider.extra_body.clone();
        extra_body.extend(model.extra_body);
        let cache = model
            .cache
            .unwrap_or_else(|| guess_cache_rule(provider.api));
        let sold = sold_lifetimes(&cache, model.price, model.cache_write_1h);
        let written_for_an_hour = model.cache_write_1h.filter(|_| cache.ttl == "1h");
        let price = model.price.map(|price| Price {
            cache_write: written_for_an_hour.or(price.cache_write),
            ..price
        });
        let currency = model.currency.unwrap_or_else(|| "USD".to_owned());
        let rate = if currency == "USD" {
            Some(1.0)
        } else {
            self.rates.get(&currency).copied()
        };
        let rate = rate.filter(|rate| (1e-6..1e6).contains(rate));
        let context_window = model.context_window.unwrap_or(ModelSpec::DEFAULT_WINDOW);
        let spec = ModelSpec {
            provider: provider_name.to_owned(),
            name: model_name.to_owned(),
            api: provider.api,
            context_window,
            max_output_tokens: model.max_output_tokens,
            price: price.zip(rate).map(|(price, rate)| price.in_usd(rate)),
            cache,
            tool_protocol: model.tool_protocol.unwrap_or_default(),
            capabilities: model.capabilities.unwrap_or_default(),
            tokenizer_factor: model.tokenizer_factor.unwrap_or(1.0),
            profile: model
                .profile
                .unwrap_or_else(|| profile::default_profile(model_name, context_window)),
            bought_ttl: None,
        };
        let in_usd = |(ttl, write): (String, f64)| Some((ttl, write / rate?));
        Ok(Declared {
            spec,
            provider: provider.clone(),
            extra_body,
            listed: price.map(|price| (currency, price)),
            lifetimes: sold.into_iter().filter_map(in_usd).collect(),
        })
    }

    /// Returns the built-in properties of a model that is not declared, or default properties if
    /// none are built in.
    fn built_in_config(&self, name: &str) -> ModelConfig {
        let keys = self.built_in.and_then(|built_in| built_in.model_keys(name));
        keys.and_then(|keys| ModelConfig::deserialize(keys).ok())
            .unwrap_or_default()
    }

    fn model_names(&self) -> BTreeSet<String> {
        self.models
            .keys()
            .cloned()
            .chain(self.built_in.into_iter().flat_map(BuiltIn::model_names))
            .collect()
    }

    /// Returns all models, sorted by full name.
    pub fn list_models(&self) -> impl Iterator<Item = ModelSpec> {
        self.model_names()
            .into_iter()
            .filter_map(|name| self.resolve(&name).ok())
            .map(|declared| declared.spec)
    }

    /// Returns all providers with their names, sorted by name.
    pub fn providers(&self) -> impl Iterator<Item = (&str, &ProviderConfig)> {
        let built_in = self
            .built_in
            .iter()
            .flat_map(|built_in| built_in.provider_names());
        let names: BTreeSet<_> = self
            .providers
            .keys()
            .map(String::as_str)
            .chain(built_in)
            .collect();
        names
            .into_iter()
            .filter_map(|name| Some((name, self.find_provider(name)?)))
    }

    fn find_provider(&self, name: &str) -> Option<&ProviderConfig> {
        self.providers
            .get(name)
            .or_else(|| self.built_in?.provider_config(name))
    }

    /// Returns a full model name for the error about `name`: a model of the provider `name`, else a
    /// configured model, else a built-in one.
    fn example_name(&self, name: &str) -> String {
        let names = self.model_names();
        let provider_prefix = format!("{}/", name.trim_end_matches('/'));
        let of_provider = names.iter().find(|full| full.starts_with(&provider_prefix));
        of_provider
            .or_else(|| self.models.keys().next())
            .or_else(|| names.first())
            .cloned()
            .unwrap_or_else(|| "openai/gpt-5".to_owned())
    }

    /// Splits a full name into the provider's name, the provider and the model's own name.
    fn split_name<'a>(
        &self,
        name: &'a str,
    ) -> Result<(&'a str, &ProviderConfig, &'a str), CatalogueError> {
        let Some((provider_name, model)) = name
            .split_once('/')
            .filter(|(p, m)| !p.is_empty() && !m.is_empty())
        else {
            return Err(CatalogueError::Form {
                name: name.to_owned(),
                example: self.example_name(name),
            });
        };
        match self.find_provider(provider_name) {
            Some(provider) => Ok((provider_name, provider, model)),
            None => Err(CatalogueError::UnknownProvider {
                name: name.to_owned(),
                provider: provider_name.to_owned(),
                known: self.providers().map(|(name, _)| name.to_owned()).collect(),
                nearest: nearest_name(provider_name, self.providers().map(|(name, _)| name)),
            }),
        }
    }
}

/// Returns the cache rule that probably applies to an undeclared model. Anthropic's cache needs
/// markers in the request; other providers' caches need none.
pub(crate) fn guess_cache_rule(api: Api) -> CacheRule {
    let rule = match api {
        Api::Anthropic => CacheKind::Anthropic,
        Api::OpenaiChat | Api::OpenaiResponses | Api::Gemini => CacheKind::Automatic,
    };
    CacheRule {
        rule,
        ..CacheRule::default()
    }
}

fn check_extra_body(name: &str, extra: &Map<String, Value>) -> Result<(), CatalogueError> {
    match extra
        .keys()
        .find(|key| RESERVED_KEYS.contains(&key.as_str()))
    {
        Some(key) => Err(CatalogueError::ReservedKey {
            name: name.to_owned(),
            key: key.clone(),
        }),
        None => Ok(()),
    }
}

fn check_model(name: &str, model: &ModelConfig) -> Result<(), CatalogueError> {
    if let Some(CacheRule { ttl, ttls, .. }) = &model.cache
        && !ttls.is_empty()
        && !ttls.contains(ttl)
    {
        return Err(CatalogueError::Ttl {
            name: name.to_owned(),
            ttl: ttl.clone(),
            ttls: ttls.clone(),
        });
    }
    match model.tokenizer_factor {
        Some(factor) if !(0.1..=10.0).contains(&factor) => Err(CatalogueError::Factor {
            name: name.to_owned(),
            factor: factor.to_string(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Returns the known name closest to `name`, if it is close enough to be a typing error.
pub fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let allowed = (name.chars().count() / 3).max(1);
    known
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Returns the number of edits that turn one name into the other: a character inserted, deleted or
/// replaced, or two neighbors swapped.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, c) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in to.iter().enumerate() {
            let change = last[j] + usize::from(c != other);
            let mut least = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *c == to[j - 1] && from[i - 1] == *other {
                least = least.min(older[j - 1] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests;
