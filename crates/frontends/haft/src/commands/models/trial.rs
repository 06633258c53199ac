//! Queries a model or a provider's model list before either is written to the configuration.

use haft_model::{BuiltIn, Client, ModelError, ProviderConfig, RetryConfig, Secret};
use tokio_util::sync::CancellationToken;

use super::{build_catalogue, format_money, live_test};
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::wiring;

/// A client for requests with a configuration that may not be saved yet. Failed requests are not
/// retried.
pub(crate) struct ModelTrial<'a>(pub(crate) &'a Settings);

impl ModelTrial<'_> {
    /// Returns the provider's declaration from the configuration, or else the built-in one.
    pub(crate) fn find_provider(&self, name: &str) -> anyhow::Result<ProviderConfig> {
        let catalogue = build_catalogue(&self.0.config)?;
        let found = catalogue
            .providers()
            .find(|provider| provider.0 == name)
            .map(|provider| provider.1.clone());
        found.ok_or_else(|| usage_error(text!("models-unknown-provider", name)))
    }

    /// Sends the model a tiny request. The inner result is an error if the request fails.
    pub(crate) fn test_model(
        &self,
        model: &str,
        key: Option<Secret>,
    ) -> anyhow::Result<Result<(), ModelError>> {
        let client = self.build_client(model, key)?;
        let spec = self.0.resolve_model(model)?.spec;
        Ok(wiring::build_runtime()?.block_on(live_test::send_test_request(client, &spec)))
    }

    /// Requests the provider's list of models. The inner result is an error if the request fails.
    pub(crate) fn list_models(
        &self,
        provider: &str,
        key: Option<Secret>,
    ) -> anyhow::Result<Result<Vec<String>, ModelError>> {
        // A client needs a model, but listing does not use it.
        let client = self.build_client(&format!("{provider}/any"), key)?;
        Ok(wiring::build_runtime()?.block_on(client.list_models(&CancellationToken::new())))
    }

    /// Formats the model's prices for input and output, or returns `None` if the prices are
    /// unknown.
    pub(crate) fn price_text(&self, model: &str) -> Option<String> {
        let (currency, price) = self.0.resolve_model(model).ok()?.listed?;
        Some(text!(
            "models-price",
            input = format_money(&currency, price.input),
            output = format_money(&currency, price.output)
        ))
    }

    /// Returns the currency of the provider's listed prices, or `None` if no price is listed.
    pub(crate) fn find_currency(&self, provider: &str) -> Option<String> {
        let front = format!("{provider}/");
        BuiltIn::get()
            .model_names()
            .filter(|name| name.starts_with(&front))
            .find_map(|name| Some(self.0.resolve_model(&name).ok()?.listed?.0))
    }

    fn build_client(&self, model: &str, key: Option<Secret>) -> anyhow::Result<Client> {
        // The user waits for the result and can try again, so failed requests are not retried.
        let retry = RetryConfig {
            attempts: 0,
            ..self.0.config.retry.clone()
        };
        Client::new(self.0.resolve_model(model)?, key, retry)
            .map_err(|error| usage_error(error.to_string()))
    }
}
