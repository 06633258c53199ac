//! A stored document with a copy in memory.
//!
//! Invariant: every edit starts from the stored version, not from the copy, so that it does not
//! undo an edit made by another process. A document that cannot be parsed is never overwritten by
//! an edit.

use std::sync::{Arc, Mutex, PoisonError};

use haft_store::{Store, StoreError, Swap};
use haft_text::Masker;
use haft_tool::PortError;
use haft_types::ConversationId;
use serde_json::Value;

use crate::session::secrets;
use crate::stored_state::{StateDocument, StoredState};

/// The owner of a document.
pub(super) enum DocumentOwner {
    /// A single conversation.
    Conversation(ConversationId),
    /// All conversations of a namespace.
    Project(String),
}

/// A document of a conversation or a project.
pub(super) struct KeptDocument<T> {
    store: Arc<dyn Store>,
    owner: DocumentOwner,
    copy: Mutex<T>,
    /// Held while the document is read, changed and written.
    editing: tokio::sync::Mutex<()>,
}

impl<T: StateDocument + Clone + Default> KeptDocument<T> {
    /// Loads the document. If it cannot be parsed, the copy in memory is empty, and [`Self::read`]
    /// and [`Self::edit`] return an error.
    pub(super) async fn open(
        store: Arc<dyn Store>,
        owner: DocumentOwner,
    ) -> Result<Self, StoreError> {
        let document = Self::empty(store, owner);
        let stored = document.stored().await?;
        if let Err(error) = document.take_over(stored) {
            tracing::warn!(key = T::KEY, %error, "a stored document is ignored");
        }
        Ok(document)
    }

    /// Like [`Self::open`], for a document of a conversation whose state was already read.
    pub(super) fn restored(
        store: Arc<dyn Store>,
        id: ConversationId,
        state: &mut StoredState,
    ) -> Self {
        let document = Self::empty(store, DocumentOwner::Conversation(id));
        if let Err(error) = document.take_over(state.take_json::<T>()) {
            state.note_unreadable(T::KEY, &error);
        }
        document
    }

    fn empty(store: Arc<dyn Store>, owner: DocumentOwner) -> Self {
        Self {
            store,
            owner,
            copy: Mutex::default(),
            editing: tokio::sync::Mutex::default(),
        }
    }

    fn take_over(&self, stored: Option<Value>) -> Result<(), PortError> {
        self.keep(Self::parse(stored)?);
        Ok(())
    }

    /// Returns the document as last read or written by this process.
    pub(super) fn copy(&self) -> T {
        self.copy
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Reads the stored version of the document.
    pub(super) async fn read(&self) -> Result<T, PortError> {
        let stored = self.stored().await.map_err(|error| failed(&error))?;
        let value = Self::parse(stored)?;
        self.keep(value.clone());
        Ok(value)
    }

    /// Replaces the document without reading the stored version.
    pub(super) async fn replace(&self, value: T) -> Result<(), PortError> {
        let _alone = self.editing.lock().await;
        let json = Self::encode(&value)?;
        match &self.owner {
            DocumentOwner::Conversation(id) => self.store.set_state(id, T::KEY, json).await,
            DocumentOwner::Project(namespace) => {
                self.store.set_project_state(namespace, T::KEY, json).await
            }
        }
        .map_err(|error| failed(&error))?;
        self.keep(value);
        Ok(())
    }

    /// Changes the document. `change` is called again if another process wrote a project's document
    /// in between.
    pub(super) async fn edit<R>(
        &self,
        change: impl Fn(&mut T) -> Result<R, PortError>,
    ) -> Result<R, PortError> {
        let _alone = self.editing.lock().await;
        loop {
            let before = self.stored().await.map_err(|error| failed(&error))?;
            let mut value = Self::parse(before.clone())?;
            let done = change(&mut value)?;
            let json = Self::encode(&value)?;
            let swap = match &self.owner {
                DocumentOwner::Conversation(id) => self
                    .store
                    .set_state(id, T::KEY, json)
                    .await
                    .map(|()| Swap::Done),
                DocumentOwner::Project(namespace) => {
                    self.store
                        .swap_project_state(namespace, T::KEY, before.as_ref(), json)
                        .await
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
            DocumentOwner::Conversation(id) => self.store.state(id, T::KEY).await,
            DocumentOwner::Project(namespace) => self.store.project_state(namespace, T::KEY).await,
        }
    }

    fn parse(stored: Option<Value>) -> Result<T, PortError> {
        let unreadable = |error| {
            PortError::Store(format!(
                "the stored `{}` cannot be understood: {error}",
                T::KEY
            ))
        };
        stored.map_or_else(
            || Ok(T::default()),
            |value| serde_json::from_value(value).map_err(unreadable),
        )
    }

    fn encode(value: &T) -> Result<Value, PortError> {
        let mut json = serde_json::to_value(value)
            .map_err(|error| PortError::Store(format!("`{}` has no JSON form: {error}", T::KEY)))?;
        secrets::mask_value(&Masker::default(), &mut json);
        Ok(json)
    }

    fn keep(&self, value: T) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// Converts an error of the store to one that tools return.
pub(super) fn failed(error: &StoreError) -> PortError {
    PortError::Store(error.to_string())
}
