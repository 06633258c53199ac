//! The lifetime of cache entries: buys one when the prefix is written, and compares it with the
//! reads that the provider bills.

use std::time::Duration;

use haft_context::{GapHistory, IdleMode, LifetimeChoice, LifetimeOffer, choose_lifetime};
use haft_types::{CacheRule, Request};

use crate::agents::parent::Rank;
use crate::error::EngineError;
use crate::session::Session;
use crate::session::config::Presence;
use crate::stored_state::BoughtLifetime;
use crate::turn::turn_io::TurnIo;

/// The number of tokens that a request adds to the previous one. Recorded requests add this many on
/// average.
const MEAN_GROWTH: u64 = 1_000;

impl Session {
    /// Chooses the lifetime of the cache entries that `request` is about to write, if the provider
    /// sells several and the user has not set one. Must be called only while the cache is cold: a
    /// later choice would pay for the prefix twice.
    pub(crate) async fn choose_lifetime(&mut self, request: &Request) -> Result<(), EngineError> {
        let client = &mut self.services.models.client;
        let spec = client.spec();
        let is_default = spec.cache.ttls.first() == Some(&spec.cache.ttl);
        let mode = self.config.policy.idle;
        let decides = is_default
            && mode != IdleMode::Off
            && self.config.task.presence == Presence::Person
            && self.agents.rank == Rank::Main;
        let Some(price) = spec.price.filter(|_| decides) else {
            return Ok(());
        };
        let prefix = (request.estimated_tokens() as f64 * spec.tokenizer_factor) as u64;
        let history = self.transcript.history().iter();
        let choice = LifetimeChoice {
            mode,
            limits: self.config.policy.idle_limits(),
            read: price.cached_input.unwrap_or(price.input),
            prefix,
            growth: MEAN_GROWTH,
            gaps: &GapHistory::from_messages(history.map(|entry| &entry.message)),
        };
        let sold = client.sold_lifetimes();
        let offers: Vec<_> = sold.iter().filter_map(to_offer).collect();
        if offers.len() != sold.len() || sold.is_empty() {
            return Ok(());
        }
        let chosen = sold[choose_lifetime(&offers, &choice)].0.clone();
        if chosen == spec.ttl_in_force() {
            return Ok(());
        }
        self.buy_lifetime(&chosen);
        self.transcript.store_state(&BoughtLifetime(chosen)).await
    }

    /// Asks the provider for this lifetime from the next request on.
    pub(crate) fn buy_lifetime(&mut self, ttl: &str) {
        let client = &mut self.services.models.client;
        client.buy_lifetime(ttl);
        self.config
            .model
            .bought_ttl
            .clone_from(&client.spec().bought_ttl);
        self.config.model.price = client.spec().price;
        self.apply_measured_lifetime();
    }

    /// Replaces the declared lifetime of the current model by the measured one, if the reads that
    /// were billed contradict it.
    pub(crate) fn apply_measured_lifetime(&mut self) {
        if let Some(measured) = self.measured_lifetime() {
            self.config.model.bought_ttl = Some(format!("{}s", measured.as_secs()));
        }
    }

    /// Returns the declared lifetime of the current model's cache entries.
    fn declared_lifetime(&self) -> Option<Duration> {
        self.services.models.client.spec().cache_lifetime()
    }

    /// Returns the key of the evidence about the lifetime that requests ask for.
    fn lifetime_key(&self) -> String {
        let spec = self.services.models.client.spec();
        format!("{} {}", spec.full_name(), spec.ttl_in_force())
    }

    fn measured_lifetime(&self) -> Option<Duration> {
        let evidence = self.lifetimes.0.get(&self.lifetime_key())?;
        evidence.measured_lifetime(self.declared_lifetime()?)
    }

    /// Records a billed read. `unused` is the time between the request and the last use of its
    /// prefix, and `expected` the number of tokens in the part of the prefix that was sent before. A
    /// contradiction to the declared lifetime is reported once.
    pub(crate) async fn observe_lifetime(
        &mut self,
        unused: Option<Duration>,
        expected: u64,
        read: u64,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let (Some(declared), Some(unused)) = (self.declared_lifetime(), unused) else {
            return Ok(());
        };
        let name = self.config.model.full_name();
        let key = self.lifetime_key();
        let evidence = self.lifetimes.0.entry(key).or_default();
        let before = *evidence;
        evidence.observe(declared, unused, expected, read);
        if *evidence == before {
            return Ok(());
        }
        let measured = evidence.measured_lifetime(declared);
        if let Some(measured) = measured.filter(|_| !evidence.reported) {
            evidence.reported = true;
            let declared = declared.as_secs();
            let measured = measured.as_secs();
            io.emit_notice(
                "cache_lifetime",
                format!(
                    "`{name}` keeps cached input for about {measured} s, not for the declared {declared} s: haft uses the \
                     measured time in this conversation"
                ),
            );
        }
        self.apply_measured_lifetime();
        self.transcript.store_state(&self.lifetimes).await
    }
}

/// Converts a sold lifetime to an offer; `None` if the lifetime is not a number with a unit.
fn to_offer((ttl, write): &(String, f64)) -> Option<LifetimeOffer> {
    let rule = CacheRule {
        ttl: ttl.clone(),
        ..CacheRule::default()
    };
    Some(LifetimeOffer {
        lifetime: rule.entry_lifetime()?,
        write: *write,
    })
}
