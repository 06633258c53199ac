//! Reads a file of words: bounded, never waiting for a pipe, and nothing outside the project by way of a link in it.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::ground::Ground;
use crate::problem::Problem;

/// The largest file that is taken in whole. A larger one is left out and said to be.
const LARGEST: u64 = 256 * 1024;

/// What a file holds.
pub(crate) struct Text {
    pub(crate) text: String,
    /// Where it really lies.
    pub(crate) real: PathBuf,
}

/// Reads a file; what is not UTF-8 is replaced and told.
pub(crate) fn read(ground: &Ground, path: &Path, problems: &mut Vec<Problem>) -> Option<Text> {
    match try_read(ground, path) {
        Ok((real, bytes)) => {
            if let Err(error) = std::str::from_utf8(&bytes) {
                let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
                problems.push(Problem::new(path, "it is not UTF-8; what cannot be read is replaced").at(line));
            }
            let text = String::from_utf8_lossy(&bytes);
            Some(Text { text: text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n"), real })
        }
        Err(what) => {
            problems.push(Problem::new(path, what));
            None
        }
    }
}

fn try_read(ground: &Ground, path: &Path) -> Result<(PathBuf, Vec<u8>), String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read and is left out: {error}");
    let real = path.canonicalize().map_err(unreadable)?;
    if path.starts_with(&ground.root) && !real.starts_with(&ground.root) {
        return Err(format!("it leads out of the project (to {}) and is left out", real.display()));
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&real).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("it is not a file and is left out".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is larger than {} KB and is left out", LARGEST / 1024));
    }
    Ok((real, bytes))
}

/// The names in a folder, in order; none when it is not there.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
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
        path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one)) && path.is_file()
    };
    let shown = names(folder).into_iter().filter(|name| !name.starts_with('.'));
    shown.map(|name| folder.join(name)).filter(fits).collect()
}
