//! Lists of the messages of a conversation, and edits of the set of messages marked for deletion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ShortId;
use crate::message::Role;

/// A row in a list of a conversation's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptLine {
    pub id: ShortId,
    pub role: Role,
    /// The tools that the message calls or, for a tool message, the tool that returned the result.
    pub tools: Vec<String>,
    pub tokens: u32,
    /// The beginning of the message's text.
    pub preview: String,
    /// True if the message is marked for deletion.
    pub marked: bool,
}

/// An edit of the list of messages marked for deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkAction {
    /// Replaces the list with the given ids.
    Create,
    /// Adds the given ids to the list.
    Append,
    /// Removes the given ids from the list.
    Delete,
}

/// The result of editing the list of messages marked for deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkReport {
    /// The number of ids that the edit added to the list or removed from it.
    pub changed: u32,
    /// The number of ids that the edit did not change: ids to add that were already on the list, or
    /// ids to remove that were not on it.
    pub unchanged: u32,
    /// The ids of messages that cannot be marked.
    pub refused: Vec<String>,
    /// The ids that match no message of the conversation.
    pub unknown: Vec<String>,
    /// The number of messages that are marked after the edit.
    pub marked: usize,
}
