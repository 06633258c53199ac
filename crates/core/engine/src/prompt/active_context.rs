//! Active context: the descriptions of the project's folders in the system message.
//!
//! Invariant: the text does not change while the provider may have it in its cache. The text is
//! stored with the conversation, so this holds in other processes too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_project::active_context;
use haft_tool::FileChange;
use haft_types::ChangeKind;

use crate::session::config::SessionConfig;
use crate::stored_state::{SentDescriptions, StoredState};

/// The changed files of each folder, with the kind of change.
pub(crate) type ChangedFolders = BTreeMap<PathBuf, BTreeMap<PathBuf, ChangeKind>>;

/// The folder descriptions to send, and the folders whose descriptions are out of date.
#[derive(Default)]
pub(crate) struct ActiveContext {
    text: Option<String>,
    /// True if the text is stored with the conversation.
    stored: bool,
    changed: ChangedFolders,
}

impl ActiveContext {
    /// Restores the folder descriptions that were sent last. If the conversation has sent none,
    /// reads them from disk.
    pub(crate) fn open(config: &SessionConfig, state: &mut StoredState) -> Self {
        if !config.policy.active {
            return Self::default();
        }
        match state.take() {
            Some(SentDescriptions(text)) => Self {
                text,
                stored: true,
                changed: ChangedFolders::new(),
            },
            None => Self {
                text: load_descriptions(config),
                stored: false,
                changed: ChangedFolders::new(),
            },
        }
    }

    /// Returns the text for the system message.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Reads the descriptions from disk again. Returns true if the text has changed.
    pub(crate) fn refresh(&mut self, config: &SessionConfig) -> bool {
        if !config.policy.active {
            return false;
        }
        let now = load_descriptions(config);
        let changed = now != self.text;
        if changed {
            self.text = now;
            self.stored = false;
        }
        changed
    }

    /// Returns the text if it must be stored before the next request is sent.
    pub(crate) fn unsaved(&self) -> Option<SentDescriptions> {
        (!self.stored).then(|| SentDescriptions(self.text.clone()))
    }

    pub(crate) fn mark_saved(&mut self) {
        self.stored = true;
    }

    /// Returns the folders in which files have changed since the last call of this method.
    pub(crate) fn take_changed(&mut self) -> ChangedFolders {
        std::mem::take(&mut self.changed)
    }

    /// Records that a call changed a file. Hidden folders and files outside the project are
    /// ignored.
    pub(crate) fn record_change(&mut self, root: &Path, change: &FileChange) {
        let Ok(inside) = change.path.strip_prefix(root) else {
            return;
        };
        let hidden =
            |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        let folder = inside.parent().unwrap_or(Path::new(""));
        if !folder.components().any(hidden) {
            self.changed
                .entry(folder.to_owned())
                .or_default()
                .insert(inside.to_owned(), change.kind);
        }
    }
}

/// Reads the descriptions of folders from disk.
fn load_descriptions(config: &SessionConfig) -> Option<String> {
    let found = active_context::load_descriptions(&config.knowledge.paths, &mut Vec::new());
    active_context::render_descriptions(&found)
        .map(|text| config.safety.masker.mask(&text).into_owned())
}
