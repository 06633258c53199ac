//! File ranges worth knowing, kept with a conversation and shown in its reminders.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::PortError;

/// A file range worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsefulItem {
    /// Its number within the conversation; never used again for another.
    pub number: u32,
    /// The file, relative to the project where it lies inside.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line, included.
    pub end_line: u32,
    /// Why it is worth knowing.
    pub description: String,
}

/// A file range to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUseful {
    /// The file, relative to the project where it lies inside.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line, not before the first.
    pub end_line: u32,
    /// Why it is worth knowing.
    pub description: String,
}

/// What came of adding a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The range as it is kept, merged with those it touches.
    pub item: UsefulItem,
    /// How many known ranges became part of it.
    pub merged: usize,
    /// The numbers of old ranges that had to go because only the newest are kept.
    pub dropped: Vec<u32>,
}

/// The useful information of a conversation.
#[async_trait]
pub trait UsefulInfo: Send + Sync {
    /// Every range, oldest first.
    async fn list(&self) -> Result<Vec<UsefulItem>, PortError>;

    /// Adds a range. Ranges of one file that touch or overlap become one. When it returns, it is
    /// stored.
    async fn add(&self, new: NewUseful) -> Result<Added, PortError>;

    /// Takes the range with this number off and gives it back.
    async fn delete(&self, number: u32) -> Result<UsefulItem, PortError>;
}
