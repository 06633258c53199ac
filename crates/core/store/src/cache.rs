//! Caches the messages of conversations in memory, for any store.
//!
//! Invariant: a read through the cache returns the same messages as a read from the store. Before
//! the cache returns messages from memory, it reads the row of the conversation, whose counters
//! show whether this process or another process has added or revised a message. Only new messages
//! are then read from the store.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_types::{ConversationId, Message};

use crate::config::StoreConfig;
use crate::conversation::Conversation;
use crate::error::StoreError;
use crate::message::{MessagePage, PageEnd};
use crate::statistics::StoreStatistics;
use crate::store::Store;

/// A cache of the messages of recently used conversations.
pub struct MessageCache {
    kept: Mutex<CacheContents>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The cached conversations, with the maximum number and the lifetime of entries.
struct CacheContents {
    max_entries: usize,
    lifetime: Duration,
    entries: HashMap<ConversationId, CachedConversation>,
}

struct CachedConversation {
    messages: Vec<Message>,
    revisions: u64,
    loaded: Instant,
    used: Instant,
}

impl MessageCache {
    /// Creates an empty cache.
    pub fn new(config: &StoreConfig) -> Self {
        let most = config.cache_conversations as usize;
        let kept = CacheContents {
            max_entries: most,
            lifetime: config.cache_lifetime(),
            entries: HashMap::new(),
        };
        Self {
            kept: Mutex::new(kept),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns all messages of a conversation, and caches them if they were not cached.
    pub async fn messages(
        &self,
        store: &dyn Store,
        id: &ConversationId,
    ) -> Result<Vec<Message>, StoreError> {
        let Some(conversation) = store.get(id).await? else {
            return Ok(Vec::new());
        };
        let remembered = self
            .cached_messages(store, &conversation, 1..=conversation.messages)
            .await?;
        self.count_lookup(remembered.as_ref());
        if let Some(messages) = remembered {
            return Ok(messages);
        }
        let messages = store.uncached_messages(id).await?;
        // If messages were appended in between, the next read caches the conversation.
        if messages.len() as u64 == conversation.messages {
            self.insert_entry(&conversation, &messages);
        }
        Ok(messages)
    }

    /// Returns the page of at most `most` messages that ends at `end`. A page is not added to the
    /// cache.
    pub async fn page(
        &self,
        store: &dyn Store,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError> {
        let Some(conversation) = store.get(id).await? else {
            return Ok(MessagePage::default());
        };
        let last = end.last_position(conversation.messages);
        let first = last.saturating_sub(most as u64) + 1;
        // A page is answered from memory if possible, but does not load the whole conversation into
        // the cache.
        let remembered = self
            .cached_messages(store, &conversation, first..=last)
            .await?;
        self.count_lookup(remembered.as_ref());
        match remembered {
            Some(messages) => Ok(MessagePage { first, messages }),
            None => store.uncached_message_page(id, end, most).await,
        }
    }

    /// Adds the hits and misses of this cache to `store`, the statistics of a store.
    pub fn add_statistics(&self, store: StoreStatistics) -> StoreStatistics {
        let hits = self.hits.load(Ordering::Relaxed);
        let misses = self.misses.load(Ordering::Relaxed);
        StoreStatistics {
            cache_hits: hits,
            cache_misses: misses,
            ..store
        }
    }

    fn lock_contents(&self) -> MutexGuard<'_, CacheContents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of messages that are cached for the conversation. Returns `None` if the
    /// conversation is not cached, its entry has expired, or a message was revised.
    fn count_valid_messages(&self, conversation: &Conversation) -> Option<u64> {
        let mut kept = self.lock_contents();
        let life = kept.lifetime;
        let entry = kept.entries.get_mut(&conversation.id)?;
        let fits = entry.loaded.elapsed() < life
            && entry.revisions == conversation.revisions
            && entry.messages.len() as u64 <= conversation.messages;
        if !fits {
            kept.entries.remove(&conversation.id);
            return None;
        }
        entry.used = Instant::now();
        Some(entry.messages.len() as u64)
    }

    /// Appends `new` to the cached messages of a conversation if exactly `known` messages are
    /// cached.
    fn extend_entry(&self, id: &ConversationId, known: u64, new: Vec<Message>) {
        // Another task may have added them already, or evicted the entry.
        if let Some(entry) = self.lock_contents().entries.get_mut(id)
            && entry.messages.len() as u64 == known
        {
            entry.messages.extend(new);
        }
    }

    /// Returns the messages at these positions; `None` if any of them is not in memory.
    fn cached_slice(
        &self,
        id: &ConversationId,
        places: RangeInclusive<u64>,
    ) -> Option<Vec<Message>> {
        let kept = self.lock_contents();
        let messages = &kept.entries.get(id)?.messages;
        Some(
            messages
                .get(*places.start() as usize - 1..*places.end() as usize)?
                .to_vec(),
        )
    }

    fn insert_entry(&self, conversation: &Conversation, messages: &[Message]) {
        let mut kept = self.lock_contents();
        if kept.max_entries == 0 {
            return;
        }
        let life = kept.lifetime;
        kept.entries
            .retain(|_, entry| entry.loaded.elapsed() < life);
        while kept.entries.len() >= kept.max_entries {
            let oldest = kept
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            kept.entries.remove(&oldest);
        }
        let now = Instant::now();
        let entry = CachedConversation {
            messages: messages.to_vec(),
            revisions: conversation.revisions,
            loaded: now,
            used: now,
        };
        kept.entries.insert(conversation.id.clone(), entry);
    }

    /// Returns the messages at the positions `places`, or `None` if the conversation is not cached.
    /// New messages are read from the store.
    async fn cached_messages(
        &self,
        store: &dyn Store,
        conversation: &Conversation,
        places: RangeInclusive<u64>,
    ) -> Result<Option<Vec<Message>>, StoreError> {
        let Some(known) = self.count_valid_messages(conversation) else {
            return Ok(None);
        };
        let total = conversation.messages;
        if known < total {
            let end = PageEnd::Before(total + 1);
            let page = store
                .uncached_message_page(&conversation.id, end, (total - known) as usize)
                .await?;
            self.extend_entry(&conversation.id, known, page.messages);
        }
        Ok(self.cached_slice(&conversation.id, places))
    }

    /// Counts a cache hit if `remembered` is present, otherwise a cache miss.
    fn count_lookup<T>(&self, remembered: Option<&T>) {
        if remembered.is_some() {
            &self.hits
        } else {
            &self.misses
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}
