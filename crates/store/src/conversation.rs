//! A conversation without its messages: what is given to create one, and what is read back.

use haft_types::{ConversationId, Message, Metadata, Timestamp};
use serde::{Deserialize, Serialize};

/// The name of the unnamed namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The name a namespace is stored under: the unnamed one is `default`.
pub(crate) fn namespace_name(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
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
        }
    }

    /// The same with this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
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
    /// When it was created or last appended to.
    pub updated_at: Timestamp,
    /// How many messages it has.
    pub messages: u64,
}

/// A conversation in a list; its JSON form is that of `conversations list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its id.
    pub id: ConversationId,
    /// Its name.
    pub name: String,
    /// The namespace it belongs to.
    pub namespace: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was created or last appended to.
    pub updated_at: Timestamp,
    /// How many messages it has.
    pub messages: u64,
}

/// Where to look for conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// In one namespace.
    Namespace(&'a str),
    /// In all of them.
    Everywhere,
}

/// What a search by id prefix or name found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Exactly one conversation.
    One(Box<Conversation>),
    /// Several: the candidates, last used first.
    Several(Vec<Listed>),
}
