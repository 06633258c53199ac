//! The hosts that the proxy refused, so that haft can name them to the user.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The maximum number of remembered refusals. Older ones are forgotten.
const MAX_REFUSALS: usize = 256;

/// The refusals of a proxy, oldest first. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RefusedHosts(Arc<Mutex<VecDeque<(Instant, String)>>>);

impl RefusedHosts {
    /// Records that the proxy refused `host`, which is `HOST:PORT`.
    pub(super) fn record(&self, host: String) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() == MAX_REFUSALS {
            refused.pop_front();
        }
        refused.push_back((Instant::now(), host));
    }

    /// Returns the hosts that were refused since `start`, each once, in the order of their first
    /// refusal.
    pub fn list_since(&self, start: Instant) -> Vec<String> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts: Vec<String> = Vec::new();
        for (at, host) in refused.iter() {
            if *at >= start && !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        hosts
    }
}
