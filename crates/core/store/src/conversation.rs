//! A conversation without its messages: what is given to create one, and what is read back.

use haft_types::{ConversationId, Message, MessageId, Metadata, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::document::ConversationDocument;
use crate::error::StoreError;

/// The name of the unnamed namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The name a namespace is stored under: the unnamed one is `default`.
pub fn namespace_name(namespace: &str) -> &str {
    if namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        namespace
    }
}

/// A conversation to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewConversation {
    /// Its id, given by the user or freshly made by the caller.
    pub id: ConversationId,
    /// Its name; `Conversation ` and the first eight characters of its id when absent.
    pub name: Option<String>,
    /// The namespace it belongs to.
    pub namespace: String,
    /// What it is about.
    pub description: String,
    /// Free metadata.
    pub metadata: Metadata,
    /// The messages it begins with.
    pub messages: Vec<Message>,
    /// Whether it becomes the current one of its namespace, in the same moment.
    pub make_current: bool,
    /// When it was created and last appended to, if that was elsewhere; now when absent.
    pub times: Option<Times>,
}

/// When a conversation was created and last appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Its creation.
    pub created_at: Timestamp,
    /// Its newest message.
    pub updated_at: Timestamp,
}

impl NewConversation {
    /// An empty conversation with the default name, in this namespace.
    pub fn new(id: ConversationId, namespace: impl Into<String>) -> Self {
        Self {
            id,
            name: None,
            namespace: namespace.into(),
            description: String::new(),
            metadata: Metadata::new(),
            messages: Vec::new(),
            make_current: false,
            times: None,
        }
    }

    /// What a document says, in this namespace.
    pub fn from_document(document: ConversationDocument, namespace: impl Into<String>) -> Self {
        Self {
            name: Some(document.name),
            description: document.description,
            metadata: document.metadata,
            messages: document.messages,
            times: Some(Times {
                created_at: document.created_at,
                updated_at: document.updated_at,
            }),
            ..Self::new(document.id, namespace)
        }
    }

    /// The conversation it becomes, still without its messages: what a store inserts.
    pub fn planned(&self, now: Timestamp) -> Result<Conversation, StoreError> {
        check_id(&self.id)?;
        let Times {
            created_at,
            updated_at,
        } = self.times.unwrap_or(Times {
            created_at: now,
            updated_at: now,
        });
        Ok(Conversation {
            name: self
                .name
                .clone()
                .unwrap_or_else(|| format!("Conversation {}", self.id.short())),
            id: self.id.clone(),
            namespace: namespace_name(&self.namespace).to_owned(),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            created_at,
            updated_at,
            messages: 0,
            revisions: 0,
        })
    }

    /// The same with this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// A fork to be made: a conversation that begins as another one did and goes its own way from
/// there.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFork {
    /// Its id, given by the user or freshly made by the caller.
    pub id: ConversationId,
    /// The last message both have; all of them when absent.
    pub at: Option<MessageId>,
    /// Its name; the other one's and ` (fork)` when absent.
    pub name: Option<String>,
    /// Whether it becomes the current one of its namespace, in the same moment.
    pub make_current: bool,
}

impl NewFork {
    /// A fork after the newest message, with the default name.
    pub fn new(id: ConversationId) -> Self {
        Self {
            id,
            at: None,
            name: None,
            make_current: false,
        }
    }
}

impl NewFork {
    /// Refuses an id or a name that nobody could type or read.
    pub fn check(&self) -> Result<(), StoreError> {
        check_id(&self.id)?;
        self.name.as_deref().map_or(Ok(()), check_name)
    }

    /// The conversation it becomes: the beginning of `from`, so many messages long.
    pub fn planned(self, from: Conversation, shared: u64, now: Timestamp) -> Conversation {
        let mut metadata = from.metadata;
        metadata.insert(
            FORKED_FROM.into(),
            json!({ "conversation": from.id, "messages": shared }),
        );
        Conversation {
            id: self.id,
            name: self.name.unwrap_or_else(|| format!("{} (fork)", from.name)),
            namespace: from.namespace,
            description: from.description,
            metadata,
            created_at: now,
            updated_at: now,
            messages: shared,
            revisions: 0,
        }
    }
}

/// Under which key of its metadata a fork says where it comes from.
const FORKED_FROM: &str = "forked_from";

fn check_id(id: &ConversationId) -> Result<(), StoreError> {
    if id.as_str().is_empty() || id.as_str().contains(char::is_control) {
        return Err(StoreError::InvalidId { id: id.clone() });
    }
    Ok(())
}

/// Refuses a name that nobody could read.
pub fn check_name(name: &str) -> Result<(), StoreError> {
    if name.trim().is_empty() || name.contains(char::is_control) {
        return Err(StoreError::InvalidName {
            name: name.to_owned(),
        });
    }
    Ok(())
}

/// A stored conversation without its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Its name.
    pub name: String,
    /// The namespace it belongs to.
    pub namespace: String,
    /// What it is about.
    pub description: String,
    /// Free metadata.
    pub metadata: Metadata,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was created, last appended to, or a message of it was revised.
    pub updated_at: Timestamp,
    /// How many messages it has.
    pub messages: u64,
    /// How often a message was revised in it. Together with `messages` it says whether anything of
    /// them changed.
    pub revisions: u64,
}

impl Conversation {
    /// The document of an export, with all messages.
    pub fn into_document(self, messages: Vec<Message>) -> ConversationDocument {
        ConversationDocument {
            id: self.id,
            name: self.name,
            description: self.description,
            created_at: self.created_at,
            updated_at: self.updated_at,
            metadata: self.metadata,
            messages,
        }
    }
}

/// A conversation in a list; its JSON form is that of `conversations list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRow {
    /// Its id.
    pub id: ConversationId,
    /// Its name.
    pub name: String,
    /// The namespace it belongs to.
    pub namespace: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was created, last appended to, or a message of it was revised.
    pub updated_at: Timestamp,
    /// How many messages it has.
    pub messages: u64,
}

/// Where to look for conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationScope<'a> {
    /// In one namespace.
    Namespace(&'a str),
    /// In all of them.
    Everywhere,
    /// Among those that were deleted, of every namespace.
    Trash,
}

/// A [`ConversationScope`] that can be sent to another thread, as the condition of a statement.
#[derive(Clone, Debug)]
pub enum OwnedScope {
    /// In one namespace, under the name it is stored with.
    Namespace(String),
    /// In all of them.
    Everywhere,
    /// Among those that were deleted, of every namespace.
    Trash,
}

impl From<ConversationScope<'_>> for OwnedScope {
    fn from(scope: ConversationScope<'_>) -> Self {
        match scope {
            ConversationScope::Namespace(namespace) => {
                Self::Namespace(namespace_name(namespace).to_owned())
            }
            ConversationScope::Everywhere => Self::Everywhere,
            ConversationScope::Trash => Self::Trash,
        }
    }
}

impl OwnedScope {
    /// The condition on a row of conversations. `parameter` is how the database spells the
    /// parameter that is bound to [`Self::namespace`]; it occurs in every condition, so that
    /// the same values can be bound.
    pub fn condition(&self, parameter: &str) -> String {
        match self {
            Self::Namespace(_) => format!("namespace = {parameter} AND deleted_at IS NULL"),
            Self::Everywhere => format!("{parameter} IS NULL AND deleted_at IS NULL"),
            Self::Trash => format!("{parameter} IS NULL AND deleted_at IS NOT NULL"),
        }
    }

    /// The one namespace that is looked in.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Namespace(namespace) => Some(namespace),
            Self::Everywhere | Self::Trash => None,
        }
    }
}

/// What a search by id prefix or name found.
#[derive(Clone, Debug, PartialEq)]
pub enum ConversationMatch {
    /// Nothing.
    Nothing,
    /// Exactly one conversation.
    One(Box<Conversation>),
    /// Several: the candidates, last used first.
    Several(Vec<ConversationRow>),
}

/// A namespace in a list; its JSON form is that of `conversations namespaces --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub namespace: String,
    /// How many conversations it has, without those in the trash.
    pub conversations: u64,
    /// The conversation last made current in it.
    pub current: Option<ConversationId>,
}
