//! Counts of the operations of a store since it was opened, and of its content.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// The number of operations of each kind, counted since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatistics {
    /// The number of conversations created, imported or forked.
    pub conversations_created: u64,
    /// The number of times that a conversation's messages were read from the database.
    pub conversations_loaded: u64,
    /// The number of messages added, including those of created conversations.
    pub messages_added: u64,
    /// The number of times that a read of messages was answered from the cache.
    pub cache_hits: u64,
    /// The number of times that a read of messages was not answered from the cache.
    pub cache_misses: u64,
}

/// The number of items of each kind in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The number of conversations outside the trash.
    pub conversations: u64,
    /// The number of conversations in the trash.
    pub in_trash: u64,
    /// The number of namespaces that contain a conversation or have a current conversation.
    pub namespaces: u64,
    /// The number of messages. A message shared by forks counts once.
    pub messages: u64,
    /// The number of revisions of messages.
    pub revisions: u64,
    /// The number of logged requests.
    pub requests: u64,
    /// The size of the database in bytes.
    pub bytes: u64,
}

/// Thread-safe counters for [`StoreStatistics`]. Cache hits and misses are counted by the cache, so
/// here these counts stay zero.
#[derive(Debug, Default)]
pub struct Counters {
    created: AtomicU64,
    loaded: AtomicU64,
    added: AtomicU64,
}

impl Counters {
    /// Counts a created conversation that has `messages` messages of its own.
    pub fn count_created(&self, messages: u64) {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.added.fetch_add(messages, Ordering::Relaxed);
    }

    /// Counts a read of a conversation's messages.
    pub fn count_loaded(&self) {
        self.loaded.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an appended message.
    pub fn count_added(&self) {
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub fn snapshot(&self) -> StoreStatistics {
        StoreStatistics {
            conversations_created: self.created.load(Ordering::Relaxed),
            conversations_loaded: self.loaded.load(Ordering::Relaxed),
            messages_added: self.added.load(Ordering::Relaxed),
            cache_hits: 0,
            cache_misses: 0,
        }
    }
}
