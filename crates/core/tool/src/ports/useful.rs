//! File ranges worth remembering, stored with a conversation and repeated in its reminders.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::PortError;

/// A file range worth remembering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsefulItem {
    /// The number within the conversation; never reused.
    pub number: u32,
    /// The file, relative to the project if it lies inside.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line, inclusive.
    pub end_line: u32,
    /// The reason why the range is useful.
    pub description: String,
}

/// A file range to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUseful {
    /// The file, relative to the project if it lies inside.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line, inclusive; not before the first.
    pub end_line: u32,
    /// The reason why the range is useful.
    pub description: String,
}

/// The result of adding a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Added {
    /// The range as stored, merged with the ranges it touches.
    pub item: UsefulItem,
    /// The number of existing ranges that were merged into it.
    pub merged: usize,
    /// The numbers of old ranges that were deleted because only the newest are kept.
    pub dropped: Vec<u32>,
}

/// The useful information of a conversation.
#[async_trait]
pub trait UsefulInfo: Send + Sync {
    /// Returns every range, oldest first.
    async fn list(&self) -> Result<Vec<UsefulItem>, PortError>;

    /// Adds a range and returns once it is stored. Ranges of one file that touch or overlap are
    /// merged.
    async fn add(&self, new: NewUseful) -> Result<Added, PortError>;

    /// Deletes the range with this number and returns it.
    async fn delete(&self, number: u32) -> Result<UsefulItem, PortError>;
}
