//! The messages of a conversation in a list, and edits of the list of those that are marked as
//! deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ShortId;
use crate::message::Role;

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    /// By which it is named.
    pub id: ShortId,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls, or whose result it is.
    pub tools: Vec<String>,
    /// Its estimated tokens.
    pub tokens: u32,
    /// How it begins.
    pub words: String,
    /// Whether it is marked for deletion.
    pub marked: bool,
}

/// What to do with the list of messages marked for deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkAction {
    /// The ids become the list.
    Create,
    /// The ids are added to the list.
    Append,
    /// The ids are taken off the list.
    Delete,
}

/// What an edit of the list did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkReport {
    /// Ids that were put on the list, or taken off it.
    pub changed: u32,
    /// Ids that were on the list already, or not on it.
    pub unchanged: u32,
    /// Ids of messages that cannot be marked.
    pub refused: Vec<String>,
    /// What names no message of the conversation.
    pub unknown: Vec<String>,
    /// How many messages are marked now.
    pub marked: usize,
}
