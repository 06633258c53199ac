//! A model for benchmarks that send nothing.

use std::collections::BTreeMap;

use haft_model::{Catalogue, Client, Declared, ModelConfig, ProviderConfig, RetryConfig};
use haft_types::{Api, CacheKind, CacheRule, ModelSpec};
use serde_json::json;

/// Returns a model with this cache kind and window, at the prices that `policies` assumes.
pub(crate) fn build_spec(rule: CacheKind, window: u32) -> anyhow::Result<ModelSpec> {
    Ok(declare_model(Api::Anthropic, rule, window)?.spec)
}

/// Returns a client for the model; its address has no listener.
pub(crate) fn build_client(api: Api, window: u32) -> anyhow::Result<Client> {
    Ok(Client::new(
        declare_model(api, CacheKind::Anthropic, window)?,
        None,
        RetryConfig::default(),
    )?)
}

fn declare_model(api: Api, rule: CacheKind, window: u32) -> anyhow::Result<Declared> {
    let model = ModelConfig {
        context_window: Some(window),
        max_output_tokens: Some(8_192),
        price: Some(serde_json::from_value(
            json!({"input": 3.0, "cached_input": 0.3, "cache_write": 3.75, "output": 15.0}),
        )?),
        cache: Some(CacheRule {
            rule,
            ..CacheRule::default()
        }),
        ..ModelConfig::default()
    };
    let providers = [(
        "bench".to_owned(),
        ProviderConfig::new(api, "http://127.0.0.1:1"),
    )]
    .into();
    let catalogue = Catalogue::new(
        providers,
        BTreeMap::from([("bench/model".to_owned(), model)]),
    )?;
    Ok(catalogue.resolve("bench/model")?)
}
