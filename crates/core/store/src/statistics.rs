//! What a store has done since it was opened, and what it holds.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// What a store has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatistics {
    /// Conversations created, imported or forked.
    pub conversations_created: u64,
    /// Conversations whose messages were read.
    pub conversations_loaded: u64,
    /// Messages added, those of created conversations included.
    pub messages_added: u64,
    /// Reads of messages that were answered from memory.
    pub cache_hits: u64,
    /// Reads of messages that were not.
    pub cache_misses: u64,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Conversations, without those in the trash.
    pub conversations: u64,
    /// Conversations in the trash.
    pub in_trash: u64,
    /// Namespaces with a conversation or a current one.
    pub namespaces: u64,
    /// Messages; those that forks share count once.
    pub messages: u64,
    /// Revisions of messages.
    pub revisions: u64,
    /// Logged requests.
    pub requests: u64,
    /// The size of the database.
    pub bytes: u64,
}

/// Counts for [`StoreStatistics`], from any thread; those of a cache stay zero.
#[derive(Debug, Default)]
pub struct Counters {
    created: AtomicU64,
    loaded: AtomicU64,
    added: AtomicU64,
}

impl Counters {
    /// A conversation with so many messages of its own was created.
    pub fn created(&self, messages: u64) {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.added.fetch_add(messages, Ordering::Relaxed);
    }

    /// The messages of a conversation were read.
    pub fn loaded(&self) {
        self.loaded.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was appended.
    pub fn added(&self) {
        self.added.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn so_far(&self) -> StoreStatistics {
        StoreStatistics {
            conversations_created: self.created.load(Ordering::Relaxed),
            conversations_loaded: self.loaded.load(Ordering::Relaxed),
            messages_added: self.added.load(Ordering::Relaxed),
            cache_hits: 0,
            cache_misses: 0,
        }
    }
}
