//! Useful information: file ranges stored with a conversation, and read from disk again for every
//! request.

mod ranges;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use haft_context::{UsefulRange, useful_text};
use haft_store::{Store, StoreError};
use haft_tool::{Added, NewUseful, OutputLimits, PortError, UsefulInfo, UsefulItem};
use haft_types::ConversationId;

use super::document::{DocumentOwner, KeptDocument};
use crate::stored_state::{StoredState, UsefulRanges};

/// The stored file ranges of a conversation.
pub struct StoredUseful(KeptDocument<UsefulRanges>);

impl StoredUseful {
    /// Loads the ranges of a conversation.
    pub async fn open(
        store: Arc<dyn Store>,
        conversation: ConversationId,
    ) -> Result<Self, StoreError> {
        KeptDocument::open(store, DocumentOwner::Conversation(conversation))
            .await
            .map(Self)
    }

    /// Like [`Self::open`], from the state that was read when the conversation was opened.
    pub(crate) fn restored(
        store: Arc<dyn Store>,
        conversation: ConversationId,
        state: &mut StoredState,
    ) -> Self {
        Self(KeptDocument::restored(store, conversation, state))
    }

    /// Returns the ranges, oldest first, from memory.
    pub fn ranges(&self) -> Vec<UsefulItem> {
        self.0.copy().items().to_vec()
    }

    /// Returns the reminder for the model: the current content of every range, or the error if a
    /// file cannot be read. If the output limits don't allow all of them, the newest ranges are
    /// included first.
    pub fn useful_reminder(&self, root: &Path) -> String {
        let items = self.ranges();
        let mut room = OutputLimits::default();
        let mut contents: Vec<_> = items
            .iter()
            .rev()
            .map(|item| read(item, root, &mut room))
            .collect();
        contents.reverse();
        let shown = items
            .iter()
            .zip(&contents)
            .map(|(item, content)| UsefulRange {
                path: &item.path,
                start_line: item.start_line,
                end_line: item.end_line,
                description: &item.description,
                content: content.as_deref().map_err(String::as_str),
            });
        useful_text(&shown.collect::<Vec<_>>())
    }
}

fn read(item: &UsefulItem, root: &Path, room: &mut OutputLimits) -> Result<String, String> {
    let lines = item.start_line as usize..=item.end_line as usize;
    let content = haft_tools::excerpt(&root.join(&item.path), lines, *room)
        .map_err(|error| error.to_string())?;
    room.lines = room.lines.saturating_sub(content.lines().count());
    room.bytes = room.bytes.saturating_sub(content.len());
    Ok(content)
}

#[async_trait]
impl UsefulInfo for StoredUseful {
    async fn list(&self) -> Result<Vec<UsefulItem>, PortError> {
        Ok(self.0.read().await?.items().to_vec())
    }

    async fn add(&self, new: NewUseful) -> Result<Added, PortError> {
        self.0.edit(|ranges| Ok(ranges.add(new.clone()))).await
    }

    async fn delete(&self, number: u32) -> Result<UsefulItem, PortError> {
        let unknown = || PortError::Unknown {
            what: "useful information",
            id: number.to_string(),
        };
        self.0
            .edit(|ranges| ranges.remove(number).ok_or_else(unknown))
            .await
    }
}

#[cfg(test)]
mod tests;
