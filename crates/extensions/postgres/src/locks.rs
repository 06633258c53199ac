//! Who may write to a conversation, between hosts: locks of the server, taken by the session of a
//! connection and gone with it.
//!
//! A connection can be lost without its store noticing. Each taking therefore has a term, and a
//! write in the name of one is done only while no later one has begun.
//!
//! Every type in these statements is written down: where a function or an operator of another user
//! fits better than the server's own, the server would call that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use haft_store::backend::{WorkerThread, encode};
use haft_store::{Holder, Locked, StoreError};
use haft_types::{ConversationId, Timestamp};
use sqlx::PgConnection;

use crate::failure::PostgresFailure;
use crate::session::PostgresSession;

/// How often somebody who waits looks again.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long somebody waits who hardly waits.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(250);

/// The locks of one store.
pub(crate) struct PostgresLocks {
    keeper: WorkerThread<PostgresSession, PostgresFailure>,
    timeout: Duration,
    /// The conversations this store has the right to write to until it is given back, with the
    /// term of each.
    held: Mutex<HashMap<ConversationId, i64>>,
}

/// The right of somebody who keeps it for longer.
pub(crate) struct KeptTerm {
    // A store that goes gives its rights back whether or not they are still kept.
    locks: Weak<PostgresLocks>,
    conversation: ConversationId,
    term: i64,
}

impl Drop for KeptTerm {
    fn drop(&mut self) {
        let Some(locks) = self.locks.upgrade() else {
            return;
        };
        // It may have been lost and taken again.
        if locks.term(&self.conversation) != Some(self.term) {
            return;
        }
        locks.held().remove(&self.conversation);
        let conversation = self.conversation.clone();
        // Nobody waits for it. Should the server be gone, it has given the right back itself.
        drop(locks.keeper.submit(move |session| {
            session.run(async |connection| {
                unlock(connection, &conversation).await?;
                Ok(())
            })
        }));
    }
}

impl PostgresLocks {
    pub(crate) fn new(
        keeper: WorkerThread<PostgresSession, PostgresFailure>,
        timeout: Duration,
    ) -> Self {
        Self {
            keeper,
            timeout,
            held: Mutex::default(),
        }
    }

    /// How long somebody waits for a lock.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn held(&self) -> MutexGuard<'_, HashMap<ConversationId, i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The term of the right this store has, as far as it knows.
    fn term(&self, conversation: &ConversationId) -> Option<i64> {
        self.held().get(conversation).copied()
    }

    /// The right for one write, until the end of its transaction.
    pub(crate) async fn for_one_write(
        &self,
        connection: &mut PgConnection,
        conversation: &ConversationId,
    ) -> Result<(), PostgresFailure> {
        let started = Instant::now();
        loop {
            if let Some(term) = self.term(conversation) {
                // Shared, so that nobody begins another term before this write is done.
                let sql = "SELECT term FROM writers WHERE conversation = $1 FOR SHARE";
                let newest = sqlx::query_scalar(sql).bind(conversation.as_str());
                if newest.fetch_optional(&mut *connection).await? == Some(term) {
                    return Ok(());
                }
                self.held().remove(conversation);
            }
            // Locks are the whole database's, and there may be another store in another schema.
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
                    .timed_out(conversation, holder(connection, conversation).await?)
                    .into());
            }
            tokio::time::sleep(PATIENCE).await;
        }
    }

    /// The right until it is dropped, as soon as nobody else has it.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        conversation: &ConversationId,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<KeptTerm, StoreError> {
        let started = Instant::now();
        loop {
            let held_here = self.term(conversation).is_some();
            let wanted = conversation.clone();
            let try_take = move |session: &mut PostgresSession| {
                session.run(async |connection| {
                    // A session may take its own lock again, which would give two the right.
                    if !held_here && let Some(term) = take(connection, &wanted, now).await? {
                        return Ok(Ok(term));
                    }
                    Ok(Err(holder(connection, &wanted).await?))
                })
            };
            let holder = match self.keeper.submit(try_take).await? {
                Ok(term) => {
                    self.held().insert(conversation.clone(), term);
                    return Ok(KeptTerm {
                        locks: Arc::downgrade(self),
                        conversation: conversation.clone(),
                        term,
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
            tokio::time::sleep(PATIENCE).await;
        }
    }

    fn timed_out(&self, conversation: &ConversationId, holder: Option<Holder>) -> StoreError {
        let what = Locked::Conversation(conversation.clone());
        StoreError::LockTimeout {
            what,
            holder,
            waited: self.timeout,
        }
    }
}

/// Takes the lock for the session, writes down who has it, and gives its term; none if somebody has
/// it.
async fn take(
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
    let holder = encode("who writes", &Holder::this_process(now))?;
    let sql = "INSERT INTO writers VALUES ($1, $2) ON CONFLICT (conversation)
               DO UPDATE SET holder = excluded.holder, term = writers.term + 1 RETURNING term";
    match sqlx::query_scalar(sql)
        .bind(conversation.as_str())
        .bind(holder)
        .fetch_one(&mut *connection)
        .await
    {
        Ok(term) => Ok(Some(term)),
        Err(error) => {
            // A lock without a term would stay with this session for good. Should this fail too,
            // the session is lost.
            let _ = unlock(connection, conversation).await;
            Err(error.into())
        }
    }
}

async fn unlock(
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

/// Who took the lock last.
async fn holder(
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
