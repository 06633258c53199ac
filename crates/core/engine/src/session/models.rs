//! The models of a session: switching between them, and correcting token counts by each model's
//! tokenizer factor.
//!
//! Invariant: `config.model` describes the model of `services.models.client`, including the
//! tokenizer factor learned so far.

use haft_context::ContextError;
use haft_model::{Client, ModelError};
use haft_types::{EventBody, ModelSpec, Request, Usage};

use super::Session;
use crate::error::EngineError;
use crate::turn::turn_io::TurnIo;

/// A failure to switch to another model.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The model cannot be opened.
    #[error("`{name}` cannot be used: {problem}")]
    Unusable {
        name: String,
        /// The reason and the remedy, as a text for the user.
        problem: String,
    },
    /// No request can be built for the model.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// The maximum number of times that a request is shortened after the provider has rejected it as
/// too long.
pub(crate) const MAX_SHRINK_STEPS: u32 = 4;

impl Session {
    /// Applies the tokenizer factor that was learned for the current model, if there is one.
    pub(crate) fn apply_tokenizer_factor(&mut self) {
        if let Some(factor) = self.meter.tokenizer_factor(&self.config.model.full_name()) {
            self.config.model.tokenizer_factor = factor;
            self.services.models.client.set_tokenizer_factor(factor);
        }
    }

    /// Learns the tokenizer factor from a reply. `counted` is the local token count of the request.
    pub(crate) async fn learn_tokenizer_factor(
        &mut self,
        counted: u64,
        usage: Usage,
    ) -> Result<(), EngineError> {
        let name = self.config.model.full_name();
        let assumed = self.config.model.tokenizer_factor;
        let learnt = self
            .meter
            .learn_tokenizer_factor(&name, assumed, counted, usage)
            .cloned();
        if let Some(factors) = learnt {
            self.apply_tokenizer_factor();
            self.transcript.store_state(&factors).await?;
        }
        Ok(())
    }

    /// Switches to the model `name`, starting with the next request.
    pub fn switch_model(&mut self, name: &str) -> Result<(), SwitchError> {
        let unusable = |problem| SwitchError::Unusable {
            name: name.to_owned(),
            problem,
        };
        let client = self.services.shared.opener.open(name).map_err(unusable)?;
        self.use_client(client)?;
        self.skip_planner();
        Ok(())
    }

    /// Switches to the model of `client`, and returns the previous client. After an error, the
    /// previous client is still in use.
    pub(crate) fn use_client(&mut self, client: Client) -> Result<Client, ContextError> {
        let spec = client.spec().clone();
        let before = std::mem::replace(&mut self.services.models.client, client);
        if let Err(error) = self.set_model(spec) {
            let spec = before.spec().clone();
            self.services.models.client = before;
            self.set_model(spec)?;
            return Err(error);
        }
        self.sent.lift_token_limit();
        self.apply_tokenizer_factor();
        Ok(before)
    }

    /// Makes `model` the current model: adapts the safe zone and renders the prompt for the model.
    fn set_model(&mut self, model: ModelSpec) -> Result<(), ContextError> {
        let zone = self.config.policy.safe_zone_tokens(&model)?;
        self.config.prompt.environment.safe_zone_tokens = Some(zone);
        self.config.model = model;
        self.keep_alive.stop();
        self.apply_measured_lifetime();
        self.prompt.render(&self.config)
    }

    /// Limits requests to three quarters of the size of `refused`. The provider rejected `refused`
    /// as too long because its window or its tokenizer differs from the declared one. `step` counts
    /// from 1.
    pub(crate) fn shrink_requests(&mut self, refused: &Request, step: u32, io: &mut TurnIo<'_>) {
        let counted = refused.estimated_tokens();
        let most = counted * 3 / 4;
        self.sent.limit_tokens(most);
        let message = format!(
            "the provider refused a request of {counted} tokens as too long: it is made again with {most} at most (step {step} \
             of {MAX_SHRINK_STEPS})"
        );
        io.emit(EventBody::Pruning {
            step: "refused_as_too_long".into(),
            tokens: counted - most,
            message,
        });
    }

    /// Returns the client, or an error if the limits require a price and the model has none.
    pub(crate) fn require_price(&self, client: Client) -> Result<Client, String> {
        let refused = client.spec().price.is_none() && self.meter.needs_price();
        if refused {
            Err(ModelError::NoPrice(client.spec().full_name()).to_string())
        } else {
            Ok(client)
        }
    }

    /// Switches to the next usable fallback model. Returns `false` if there is no such model.
    pub(crate) fn switch_to_fallback(
        &mut self,
        error: &ModelError,
        io: &mut TurnIo<'_>,
    ) -> Result<bool, ContextError> {
        while let Some(next) = self.services.models.fallbacks.pop_front() {
            let (name, opened) = next.open();
            let zone = |client: &Client| self.config.policy.safe_zone_tokens(client.spec());
            let usable = opened.and_then(|client| self.require_price(client));
            let usable = usable.and_then(|client| match zone(&client) {
                Ok(zone) => Ok((client, zone)),
                Err(error) => Err(error.to_string()),
            });
            match usable {
                Ok((client, zone)) => {
                    let from = std::mem::replace(&mut self.config.model, client.spec().clone())
                        .full_name();
                    self.services.models.client = client;
                    self.apply_measured_lifetime();
                    self.config.prompt.environment.safe_zone_tokens = Some(zone);
                    self.sent.lift_token_limit();
                    self.apply_tokenizer_factor();
                    self.prompt.render(&self.config)?;
                    io.notify_model_switch(&from, &name, error);
                    return Ok(true);
                }
                Err(problem) => io.emit_error(
                    "fallback",
                    format!("`{name}` cannot be asked instead: {problem}"),
                ),
            }
        }
        Ok(false)
    }
}
