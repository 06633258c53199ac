//! The file that receives the full output of a stream too long to show.
//!
//! A failure to write this file never ends the command; the result reports it instead.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::SpillFrom;

/// The reason why a spill file is missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpillProblem {
    /// The output exceeded the size limit of spill files.
    #[error("only the first {bytes} bytes were kept in `{}`", path.display())]
    Full {
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// The file could not be written and was removed.
    #[error("the whole output could not be kept in `{}`: {message}", path.display())]
    Failed {
        path: PathBuf,
        /// The operating system's error message.
        message: String,
    },
}

pub(crate) struct Spill {
    state: SpillState,
    max_bytes: u64,
    from: SpillFrom,
}

enum SpillState {
    /// The command's output is not spilled.
    Disabled,
    /// No file exists yet, because the output is within its limits. The file would be created at
    /// this path.
    Waiting(PathBuf),
    Open(File, SpillDraft),
    Full(File, SpillDraft),
    Failed(SpillProblem),
}

/// A file that is removed on drop unless `stays` is set.
struct SpillDraft {
    path: PathBuf,
    bytes: u64,
    stays: bool,
}

impl Drop for SpillDraft {
    fn drop(&mut self) {
        if !self.stays {
            // An error cannot be reported from here, and a file left behind is in a private folder.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Spill {
    pub(super) fn new(path: Option<PathBuf>, max_bytes: u64, from: SpillFrom) -> Self {
        Self {
            state: path.map_or(SpillState::Disabled, SpillState::Waiting),
            max_bytes,
            from,
        }
    }

    /// True if a file is wanted but has not been created yet.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, SpillState::Waiting(_))
    }

    /// Returns the path of the file, if it exists.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match &self.state {
            SpillState::Open(_, draft) | SpillState::Full(_, draft) => Some(draft.path.clone()),
            SpillState::Disabled | SpillState::Waiting(_) | SpillState::Failed(_) => None,
        }
    }

    /// Creates the file and writes `before`, the output so far, into it.
    pub(super) async fn open(&mut self, before: &[u8]) {
        let SpillState::Waiting(path) = &self.state else {
            return;
        };
        let path = path.clone();
        let stays = match self.from {
            SpillFrom::Start => true,
            SpillFrom::Overflow => false,
        };
        match create_spill_file(&path) {
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
            Err(error) => return self.set_failed(path, &error),
        }
        self.append(before).await;
    }

    /// Appends `chunk`, up to the size limit of the file.
    pub(super) async fn append(&mut self, chunk: &[u8]) {
        let SpillState::Open(file, draft) = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.max_bytes - draft.bytes).unwrap_or(usize::MAX);
        let fits = &chunk[..chunk.len().min(room)];
        if let Err(error) = file.write_all(fits).await {
            let path = draft.path.clone();
            return self.set_failed(path, &error);
        }
        draft.bytes += fits.len() as u64;
        if fits.len() < chunk.len()
            && let SpillState::Open(file, draft) =
                std::mem::replace(&mut self.state, SpillState::Disabled)
        {
            self.state = SpillState::Full(file, draft);
        }
    }

    fn set_failed(&mut self, path: PathBuf, error: &io::Error) {
        self.state = SpillState::Failed(SpillProblem::Failed {
            path,
            message: error.to_string(),
        });
    }

    /// Returns the file, if it exists, and the problem, if there is one.
    pub(super) async fn finish(mut self) -> (Option<PathBuf>, Option<SpillProblem>) {
        if let SpillState::Open(file, draft) | SpillState::Full(file, draft) = &mut self.state
            && let Err(error) = file.flush().await
        {
            let path = draft.path.clone();
            self.set_failed(path, &error);
        }
        match self.state {
            SpillState::Disabled | SpillState::Waiting(_) => (None, None),
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

/// Creates the file on the calling thread: creating an empty file in haft's own folder does not
/// wait for the disk.
fn create_spill_file(path: &Path) -> io::Result<File> {
    haft_files::create_new(path).map(File::from_std)
}
