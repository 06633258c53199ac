//! Lets one of several sub-agents with equal first bytes send its first request alone, so that the
//! provider writes these bytes to its cache only once.
//!
//! The others wait for the first token of the reply, because a provider can serve a prefix from its
//! cache only from then on. They never wait longer than [`MAX_WAIT`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_types::{CacheKind, CacheRule, Clock, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The maximum time that a sub-agent waits for the first token of another one.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The first requests of a session's sub-agents, by the bytes that they share.
#[derive(Default)]
pub(crate) struct SiblingGate(Mutex<HashMap<String, FirstRequest>>);

/// The newest request that wrote shared bytes to the provider's cache.
struct FirstRequest {
    /// True once the reply has begun. The channel is closed if the request failed before that.
    answered: watch::Receiver<bool>,
    /// The time at which a request last used the bytes.
    used_at: Timestamp,
}

/// The place of a sub-agent among those with equal first bytes, until its first request is sent.
pub(crate) struct SiblingPlace {
    pub(crate) gate: Arc<SiblingGate>,
    /// Identifies the shared bytes.
    pub(crate) key: String,
}

/// Held by the sub-agent that sends the shared bytes first. Dropping it without a call of
/// [`Self::release`] makes another sub-agent the first one.
pub(crate) struct FirstSender(watch::Sender<bool>);

impl FirstSender {
    /// Lets the other sub-agents send their requests.
    pub(crate) fn release(self) {
        self.0.send_replace(true);
    }
}

/// The part of a sub-agent in the first requests of its siblings.
enum Joined {
    First(FirstSender),
    /// Becomes true once the first sender's reply has begun.
    After(watch::Receiver<bool>),
}

impl SiblingGate {
    /// Joins the sub-agents that share the bytes `key`. Bytes that were not used for longer than
    /// `life` must be sent first again.
    fn join(&self, key: &str, now: Timestamp, life: Option<Duration>) -> Joined {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = requests.get_mut(key) {
            let age = Duration::try_from(now.duration_since(first.used_at)).unwrap_or_default();
            let is_answered = *first.answered.borrow();
            let is_usable = if is_answered {
                life.is_none_or(|life| age <= life)
            } else {
                // An error means that the first sender has failed.
                first.answered.has_changed().is_ok()
            };
            if is_usable {
                first.used_at = now;
                return Joined::After(first.answered.clone());
            }
        }
        let (sender, answered) = watch::channel(false);
        let used_at = now;
        requests.insert(key.to_owned(), FirstRequest { answered, used_at });
        Joined::First(FirstSender(sender))
    }
}

impl SiblingPlace {
    /// Waits until this sub-agent may send its first request. Returns the sender if this sub-agent
    /// is the first one.
    pub(crate) async fn wait(
        &self,
        cache: &CacheRule,
        clock: &dyn Clock,
        cancel: &CancellationToken,
    ) -> Option<FirstSender> {
        if cache.rule == CacheKind::None {
            return None;
        }
        let joined = async {
            loop {
                match self
                    .gate
                    .join(&self.key, clock.now(), cache.expires_after())
                {
                    Joined::First(sender) => return Some(sender),
                    Joined::After(mut answered) => {
                        // After an error of the first sender, one of the others becomes the first.
                        if answered.wait_for(|answered| *answered).await.is_ok() {
                            return None;
                        }
                    }
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => None,
            sender = tokio::time::timeout(MAX_WAIT, joined) => sender.ok().flatten(),
        }
    }
}

#[cfg(test)]
mod tests;
