//! Conversations kept in memory, over any store.
//!
//! Invariant: what is read through the cache is what the store would give: before an answer from memory the conversation's own
//! row is read, whose counters say whether any message was added or revised since, by this process or another. Only what is new
//! is then read.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use haft_types::{ConversationId, Message, MessageId};
use serde_json::Value;

use crate::config::StoreConfig;
use crate::conversation::{
    Conversation, ConversationMatch, ConversationRow, ConversationScope, Namespace, NewConversation, NewFork,
};
use crate::document::ConversationDocument;
use crate::error::StoreError;
use crate::fact::Fact;
use crate::lock::WriteLock;
use crate::message::{MessagePage, PageEnd, Revision};
use crate::pending::PendingWrite;
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};
use crate::search::{SearchHit, SearchQuery};
use crate::statistics::{StoreStatistics, Totals};
use crate::store::{Store, Swap};

/// A store with conversations kept in memory.
pub struct CachedStore<S> {
    store: S,
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

impl<S: Store> CachedStore<S> {
    /// Puts a cache before a store.
    pub fn new(store: S, config: &StoreConfig) -> Self {
        let most = config.cache_conversations as usize;
        let kept = CacheContents { most, life: config.cache_life(), entries: HashMap::new() };
        Self { store, kept: Mutex::new(kept), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// The store behind it.
    pub fn store(&self) -> &S {
        &self.store
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
        Some(messages.get(*places.start() as usize - 1..*places.end() as usize)?.to_vec())
    }

    fn keep(&self, conversation: &Conversation, messages: &[Message]) {
        let mut kept = self.kept();
        if kept.most == 0 {
            return;
        }
        let life = kept.life;
        kept.entries.retain(|_, entry| entry.loaded.elapsed() < life);
        while kept.entries.len() >= kept.most {
            let oldest = kept.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| id.clone());
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

    /// These messages of a conversation, from memory as far as they are there; none when the conversation is not.
    async fn remembered(
        &self,
        conversation: &Conversation,
        places: RangeInclusive<u64>,
    ) -> Result<Option<Vec<Message>>, StoreError> {
        let Some(known) = self.known(conversation) else { return Ok(None) };
        let total = conversation.messages;
        if known < total {
            let end = PageEnd::Before(total + 1);
            let page = self.store.page(&conversation.id, end, (total - known) as usize).await?;
            self.extend(&conversation.id, known, page.messages);
        }
        Ok(self.slice(&conversation.id, places))
    }

    /// Counts whether something was in memory.
    fn count<T>(&self, remembered: Option<&T>) {
        if remembered.is_some() { &self.hits } else { &self.misses }.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl<S: Store> Store for CachedStore<S> {
    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        let Some(conversation) = self.store.get(id).await? else { return Ok(Vec::new()) };
        let remembered = self.remembered(&conversation, 1..=conversation.messages).await?;
        self.count(remembered.as_ref());
        if let Some(messages) = remembered {
            return Ok(messages);
        }
        let messages = self.store.messages(id).await?;
        // One that was appended to in between is kept with the next read.
        if messages.len() as u64 == conversation.messages {
            self.keep(&conversation, &messages);
        }
        Ok(messages)
    }

    async fn page(&self, id: &ConversationId, end: PageEnd, most: usize) -> Result<MessagePage, StoreError> {
        let Some(conversation) = self.store.get(id).await? else { return Ok(MessagePage::default()) };
        let last = end.last(conversation.messages);
        let first = last.saturating_sub(most as u64) + 1;
        // A page is worth a look into memory, but not reading the whole conversation.
        let remembered = self.remembered(&conversation, first..=last).await?;
        self.count(remembered.as_ref());
        match remembered {
            Some(messages) => Ok(MessagePage { first, messages }),
            None => self.store.page(id, end, most).await,
        }
    }

    fn statistics(&self) -> StoreStatistics {
        StoreStatistics {
            cache_hits: self.hits.load(Ordering::Relaxed),
            cache_misses: self.misses.load(Ordering::Relaxed),
            ..self.store.statistics()
        }
    }

    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError> {
        self.store.create(new).await
    }

    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.store.get(id).await
    }

    async fn find(&self, text: &str, scope: ConversationScope<'_>) -> Result<ConversationMatch, StoreError> {
        self.store.find(text, scope).await
    }

    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError> {
        self.store.list(scope).await
    }

    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        self.store.lock(id).await
    }

    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        self.store.try_lock(id).await
    }

    async fn append(&self, id: &ConversationId, message: &Message) -> Result<(), StoreError> {
        self.store.append(id, message).await
    }

    async fn update(&self, id: &ConversationId, message: MessageId, revision: Revision) -> Result<Message, StoreError> {
        self.store.update(id, message, revision).await
    }

    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError> {
        self.store.rename(id, name).await
    }

    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.store.delete(id).await
    }

    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError> {
        self.store.restore(id).await
    }

    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError> {
        self.store.fork(id, fork).await
    }

    async fn search(&self, query: SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError> {
        self.store.search(query).await
    }

    async fn note(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError> {
        self.store.note(id, fact).await
    }

    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError> {
        self.store.facts(id).await
    }

    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError> {
        self.store.state(id, key).await
    }

    async fn states(&self, id: &ConversationId, keys: &[&str]) -> Result<BTreeMap<String, Value>, StoreError> {
        self.store.states(id, keys).await
    }

    async fn set_state(&self, id: &ConversationId, key: &str, value: Value) -> Result<(), StoreError> {
        self.store.set_state(id, key, value).await
    }

    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        self.store.project_state(namespace, key).await
    }

    async fn set_project_state(&self, namespace: &str, key: &str, value: Value) -> Result<(), StoreError> {
        self.store.set_project_state(namespace, key, value).await
    }

    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError> {
        self.store.swap_project_state(namespace, key, before, value).await
    }

    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64> {
        self.store.log_request(id, sent)
    }

    async fn requests(&self, id: &ConversationId) -> Result<Vec<RequestSummary>, StoreError> {
        self.store.requests(id).await
    }

    async fn request_outlines(&self, id: &ConversationId) -> Result<Vec<RequestOutline>, StoreError> {
        self.store.request_outlines(id).await
    }

    async fn request(&self, id: &ConversationId, number: u64) -> Result<Option<LoggedRequest>, StoreError> {
        self.store.request(id, number).await
    }

    async fn current(&self, namespace: &str) -> Result<Option<ConversationId>, StoreError> {
        self.store.current(namespace).await
    }

    async fn set_current(&self, namespace: &str, id: &ConversationId) -> Result<(), StoreError> {
        self.store.set_current(namespace, id).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError> {
        self.store.namespaces().await
    }

    async fn export(&self, id: &ConversationId) -> Result<Option<ConversationDocument>, StoreError> {
        self.store.export(id).await
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.store.totals().await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }
}
