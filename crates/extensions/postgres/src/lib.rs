//! Stores the conversations of a team on a PostgreSQL server, which several hosts share, with the
//! guarantees of the embedded store.
//!
//! This crate must not read the environment, the home folder, or the wall clock: it receives the
//! server's address as text and the time through [`haft_types::Clock`]. The parts it shares with
//! other stores are in [`haft_store::backend`]; it adds statements, connections, and locks, and no
//! guarantees of its own.
//!
//! As in the embedded store, one thread with one connection does all writing, in order, and another
//! all reading. A third holds the write locks, which belong to its server session, so that the
//! server releases them when the process or host dies. Each thread has its own small runtime, so
//! that queued work is done even if the caller's runtime ends.
//!
//! [`TaskQueue`] stores the tasks of workers in the same database.
//!
//! Read first: [`PostgresStore`], then `session.rs` (a connection and its transactions) and
//! `locks.rs` (write locks).

mod connect;
mod extension;
mod failure;
mod guarded;
mod lineage;
mod locks;
mod migrate;
mod names;
mod queue;
mod read;
mod requests;
mod search;
mod session;
mod shared_name;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_store::backend::{
    Counters, FailureConverter, INDEX_DELAY, Idle, IdleWork, LastRequests, MessageCache,
    MessageRow, WorkerThread, check_name, encode_json, namespace_name, parse_query,
};
use haft_store::{
    Conversation, ConversationDocument, ConversationMatch, ConversationRow, ConversationScope,
    Fact, LoggedRequest, MessagePage, Namespace, NewConversation, NewFork, PageEnd, PendingWrite,
    RequestOutline, RequestSummary, Revision, SearchHit, SearchQuery, SentRequest, Store,
    StoreConfig, StoreError, StoreStatistics, Swap, Totals, WriteLock,
};
use haft_types::{Clock, ConversationId, Message, MessageId, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;

use self::failure::PostgresFailure;
use self::guarded::WriteGuard;
use self::locks::{PostgresLocks, TRY_LOCK_TIMEOUT};
use self::session::PostgresSession;

pub use self::extension::PostgresExtension;
pub use self::migrate::{grant_data_rights, migrate_server, migration_sql};
pub use self::names::ProjectName;
pub use self::queue::{
    AddedTask, Heartbeat, KeptFile, KeptKind, LabelCost, LeaseMismatch, NewTask, PruneReport,
    QueueListener, QueueSignal, QueueStatistics, QueuedTask, ReleaseReason, SpendingLimit,
    TASK_RECORD_PATH, TASK_STATUSES, TaskEnd, TaskFilter, TaskLease, TaskQueue, TaskRequest,
    TaskSpending, TaskState, TaskTakenOver, WorkerProfile, WorkerRow, WorkerStatus, format_utc,
    has_address_password, hide_address_password,
};

/// The maximum number of conversations whose last request a store remembers.
const MAX_LOGGED: usize = 64;

/// The state of the thread that executes all writes of a store.
struct PostgresWriter {
    session: PostgresSession,
    last_requests: LastRequests,
    /// The keys of conversations, and the numbers of their last requests, as far as this store has
    /// logged them.
    logged: HashMap<ConversationId, (i64, i64)>,
    locks: Arc<PostgresLocks>,
}

impl PostgresWriter {
    /// Returns the conditions of a write to a conversation whose lock this store has.
    fn guard<'a>(
        locks: &PostgresLocks,
        conversation: &'a ConversationId,
        lease: Option<TaskLease>,
    ) -> Option<WriteGuard<'a>> {
        let term = locks.held_term(conversation)?;
        Some(WriteGuard {
            conversation,
            term,
            lease,
        })
    }
}

/// A store of conversations on a PostgreSQL server. Dropping it waits for queued writes.
pub struct PostgresStore {
    index: WorkerThread<PostgresSession, PostgresFailure>,
    reader: WorkerThread<PostgresSession, PostgresFailure>,
    writer: WorkerThread<PostgresWriter, PostgresFailure>,
    locks: Arc<PostgresLocks>,
    cache: MessageCache,
    counters: Counters,
    clock: Arc<dyn Clock>,
    /// The lease of the task run that makes all writes, or `None` outside of tasks.
    lease: Option<TaskLease>,
    /// The project's local and shared names.
    name: Option<ProjectName>,
}

impl PostgresStore {
    /// Sets the local and the shared name of the project, for projects whose names differ.
    #[must_use]
    pub fn with_name(mut self, name: Option<ProjectName>) -> Self {
        self.name = name;
        self
    }

    /// Returns the server's name for the local `namespace`.
    fn stored_namespace(&self, namespace: &str) -> String {
        let namespace = namespace_name(namespace);
        self.name
            .as_ref()
            .map_or_else(|| namespace.to_owned(), |name| name.to_shared(namespace))
    }

    /// Replaces the server's name for a namespace with the local name.
    fn restore_local_namespace(&self, namespace: &mut String) {
        if let Some(name) = &self.name {
            *namespace = name.to_local(namespace);
        }
    }

    fn restore_local_name(&self, mut conversation: Conversation) -> Conversation {
        self.restore_local_namespace(&mut conversation.namespace);
        conversation
    }

    /// Connects to a server by its URL, such as `postgres://user@host/database`. Creates missing
    /// tables in the schema of the connection and upgrades older formats. Blocks until that is
    /// done.
    pub fn connect(
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::connect_with_lease(url, config, clock, None)
    }

    /// Like [`Self::connect`], but for one run of a task: writes fail once another worker has taken
    /// over the task.
    pub fn connect_with_lease(
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
        lease: Option<TaskLease>,
    ) -> Result<Self, StoreError> {
        Self::connect_with_timeout(url, config, clock, lease, None)
    }

    /// Like [`Self::connect_with_lease`], but every operation fails after `timeout`. A server that
    /// vanished without closing its connections never answers.
    pub fn connect_with_timeout(
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
        lease: Option<TaskLease>,
        timeout: Option<Duration>,
    ) -> Result<Self, StoreError> {
        // A runtime can't block or be dropped within another one, and the caller may be in one.
        let url = url.to_owned();
        let config = config.clone();
        let connect = move || Self::connect_blocking(&url, &config, clock, lease, timeout);
        let thread = std::thread::Builder::new()
            .name("haft-store-connect".to_owned())
            .spawn(connect);
        let thread = thread.map_err(|source| StoreError::Thread {
            name: "haft-store-connect".to_owned(),
            source,
        })?;
        thread.join().unwrap_or(Err(StoreError::Closed))
    }

    fn connect_blocking(
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
        lease: Option<TaskLease>,
        timeout: Option<Duration>,
    ) -> Result<Self, StoreError> {
        let server = connect::PostgresServer::new(url, config.lock_timeout())?.with_lease(lease);
        let server = Arc::new(match timeout {
            Some(timeout) => server.with_timeout(timeout),
            None => server,
        });
        let explain: FailureConverter<PostgresFailure> = {
            let server = Arc::clone(&server);
            Arc::new(move |failure| server.to_store_error(failure))
        };
        let mut session = PostgresSession::new(&server)?;
        session
            .run(connect::migrate_tables)
            .map_err(|failure| explain(failure))?;
        let keeper = WorkerThread::start(
            "haft-store-lock",
            Arc::clone(&explain),
            PostgresSession::new(&server)?,
        )?;
        let locks = Arc::new(PostgresLocks::new(keeper, config.lock_timeout(), lease));
        let writer = PostgresWriter {
            session,
            last_requests: LastRequests::default(),
            logged: HashMap::new(),
            locks: Arc::clone(&locks),
        };
        let idle_work = IdleWork {
            after: INDEX_DELAY,
            work: index_next_batch,
        };
        Ok(Self {
            index: WorkerThread::start_with_idle_work(
                "haft-store-index",
                Arc::clone(&explain),
                PostgresSession::new(&server)?,
                idle_work,
            )?,
            reader: WorkerThread::start(
                "haft-store-read",
                Arc::clone(&explain),
                PostgresSession::new(&server)?,
            )?,
            writer: WorkerThread::start("haft-store-write", explain, writer)?,
            locks,
            cache: MessageCache::new(config),
            counters: Counters::default(),
            clock,
            lease,
            name: None,
        })
    }

    /// Queues a write to a conversation. The write runs once no other process holds the
    /// conversation's write lock.
    fn queue_write<T: Send + 'static>(
        &self,
        id: &ConversationId,
        job: impl AsyncFnOnce(
            &mut PgConnection,
            &ConversationId,
            Timestamp,
        ) -> Result<T, PostgresFailure>
        + Send
        + 'static,
    ) -> PendingWrite<T> {
        let id = id.clone();
        let now = self.clock.now();
        let lease = self.lease;
        self.writer
            .submit(move |PostgresWriter { session, locks, .. }| {
                session.run_with_timeout(locks.timeout(), async |connection| {
                    let job = async |transaction: &mut PgConnection| {
                        check_writable(transaction, lease).await?;
                        locks.lock_for_write(transaction, &id).await?;
                        job(transaction, &id, now).await
                    };
                    session::run_transaction(connection, session::BEGIN_WRITE, job).await
                })
            })
    }

    /// Queues a write that changes no existing conversation, and therefore needs no write lock.
    fn queue_unlocked_write<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        let lease = self.lease;
        self.writer.submit(move |writer| {
            writer.session.run(async |connection| {
                let job = async |transaction: &mut PgConnection| {
                    check_writable(transaction, lease).await?;
                    job(transaction).await
                };
                session::run_transaction(connection, session::BEGIN_WRITE, job).await
            })
        })
    }

    /// Queues a read. All statements of the read see one snapshot of the database.
    fn queue_read<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        self.reader.submit(move |session| {
            session.run(async |connection| {
                session::run_transaction(connection, session::BEGIN_READ, job).await
            })
        })
    }

    /// Like [`Self::queue_read`], for a read that is one statement, which needs no transaction.
    fn queue_single_read<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure> + Send + 'static,
    ) -> PendingWrite<T> {
        self.reader.submit(move |session| session.run(job))
    }

    /// Waits until queued writes are done. Needed before reading the log of requests, because
    /// requests are logged without waiting for the write.
    async fn wait_for_writes(&self) -> Result<(), StoreError> {
        self.writer.submit(|_| Ok(())).await
    }
}

/// Checks that the tables have the known format and that `lease`, if there is one, is still the
/// newest lease of its task.
async fn check_writable(
    connection: &mut PgConnection,
    lease: Option<TaskLease>,
) -> Result<(), PostgresFailure> {
    write::check_format(connection).await?;
    match lease {
        Some(lease) => queue::check_fence(connection, lease).await,
        None => Ok(()),
    }
}

/// Like [`check_writable`], for a write that stores a message.
async fn check_message_writable(
    connection: &mut PgConnection,
    lease: Option<TaskLease>,
) -> Result<(), PostgresFailure> {
    write::check_format(connection).await?;
    match lease {
        Some(lease) => queue::count_attempt(connection, lease).await,
        None => Ok(()),
    }
}

fn index_next_batch(session: &mut PostgresSession) -> Idle {
    // The next search reports errors.
    session.run(search::index_batch).unwrap_or(Idle::Done)
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, mut new: NewConversation) -> Result<Conversation, StoreError> {
        new.namespace = self.stored_namespace(&new.namespace);
        let conversation = new.to_conversation(self.clock.now())?;
        let metadata = encode_json("the metadata of a conversation", &new.metadata)?;
        let messages = new
            .messages
            .iter()
            .map(MessageRow::new)
            .collect::<Result<Vec<_>, _>>()?;
        let count = messages.len() as u64;
        let current = new.make_current;
        let lease = self.lease;
        let create = async move |connection: &mut PgConnection| {
            if let Some(lease) = lease.filter(|_| !messages.is_empty()) {
                queue::count_attempt(connection, lease).await?;
            }
            write::create_conversation(connection, conversation, &metadata, &messages, current)
                .await
        };
        let created = self.queue_unlocked_write(create).await?;
        self.counters.count_created(count);
        self.index.wake();
        Ok(self.restore_local_name(created))
    }

    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        let id = id.clone();
        let found = self
            .queue_single_read(async move |connection| {
                read::get_conversation(connection, &id).await
            })
            .await?;
        Ok(found.map(|one| self.restore_local_name(one)))
    }

    async fn find_conversation(
        &self,
        text: &str,
        scope: ConversationScope<'_>,
    ) -> Result<ConversationMatch, StoreError> {
        for place in names::scopes_to_search(self.name.as_ref(), scope) {
            let text = text.to_owned();
            match self
                .queue_read(async move |connection| {
                    read::find_conversation(connection, &text, &place).await
                })
                .await?
            {
                ConversationMatch::Nothing => {}
                ConversationMatch::One(one) => {
                    return Ok(ConversationMatch::One(Box::new(
                        self.restore_local_name(*one),
                    )));
                }
                ConversationMatch::Several(mut rows) => {
                    for row in &mut rows {
                        self.restore_local_namespace(&mut row.namespace);
                    }
                    return Ok(ConversationMatch::Several(rows));
                }
            }
        }
        Ok(ConversationMatch::Nothing)
    }

    async fn list(&self, scope: ConversationScope<'_>) -> Result<Vec<ConversationRow>, StoreError> {
        let places = names::scopes_to_search(self.name.as_ref(), scope);
        let several = places.len() > 1;
        let mut rows = Vec::new();
        for place in places {
            rows.extend(
                self.queue_read(async move |connection| {
                    read::list_conversations(connection, &place).await
                })
                .await?,
            );
        }
        if several {
            rows.sort_by_key(|row: &ConversationRow| std::cmp::Reverse(row.updated_at));
        }
        for row in &mut rows {
            self.restore_local_namespace(&mut row.namespace);
        }
        Ok(rows)
    }

    async fn lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks
                .acquire_term(id, self.clock.now(), self.locks.timeout())
                .await?,
        ))
    }

    async fn try_lock(&self, id: &ConversationId) -> Result<WriteLock, StoreError> {
        Ok(WriteLock::new(
            self.locks
                .acquire_term(id, self.clock.now(), TRY_LOCK_TIMEOUT)
                .await?,
        ))
    }

    async fn append_message(
        &self,
        id: &ConversationId,
        message: &Message,
    ) -> Result<(), StoreError> {
        let message = MessageRow::new(message)?;
        let id = id.clone();
        let now = self.clock.now();
        let lease = self.lease;
        self.writer
            .submit(move |PostgresWriter { session, locks, .. }| {
                session.run_with_timeout(locks.timeout(), async |connection| {
                    if let Some(guard) = PostgresWriter::guard(locks, &id, lease)
                        && guarded::append_message(connection, &guard, &message, now).await?
                    {
                        return Ok(());
                    }
                    let append = async |transaction: &mut PgConnection| {
                        check_message_writable(transaction, lease).await?;
                        locks.lock_for_write(transaction, &id).await?;
                        write::append_message(transaction, &id, &message, now).await
                    };
                    session::run_transaction(connection, session::BEGIN_WRITE, append).await
                })
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
        let update =
            async move |connection: &mut PgConnection, id: &ConversationId, now: Timestamp| {
                write::revise_message(connection, id, message, revision, now).await
            };
        let updated = self.queue_write(id, update).await?;
        self.index.wake();
        Ok(updated)
    }

    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.cache.messages(self, id).await
    }

    async fn uncached_messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        self.counters.count_loaded();
        let id = id.clone();
        self.queue_read(async move |connection| read::read_messages(connection, &id).await)
            .await
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
        let id = id.clone();
        self.queue_read(async move |connection| read::read_page(connection, &id, end, most).await)
            .await
    }

    async fn rename(&self, id: &ConversationId, name: &str) -> Result<(), StoreError> {
        check_name(name)?;
        let name = name.to_owned();
        self.queue_write(id, async move |connection, id, _| {
            write::rename_conversation(connection, id, &name).await
        })
        .await
    }

    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.queue_write(id, async |connection, id, now| {
            write::trash_conversation(connection, id, now).await
        })
        .await
    }

    async fn restore(&self, id: &ConversationId) -> Result<Conversation, StoreError> {
        let restored = self
            .queue_write(id, async |connection, id, _| {
                write::restore_conversation(connection, id).await
            })
            .await?;
        Ok(self.restore_local_name(restored))
    }

    async fn fork(&self, id: &ConversationId, fork: NewFork) -> Result<Conversation, StoreError> {
        fork.validate()?;
        let id = id.clone();
        let now = self.clock.now();
        let forked = self
            .queue_unlocked_write(async move |connection| {
                write::fork_conversation(connection, &id, fork, now).await
            })
            .await?;
        self.counters.count_created(0);
        Ok(self.restore_local_name(forked))
    }

    async fn search(&self, query: SearchQuery<'_>) -> Result<Vec<SearchHit>, StoreError> {
        let items = parse_query(query.text)?;
        let places = names::scopes_to_search(self.name.as_ref(), query.scope);
        let limit = query.limit;
        let search = move |session: &mut PostgresSession| {
            session.run(async |connection| {
                while search::index_batch(connection).await? == Idle::More {}
                let search = async |snapshot: &mut PgConnection| {
                    let mut hits = Vec::new();
                    for place in &places {
                        hits.extend(
                            search::search_conversations(
                                snapshot,
                                &items,
                                place,
                                limit.saturating_sub(hits.len()),
                            )
                            .await?,
                        );
                    }
                    Ok(hits)
                };
                session::run_transaction(connection, session::BEGIN_READ, search).await
            })
        };
        let mut hits = self.index.submit(search).await?;
        for hit in &mut hits {
            self.restore_local_namespace(&mut hit.conversation.namespace);
        }
        Ok(hits)
    }

    async fn add_fact(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError> {
        let about = fact.message_id();
        let fact = encode_json("a fact", &fact)?;
        let id = id.clone();
        let now = self.clock.now();
        let lease = self.lease;
        self.writer
            .submit(move |PostgresWriter { session, locks, .. }| {
                session.run_with_timeout(locks.timeout(), async |connection| {
                    if let Some(guard) = PostgresWriter::guard(locks, &id, lease)
                        && guarded::insert_fact(connection, &guard, about, &fact, now).await?
                    {
                        return Ok(());
                    }
                    let insert = async |transaction: &mut PgConnection| {
                        check_writable(transaction, lease).await?;
                        locks.lock_for_write(transaction, &id).await?;
                        write::insert_fact(transaction, &id, about, &fact, now).await
                    };
                    session::run_transaction(connection, session::BEGIN_WRITE, insert).await
                })
            })
            .await
    }

    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError> {
        let id = id.clone();
        self.queue_single_read(async move |connection| read::read_facts(connection, &id).await)
            .await
    }

    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError> {
        let id = id.clone();
        let key = key.to_owned();
        self.queue_single_read(async move |connection| {
            read::read_state(connection, &id, &key).await
        })
        .await
    }

    async fn states(
        &self,
        id: &ConversationId,
        keys: &[&str],
    ) -> Result<BTreeMap<String, Value>, StoreError> {
        let id = id.clone();
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        self.queue_single_read(async move |connection| {
            read::read_states(connection, &id, &keys).await
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
        let value = encode_json("a state", &value)?;
        let id = id.clone();
        let lease = self.lease;
        self.writer
            .submit(move |PostgresWriter { session, locks, .. }| {
                session.run_with_timeout(locks.timeout(), async |connection| {
                    if let Some(guard) = PostgresWriter::guard(locks, &id, lease)
                        && guarded::set_state(connection, &guard, &key, &value).await?
                    {
                        return Ok(());
                    }
                    let set = async |transaction: &mut PgConnection| {
                        check_writable(transaction, lease).await?;
                        locks.lock_for_write(transaction, &id).await?;
                        write::set_state(transaction, &id, &key, &value).await
                    };
                    session::run_transaction(connection, session::BEGIN_WRITE, set).await
                })
            })
            .await
    }

    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        let namespace = self.stored_namespace(namespace);
        let key = key.to_owned();
        self.queue_single_read(async move |connection| {
            read::read_project_state(connection, &namespace, &key).await
        })
        .await
    }

    async fn set_project_state(
        &self,
        namespace: &str,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError> {
        let namespace = self.stored_namespace(namespace);
        let key = key.to_owned();
        let value = encode_json("a state", &value)?;
        let set = async move |connection: &mut PgConnection| {
            write::set_project_state(connection, &namespace, &key, &value).await
        };
        self.queue_unlocked_write(set).await
    }

    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError> {
        let namespace = self.stored_namespace(namespace);
        let key = key.to_owned();
        let before = before.cloned();
        let value = encode_json("a state", &value)?;
        let swap = async move |connection: &mut PgConnection| {
            write::swap_project_state(connection, &namespace, &key, before.as_ref(), &value).await
        };
        self.queue_unlocked_write(swap).await
    }

    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> PendingWrite<u64> {
        let id = id.clone();
        let now = self.clock.now();
        let lease = self.lease;
        self.writer.submit(
            move |PostgresWriter {
                      session,
                      last_requests,
                      logged,
                      locks,
                  }| {
                session.run_with_timeout(locks.timeout(), async |connection| {
                    let last = logged.remove(&id);
                    let guard = PostgresWriter::guard(locks, &id, lease);
                    let mut written = None;
                    if let (Some(last), Some(guard)) = (last, guard) {
                        written = requests::log_guarded_request(
                            connection,
                            last_requests,
                            last,
                            &guard,
                            &sent,
                            now,
                        )
                        .await?;
                    }
                    let written = if let Some(written) = written {
                        written
                    } else {
                        let log = async |transaction: &mut PgConnection| {
                            check_writable(transaction, lease).await?;
                            locks.lock_for_write(transaction, &id).await?;
                            requests::log_request(transaction, last_requests, &id, &sent, now).await
                        };
                        session::run_transaction(connection, session::BEGIN_WRITE, log).await?
                    };
                    if logged.len() >= MAX_LOGGED {
                        logged.clear();
                    }
                    logged.insert(id, written.place());
                    written.cache_segments(last_requests)
                })
            },
        )
    }

    async fn logged_requests(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestSummary>, StoreError> {
        self.wait_for_writes().await?;
        let id = id.clone();
        self.queue_read(async move |connection| requests::list_requests(connection, &id).await)
            .await
    }

    async fn count_requests(&self, id: &ConversationId) -> Result<u64, StoreError> {
        self.wait_for_writes().await?;
        let id = id.clone();
        self.queue_read(async move |connection| requests::count_requests(connection, &id).await)
            .await
    }

    async fn request_outlines(
        &self,
        id: &ConversationId,
    ) -> Result<Vec<RequestOutline>, StoreError> {
        self.wait_for_writes().await?;
        let id = id.clone();
        self.queue_read(async move |connection| requests::list_outlines(connection, &id).await)
            .await
    }

    async fn logged_request(
        &self,
        id: &ConversationId,
        number: u64,
    ) -> Result<Option<LoggedRequest>, StoreError> {
        self.wait_for_writes().await?;
        let id = id.clone();
        self.queue_read(async move |connection| {
            requests::read_request(connection, &id, number).await
        })
        .await
    }

    async fn current_conversation(
        &self,
        namespace: &str,
    ) -> Result<Option<ConversationId>, StoreError> {
        for place in
            names::scopes_to_search(self.name.as_ref(), ConversationScope::Namespace(namespace))
        {
            let namespace = place.namespace().unwrap_or_default().to_owned();
            let current = self
                .queue_single_read(async move |connection| {
                    read::find_current_conversation(connection, &namespace).await
                })
                .await?;
            if current.is_some() {
                return Ok(current);
            }
        }
        Ok(None)
    }

    async fn set_current_conversation(
        &self,
        namespace: &str,
        id: &ConversationId,
    ) -> Result<(), StoreError> {
        let namespace = self.stored_namespace(namespace);
        let id = id.clone();
        self.queue_unlocked_write(async move |connection| {
            write::set_current_conversation(connection, &namespace, &id).await
        })
        .await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError> {
        self.queue_read(async |connection| read::list_namespaces(connection).await)
            .await
    }

    async fn export(
        &self,
        id: &ConversationId,
    ) -> Result<Option<ConversationDocument>, StoreError> {
        let id = id.clone();
        self.queue_read(async move |connection| read::export_conversation(connection, &id).await)
            .await
    }

    fn statistics(&self) -> StoreStatistics {
        self.cache.add_statistics(self.counters.snapshot())
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.queue_read(async |connection| read::read_totals(connection).await)
            .await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.wait_for_writes().await?;
        self.writer.take_unseen_failure().map_or(Ok(()), Err)
    }
}
