//! Conversations kept in memory, for any store.
//!
//! Invariant: what is read through the cache is what the store would give: before an answer from
//! memory the conversation's own row is read, whose counters say whether any message was added or
//! revised since, by this process or another. Only what is new is then read.

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

/// The conversations a store keeps in memory.
pub struct MessageCache {
    kept: Mutex<CacheContents>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What is in memory.
struct CacheContents {
    most: usize,
    life: Duration,
    entries: HashMap<ConversationId, CachedConversation>,
}

struct CachedConversation {
    messages: Vec<Message>,
    revisions: u64,
    loaded: Instant,
    used: Instant,
}

impl MessageCache {
    /// An empty one.
    pub fn new(config: &StoreConfig) -> Self {
        let most = config.cache_conversations as usize;
        let kept = CacheContents {
            most,
            life: config.cache_life(),
            entries: HashMap::new(),
        };
        Self {
            kept: Mutex::new(kept),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The messages of a conversation.
    pub async fn messages(
        &self,
        store: &dyn Store,
        id: &ConversationId,
    ) -> Result<Vec<Message>, StoreError> {
        let Some(conversation) = store.get(id).await? else {
            return Ok(Vec::new());
        };
        let remembered = self
            .remembered(store, &conversation, 1..=conversation.messages)
            .await?;
        self.count(remembered.as_ref());
        if let Some(messages) = remembered {
            return Ok(messages);
        }
        let messages = store.stored_messages(id).await?;
        // One that was appended to in between is kept with the next read.
        if messages.len() as u64 == conversation.messages {
            self.keep(&conversation, &messages);
        }
        Ok(messages)
    }

    /// A page of them.
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
        let last = end.last(conversation.messages);
        let first = last.saturating_sub(most as u64) + 1;
        // A page is worth a look into memory, but not reading the whole conversation.
        let remembered = self.remembered(store, &conversation, first..=last).await?;
        self.count(remembered.as_ref());
        match remembered {
            Some(messages) => Ok(MessagePage { first, messages }),
            None => store.stored_page(id, end, most).await,
        }
    }

    /// What a store has done, with what this has.
    pub fn counted(&self, store: StoreStatistics) -> StoreStatistics {
        let hits = self.hits.load(Ordering::Relaxed);
        let misses = self.misses.load(Ordering::Relaxed);
        StoreStatistics {
            cache_hits: hits,
            cache_misses: misses,
            ..store
        }
    }

    fn kept(&self) -> MutexGuard<'_, CacheContents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many messages of the conversation are in memory as they still are.
    fn known(&self, conversation: &Conversation) -> Option<u64> {
        let mut kept = self.kept();
        let life = kept.life;
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

    /// Takes the messages that follow the first `known` into memory.
    fn extend(&self, id: &ConversationId, known: u64, new: Vec<Message>) {
        // Another task may have taken them in already, or thrown the entry out.
        if let Some(entry) = self.kept().entries.get_mut(id)
            && entry.messages.len() as u64 == known
        {
            entry.messages.extend(new);
        }
    }

    /// These messages, if all of them are in memory.
    fn slice(&self, id: &ConversationId, places: RangeInclusive<u64>) -> Option<Vec<Message>> {
        let kept = self.kept();
        let messages = &kept.entries.get(id)?.messages;
        Some(
            messages
                .get(*places.start() as usize - 1..*places.end() as usize)?
                .to_vec(),
        )
    }

    fn keep(&self, conversation: &Conversation, messages: &[Message]) {
        let mut kept = self.kept();
        if kept.most == 0 {
            return;
        }
        let life = kept.life;
        kept.entries
            .retain(|_, entry| entry.loaded.elapsed() < life);
        while kept.entries.len() >= kept.most {
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

    /// These messages of a conversation, from memory as far as they are there; none when the
    /// conversation is not.
    async fn remembered(
        &self,
        store: &dyn Store,
        conversation: &Conversation,
        places: RangeInclusive<u64>,
    ) -> Result<Option<Vec<Message>>, StoreError> {
        let Some(known) = self.known(conversation) else {
            return Ok(None);
        };
        let total = conversation.messages;
        if known < total {
            let end = PageEnd::Before(total + 1);
            let page = store
                .stored_page(&conversation.id, end, (total - known) as usize)
                .await?;
            self.extend(&conversation.id, known, page.messages);
        }
        Ok(self.slice(&conversation.id, places))
    }

    /// Counts whether something was in memory.
    fn count<T>(&self, remembered: Option<&T>) {
        if remembered.is_some() {
            &self.hits
        } else {
            &self.misses
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}
