//! The file that holds the whole of a stream too long to be shown.
//!
//! Trouble with it never ends a command: it is told with the result instead.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::SpillFrom;

/// Why a spill file is missing or does not hold the whole output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpillProblem {
    /// The output was longer than a spill file may be.
    #[error("only the first {bytes} bytes were kept in `{}`", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What it holds.
        bytes: u64,
    },
    /// The file could not be written; nothing of it is left.
    #[error("the whole output could not be kept in `{}`: {message}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
}

pub(crate) struct Spill {
    state: SpillState,
    room: u64,
    from: SpillFrom,
}

enum SpillState {
    /// Nobody wants a file.
    Unwanted,
    /// The output is still short.
    Waiting(PathBuf),
    Open(File, SpillDraft),
    Full(File, SpillDraft),
    Failed(SpillProblem),
}

/// A file that is removed unless it is to stay.
struct SpillDraft {
    path: PathBuf,
    bytes: u64,
    stays: bool,
}

impl Drop for SpillDraft {
    fn drop(&mut self) {
        if !self.stays {
            // Nothing can be told from here, and what is left is in a private folder.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Spill {
    pub(super) fn new(path: Option<PathBuf>, room: u64, from: SpillFrom) -> Self {
        Self {
            state: path.map_or(SpillState::Unwanted, SpillState::Waiting),
            room,
            from,
        }
    }

    /// Whether a file is wanted and not there yet.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, SpillState::Waiting(_))
    }

    /// The file, if there is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match &self.state {
            SpillState::Open(_, draft) | SpillState::Full(_, draft) => Some(draft.path.clone()),
            SpillState::Unwanted | SpillState::Waiting(_) | SpillState::Failed(_) => None,
        }
    }

    /// Creates the file with what came before.
    pub(super) async fn open(&mut self, before: &[u8]) {
        let SpillState::Waiting(path) = &self.state else {
            return;
        };
        let path = path.clone();
        let stays = match self.from {
            SpillFrom::Start => true,
            SpillFrom::Overflow => false,
        };
        match create(&path) {
            Ok(file) => {
                self.state = SpillState::Open(
                    file,
                    SpillDraft {
                        path,
                        bytes: 0,
                        stays,
                    },
                );
            }
            Err(error) => return self.fail(path, &error),
        }
        self.write(before).await;
    }

    /// Appends, as long as there is room.
    pub(super) async fn write(&mut self, chunk: &[u8]) {
        let SpillState::Open(file, draft) = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.room - draft.bytes).unwrap_or(usize::MAX);
        let fits = &chunk[..chunk.len().min(room)];
        if let Err(error) = file.write_all(fits).await {
            let path = draft.path.clone();
            return self.fail(path, &error);
        }
        draft.bytes += fits.len() as u64;
        if fits.len() < chunk.len()
            && let SpillState::Open(file, draft) =
                std::mem::replace(&mut self.state, SpillState::Unwanted)
        {
            self.state = SpillState::Full(file, draft);
        }
    }

    fn fail(&mut self, path: PathBuf, error: &io::Error) {
        self.state = SpillState::Failed(SpillProblem::Failed {
            path,
            message: error.to_string(),
        });
    }

    /// The file, if there is one, and what is wrong with it.
    pub(super) async fn finish(mut self) -> (Option<PathBuf>, Option<SpillProblem>) {
        if let SpillState::Open(file, draft) | SpillState::Full(file, draft) = &mut self.state
            && let Err(error) = file.flush().await
        {
            let path = draft.path.clone();
            self.fail(path, &error);
        }
        match self.state {
            SpillState::Unwanted | SpillState::Waiting(_) => (None, None),
            SpillState::Open(_, mut draft) => {
                draft.stays = true;
                (Some(draft.path.clone()), None)
            }
            SpillState::Full(_, mut draft) => {
                draft.stays = true;
                let problem = SpillProblem::Full {
                    path: draft.path.clone(),
                    bytes: draft.bytes,
                };
                (Some(draft.path.clone()), Some(problem))
            }
            SpillState::Failed(problem) => (None, Some(problem)),
        }
    }
}

/// Creates the file on this thread: a new name in haft's own folder does not wait for the disk.
fn create(path: &Path) -> io::Result<File> {
    haft_files::create_new(path).map(File::from_std)
}
