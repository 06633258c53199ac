//! The stored knowledge of a session besides its messages: useful ranges, notes, marks, and
//! sub-agents' conversations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_context::{FolderNotes, UsefulRange, format_folder_notes, format_useful_ranges};
use haft_store::StoreError;
use haft_tools::{LimitsConfig, StoredNotes, StoredTranscript, StoredUseful};
use haft_types::ConversationId;

use super::children::Children;
use super::marks::StoredMarks;
use super::transcript::stored_transcript;
use crate::session::config::{SessionConfig, SharedServices};
use crate::stored_state::StoredState;

/// Everything that a session has collected for its reminders and tools, such as useful file ranges
/// and notes on folders.
pub(crate) struct Knowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
    pub(crate) marks: Arc<StoredMarks>,
    pub(crate) transcript: Arc<StoredTranscript>,
    pub(crate) children: Arc<Children>,
}

/// The knowledge that sub-agents share with the agent that started them.
#[derive(Clone)]
pub(crate) struct SharedKnowledge {
    pub(crate) useful: Arc<StoredUseful>,
    pub(crate) notes: Arc<StoredNotes>,
}

impl Knowledge {
    /// Opens the knowledge of a conversation and of its project. For a sub-agent, `shared` replaces
    /// the knowledge that it shares with the agent that started it.
    pub(crate) async fn open(
        services: &SharedServices,
        config: &SessionConfig,
        limits: &LimitsConfig,
        conversation: &ConversationId,
        shared: Option<&SharedKnowledge>,
        state: &mut StoredState,
    ) -> Result<Self, StoreError> {
        let store = || Arc::clone(&services.store);
        let SharedKnowledge { useful, notes } = if let Some(shared) = shared {
            shared.clone()
        } else {
            let root = config.folders.workspace.root.clone();
            let notes = StoredNotes::open(
                store(),
                &config.knowledge.notes,
                root,
                Arc::clone(&services.clock),
            )
            .await?;
            let useful = StoredUseful::new(state.take_kept_document(&services.store, conversation));
            SharedKnowledge {
                useful: Arc::new(useful.with_max_ranges(limits.useful_ranges)),
                notes: Arc::new(notes.with_max_shown(limits.shown_notes)),
            }
        };
        let children = Arc::new(Children::new(
            state.take_kept_document(&services.store, conversation),
        ));
        let marks = Arc::new(StoredMarks::new(
            state.take_kept_document(&services.store, conversation),
        ));
        let transcript = stored_transcript(
            store(),
            conversation.clone(),
            Arc::clone(&services.counter),
            Arc::clone(&marks),
            Arc::clone(&children),
        );
        Ok(Self {
            useful,
            notes,
            marks,
            transcript: Arc::new(transcript),
            children,
        })
    }

    /// Returns the reminder about the file ranges that were recorded as useful, with the current
    /// lines of each range.
    pub(crate) fn useful_reminder(&self, root: &Path) -> String {
        let contents = self.useful.contents(root);
        let shown = contents.iter().map(|(item, content)| UsefulRange {
            path: &item.path,
            start_line: item.start_line,
            end_line: item.end_line,
            description: &item.description,
            content: content.as_deref().map_err(String::as_str),
        });
        format_useful_ranges(&shown.collect::<Vec<_>>())
    }

    /// Returns the reminder with the notes on the folders above `files`. The files are in the
    /// project, or in the copy of the project at `copy`.
    pub(crate) fn notes_reminder(&self, copy: &Path, files: &[PathBuf]) -> String {
        let folders = self.notes.folder_notes_above(copy, files);
        let shown = folders
            .iter()
            .map(|(folder, notes)| FolderNotes { folder, notes });
        format_folder_notes(&shown.collect::<Vec<_>>())
    }

    /// Returns the knowledge that this session shares with its sub-agents.
    pub(crate) fn shared(&self) -> SharedKnowledge {
        SharedKnowledge {
            useful: Arc::clone(&self.useful),
            notes: Arc::clone(&self.notes),
        }
    }
}
