//! The store on embedded SQLite: one file in WAL mode, synced at every commit.
//!
//! Two threads own one connection each. All writes go through the first, in order. Reads have their
//! own connection, so that a long export never delays an append, and a sync to disk never delays a
//! read. A read sees every write that was acknowledged before the read began. A third thread owns
//! the search index, and an optional fourth makes backups.

mod aside;
mod backups;
pub mod database;
mod failure;
mod files;
mod index;
mod lineage;
mod locks;
mod migrations;
mod open;
mod read;
mod requests;
mod rows;
mod write;

use self::aside::keep_damaged_log;
use self::failure::{DatabaseFile, SqliteFailure};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{Clock, ConversationId, Message, MessageId, Timestamp};
use rusqlite::Connection;
use serde_json::Value;

pub use self::aside::damaged_copies;
use self::backups::BackupThread;
pub use self::backups::Backups;
use self::index::IndexThread;
use self::locks::{AT_ONCE, DatabaseUse, SqliteLocks};
use self::open::{Purpose, connect};
use self::rows::MessageRow;
use crate::cache::MessageCache;
use crate::config::StoreConfig;
use crate::conversation::{
    Conversation, ConversationMatch, ConversationRow, ConversationScope, Namespace,
    NewConversation, NewFork, OwnedScope, check_name, namespace_name,
};
use crate::document::ConversationDocument;
use crate::error::StoreError;
use crate::fact::Fact;
use crate::lock::WriteLock;
use crate::message::{MessagePage, PageEnd, Revision};
use crate::pending::PendingWrite;
use crate::request_log::rows::LastRequests;
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};
use crate::search::{INDEX_DELAY, SearchHit, SearchQuery, parse_query};
use crate::statistics::{Counters, StoreStatistics, Totals};
use crate::store::{Store, Swap};
use crate::worker::{Explain, IdleWork, WorkerThread};

/// The state of the writer thread.
struct SqliteWriter {
    connection: Connection,
    last_requests: LastRequests,
    locks: Arc<SqliteLocks>,
}

/// Conversations in one SQLite file. Dropping the store waits for the writes requested so far.
pub struct SqliteStore {
    // The fields are dropped in this order: the writer closes the file last and leaves it without a
    // write-ahead log.
    keeper: Option<BackupThread>,
    index: WorkerThread<IndexThread, SqliteFailure>,
    reader: WorkerThread<Connection, SqliteFailure>,
    writer: WorkerThread<SqliteWriter, SqliteFailure>,
    _use: DatabaseUse,
    locks: Arc<SqliteLocks>,
    cache: MessageCache,
    counters: Counters,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    config: StoreConfig,
}

impl SqliteStore {
    /// Opens the database at `path`. A missing file is created with its folders, accessible only to
    /// their owner; an older format is migrated. Blocks until that is done.
    pub fn open(
        path: &Path,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let place = DatabaseFile {
            path: path.to_path_buf(),
            lock_timeout: config.lock_timeout(),
        };
        keep_damaged_log(path)?;
        let shared_use = DatabaseUse::together(path, place.lock_timeout)?;
        let locks = Arc::new(SqliteLocks::new(path, place.lock_timeout));
        let writer = SqliteWriter {
            connection: connect(&place, Purpose::Write)?,
            last_requests: LastRequests::default(),
            locks: Arc::clone(&locks),
        };
        let reader = connect(&place, Purpose::Read)?;
        let index = IndexThread::new(place.clone());
        let idle_work = IdleWork {
            after: INDEX_DELAY,
            work: IndexThread::fill_a_little,
        };
        let explain: Explain<SqliteFailure> = Arc::new(move |failure| place.explain(failure));
        Ok(Self {
            keeper: None,
            index: WorkerThread::start_with(
                "haft-store-index",
                Arc::clone(&explain),
                index,
                idle_work,
            )?,
            reader: WorkerThread::start("haft-store-read", Arc::clone(&explain), reader)?,
            writer: WorkerThread::start("haft-store-write", explain, writer)?,
            _use: shared_use,
            locks,
            cache: MessageCache::new(config),
            counters: Counters::default(),
            clock,
            path: path.to_path_buf(),
            config: config.clone(),
        })
    }

    /// Makes backups in this folder while the store is open: one now if anything changed, then one
    /// per configured interval.
    pub fn keep_backups(&mut self, folder: &Path) -> Result<(), StoreError> {
        if self.config.backups > 0 {
            let backups = Backups::new(&self.path, folder, &self.config, Arc::clone(&self.clock));
            self.keeper = Some(BackupThread::start(backups)?);
        }
        Ok(())
    }

    /// Queues a write to a conversation. The write runs once no other process holds the write lock.
    fn write<T: Send + 'static>(
        &self,
        id: &ConversationId,
        job: impl FnOnce(&Connection, &ConversationId, Timestamp) -> Result<T, SqliteFailure>
        + Send
        + 'static,
    ) -> PendingWrite<T> {
        let id = id.clone();
        let now = self.clock.now();
        self.writer.submit(move |writer| {
            let _right = writer.locks.for_one_write(&id, now)?;
            write::transact(&mut writer.connection, |connection| {
                job(connection, &id, now)
            })
        })
    }

    /// Queues a write that needs no lock because it changes no existing conversation.
    fn write_anywhere<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        self.writer
            .submit(move |writer| write::transact(&mut writer.connection, job))
    }

    fn read<T: Send + 'static>(
        &self,
        id: &ConversationId,
        job: impl FnOnce(&mut Connection, &ConversationId) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        let id = id.clone();
        self.reader.submit(move |connection| job(connection, &id))
    }

    /// Waits for all queued writes: requests are logged without waiting, and a later read must see
    /// them.
    async fn written(&self) -> Result<(), StoreError> {
        self.writer.submit(|_| Ok(())).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError> {
        let conversation = new.planned(self.clock.now())?;
        let metadata = rows::encode("the metadata of a conversation", &new.metadata)?;
        let messages = new
            .messages
            .iter()
            .map(MessageRow::new)
            .collect::<Result<Vec<_>, _>>()?;
        let count = messages.len() as u64;
        let current = new.make_current;
        let create = move |connection: &Connection| {
            write::create(connection, conversation, &metadata, &messages, current)
        };
        let created = self.write_anywhere(create).await?;
        self.counters.created(count);
        self.index.poke();
        Ok(created)
    }

    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.read(id, |connection, id| read::get(connection, id))
            .await
    }

    async fn find(
        &self,
        text: &str,
        scope: ConversationScope<'_>,
    ) -> Result<ConversationMatch, StoreError> {
        let text = text.to_owned();
        let place = OwnedScope::from(scope);
        self.reader
            .submit(move |connection| read::find(connection, &text, &place))
            .await
    }

    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError> {
        let place = OwnedScope::from(scope);
        self.reader
            .submit(move |connection| read::list(connection, &place))
            .await
    }

    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks
                .keep(id, self.clock.now(), self.locks.timeout)
                .await?,
        ))
    }

    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks.keep(id, self.clock.now(), AT_ONCE).await?,
        ))
    }

    async fn append(&self, id: &ConversationId, message: &Message) -> Result<(), StoreError> {
        let message = MessageRow::new(message)?;
        self.write(id, move |connection, id, now| {
            write::append(connection, id, &message, now)
        })
        .await?;
        self.counters.added();
        self.index.poke();
        Ok(())
    }

    async fn update(
        &self,
        id: &ConversationId,
        message: MessageId,
        revision: Revision,
    ) -> Result<Message, StoreError> {
        let update = self.write(id, move |connection, id, now| {
            write::update(connection, id, message, revision, now)
        });
        let updated = update.await?;
        self.index.poke();
        Ok(updated)
    }

    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.cache.messages(self, id).await
    }

    async fn stored_messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.counters.loaded();
        self.read(id, read::messages).await
    }

    async fn page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError> {
        self.cache.page(self, id, end, most).await
    }

    async fn stored_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError> {
        if end == PageEnd::Newest {
            self.counters.loaded();
        }
        self.read(id, move |connection, id| {
            read::page(connection, id, end, most)
        })
        .await
    }

    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        let name = name.to_owned();
        self.write(id, move |connection, id, _| {
            write::rename(connection, id, &name)
        })
        .await
    }

    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.write(id, write::delete).await
    }

    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError> {
        self.write(id, |connection, id, _| write::restore(connection, id))
            .await
    }

    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError> {
        fork.check()?;
        let id = id.clone();
        let now = self.clock.now();
        // No lock is needed: the other conversation is only read, and this one is new.
        let forked = self
            .write_anywhere(move |connection| write::fork(connection, &id, fork, now))
            .await?;
        self.counters.created(0);
        Ok(forked)
    }

    async fn search(&self, query: SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError> {
        let items = parse_query(query.text)?;
        let place = OwnedScope::from(query.scope);
        let limit = query.limit;
        self.index
            .submit(move |index| index.search(&items, &place, limit))
            .await
    }

    async fn note(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError> {
        let about = fact.message_id();
        let fact = rows::encode("a fact", &fact)?;
        self.write(id, move |connection, id, now| {
            write::note(connection, id, about, &fact, now)
        })
        .await
    }

    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError> {
        self.read(id, |connection, id| read::facts(connection, id))
            .await
    }

    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError> {
        let key = key.to_owned();
        self.read(id, move |connection, id| read::state(connection, id, &key))
            .await
    }

    async fn states(
        &self,
        id: &ConversationId,
        keys: &[&str],
    ) -> Result<BTreeMap<String, Value>, StoreError> {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        self.read(id, move |connection, id| {
            read::states(connection, id, &keys)
        })
        .await
    }

    async fn set_state(
        &self,
        id: &ConversationId,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError> {
        let key = key.to_owned();
        let value = rows::encode("a state", &value)?;
        self.write(id, move |connection, id, _| {
            write::set_state(connection, id, &key, &value)
        })
        .await
    }

    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        let namespace = namespace_name(namespace).to_owned();
        let key = key.to_owned();
        self.reader
            .submit(move |connection| read::project_state(connection, &namespace, &key))
            .await
    }

    async fn set_project_state(
        &self,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError> {
        let namespace = namespace_name(namespace).to_owned();
        let key = key.to_owned();
        let value = rows::encode("a state", &value)?;
        self.write_anywhere(move |connection| {
            write::set_project_state(connection, &namespace, &key, &value)
        })
        .await
    }

    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError> {
        let namespace = namespace_name(namespace).to_owned();
        let key = key.to_owned();
        let before = before.cloned();
        let value = rows::encode("a state", &value)?;
        let swap = move |connection: &Connection| {
            write::swap_project_state(connection, &namespace, &key, before.as_ref(), &value)
        };
        self.write_anywhere(swap).await
    }

    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64> {
        let id = id.clone();
        let now = self.clock.now();
        self.writer.submit(move |writer| {
            let _right = writer.locks.for_one_write(&id, now)?;
            requests::log(
                &mut writer.connection,
                &mut writer.last_requests,
                &id,
                &sent,
                now,
            )
        })
    }

    async fn requests(&self, id: &ConversationId) -> Result<Vec<RequestSummary>, StoreError> {
        self.written().await?;
        self.read(id, |connection, id| requests::list(connection, id))
            .await
    }

    async fn request_outlines(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestOutline>, StoreError> {
        self.written().await?;
        self.read(id, requests::outlines).await
    }

    async fn request(
        &self,
        id: &ConversationId,
        number: u64,
    ) -> Result<Option<LoggedRequest>, StoreError> {
        self.written().await?;
        self.read(id, move |connection, id| {
            requests::get(connection, id, number)
        })
        .await
    }

    async fn current(&self, namespace: &str) -> Result<Option<ConversationId>, StoreError> {
        let namespace = namespace.to_owned();
        self.reader
            .submit(move |connection| read::current(connection, &namespace))
            .await
    }

    async fn set_current(&self, namespace: &str, id: &ConversationId) -> Result<(), StoreError> {
        let namespace = namespace.to_owned();
        let id = id.clone();
        self.write_anywhere(move |connection| write::set_current(connection, &namespace, &id))
            .await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError> {
        self.reader.submit(read::namespaces).await
    }

    async fn export(
        &self,
        id: &ConversationId,
    ) -> Result<Option<ConversationDocument>, StoreError> {
        self.read(id, read::export).await
    }

    fn statistics(&self) -> StoreStatistics {
        self.cache.counted(self.counters.so_far())
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.reader.submit(read::totals).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.written().await?;
        self.writer.take_unseen().map_or(Ok(()), Err)
    }
}
