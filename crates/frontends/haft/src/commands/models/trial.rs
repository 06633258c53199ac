//! Asks a model, or for a list of models, before anything of it is configured.

use haft_agent::config::Config;
use haft_model::{Client, ModelError, ProviderConfig, RetryConfig, Secret};
use tokio_util::sync::CancellationToken;

use super::{catalogue, money, test};
use crate::exit::usage_error;
use crate::wiring;

/// Asks with this configuration, once.
pub(crate) struct ModelTrial<'a>(pub(crate) &'a Config);

impl ModelTrial<'_> {
    /// The provider's declaration, its own or the built-in one.
    pub(crate) fn provider(&self, name: &str) -> anyhow::Result<ProviderConfig> {
        let catalogue = catalogue(self.0)?;
        let found = catalogue
            .providers()
            .find(|provider| provider.0 == name)
            .map(|provider| provider.1.clone());
        found.ok_or_else(|| usage_error(text!("models-unknown-provider", name)))
    }

    /// Whether the model says anything.
    pub(crate) fn answers(
        &self,
        model: &str,
        key: Option<Secret>,
    ) -> anyhow::Result<Result<(), ModelError>> {
        let client = self.client(model, key)?;
        let spec = wiring::declared(self.0, model)?.spec;
        Ok(wiring::runtime()?.block_on(test::asked(client, &spec)))
    }

    /// The models the provider lists.
    pub(crate) fn listed(
        &self,
        provider: &str,
        key: Option<Secret>,
    ) -> anyhow::Result<Result<Vec<String>, ModelError>> {
        // A list is not of one model; the client is.
        let client = self.client(&format!("{provider}/any"), key)?;
        Ok(wiring::runtime()?.block_on(client.list_models(&CancellationToken::new())))
    }

    /// What a model costs, for people.
    pub(crate) fn price(&self, model: &str) -> Option<String> {
        let (currency, price) = wiring::declared(self.0, model).ok()?.listed?;
        Some(text!(
            "models-price",
            input = money(&currency, price.input),
            output = money(&currency, price.output)
        ))
    }

    fn client(&self, model: &str, key: Option<Secret>) -> anyhow::Result<Client> {
        // Somebody waits, and can try again.
        let retry = RetryConfig {
            attempts: 0,
            ..self.0.retry.clone()
        };
        Client::new(wiring::declared(self.0, model)?, key, retry)
            .map_err(|error| usage_error(error.to_string()))
    }
}
