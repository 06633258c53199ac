//! Keeps the provider's cache alive between two requests of a session: repeats the last request
//! with the minimum output limit shortly before its cache entry expires, if that pays.
//!
//! Invariant: the reply to a keep-alive request is discarded. The request is in the log, and its
//! cost counts toward every limit on money.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use haft_context::{
    ExpiryReason, GapHistory, IdleCost, IdleDecision, IdleLimits, IdleMode, IdlePause, PendingWork,
    can_keep_alive, decide_idle, keep_alive_after,
};
use haft_model::{Client, ModelError};
use haft_store::{KEEP_ALIVE_CAUSE, SentRequest};
use haft_tools::Running;
use haft_types::{
    CacheMatch, Clock, ConversationId, Cost, EventBody, ModelSpec, Outcome, Request, Timestamp,
    Usage,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::agents::parent::Rank;
use crate::budget::limits::TurnLimits;
use crate::budget::meter::Meter;
use crate::budget::spending::PaidRequest;
use crate::session::Session;
use crate::session::config::{Presence, SharedServices};
use crate::stored_state::{self, KeepAliveLog, KeepAliveRecord, TokenizerFactors};
use crate::turn::turn_io::TurnIo;

/// The interval at which the clock is read while a cache entry ages. The clock, not a timer,
/// decides: it also advances while the machine sleeps.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The share of a prefix below which a keep-alive request has found an expired entry.
const EXPIRED_SHARE: f64 = 0.5;

/// The provider's cache after the last request of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheStatus {
    /// The time until the cache entry expires; zero if it has expired.
    pub expires_in: Duration,
    /// The number of tokens that must be written again after the entry has expired.
    pub tokens: u64,
    /// The cost of writing the prefix again, beyond the cost of reading it; `None` if the model has
    /// no prices.
    pub rebuild: Option<f64>,
    /// The number of keep-alive requests since the last request.
    pub keep_alives: u32,
    /// The cost of these keep-alive requests, in USD.
    pub spent: f64,
    /// The reason why no further keep-alive request is sent; `None` while one may still be sent.
    pub stopped: Option<ExpiryReason>,
}

/// Observes the provider's cache for a session, also while no turn runs.
#[derive(Clone)]
pub struct CacheWatch {
    state: Weak<Mutex<IdleState>>,
    clock: Arc<dyn Clock>,
}

impl CacheWatch {
    /// Returns the state of the cache. `None` before the first request, while a request is being
    /// sent, if nothing is known about the lifetime of entries, or if the session was closed.
    pub fn status(&self) -> Option<CacheStatus> {
        let state = self.state.upgrade()?;
        let state = lock_state(&state);
        let entry = state.entry.as_ref()?;
        let unused = time_since(entry.used_at, self.clock.now());
        Some(CacheStatus {
            expires_in: entry.lifetime.saturating_sub(unused),
            tokens: entry.tokens,
            rebuild: entry.rebuild,
            keep_alives: entry.sent,
            spent: entry.spent,
            stopped: entry.stopped,
        })
    }

    /// Returns the `usage` events of keep-alive requests that were sent while no turn ran. Each is
    /// reported once: here or among the events of a turn.
    pub fn take_events(&self) -> Vec<EventBody> {
        let Some(state) = self.state.upgrade() else {
            return Vec::new();
        };
        let mut state = lock_state(&state);
        if state.turn_runs {
            return Vec::new();
        }
        mem::take(&mut state.unreported)
            .into_iter()
            .map(KeepAliveReport::usage_event)
            .collect()
    }
}

/// The keep-alive requests of a session. Dropping this value ends them.
pub(crate) struct KeepAlive {
    state: Arc<Mutex<IdleState>>,
    /// Ends the waiting between two requests. A keep-alive request that was sent is not canceled,
    /// because it is billed anyway.
    stop: CancellationToken,
}

/// The state shared with the task that sends keep-alive requests, and with observers.
#[derive(Default)]
struct IdleState {
    turn_runs: bool,
    /// True if the last turn ended with a question to the user.
    asks_user: bool,
    /// The cache entry of the last request; `None` while a request is being sent.
    entry: Option<CacheEntry>,
    /// The time of the newest successful keep-alive request.
    kept_at: Option<Timestamp>,
    unreported: Vec<KeepAliveReport>,
    log: KeepAliveLog,
}

/// The cache entry of a session's last request.
struct CacheEntry {
    lifetime: Duration,
    used_at: Timestamp,
    tokens: u64,
    rebuild: Option<f64>,
    sent: u32,
    spent: f64,
    stopped: Option<ExpiryReason>,
}

/// The usage of one keep-alive request.
#[derive(Clone, Debug)]
struct KeepAliveReport {
    model: String,
    usage: Usage,
    cost: Option<Cost>,
}

impl KeepAliveReport {
    fn usage_event(self) -> EventBody {
        EventBody::Usage {
            model: self.model,
            usage: self.usage,
            cost: self.cost,
            saved_tokens: 0,
            tools: Vec::new(),
        }
    }
}

fn lock_state(state: &Mutex<IdleState>) -> MutexGuard<'_, IdleState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn time_since(earlier: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(earlier).try_into().unwrap_or_default()
}

impl KeepAlive {
    /// Restores the state of a conversation.
    pub(crate) fn restore(log: KeepAliveLog) -> Self {
        let kept_at = log.requests.last().map(|last| last.sent_at);
        let state = IdleState {
            kept_at,
            log,
            ..IdleState::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            stop: CancellationToken::new(),
        }
    }

    /// Records the start of a turn.
    pub(crate) fn begin_turn(&self) {
        let mut state = lock_state(&self.state);
        state.turn_runs = true;
        state.asks_user = false;
    }

    /// Records the end of a turn.
    pub(crate) fn end_turn(&self, outcome: Outcome) {
        let mut state = lock_state(&self.state);
        state.turn_runs = false;
        state.asks_user = outcome == Outcome::Waiting;
    }

    /// Returns the time of the newest successful keep-alive request.
    pub(crate) fn kept_at(&self) -> Option<Timestamp> {
        lock_state(&self.state).kept_at
    }

    /// Returns the newest keep-alive requests of the conversation.
    fn log(&self) -> KeepAliveLog {
        lock_state(&self.state).log.clone()
    }

    /// Ends the waiting for the time of the next keep-alive request, because the prefix is about to
    /// be used or replaced.
    pub(crate) fn stop(&mut self) {
        self.stop.cancel();
        lock_state(&self.state).entry = None;
    }

    fn take_reports(&self) -> Vec<KeepAliveReport> {
        mem::take(&mut lock_state(&self.state).unreported)
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Session {
    /// Returns an observer of the provider's cache.
    pub fn watch_cache(&self) -> CacheWatch {
        CacheWatch {
            state: Arc::downgrade(&self.keep_alive.state),
            clock: Arc::clone(&self.services.shared.clock),
        }
    }

    /// Returns the keep-alive requests of this conversation, oldest first.
    pub fn keep_alives(&self) -> Vec<KeepAliveRecord> {
        self.keep_alive.log().requests
    }

    /// Returns the time since the provider's cache was last used: by the model's newest reply, or by
    /// a later keep-alive request.
    pub(crate) fn cache_idle_time(&self) -> Option<Duration> {
        let since_reply = self.transcript.idle_time()?;
        let now = self.services.shared.clock.now();
        let kept = self.keep_alive.kept_at().map(|at| time_since(at, now));
        Some(kept.map_or(since_reply, |kept| kept.min(since_reply)))
    }

    /// Emits the usage of the keep-alive requests that were not reported yet, and adds it to the
    /// totals of this turn.
    pub(crate) fn report_keep_alives(&mut self, io: &mut TurnIo<'_>) {
        for report in self.keep_alive.take_reports() {
            self.meter
                .add_relayed_usage(report.usage, vec![report.cost]);
            io.emit(report.usage_event());
        }
    }

    /// Begins the pause after a reply: keeps the cache entry of `request` alive as long as that
    /// pays. Does nothing for sub-agents and without a person.
    pub(crate) fn begin_pause(&mut self, request: &Arc<Request>, usage: Usage) {
        self.keep_alive.stop();
        let model = &self.config.model;
        let is_watched = self.config.task.presence == Presence::Person
            && self.agents.rank == Rank::Main
            && model.cache.rule.cache_match() != CacheMatch::NoCache;
        let Some(lifetime) = model.cache_lifetime().filter(|_| is_watched) else {
            return;
        };
        let tokens = usage.all_input();
        let client = &self.services.models.client;
        let output = client.keep_alive_output_limit();
        let cost = model
            .price
            .map(|price| IdleCost::from_price(price, tokens, output.unwrap_or_default()));
        let now = self.services.shared.clock.now();
        let entry = CacheEntry {
            lifetime,
            used_at: now,
            tokens,
            rebuild: cost.map(|cost| cost.rebuild),
            sent: 0,
            spent: 0.0,
            stopped: None,
        };
        lock_state(&self.keep_alive.state).entry = Some(entry);
        let stopped = if self.config.policy.idle == IdleMode::Off {
            Some(ExpiryReason::Off)
        } else if is_cached(model, tokens) {
            None
        } else {
            Some(ExpiryReason::Unsupported)
        };
        let (Some(output), Some(cost), None) = (output, cost, stopped) else {
            let reason = stopped.unwrap_or(ExpiryReason::Unsupported);
            stop_pause(&self.keep_alive.state, reason);
            return;
        };
        self.keep_alive.stop = CancellationToken::new();
        let messages = self.transcript.history().iter();
        let pause = Pause {
            state: Arc::clone(&self.keep_alive.state),
            stop: self.keep_alive.stop.clone(),
            client: client.without_retries(),
            request: Arc::new(Request {
                max_output_tokens: Some(output),
                ..Request::clone(request)
            }),
            services: Arc::clone(&self.services.shared),
            running: Arc::downgrade(&self.services.running),
            conversation: self.transcript.id().clone(),
            limits: self.config.task.limits,
            mode: self.config.policy.idle,
            idle_limits: self.config.policy.idle_limits(),
            cost,
            lifetime,
            replied_at: now,
            gaps: GapHistory::from_messages(messages.map(|entry| &entry.message)),
        };
        drop(tokio::spawn(pause.keep_alive()));
    }
}

/// True if the provider stores prefixes of this size, and a request that reads the prefix prolongs
/// the life of its entry.
fn is_cached(model: &ModelSpec, tokens: u64) -> bool {
    can_keep_alive(model.cache.rule) && tokens >= u64::from(model.cache.min)
}

/// Records that no further keep-alive request is sent in this pause.
fn stop_pause(state: &Mutex<IdleState>, reason: ExpiryReason) {
    if let Some(entry) = &mut lock_state(state).entry {
        entry.stopped = Some(reason);
    }
}

/// A pause between a reply and the next request, in which keep-alive requests can be sent.
struct Pause {
    state: Arc<Mutex<IdleState>>,
    stop: CancellationToken,
    client: Client,
    /// The last request, with the output limit of a keep-alive request.
    request: Arc<Request>,
    services: Arc<SharedServices>,
    running: Weak<Running>,
    conversation: ConversationId,
    limits: TurnLimits,
    mode: IdleMode,
    idle_limits: IdleLimits,
    cost: IdleCost,
    lifetime: Duration,
    replied_at: Timestamp,
    gaps: GapHistory,
}

/// The use of a cache entry in a pause so far.
#[derive(Clone, Copy)]
struct EntryUse {
    used_at: Timestamp,
    sent: u32,
    spent: f64,
}

impl Pause {
    /// Sends keep-alive requests as long as they pay and the session sends no other request.
    async fn keep_alive(mut self) {
        let mut entry = EntryUse {
            used_at: self.replied_at,
            sent: 0,
            spent: 0.0,
        };
        let reason = loop {
            if !self.wait_until_due(entry.used_at).await {
                return;
            }
            let pending = self.pending_work();
            match self.decide(pending, entry) {
                IdleDecision::Expire(reason) => break reason,
                IdleDecision::KeepAlive { saving, planned } => {
                    debug!(saving, planned, "keep-alive request planned");
                }
            }
            match self.send(pending, &mut entry).await {
                Ok(()) => {}
                Err(reason) => break reason,
            }
        };
        if !self.stop.is_cancelled() {
            info!(?reason, sent = entry.sent, "no further keep-alive requests");
            stop_pause(&self.state, reason);
        }
    }

    /// Waits until the entry, last used at `used_at`, needs a keep-alive request. Returns `false` if
    /// the pause has ended.
    async fn wait_until_due(&self, used_at: Timestamp) -> bool {
        let due = keep_alive_after(self.lifetime);
        loop {
            let unused = time_since(used_at, self.services.clock.now());
            if self.stop.is_cancelled() {
                return false;
            }
            let Some(left) = due.checked_sub(unused).filter(|left| !left.is_zero()) else {
                return true;
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return false,
                () = tokio::time::sleep(left.min(POLL_INTERVAL)) => {}
            }
        }
    }

    fn decide(&self, pending: PendingWork, entry: EntryUse) -> IdleDecision {
        let now = self.services.clock.now();
        decide_idle(&IdlePause {
            mode: self.mode,
            pending,
            cost: self.cost,
            limits: self.idle_limits,
            lifetime: self.lifetime,
            elapsed: time_since(self.replied_at, now),
            unused: time_since(entry.used_at, now),
            sent: entry.sent,
            spent: entry.spent,
            gaps: &self.gaps,
        })
    }

    fn pending_work(&self) -> PendingWork {
        let tasks = self.running.upgrade();
        let has_tasks = tasks.is_some_and(|running| !running.list_progress().is_empty());
        let state = lock_state(&self.state);
        if state.turn_runs {
            PendingWork::Call
        } else if state.asks_user {
            PendingWork::Question
        } else if has_tasks {
            PendingWork::Task
        } else {
            PendingWork::Nothing
        }
    }

    /// Sends one keep-alive request within the limits on money, and records its usage. An error is
    /// the reason to send no further request in this pause.
    async fn send(
        &mut self,
        pending: PendingWork,
        entry: &mut EntryUse,
    ) -> Result<(), ExpiryReason> {
        let budget = self.services.budget.clone();
        let mut meter = Meter::new(self.limits, budget, TokenizerFactors::default());
        if self.limits.exceeded_limit(0, &meter.spent()).is_some() {
            return Err(ExpiryReason::MoneyLimit);
        }
        let request = Arc::clone(&self.request);
        let reserved = PaidRequest::reserve(request, &self.client, &meter, &self.stop).await;
        let paid = reserved.map_err(|error| match error {
            ModelError::OverBudget(_) | ModelError::NoPrice(_) => ExpiryReason::MoneyLimit,
            _ => ExpiryReason::Failed,
        })?;
        let sent_at = self.services.clock.now();
        let logged = SentRequest {
            model: self.client.spec().full_name(),
            api: self.client.spec().api,
            request: Arc::clone(paid.request()),
            encoding: Some(self.client.encoding_json()),
            cause: Some(KEEP_ALIVE_CAUSE.to_owned()),
        };
        // The log must not delay the request.
        drop(self.services.store.log_request(&self.conversation, logged));
        // A request that was sent is billed, so the end of the pause doesn't cancel it.
        let unbroken = CancellationToken::new();
        let reply = paid
            .send(&mut self.client, &mut meter, &unbroken, &mut |_| {})
            .await
            .map_err(|_| ExpiryReason::Failed)?;
        let usage = reply.usage;
        let cost = meter.take_unreported_cost();
        entry.used_at = sent_at;
        entry.sent += 1;
        entry.spent += cost.map_or(0.0, |cost| cost.total);
        let log = self.record(pending, *entry, usage, cost);
        let store = self.services.store.as_ref();
        if let Err(error) = stored_state::write_document(store, &self.conversation, &log).await {
            debug!(%error, "keep-alive requests not stored");
        }
        if (usage.cached_input as f64) < EXPIRED_SHARE * usage.all_input() as f64 {
            return Err(ExpiryReason::Expired);
        }
        Ok(())
    }

    /// Records a keep-alive request for observers and for the next turn. Returns the log to store.
    fn record(
        &self,
        pending: PendingWork,
        used: EntryUse,
        usage: Usage,
        cost: Option<Cost>,
    ) -> KeepAliveLog {
        let mut state = lock_state(&self.state);
        state.kept_at = Some(used.used_at);
        if let Some(entry) = state.entry.as_mut().filter(|_| !self.stop.is_cancelled()) {
            entry.used_at = used.used_at;
            entry.sent = used.sent;
            entry.spent = used.spent;
        }
        state.unreported.push(KeepAliveReport {
            model: self.client.spec().full_name(),
            usage,
            cost,
        });
        state.log.push(KeepAliveRecord {
            sent_at: used.used_at,
            pending,
            usage,
            cost,
        });
        state.log.clone()
    }
}
