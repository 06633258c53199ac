//! The store on embedded SQLite: one file, in WAL mode, synced at every commit.
//!
//! Two threads own one connection each. All writing goes through the first, in order. Reads have their own, so that a long
//! export never keeps an append waiting, nor a sync to disk a read. A read sees every write acknowledged before it began.

mod failure;
mod migrations;
mod open;
mod read;
mod requests;
mod rows;
mod worker;
mod write;

pub(crate) use self::failure::{Failure, Place};
pub(crate) use self::open::{create_file, use_wal};
pub(crate) use self::write::begin;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{Clock, ConversationId, Message};
use rusqlite::Connection;
use serde_json::Value;

use self::open::{Purpose, connect};
use self::requests::LastRequests;
use self::rows::MessageRow;
use self::worker::Worker;
use crate::config::StoreConfig;
use crate::conversation::{Conversation, Found, Listed, NewConversation, Scope, namespace_name};
use crate::document::ConversationDocument;
use crate::error::StoreError;
use crate::fact::Fact;
use crate::pending::Pending;
use crate::request_log::{LoggedRequest, RequestOutline, RequestSummary, SentRequest};
use crate::store::{Store, Swap};

/// What the writing thread owns.
struct Writer {
    connection: Connection,
    last_requests: LastRequests,
}

/// Conversations in one SQLite file. Dropping it waits for the writes already asked for.
pub struct SqliteStore {
    // Dropped in this order: the writer is the last to close the file and leaves it without a write-ahead log.
    reader: Worker<Connection>,
    writer: Worker<Writer>,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the database at `path`. A missing file is created with its folders, for their owner only; an older format is
    /// brought up to date. Blocks for as long as that takes.
    pub fn open(path: &Path, config: &StoreConfig, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let place = Arc::new(Place { path: path.to_path_buf(), lock_timeout: config.lock_timeout() });
        let writer = Writer { connection: connect(&place, Purpose::Write)?, last_requests: LastRequests::default() };
        let reader = connect(&place, Purpose::Read)?;
        Ok(Self {
            reader: Worker::start("haft-store-read", Arc::clone(&place), reader)?,
            writer: Worker::start("haft-store-write", place, writer)?,
            clock,
        })
    }
}

fn namespace_of(scope: Scope<'_>) -> Option<String> {
    match scope {
        Scope::Namespace(namespace) => Some(namespace_name(namespace).to_owned()),
        Scope::Everywhere => None,
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewConversation) -> Result<Conversation, StoreError> {
        if new.id.as_str().is_empty() || new.id.as_str().contains(char::is_control) {
            return Err(StoreError::InvalidId { id: new.id });
        }
        let now = self.clock.now();
        let metadata = rows::encode("the metadata of a conversation", &new.metadata)?;
        let messages = new.messages.iter().map(MessageRow::new).collect::<Result<Vec<_>, _>>()?;
        let conversation = Conversation {
            name: new.name.unwrap_or_else(|| format!("Conversation {}", new.id.short())),
            id: new.id,
            namespace: namespace_name(&new.namespace).to_owned(),
            description: new.description,
            metadata: new.metadata,
            created_at: now,
            updated_at: now,
            messages: 0,
        };
        let current = new.make_current;
        let write = move |writer: &mut Writer| {
            write::create(&mut writer.connection, conversation, &metadata, &messages, current)
        };
        self.writer.submit(write).await
    }

    async fn get(&self, id: &ConversationId) -> Result<Option<Conversation>, StoreError> {
        let id = id.clone();
        self.reader.submit(move |connection| read::get(connection, &id)).await
    }

    async fn find(&self, text: &str, scope: Scope<'_>) -> Result<Found, StoreError> {
        let (text, namespace) = (text.to_owned(), namespace_of(scope));
        self.reader.submit(move |connection| read::find(connection, &text, namespace.as_deref())).await
    }

    async fn list(&self, scope: Scope<'_>) -> Result<Vec<Listed>, StoreError> {
        let namespace = namespace_of(scope);
        self.reader.submit(move |connection| read::list(connection, namespace.as_deref())).await
    }

    async fn append(&self, id: &ConversationId, message: &Message) -> Result<(), StoreError> {
        let (id, message, now) = (id.clone(), MessageRow::new(message)?, self.clock.now());
        self.writer.submit(move |writer| write::append(&mut writer.connection, &id, &message, now)).await
    }

    async fn messages(&self, id: &ConversationId) -> Result<Vec<Message>, StoreError> {
        let id = id.clone();
        self.reader.submit(move |connection| read::messages(connection, &id)).await
    }

    async fn note(&self, id: &ConversationId, fact: Fact) -> Result<(), StoreError> {
        let (id, about, now) = (id.clone(), fact.message_id(), self.clock.now());
        let fact = rows::encode("a fact", &fact)?;
        self.writer.submit(move |writer| write::note(&mut writer.connection, &id, about, &fact, now)).await
    }

    async fn facts(&self, id: &ConversationId) -> Result<Vec<Fact>, StoreError> {
        let id = id.clone();
        self.reader.submit(move |connection| read::facts(connection, &id)).await
    }

    async fn state(&self, id: &ConversationId, key: &str) -> Result<Option<Value>, StoreError> {
        let (id, key) = (id.clone(), key.to_owned());
        self.reader.submit(move |connection| read::state(connection, &id, &key)).await
    }

    async fn set_state(&self, id: &ConversationId, key: &str, value: Value) -> Result<(), StoreError> {
        let (id, key, value) = (id.clone(), key.to_owned(), rows::encode("a state", &value)?);
        self.writer.submit(move |writer| write::set_state(&mut writer.connection, &id, &key, &value)).await
    }

    async fn project_state(&self, namespace: &str, key: &str) -> Result<Option<Value>, StoreError> {
        let (namespace, key) = (namespace_name(namespace).to_owned(), key.to_owned());
        self.reader.submit(move |connection| read::project_state(connection, &namespace, &key)).await
    }

    async fn set_project_state(&self, namespace: &str, key: &str, value: Value) -> Result<(), StoreError> {
        let (namespace, key) = (namespace_name(namespace).to_owned(), key.to_owned());
        let value = rows::encode("a state", &value)?;
        self.writer
            .submit(move |writer| write::set_project_state(&mut writer.connection, &namespace, &key, &value))
            .await
    }

    async fn swap_project_state(
        &self,
        namespace: &str,
        key: &str,
        before: Option<&Value>,
        value: Value,
    ) -> Result<Swap, StoreError> {
        let (namespace, key, before) = (namespace_name(namespace).to_owned(), key.to_owned(), before.cloned());
        let value = rows::encode("a state", &value)?;
        let write = move |writer: &mut Writer| {
            write::swap_project_state(&mut writer.connection, (&namespace, &key), before.as_ref(), &value)
        };
        self.writer.submit(write).await
    }

    fn log_request(&self, id: &ConversationId, sent: SentRequest) -> Pending<u64> {
        let (id, now) = (id.clone(), self.clock.now());
        self.writer.submit(move |Writer { connection, last_requests }| {
            requests::log(connection, last_requests, &id, &sent, now)
        })
    }

    async fn requests(&self, id: &ConversationId) -> Result<Vec<RequestSummary>, StoreError> {
        let id = id.clone();
        // Requests are logged without waiting; those queued must be seen here.
        self.writer.submit(|_| Ok(())).await?;
        self.reader.submit(move |connection| requests::list(connection, &id)).await
    }

    async fn request_outlines(&self, id: &ConversationId) -> Result<Vec<RequestOutline>, StoreError> {
        let id = id.clone();
        self.writer.submit(|_| Ok(())).await?;
        self.reader.submit(move |connection| requests::outlines(connection, &id)).await
    }

    async fn request(&self, id: &ConversationId, number: u64) -> Result<Option<LoggedRequest>, StoreError> {
        let id = id.clone();
        self.writer.submit(|_| Ok(())).await?;
        self.reader.submit(move |connection| requests::get(connection, &id, number)).await
    }

    async fn current(&self, namespace: &str) -> Result<Option<ConversationId>, StoreError> {
        let namespace = namespace.to_owned();
        self.reader.submit(move |connection| read::current(connection, &namespace)).await
    }

    async fn set_current(&self, namespace: &str, id: &ConversationId) -> Result<(), StoreError> {
        let (namespace, id) = (namespace.to_owned(), id.clone());
        self.writer.submit(move |writer| write::set_current(&mut writer.connection, &namespace, &id)).await
    }

    async fn export(&self, id: &ConversationId) -> Result<Option<ConversationDocument>, StoreError> {
        let id = id.clone();
        self.reader.submit(move |connection| read::export(connection, &id)).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.writer.submit(|_| Ok(())).await?;
        self.writer.take_unseen().map_or(Ok(()), Err)
    }
}
