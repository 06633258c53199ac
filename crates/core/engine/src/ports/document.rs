//! A document in the store, with a copy in memory.
//!
//! Invariant: every edit starts from what is stored, not from the copy, so that an edit made by another process is not undone
//! by one made here. A document that cannot be read is never overwritten by an edit.

use std::sync::{Arc, Mutex, PoisonError};

use haft_store::{Store, StoreError, Swap};
use haft_text::Masker;
use haft_tool::PortError;
use haft_types::ConversationId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::secrets;

/// To whom a document belongs.
pub(super) enum Owner {
    /// One conversation.
    Conversation(ConversationId),
    /// All conversations of a namespace.
    Project(String),
}

/// A document of a conversation or a project.
pub(super) struct Document<T> {
    store: Arc<dyn Store>,
    owner: Owner,
    key: &'static str,
    copy: Mutex<T>,
    /// Held while a document is read, changed and written.
    editing: tokio::sync::Mutex<()>,
}

impl<T: Clone + Default + Serialize + DeserializeOwned> Document<T> {
    /// Reads the document. One that cannot be understood is empty here; whoever reads or edits it is told.
    pub(super) async fn open(store: Arc<dyn Store>, owner: Owner, key: &'static str) -> Result<Self, StoreError> {
        let document = Self { store, owner, key, copy: Mutex::default(), editing: tokio::sync::Mutex::default() };
        match document.parse(document.stored().await?) {
            Ok(value) => document.keep(value),
            Err(error) => tracing::warn!(key, %error, "a stored document is ignored"),
        }
        Ok(document)
    }

    /// The document as last read or written here.
    pub(super) fn copy(&self) -> T {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The document as it is stored now.
    pub(super) async fn read(&self) -> Result<T, PortError> {
        let stored = self.stored().await.map_err(|error| failed(&error))?;
        let value = self.parse(stored)?;
        self.keep(value.clone());
        Ok(value)
    }

    /// Replaces the document, whatever it was.
    pub(super) async fn replace(&self, value: T) -> Result<(), PortError> {
        let _alone = self.editing.lock().await;
        let json = self.encode(&value)?;
        match &self.owner {
            Owner::Conversation(id) => self.store.set_state(id, self.key, json).await,
            Owner::Project(namespace) => self.store.set_project_state(namespace, self.key, json).await,
        }
        .map_err(|error| failed(&error))?;
        self.keep(value);
        Ok(())
    }

    /// Changes the document. `change` is called again when another process was faster.
    pub(super) async fn edit<R>(&self, change: impl Fn(&mut T) -> Result<R, PortError>) -> Result<R, PortError> {
        let _alone = self.editing.lock().await;
        loop {
            let before = self.stored().await.map_err(|error| failed(&error))?;
            let mut value = self.parse(before.clone())?;
            let done = change(&mut value)?;
            let json = self.encode(&value)?;
            let swap = match &self.owner {
                Owner::Conversation(id) => self.store.set_state(id, self.key, json).await.map(|()| Swap::Done),
                Owner::Project(namespace) => {
                    self.store.swap_project_state(namespace, self.key, before.as_ref(), json).await
                }
            };
            match swap.map_err(|error| failed(&error))? {
                Swap::Done => {
                    self.keep(value);
                    return Ok(done);
                }
                Swap::Overtaken => {}
            }
        }
    }

    async fn stored(&self) -> Result<Option<Value>, StoreError> {
        match &self.owner {
            Owner::Conversation(id) => self.store.state(id, self.key).await,
            Owner::Project(namespace) => self.store.project_state(namespace, self.key).await,
        }
    }

    fn parse(&self, stored: Option<Value>) -> Result<T, PortError> {
        let unreadable = |error| PortError::Store(format!("the stored `{}` cannot be understood: {error}", self.key));
        stored.map_or_else(|| Ok(T::default()), |value| serde_json::from_value(value).map_err(unreadable))
    }

    fn encode(&self, value: &T) -> Result<Value, PortError> {
        let mut json = serde_json::to_value(value)
            .map_err(|error| PortError::Store(format!("`{}` has no JSON form: {error}", self.key)))?;
        secrets::mask_value(&Masker::default(), &mut json);
        Ok(json)
    }

    fn keep(&self, value: T) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// A failure of the store as a tool is told of it.
pub(super) fn failed(error: &StoreError) -> PortError {
    PortError::Store(error.to_string())
}
