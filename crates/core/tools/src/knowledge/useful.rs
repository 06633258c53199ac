//! Useful information: file ranges stored with a conversation and read from disk again for every
//! request.

mod ranges;

use std::path::Path;
use std::sync::Arc;

use haft_store::{Store, StoreError};
use haft_tool::{OutputLimits, PortError};
use haft_types::ConversationId;
use serde::{Deserialize, Serialize};

use super::kept_document::{DocumentOwner, KeptDocument};
use crate::files::excerpt::read_excerpt;
use crate::limits::LimitsConfig;

/// A range of lines of a file that the model has chosen to keep in every request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsefulItem {
    /// The range's number within the conversation. A number is never reused.
    pub number: u32,
    /// The path of the file, relative to the project if the file is inside it.
    pub path: String,
    /// The number of the first line, counting from 1.
    pub start_line: u32,
    /// The number of the last line, which is included.
    pub end_line: u32,
    /// The reason why the range is useful.
    pub description: String,
}

/// A range of lines to add to those that every request contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUsefulItem {
    /// The path of the file, relative to the project if the file is inside it.
    pub path: String,
    /// The number of the first line, counting from 1.
    pub start_line: u32,
    /// The number of the last line, which is included and not before the first line.
    pub end_line: u32,
    /// The reason why the range is useful.
    pub description: String,
}

/// The effect of adding a range of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddedRange {
    /// The stored range, merged with the ranges that the new range touches.
    pub item: UsefulItem,
    /// The number of earlier ranges that were merged into the new range.
    pub merged: usize,
    /// The numbers of the oldest ranges, which were removed because the number of ranges is
    /// limited.
    pub dropped: Vec<u32>,
}

/// The ranges of a conversation in their stored form, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsefulRanges {
    /// The highest number that was ever used for a range.
    last_number: u32,
    items: Vec<UsefulItem>,
}

impl UsefulRanges {
    /// The key of the ranges in the store.
    pub const KEY: &str = "useful";
}

/// The file ranges that a conversation keeps in every request, in the store with a copy in memory.
pub struct StoredUseful {
    document: KeptDocument<UsefulRanges>,
    max_ranges: u32,
}

impl StoredUseful {
    /// Opens the ranges of a conversation.
    pub async fn open(
        store: Arc<dyn Store>,
        conversation: ConversationId,
    ) -> Result<Self, StoreError> {
        let owner = DocumentOwner::Conversation(conversation);
        KeptDocument::open(store, owner, UsefulRanges::KEY)
            .await
            .map(Self::new)
    }

    /// Creates the ranges from the stored document that holds them.
    pub fn new(document: KeptDocument<UsefulRanges>) -> Self {
        Self {
            document,
            max_ranges: LimitsConfig::default().useful_ranges,
        }
    }

    /// Sets the number of ranges above which adding a range drops the oldest.
    #[must_use]
    pub fn with_max_ranges(self, max_ranges: u32) -> Self {
        Self { max_ranges, ..self }
    }

    /// Returns the ranges, oldest first, from memory.
    pub fn ranges(&self) -> Vec<UsefulItem> {
        self.document.copy().items
    }

    /// Returns every range, oldest first, with its current lines on disk, or with the reason why
    /// its lines cannot be read. If the ranges have more lines than the output limits allow, the
    /// newest ranges take precedence.
    pub fn contents(&self, root: &Path) -> Vec<(UsefulItem, Result<String, String>)> {
        let items = self.ranges();
        let mut room = OutputLimits::default();
        let mut contents: Vec<_> = items
            .into_iter()
            .rev()
            .map(|item| {
                let content = read_range_lines(&item, root, &mut room);
                (item, content)
            })
            .collect();
        contents.reverse();
        contents
    }

    /// Reads the ranges, oldest first, from the store.
    pub async fn list(&self) -> Result<Vec<UsefulItem>, PortError> {
        Ok(self.document.read().await?.items)
    }

    /// Adds a range. Ranges of one file that touch or overlap are merged. The range is stored when
    /// this method returns.
    pub async fn add(&self, new: NewUsefulItem) -> Result<AddedRange, PortError> {
        let max_ranges = self.max_ranges as usize;
        self.document
            .edit(|ranges| Ok(ranges.add(new.clone(), max_ranges)))
            .await
    }

    /// Removes the range with this number and returns it.
    pub async fn delete(&self, number: u32) -> Result<UsefulItem, PortError> {
        let unknown = || PortError::Unknown {
            what: "useful information",
            id: number.to_string(),
        };
        self.document
            .edit(|ranges| ranges.remove(number).ok_or_else(unknown))
            .await
    }
}

fn read_range_lines(
    item: &UsefulItem,
    root: &Path,
    room: &mut OutputLimits,
) -> Result<String, String> {
    let lines = item.start_line as usize..=item.end_line as usize;
    let content =
        read_excerpt(&root.join(&item.path), lines, *room).map_err(|error| error.to_string())?;
    room.lines = room.lines.saturating_sub(content.lines().count());
    room.bytes = room.bytes.saturating_sub(content.len());
    Ok(content)
}

#[cfg(test)]
mod tests;
