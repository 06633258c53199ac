//! A document in the store, with a copy in memory.
//!
//! Invariant: every edit starts from the stored version, not from the copy, so that no edit undoes
//! a change made by another process. An edit never overwrites a document that cannot be parsed.

use std::sync::{Arc, Mutex, PoisonError};

use haft_store::{Store, StoreError, Swap};
use haft_text::Masker;
use haft_tool::PortError;
use haft_types::ConversationId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The owner of a stored document: one conversation, or all conversations of a project.
pub enum DocumentOwner {
    /// A single conversation owns the document.
    Conversation(ConversationId),
    /// The document belongs to all conversations of a namespace.
    Project(String),
}

/// A document that is stored for a conversation or a project, with a copy in memory.
pub struct KeptDocument<T> {
    store: Arc<dyn Store>,
    owner: DocumentOwner,
    /// The key under which the store keeps the document.
    key: &'static str,
    copy: Mutex<T>,
    /// Locked while the document is read, changed and written.
    editing: tokio::sync::Mutex<()>,
}

impl<T: Serialize + DeserializeOwned + Clone + Default> KeptDocument<T> {
    /// Opens the document. If the stored value cannot be parsed, the copy in memory is empty, and
    /// later reads and edits of the document fail.
    pub async fn open(
        store: Arc<dyn Store>,
        owner: DocumentOwner,
        key: &'static str,
    ) -> Result<Self, StoreError> {
        let document = Self::empty(store, owner, key);
        let stored = document.load_stored().await?;
        if let Err(error) = document.parse_and_keep(stored) {
            tracing::warn!(key, %error, "a stored document is ignored");
        }
        Ok(document)
    }

    /// Like [`Self::open`], but for a conversation's document whose stored value was already read.
    /// Also returns the error if the value cannot be parsed.
    pub fn from_stored(
        store: Arc<dyn Store>,
        id: ConversationId,
        key: &'static str,
        stored: Option<Value>,
    ) -> (Self, Option<PortError>) {
        let document = Self::empty(store, DocumentOwner::Conversation(id), key);
        let error = document.parse_and_keep(stored).err();
        (document, error)
    }

    fn empty(store: Arc<dyn Store>, owner: DocumentOwner, key: &'static str) -> Self {
        Self {
            store,
            owner,
            key,
            copy: Mutex::default(),
            editing: tokio::sync::Mutex::default(),
        }
    }

    fn parse_and_keep(&self, stored: Option<Value>) -> Result<(), PortError> {
        self.keep(self.parse(stored)?);
        Ok(())
    }

    /// Returns a clone of the copy in memory, which is the document as it was last read or written
    /// through this value.
    pub fn copy(&self) -> T {
        self.copy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the document from the store, and updates the copy in memory.
    pub async fn read(&self) -> Result<T, PortError> {
        let stored = self
            .load_stored()
            .await
            .map_err(|error| to_port_error(&error))?;
        let value = self.parse(stored)?;
        self.keep(value.clone());
        Ok(value)
    }

    /// Replaces the document, even if the stored document cannot be parsed.
    pub async fn replace(&self, value: T) -> Result<(), PortError> {
        let _alone = self.editing.lock().await;
        let json = self.encode(&value)?;
        match &self.owner {
            DocumentOwner::Conversation(id) => self.store.set_state(id, self.key, json).await,
            DocumentOwner::Project(namespace) => {
                self.store
                    .set_project_state(namespace, self.key, json)
                    .await
            }
        }
        .map_err(|error| to_port_error(&error))?;
        self.keep(value);
        Ok(())
    }

    /// Changes the document. Calls `change` again if another process has changed the document in
    /// the meantime.
    pub async fn edit<R>(
        &self,
        change: impl Fn(&mut T) -> Result<R, PortError>,
    ) -> Result<R, PortError> {
        let _alone = self.editing.lock().await;
        loop {
            let before = self
                .load_stored()
                .await
                .map_err(|error| to_port_error(&error))?;
            let mut value = self.parse(before.clone())?;
            let done = change(&mut value)?;
            let json = self.encode(&value)?;
            let swap = match &self.owner {
                DocumentOwner::Conversation(id) => self
                    .store
                    .set_state(id, self.key, json)
                    .await
                    .map(|()| Swap::Done),
                DocumentOwner::Project(namespace) => {
                    self.store
                        .swap_project_state(namespace, self.key, before.as_ref(), json)
                        .await
                }
            };
            match swap.map_err(|error| to_port_error(&error))? {
                Swap::Done => {
                    self.keep(value);
                    return Ok(done);
                }
                Swap::Overtaken => {}
            }
        }
    }

    async fn load_stored(&self) -> Result<Option<Value>, StoreError> {
        match &self.owner {
            DocumentOwner::Conversation(id) => self.store.state(id, self.key).await,
            DocumentOwner::Project(namespace) => {
                self.store.project_state(namespace, self.key).await
            }
        }
    }

    fn parse(&self, stored: Option<Value>) -> Result<T, PortError> {
        let unreadable = |error| {
            PortError::Store(format!(
                "the stored `{}` cannot be understood: {error}",
                self.key
            ))
        };
        stored.map_or_else(
            || Ok(T::default()),
            |value| serde_json::from_value(value).map_err(unreadable),
        )
    }

    fn encode(&self, value: &T) -> Result<Value, PortError> {
        let mut json = serde_json::to_value(value).map_err(|error| {
            PortError::Store(format!("`{}` has no JSON form: {error}", self.key))
        })?;
        Masker::default().mask_json(&mut json);
        Ok(json)
    }

    fn keep(&self, value: T) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// Converts an error of the store to the error type that tools report.
pub(super) fn to_port_error(error: &StoreError) -> PortError {
    PortError::Store(error.to_string())
}
