//! What a change is about to do, on disk before it does it.
//!
//! One file a change, locked while the process lives, so that another one can tell a change that is
//! under way from one that was interrupted. Its ending is the stage:
//!
//! - `writing`: temporary files are being written; no file has changed yet.
//! - `placing`: several files are being replaced; all that was done must be taken back.
//! - `done`: every one of them is new; only temporary files are left to be removed.
//! - `single`: the only file is being replaced. It is old or new whatever happens, so there is
//!   nothing to take back.
//!
//! Invariant: a stage is reached in one step (a rename), after everything the stage before stands
//! for is on disk. The journal of a single file need not survive a power cut, only the death of the
//! process: without it nothing but a temporary file stays behind. That saves most of the waiting
//! for the disk.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::stored_path;

/// How far a change has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JournalStage {
    Writing,
    Placing,
    Done,
    Single,
}

impl JournalStage {
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Placing => "placing",
            Self::Done => "done",
            Self::Single => "single",
        }
    }

    /// The stage of a journal by its file name; `None` for what is no journal.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        [Self::Writing, Self::Placing, Self::Done, Self::Single]
            .into_iter()
            .find(|stage| ending == stage.ending())
    }
}

/// What a file holds, short enough to be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Print {
    pub(super) size: u64,
    pub(super) hash: ContentHash,
}

impl Print {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            size: bytes.len() as u64,
            hash: ContentHash::of(bytes),
        }
    }
}

/// One file of a change. Without `before` it is made, without `after` it is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    #[serde(with = "stored_path")]
    pub(super) path: PathBuf,
    /// The name, in the same folder, of the new content before and of the old one after it took
    /// its place.
    pub(super) temporary: String,
    pub(super) before: Option<Print>,
    pub(super) after: Option<Print>,
}

impl JournalEntry {
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    pub(super) fn temporary(&self) -> &OsStr {
        OsStr::new(&self.temporary)
    }
}

/// A whole change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalRecord {
    /// Folders that do not exist yet, outermost first.
    pub(super) folders: Vec<JournalFolder>,
    pub(super) entries: Vec<JournalEntry>,
}

/// A folder that is made for the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalFolder {
    #[serde(with = "stored_path")]
    pub(super) path: PathBuf,
}

/// What a journal survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Survives {
    PowerCut,
    Death,
}

/// The journal of one change; its lock is held as long as this lives.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    survives: Survives,
}

impl Journal {
    /// Notes a change before anything of it is done.
    pub(super) fn begin(folder: &Path, record: &JournalRecord) -> io::Result<Self> {
        haft_files::create_folder(folder)?;
        let text = serde_json::to_vec(record)?;
        let survives = if record.entries.len() == 1 {
            Survives::Death
        } else {
            Survives::PowerCut
        };
        loop {
            let path = folder
                .join(random_name()?)
                .with_extension(JournalStage::Writing.ending());
            let file = haft_files::create_new(&path)?;
            file.lock()?;
            // Whoever clears up may have taken the new file for a dead one in the moment before it
            // was locked.
            if file.metadata()?.nlink() == 0 {
                continue;
            }
            let journal = Self {
                file,
                path,
                survives,
            };
            if let Err(error) = journal.write(&text) {
                journal.remove();
                return Err(error);
            }
            return Ok(journal);
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        (&self.file).write_all(text)?;
        match self.survives {
            Survives::PowerCut => self.file.sync_all(),
            Survives::Death => Ok(()),
        }
    }

    /// Takes over the journal of a process that is gone. `None` when the process lives, or someone
    /// else was faster.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        // It may have reached another stage or its end before the lock was free.
        let identity = |of: &fs::Metadata| (of.dev(), of.ino());
        let held = identity(&file.metadata()?);
        let still_there = path
            .symlink_metadata()
            .is_ok_and(|there| identity(&there) == held);
        Ok(still_there.then(|| Self {
            file,
            path: path.to_owned(),
            survives: Survives::PowerCut,
        }))
    }

    /// What was noted; `None` when the process died before it was written whole.
    pub(super) fn record(&self) -> io::Result<Option<JournalRecord>> {
        Ok(serde_json::from_slice(&fs::read(&self.path)?).ok())
    }

    /// Reaches the next stage.
    pub(super) fn advance(&mut self, stage: JournalStage) -> io::Result<()> {
        self.rename(stage.ending())
    }

    /// Sets the journal aside, for a person to look at.
    pub(super) fn give_up(mut self) -> PathBuf {
        let _ = self.rename("failed");
        self.path
    }

    fn rename(&mut self, ending: &str) -> io::Result<()> {
        let next = self.path.with_extension(ending);
        fs::rename(&self.path, &next)?;
        self.path = next;
        self.sync_folder();
        Ok(())
    }

    /// The change is over.
    pub(super) fn remove(self) {
        // Should it stay, the next start finds nothing left to do and removes it.
        let _ = fs::remove_file(&self.path);
        drop(self.file);
    }

    /// Best effort: some file systems can't sync a folder.
    fn sync_folder(&self) {
        if let (Survives::PowerCut, Some(folder)) = (self.survives, self.path.parent()) {
            let _ = haft_files::sync_folder(folder);
        }
    }
}

/// A name nobody can foresee.
pub(super) fn random_name() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
