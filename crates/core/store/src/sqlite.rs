//! The store on embedded SQLite: one file in WAL mode, synced at every commit.
//!
//! Two threads own one connection each. The first performs all writes, in order. The second
//! performs all reads, so that a long export never delays an append, and a sync to disk never
//! delays a read. A read sees every write that was acknowledged before the read began. A third
//! thread owns the search index, and an optional fourth creates backups.

mod backups;
mod damaged_log;
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

use self::damaged_log::keep_damaged_log;
use self::failure::{DatabaseFile, SqliteFailure};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{Clock, ConversationId, Message, MessageId, Timestamp};
use rusqlite::Connection;
use serde_json::Value;

use self::backups::BackupThread;
pub use self::backups::Backups;
pub use self::damaged_log::find_damaged_copies;
use self::index::IndexThread;
use self::locks::{DatabaseUse, SqliteLocks, TRY_TIMEOUT};
use self::open::{Purpose, open_connection};
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
use crate::worker::{FailureConverter, IdleWork, WorkerThread};

/// The state of the writer thread.
struct SqliteWriter {
    connection: Connection,
    last_requests: LastRequests,
    locks: Arc<SqliteLocks>,
}

/// The conversations in one SQLite file. Dropping the store waits for all writes requested so far.
pub struct SqliteStore {
    // The fields are dropped in this order: the writer closes the file last and leaves it without a
    // write-ahead log.
    backup_thread: Option<BackupThread>,
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
    /// Opens the database at `path`. If the file is missing, creates it with its folders,
    /// accessible only to their owner; if its format is older, migrates it. Blocks until the
    /// database is ready.
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
        let shared_use = DatabaseUse::lock_for_use(path, place.lock_timeout)?;
        let locks = Arc::new(SqliteLocks::new(path, place.lock_timeout));
        let writer = SqliteWriter {
            connection: open_connection(&place, Purpose::Write)?,
            last_requests: LastRequests::default(),
            locks: Arc::clone(&locks),
        };
        let reader = open_connection(&place, Purpose::Read)?;
        let index = IndexThread::new(place.clone());
        let idle_work = IdleWork {
            after: INDEX_DELAY,
            work: IndexThread::index_while_idle,
        };
        let explain: FailureConverter<SqliteFailure> =
            Arc::new(move |failure| place.to_store_error(failure));
        Ok(Self {
            backup_thread: None,
            index: WorkerThread::start_with_idle_work(
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

    /// Starts to create backups in this folder: one now if anything has changed since the newest
    /// backup, then one per configured interval while the store is open.
    pub fn start_backups(&mut self, folder: &Path) -> Result<(), StoreError> {
        if self.config.backups > 0 {
            let backups = Backups::new(&self.path, folder, &self.config, Arc::clone(&self.clock));
            self.backup_thread = Some(BackupThread::start(backups)?);
        }
        Ok(())
    }

    /// Queues a write to a conversation. The write runs as soon as no other process holds the
    /// conversation's write lock.
    fn queue_write<T: Send + 'static>(
        &self,
        id: &ConversationId,
        job: impl FnOnce(&Connection, &ConversationId, Timestamp) -> Result<T, SqliteFailure>
        + Send
        + 'static,
    ) -> PendingWrite<T> {
        let id = id.clone();
        let now = self.clock.now();
        self.writer.submit(move |writer| {
            let _right = writer.locks.lock_for_write(&id, now)?;
            write::run_transaction(&mut writer.connection, |connection| {
                job(connection, &id, now)
            })
        })
    }

    /// Queues a write that needs no lock because it changes no existing conversation.
    fn queue_unlocked_write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        self.writer
            .submit(move |writer| write::run_transaction(&mut writer.connection, job))
    }

    fn queue_read<T: Send + 'static>(
        &self,
        id: &ConversationId,
        job: impl FnOnce(&mut Connection, &ConversationId) -> Result<T, SqliteFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        let id = id.clone();
        self.reader.submit(move |connection| job(connection, &id))
    }

    /// Waits for all queued writes. Reads of the request log call this, because requests are logged
    /// without waiting.
    async fn wait_for_writes(&self) -> Result<(), StoreError> {
        self.writer.submit(|_| Ok(())).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError> {
        let conversation = new.to_conversation(self.clock.now())?;
        let metadata = rows::encode_json("the metadata of a conversation", &new.metadata)?;
        let messages = new
            .messages
            .iter()
            .map(MessageRow::new)
            .collect::<Result<Vec<_>, _>>()?;
        let count = messages.len() as u64;
        let current = new.make_current;
        let create = move |connection: &Connection| {
            write::create_conversation(connection, conversation, &metadata, &messages, current)
        };
        let created = self.queue_unlocked_write(create).await?;
        self.counters.count_created(count);
        self.index.wake();
        Ok(created)
    }

    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        self.queue_read(id, |connection, id| read::get_conversation(connection, id))
            .await
    }

    async fn find_conversation(
        &self,
        text: &str,
        scope: ConversationScope<'_>,
    ) -> Result<ConversationMatch, StoreError> {
        let text = text.to_owned();
        let place = OwnedScope::from(scope);
        self.reader
            .submit(move |connection| read::find_conversation(connection, &text, &place))
            .await
    }

    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError> {
        let place = OwnedScope::from(scope);
        self.reader
            .submit(move |connection| read::list_conversations(connection, &place))
            .await
    }

    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks
                .lock_until_dropped(id, self.clock.now(), self.locks.timeout)
                .await?,
        ))
    }

    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks
                .lock_until_dropped(id, self.clock.now(), TRY_TIMEOUT)
                .await?,
        ))
    }

    async fn append_message(
        &self,
        id: &ConversationId,
        message: &Message,
    ) -> Result<(), StoreError> {
        let message = MessageRow::new(message)?;
        self.queue_write(id, move |connection, id, now| {
            write::append_message(connection, id, &message, now)
        })
        .await?;
        self.counters.count_added();
        self.index.wake();
        Ok(())
    }

    async fn revise_message(
        &self,
        id: &ConversationId,
        message: MessageId,
        revision: Revision,
    ) -> Result<Message, StoreError> {
        let update = self.queue_write(id, move |connection, id, now| {
            write::revise_message(connection, id, message, revision, now)
        });
        let updated = update.await?;
        self.index.wake();
        Ok(updated)
    }

    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.cache.messages(self, id).await
    }

    async fn uncached_messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.counters.count_loaded();
        self.queue_read(id, read::load_messages).await
    }

    async fn message_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError> {
        self.cache.page(self, id, end, most).await
    }

    async fn uncached_message_page(
        &self,
        id: &ConversationId,
        end: PageEnd,
        most: usize,
    ) -> Result<MessagePage, StoreError> {
        if end == PageEnd::Newest {
            self.counters.count_loaded();
        }
        self.queue_read(id, move |connection, id| {
            read::load_page(connection, id, end, most)
        })
        .await
    }

    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        let name = name.to_owned();
        self.queue_write(id, move |connection, id, _| {
            write::rename_conversation(connection, id, &name)
        })
        .await
    }

    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.queue_write(id, write::trash_conversation).await
    }

    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError> {
        self.queue_write(id, |connection, id, _| {
            write::restore_conversation(connection, id)
        })
        .await
    }

    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError> {
        fork.validate()?;
        let id = id.clone();
        let now = self.clock.now();
        // No lock is needed: the other conversation is only read, and this one is new.
        let forked = self
            .queue_unlocked_write(move |connection| {
                write::fork_conversation(connection, &id, fork, now)
            })
            .await?;
        self.counters.count_created(0);
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

    async fn add_fact(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError> {
        let about = fact.message_id();
        let fact = rows::encode_json("a fact", &fact)?;
        self.queue_write(id, move |connection, id, now| {
            write::insert_fact(connection, id, about, &fact, now)
        })
        .await
    }

    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError> {
        self.queue_read(id, |connection, id| read::load_facts(connection, id))
            .await
    }

    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError> {
        let key = key.to_owned();
        self.queue_read(id, move |connection, id| {
            read::load_state(connection, id, &key)
        })
        .await
    }

    async fn states(
        &self,
        id: &ConversationId,
        keys: &[&str],
    ) -> Result<BTreeMap<String, Value>, StoreError> {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        self.queue_read(id, move |connection, id| {
            read::load_states(connection, id, &keys)
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
        let value = rows::encode_json("a state", &value)?;
        self.queue_write(id, move |connection, id, _| {
            write::set_state(connection, id, &key, &value)
        })
        .await
    }

    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        let namespace = namespace_name(namespace).to_owned();
        let key = key.to_owned();
        self.reader
            .submit(move |connection| read::load_project_state(connection, &namespace, &key))
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
        let value = rows::encode_json("a state", &value)?;
        self.queue_unlocked_write(move |connection| {
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
        let value = rows::encode_json("a state", &value)?;
        let swap = move |connection: &Connection| {
            write::swap_project_state(connection, &namespace, &key, before.as_ref(), &value)
        };
        self.queue_unlocked_write(swap).await
    }

    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64> {
        let id = id.clone();
        let now = self.clock.now();
        self.writer.submit(move |writer| {
            let _right = writer.locks.lock_for_write(&id, now)?;
            requests::log_request(
                &mut writer.connection,
                &mut writer.last_requests,
                &id,
                &sent,
                now,
            )
        })
    }

    async fn logged_requests(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestSummary>, StoreError> {
        self.wait_for_writes().await?;
        self.queue_read(id, |connection, id| requests::list_requests(connection, id))
            .await
    }

    async fn count_requests(&self, id: &ConversationId) -> Result<u64, StoreError> {
        self.wait_for_writes().await?;
        self.queue_read(id, |connection, id| {
            requests::count_requests(connection, id)
        })
        .await
    }

    async fn request_outlines(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestOutline>, StoreError> {
        self.wait_for_writes().await?;
        self.queue_read(id, requests::load_outlines).await
    }

    async fn logged_request(
        &self,
        id: &ConversationId,
        number: u64,
    ) -> Result<Option<LoggedRequest>, StoreError> {
        self.wait_for_writes().await?;
        self.queue_read(id, move |connection, id| {
            requests::load_request(connection, id, number)
        })
        .await
    }

    async fn current_conversation(
        &self,
        namespace: &str,
    ) -> Result<Option<ConversationId>, StoreError> {
        let namespace = namespace.to_owned();
        self.reader
            .submit(move |connection| read::current_conversation(connection, &namespace))
            .await
    }

    async fn set_current_conversation(
        &self,
        namespace: &str,
        id: &ConversationId,
    ) -> Result<(), StoreError> {
        let namespace = namespace.to_owned();
        let id = id.clone();
        self.queue_unlocked_write(move |connection| {
            write::set_current_conversation(connection, &namespace, &id)
        })
        .await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError> {
        self.reader.submit(read::list_namespaces).await
    }

    async fn export(
        &self,
        id: &ConversationId,
    ) -> Result<Option<ConversationDocument>, StoreError> {
        self.queue_read(id, read::export_conversation).await
    }

    fn statistics(&self) -> StoreStatistics {
        self.cache.add_statistics(self.counters.snapshot())
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.reader.submit(read::count_totals).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.wait_for_writes().await?;
        self.writer.take_unseen_failure().map_or(Ok(()), Err)
    }
}
