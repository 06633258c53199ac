//! Write locks on conversations between hosts. They are advisory locks of the server, which belong
//! to the session of a connection and end with it.
//!
//! A connection can be lost without its store noticing. Each lock therefore has a term number, and
//! a write under a lock succeeds only while no later term has begun.
//!
//! The statements name the types of all parameters and constants: otherwise the server could pick a
//! function or operator that another user defined and that fits better than the built-in one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use haft_store::backend::{WorkerThread, encode_json};
use haft_store::{Holder, Locked, StoreError};
use haft_types::{ConversationId, Timestamp};
use sqlx::PgConnection;

use crate::failure::PostgresFailure;
use crate::queue::TaskLease;
use crate::session::PostgresSession;

/// The interval between attempts to take a lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The lock timeout for callers that do not want to wait until a lock becomes free.
pub(crate) const TRY_LOCK_TIMEOUT: Duration = Duration::from_millis(250);

/// Takes and tracks the write locks of one store on conversations.
pub(crate) struct PostgresLocks {
    keeper: WorkerThread<PostgresSession, PostgresFailure>,
    timeout: Duration,
    /// The lease of the task run that uses the store.
    lease: Option<TaskLease>,
    /// The conversations that this store has locked, with the term of each lock.
    held: Mutex<HashMap<ConversationId, i64>>,
}

/// A write lock on a conversation; dropping this guard releases the lock.
pub(crate) struct TermGuard {
    // Weak, because dropping the store releases all locks anyway.
    locks: Weak<PostgresLocks>,
    conversation: ConversationId,
    term: i64,
    /// True if an earlier run of the task still has the server's lock.
    is_fenced: bool,
}

impl Drop for TermGuard {
    fn drop(&mut self) {
        let Some(locks) = self.locks.upgrade() else {
            return;
        };
        // The lock may have been lost and taken again.
        if locks.held_term(&self.conversation) != Some(self.term) {
            return;
        }
        locks.lock_held_terms().remove(&self.conversation);
        if self.is_fenced {
            return;
        }
        let conversation = self.conversation.clone();
        // Not awaited. If the server cannot be reached, it has released the lock itself.
        drop(locks.keeper.submit(move |session| {
            session.run(async |connection| {
                release_lock(connection, &conversation).await?;
                Ok(())
            })
        }));
    }
}

impl PostgresLocks {
    pub(crate) fn new(
        keeper: WorkerThread<PostgresSession, PostgresFailure>,
        timeout: Duration,
        lease: Option<TaskLease>,
    ) -> Self {
        Self {
            keeper,
            timeout,
            lease,
            held: Mutex::default(),
        }
    }

    /// Returns the maximum time that callers wait for a lock.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn lock_held_terms(&self) -> MutexGuard<'_, HashMap<ConversationId, i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the term of the lock that this store took on a conversation, or `None` if it took
    /// none. The server may have released the lock in the meantime.
    pub(crate) fn held_term(&self, conversation: &ConversationId) -> Option<i64> {
        self.lock_held_terms().get(conversation).copied()
    }

    /// Locks a conversation for one write, until the end of its transaction.
    pub(crate) async fn lock_for_write(
        &self,
        connection: &mut PgConnection,
        conversation: &ConversationId,
    ) -> Result<(), PostgresFailure> {
        let started = Instant::now();
        loop {
            if let Some(term) = self.held_term(conversation) {
                // A shared row lock, so that no later term begins before this write is done.
                let sql = "SELECT term FROM writers WHERE conversation = $1 FOR SHARE";
                let newest = sqlx::query_scalar(sql).bind(conversation.as_str());
                if newest.fetch_optional(&mut *connection).await? == Some(term) {
                    return Ok(());
                }
                self.lock_held_terms().remove(conversation);
            }
            // Advisory locks apply to the whole database, which may contain stores in other
            // schemas.
            let sql = "SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema()::text || ' conversation '::text || $1::text, 0::bigint))";
            if sqlx::query_scalar(sql)
                .bind(conversation.as_str())
                .fetch_one(&mut *connection)
                .await?
            {
                return Ok(());
            }
            if started.elapsed() >= self.timeout {
                return Err(self
                    .timeout_error(conversation, read_holder(connection, conversation).await?)
                    .into());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits for the write lock on a conversation and returns a guard that keeps it.
    pub(crate) async fn acquire_term(
        self: &Arc<Self>,
        conversation: &ConversationId,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<TermGuard, StoreError> {
        let started = Instant::now();
        let lease = self.lease;
        loop {
            let held_here = self.held_term(conversation).is_some();
            let wanted = conversation.clone();
            let try_take = move |session: &mut PostgresSession| {
                session.run(async |connection| {
                    // The server lets a session take its own lock twice, which would give two
                    // callers the lock.
                    if !held_here && let Some(term) = take_lock(connection, &wanted, now).await? {
                        return Ok(Ok((term, false)));
                    }
                    if !held_here
                        && let Some(lease) = lease
                        && is_held_by_earlier_run(connection, &wanted, lease).await?
                    {
                        return Ok(Ok((begin_term(connection, &wanted, now).await?, true)));
                    }
                    Ok(Err(read_holder(connection, &wanted).await?))
                })
            };
            let holder = match self.keeper.submit(try_take).await? {
                Ok((term, is_fenced)) => {
                    self.lock_held_terms().insert(conversation.clone(), term);
                    return Ok(TermGuard {
                        locks: Arc::downgrade(self),
                        conversation: conversation.clone(),
                        term,
                        is_fenced,
                    });
                }
                Err(holder) => holder,
            };
            if started.elapsed() >= timeout {
                let what = Locked::Conversation(conversation.clone());
                return Err(StoreError::LockTimeout {
                    what,
                    holder,
                    waited: timeout,
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn timeout_error(&self, conversation: &ConversationId, holder: Option<Holder>) -> StoreError {
        let what = Locked::Conversation(conversation.clone());
        StoreError::LockTimeout {
            what,
            holder,
            waited: self.timeout,
        }
    }
}

/// Takes the lock on a conversation for this database session, records this process as its holder,
/// and returns the new term. Returns `None` if another session has the lock.
async fn take_lock(
    connection: &mut PgConnection,
    conversation: &ConversationId,
    now: Timestamp,
) -> Result<Option<i64>, PostgresFailure> {
    let sql = "SELECT pg_try_advisory_lock(hashtextextended(current_schema()::text || ' conversation '::text || $1::text, 0::bigint))";
    if !sqlx::query_scalar(sql)
        .bind(conversation.as_str())
        .fetch_one(&mut *connection)
        .await?
    {
        return Ok(None);
    }
    match begin_term(connection, conversation, now).await {
        Ok(term) => Ok(Some(term)),
        Err(error) => {
            // The session would keep a lock without a term forever. If unlocking fails too, the
            // session is lost and the lock with it.
            let _ = release_lock(connection, conversation).await;
            Err(error)
        }
    }
}

/// Records this process as the holder of a conversation's lock, and returns the new term. Writes of
/// earlier terms fail from then on.
async fn begin_term(
    connection: &mut PgConnection,
    conversation: &ConversationId,
    now: Timestamp,
) -> Result<i64, PostgresFailure> {
    let holder = encode_json("who writes", &Holder::for_this_process(now))?;
    let sql = "INSERT INTO writers VALUES ($1, $2) ON CONFLICT (conversation)
               DO UPDATE SET holder = excluded.holder, term = writers.term + 1 RETURNING term";
    Ok(sqlx::query_scalar(sql)
        .bind(conversation.as_str())
        .bind(holder)
        .fetch_one(connection)
        .await?)
}

/// True if the lock on a conversation belongs to a connection of an earlier run of the task. Such a
/// run may hang, and its connections cannot be ended if they belong to another role. Its writes are
/// excluded by the lease of the task, so its lock need not be waited for.
async fn is_held_by_earlier_run(
    connection: &mut PgConnection,
    conversation: &ConversationId,
    lease: TaskLease,
) -> Result<bool, PostgresFailure> {
    let sql = include_str!("statements/earlier_run.sql");
    Ok(sqlx::query_scalar(sql)
        .bind(conversation.as_str())
        .bind(lease.task.to_string())
        .bind(lease.epoch.to_string())
        .fetch_one(connection)
        .await?)
}

async fn release_lock(
    connection: &mut PgConnection,
    conversation: &ConversationId,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT pg_advisory_unlock(hashtextextended(current_schema()::text || ' conversation '::text || $1::text, 0::bigint))";
    sqlx::query(sql)
        .bind(conversation.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the process that last took the lock on a conversation, or `None` if no process ever did.
async fn read_holder(
    connection: &mut PgConnection,
    conversation: &ConversationId,
) -> Result<Option<Holder>, PostgresFailure> {
    let sql = "SELECT holder FROM writers WHERE conversation = $1";
    let holder: Option<String> = sqlx::query_scalar(sql)
        .bind(conversation.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(holder.and_then(|holder| serde_json::from_str(&holder).ok()))
}
