//! Sends requests within a limit on money: the maximum cost of a request is reserved before it is
//! sent.

use std::sync::Arc;

use haft_model::{Client, Delta, ModelError, Reply};
use haft_types::Request;
use tokio_util::sync::CancellationToken;

use super::meter::Meter;
use super::shared_budget::{RequestQuote, Reservation};

/// The maximum number of output tokens of a request under a cost limit, if neither the request nor
/// the model sets a maximum.
const DEFAULT_MAX_OUTPUT: u64 = 8_192;
/// The minimum output limit in tokens. If the budget allows less, the request is not sent, because
/// the reply would be cut off too early to be useful.
const MIN_OUTPUT: u64 = 1_024;

/// A request whose maximum cost is reserved.
pub(crate) struct PaidRequest {
    request: Arc<Request>,
    /// The money reserved for the request; `None` without a limit on money, or if the model has no
    /// price and a limit on tokens applies instead.
    reservation: Option<Reservation>,
}

impl PaidRequest {
    /// Reserves the money for a request, and limits the request's output to the affordable amount.
    pub(crate) async fn reserve(
        request: Arc<Request>,
        client: &Client,
        meter: &Meter,
        cancel: &CancellationToken,
    ) -> Result<Self, ModelError> {
        let spec = client.spec();
        let limits = meter.limits();
        let Some(limit) = limits.budget_usd else {
            return Ok(Self {
                request,
                reservation: None,
            });
        };
        let Some(price) = spec.price else {
            let unpriced = Self {
                request,
                reservation: None,
            };
            return if limits.needs_price() {
                Err(ModelError::NoPrice(spec.full_name()))
            } else {
                Ok(unpriced)
            };
        };
        let (input, output) =
            price.max_cost(meter.max_billed_input(&spec.full_name(), request.estimated_tokens()));
        let asked = request
            .max_output_tokens
            .or(spec.max_output_tokens)
            .map(u64::from);
        let fixed = client.fixed_output_limit();
        let wanted = fixed.or(asked).unwrap_or(DEFAULT_MAX_OUTPUT);
        let least = if fixed.is_some() {
            wanted
        } else {
            wanted.min(MIN_OUTPUT + client.thinking_budget())
        };
        let quote = RequestQuote {
            input,
            output,
            wanted,
            least,
        };
        let reserved = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            reserved = meter.budget().reserve(limit, quote) => reserved,
        };
        let Some((reservation, output)) = reserved else {
            return Err(over_budget_error(
                meter,
                limit,
                quote.cost_with_output(least),
            ));
        };
        let request = if fixed.is_some() || asked == Some(output) {
            request
        } else {
            let limited = Request {
                max_output_tokens: u32::try_from(output).ok(),
                ..Request::clone(&request)
            };
            Arc::new(limited)
        };
        Ok(Self {
            request,
            reservation: Some(reservation),
        })
    }

    /// Returns the request with its output limit.
    pub(crate) fn request(&self) -> &Arc<Request> {
        &self.request
    }

    /// Sends the request and records its cost.
    pub(crate) async fn send(
        self,
        client: &mut Client,
        meter: &mut Meter,
        cancel: &CancellationToken,
        sink: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let Self {
            request,
            mut reservation,
        } = self;
        let unpaid = cancel.child_token();
        let mut on_delta = |delta: Delta| {
            if matches!(delta, Delta::Retry { billed: true, .. })
                && !reservation.as_mut().is_none_or(Reservation::reserve_retry)
            {
                unpaid.cancel();
            }
            sink(delta);
        };
        let arrived = client.stream_reply(&request, &unpaid, &mut on_delta).await;
        match arrived {
            Ok(reply) => {
                let spec = client.spec();
                meter.record_request(
                    reservation,
                    (&spec.full_name(), spec.price),
                    request.estimated_tokens(),
                    reply.usage,
                );
                Ok(reply)
            }
            Err(ModelError::Cancelled) if !cancel.is_cancelled() => {
                let limit = meter.limits().budget_usd.unwrap_or_default();
                Err(ModelError::OverBudget(format!(
                    "Stopped after ${:.4}: the reply was lost, and asking again could cost more than `--max-budget-usd \
                     {limit}` leaves.",
                    meter.spent().usd
                )))
            }
            Err(error) => {
                if let Some(reservation) = reservation.filter(|_| !error.may_be_billed()) {
                    reservation.release();
                }
                Err(error)
            }
        }
    }
}

fn over_budget_error(meter: &Meter, limit: f64, least: f64) -> ModelError {
    let spent = meter.spent().usd;
    ModelError::OverBudget(format!(
        "Stopped after ${spent:.4}: the next request could cost ${least:.4}, and `--max-budget-usd {limit}` leaves less."
    ))
}
