//! Records on disk the steps that a change is about to take.
//!
//! Each change has one journal file, which is locked while its process lives, so that another
//! process can distinguish a running change from an interrupted one. The file extension is the
//! stage:
//!
//! - `writing`: temporary files are being written; no file has changed yet.
//! - `placing`: several files are being replaced; recovery must roll all of them back.
//! - `done`: all files are replaced; only temporary files remain to be removed.
//! - `single`: the only file is being replaced. It is old or new at any moment, so there is nothing
//!   to roll back.
//!
//! Invariant: a stage is reached in one step (a rename), after all work of the earlier stage is on
//! disk. The journal of a single file need not survive a power cut, only the death of the process:
//! if it is lost, only a temporary file is left behind. This saves most of the time spent waiting
//! for the disk.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_files::{Durability, LockFile};
use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::stored_path;

/// The stage of a change, as recorded by its journal's file extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JournalStage {
    Writing,
    Placing,
    Done,
    Single,
}

impl JournalStage {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Placing => "placing",
            Self::Done => "done",
            Self::Single => "single",
        }
    }

    /// Returns the stage according to the extension of a journal's path, or `None` if the file is
    /// not a journal.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        [Self::Writing, Self::Placing, Self::Done, Self::Single]
            .into_iter()
            .find(|stage| ending == stage.extension())
    }
}

/// The size and hash of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    pub(super) size: u64,
    pub(super) hash: ContentHash,
}

impl Fingerprint {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            size: bytes.len() as u64,
            hash: ContentHash::from_content(bytes),
        }
    }
}

/// One file of a change. The change creates the file if `before` is `None`, and removes it if
/// `after` is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    #[serde(with = "stored_path")]
    pub(super) path: PathBuf,
    /// The temporary name in the folder of `path`. The file with this name has the new content
    /// before the exchange and the old content after the exchange.
    pub(super) temporary: String,
    pub(super) before: Option<Fingerprint>,
    pub(super) after: Option<Fingerprint>,
}

impl JournalEntry {
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    pub(super) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    pub(super) fn temporary_name(&self) -> &OsStr {
        OsStr::new(&self.temporary)
    }
}

/// All files of a change, and the folders that it creates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalRecord {
    /// The folders that did not exist before the change, outermost first.
    pub(super) folders: Vec<JournalFolder>,
    pub(super) entries: Vec<JournalEntry>,
}

/// A folder that a change creates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalFolder {
    #[serde(with = "stored_path")]
    pub(super) path: PathBuf,
}

/// The journal of one change, locked until this value is dropped.
pub(super) struct Journal {
    lock: LockFile,
    path: PathBuf,
    durability: Durability,
}

impl Journal {
    /// Writes the journal of a change, before any step of the change.
    pub(super) fn begin(folder: &Path, record: &JournalRecord) -> io::Result<Self> {
        haft_files::create_folder(folder)?;
        let text = serde_json::to_vec(record)?;
        let durability = if record.entries.len() == 1 {
            Durability::Process
        } else {
            Durability::PowerCut
        };
        loop {
            let path = folder
                .join(random_name()?)
                .with_extension(JournalStage::Writing.extension());
            let lock = LockFile::create_new(&path)?;
            // A process that recovers journals may have found the new file before it was locked,
            // and removed it as the journal of a dead process.
            if lock.file().metadata()?.nlink() == 0 {
                continue;
            }
            let journal = Self {
                lock,
                path,
                durability,
            };
            if let Err(error) = journal.write_record(&text) {
                journal.remove_file();
                return Err(error);
            }
            return Ok(journal);
        }
    }

    fn write_record(&self, text: &[u8]) -> io::Result<()> {
        let mut file = self.lock.file();
        file.write_all(text)?;
        match self.durability {
            Durability::PowerCut => file.sync_all(),
            Durability::Process => Ok(()),
        }
    }

    /// Takes over the journal of a dead process. Returns `None` if the process lives, or if another
    /// process has already taken over the journal.
    pub(super) fn take_over(path: &Path) -> io::Result<Option<Self>> {
        let taken = match LockFile::try_acquire_existing(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            result => result?,
        };
        let Some(lock) = taken else {
            return Ok(None);
        };
        // Before this lock was taken, the other process may have renamed or removed the journal.
        let identity = |of: &fs::Metadata| (of.dev(), of.ino());
        let held = identity(&lock.file().metadata()?);
        let still_there = path
            .symlink_metadata()
            .is_ok_and(|there| identity(&there) == held);
        Ok(still_there.then(|| Self {
            lock,
            path: path.to_owned(),
            durability: Durability::PowerCut,
        }))
    }

    /// Reads the record of the change, or returns `None` if the process died before the record was
    /// written completely.
    pub(super) fn read_record(&self) -> io::Result<Option<JournalRecord>> {
        Ok(serde_json::from_slice(&fs::read(&self.path)?).ok())
    }

    /// Moves the journal to the next stage.
    pub(super) fn advance_to(&mut self, stage: JournalStage) -> io::Result<()> {
        self.rename_to_stage(stage.extension())
    }

    /// Renames the journal so that it is kept for a person to inspect, and returns its new path.
    pub(super) fn set_aside(mut self) -> PathBuf {
        let _ = self.rename_to_stage("failed");
        self.path
    }

    fn rename_to_stage(&mut self, extension: &str) -> io::Result<()> {
        let next = self.path.with_extension(extension);
        haft_files::rename(&self.path, &next, self.durability)?;
        self.path = next;
        Ok(())
    }

    /// Removes the journal of a finished change.
    pub(super) fn remove_file(self) {
        // If the file stays, the next start finds nothing left to do and removes it.
        let _ = fs::remove_file(&self.path);
        drop(self.lock);
    }
}

/// Returns an unpredictable name of 32 hexadecimal digits.
pub(super) fn random_name() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
