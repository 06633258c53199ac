//! Reads text files with a size limit, and without blocking on pipes. A file of the project cannot
//! refer to a file outside the project, either by a link or by a path in its text.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The maximum size of a file in bytes. Larger files are skipped and reported.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The content of a file, together with the file's resolved path.
pub(crate) struct FileText {
    pub(crate) text: String,
    /// The path of the file, with all links resolved.
    pub(crate) real: PathBuf,
}

/// Limits the locations of the files that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadBounds {
    /// Only files whose path, with all links resolved, is inside the project.
    Project,
    /// All files that the user can read.
    Anywhere,
}

impl ReadBounds {
    /// Returns the locations in which files that `real` refers to may be. `real` is the path of a
    /// file, with all links resolved. A file in the project may only refer to files in the project;
    /// a file of the user may refer to any file.
    pub(crate) fn for_references_in(knowledge: &KnowledgePaths, real: &Path) -> Self {
        if real.starts_with(canonical_root(knowledge)) {
            Self::Project
        } else {
            Self::Anywhere
        }
    }
}

/// Reads a file of a knowledge folder. Invalid UTF-8 is replaced and reported.
pub(crate) fn read_file(
    knowledge: &KnowledgePaths,
    path: &Path,
    problems: &mut Vec<FileProblem>,
) -> Option<FileText> {
    let within = if path.starts_with(&knowledge.root) {
        ReadBounds::Project
    } else {
        ReadBounds::Anywhere
    };
    read_named_file(knowledge, path, within, problems)
}

/// Reads a file whose path is written in another file. Fails if the file is outside the locations
/// that `within` allows.
pub(crate) fn read_named_file(
    knowledge: &KnowledgePaths,
    path: &Path,
    within: ReadBounds,
    problems: &mut Vec<FileProblem>,
) -> Option<FileText> {
    match read_bytes_within(knowledge, path, within) {
        Ok((real, bytes)) => {
            if let Err(error) = std::str::from_utf8(&bytes) {
                let line = bytes[..error.valid_up_to()]
                    .split(|byte| *byte == b'\n')
                    .count();
                problems.push(
                    FileProblem::new(path, "it is not UTF-8; what cannot be read is replaced")
                        .at_line(line),
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

fn read_bytes_within(
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
            let root = canonical_root(knowledge);
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
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!(
            "it is larger than {} KB and is left out",
            MAX_FILE_BYTES / 1024
        ));
    }
    Ok((real, bytes))
}

/// Opens the file `inside` below the folder `root` without following any link. This matters because
/// a component of the path may have been replaced by a link after the path was resolved.
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

fn canonical_root(knowledge: &KnowledgePaths) -> PathBuf {
    knowledge
        .root
        .canonicalize()
        .unwrap_or_else(|_| knowledge.root.clone())
}

/// Returns the names of the entries of a folder, sorted. Returns no names if the folder does not
/// exist.
pub(crate) fn list_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns the Markdown files directly in a folder, sorted by name.
pub(crate) fn list_markdown_files(folder: &Path) -> Vec<PathBuf> {
    list_files_with_extension(folder, &["md"])
}

/// Returns the files directly in a folder whose extension is in `endings`, sorted by name. Hidden
/// files are skipped.
pub(crate) fn list_files_with_extension(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let fits = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| endings.iter().any(|one| ending == *one))
            && path.is_file()
    };
    let shown = list_names(folder)
        .into_iter()
        .filter(|name| !name.starts_with('.'));
    shown.map(|name| folder.join(name)).filter(fits).collect()
}
