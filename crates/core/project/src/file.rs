//! Reads a text file: bounded, never waiting for a pipe. What lies in the project leads to nothing
//! outside of it, neither by a link nor by a path that it names.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The largest file that is taken in whole. A larger one is left out and said to be.
const LARGEST: u64 = 256 * 1024;

/// What a file holds.
pub(crate) struct FileText {
    pub(crate) text: String,
    /// Where it really lies.
    pub(crate) real: PathBuf,
}

/// Where a file may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadBounds {
    /// In the project, links followed.
    Project,
    /// Anywhere the user can read.
    Anywhere,
}

impl ReadBounds {
    /// Where a file may lie that another one names: what lies in the project leads to nothing
    /// outside of it, however it is written; only the user's own files may name others of the
    /// user's. `real` is the naming file, links followed.
    pub(crate) fn named_by(knowledge: &KnowledgePaths, real: &Path) -> Self {
        if real.starts_with(real_root(knowledge)) {
            Self::Project
        } else {
            Self::Anywhere
        }
    }
}

/// Reads a file that was found by its place; what is not UTF-8 is replaced and reported.
pub(crate) fn read(
    knowledge: &KnowledgePaths,
    path: &Path,
    problems: &mut Vec<FileProblem>,
) -> Option<FileText> {
    let within = if path.starts_with(&knowledge.root) {
        ReadBounds::Project
    } else {
        ReadBounds::Anywhere
    };
    read_within(knowledge, path, within, problems)
}

/// Reads a file that another one names.
pub(crate) fn read_within(
    knowledge: &KnowledgePaths,
    path: &Path,
    within: ReadBounds,
    problems: &mut Vec<FileProblem>,
) -> Option<FileText> {
    match try_read(knowledge, path, within) {
        Ok((real, bytes)) => {
            if let Err(error) = std::str::from_utf8(&bytes) {
                let line = bytes[..error.valid_up_to()]
                    .split(|byte| *byte == b'\n')
                    .count();
                problems.push(
                    FileProblem::new(path, "it is not UTF-8; what cannot be read is replaced")
                        .at(line),
                );
            }
            let text = String::from_utf8_lossy(&bytes);
            Some(FileText {
                text: text
                    .strip_prefix('\u{feff}')
                    .unwrap_or(&text)
                    .replace("\r\n", "\n"),
                real,
            })
        }
        Err(what) => {
            problems.push(FileProblem::new(path, what));
            None
        }
    }
}

fn try_read(
    knowledge: &KnowledgePaths,
    path: &Path,
    within: ReadBounds,
) -> Result<(PathBuf, Vec<u8>), String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read and is left out: {error}");
    let real = path.canonicalize().map_err(unreadable)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match within {
        ReadBounds::Anywhere => rustix::fs::open(&real, flags, Mode::empty()),
        ReadBounds::Project => {
            let root = real_root(knowledge);
            let Ok(inside) = real.strip_prefix(&root) else {
                return Err(format!(
                    "it leads out of the project (to {}) and is left out",
                    real.display()
                ));
            };
            open_beneath(&root, inside, flags)
        }
    };
    let file = File::from(file.map_err(|error| unreadable(error.into()))?);
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("it is not a file and is left out".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!(
            "it is larger than {} KB and is left out",
            LARGEST / 1024
        ));
    }
    Ok((real, bytes))
}

/// Opens a file below a folder. No part of its path is a link any more, and none that is put there
/// now is followed.
fn open_beneath(root: &Path, inside: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(root, folder, Mode::empty())?;
    for name in inside.parent().into_iter().flatten() {
        at = rustix::fs::openat(at, name, folder, Mode::empty())?;
    }
    rustix::fs::openat(
        at,
        inside.file_name().unwrap_or_default(),
        flags,
        Mode::empty(),
    )
}

fn real_root(knowledge: &KnowledgePaths) -> PathBuf {
    knowledge
        .root
        .canonicalize()
        .unwrap_or_else(|_| knowledge.root.clone())
}

/// The names in a folder, in order; none when it is not there.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The Markdown files directly in a folder, in the order of their names.
pub(crate) fn markdown(folder: &Path) -> Vec<PathBuf> {
    with_ending(folder, &["md"])
}

/// The files directly in a folder whose names end so, in the order of their names.
pub(crate) fn with_ending(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let fits = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| endings.iter().any(|one| ending == *one))
            && path.is_file()
    };
    let shown = names(folder)
        .into_iter()
        .filter(|name| !name.starts_with('.'));
    shown.map(|name| folder.join(name)).filter(fits).collect()
}
