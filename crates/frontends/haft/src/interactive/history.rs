//! Stores the prompts that were sent in a project, for later sessions.
//!
//! Each project has one file, with a JSON string per line, oldest first. Invariant: only its owner
//! can read the file, it contains no secret that haft knows or recognizes, and concurrent sessions
//! lose no lines of each other.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haft_files::{Durability, LockFile};
use haft_text::Masker;

/// The maximum size, in bytes, of a prompt in the history. A longer prompt was probably pasted, and
/// is easier to find in its conversation.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The prompt history of a project.
pub(super) struct History {
    file: PathBuf,
    masker: Masker,
    /// The maximum number of prompts that are kept.
    max_texts: usize,
}

impl History {
    pub(super) fn new(file: PathBuf, masker: Masker, max_texts: usize) -> Self {
        Self {
            file,
            masker,
            max_texts,
        }
    }

    /// Returns the stored texts, oldest first. A file that cannot be read counts as empty.
    pub(super) fn load(&self) -> Vec<String> {
        let Ok(_lock) = self.lock() else {
            return Vec::new();
        };
        let mut texts = read_texts(&self.file);
        if texts.len() > self.max_texts {
            texts.drain(..texts.len() - self.max_texts);
            // If this fails, the file stays longer than its limit until the next load.
            drop(self.replace(&texts));
        }
        texts
    }

    /// Stores a text, unless it is longer than [`MAX_TEXT_BYTES`] or the history is off. Errors are
    /// ignored.
    pub(super) fn add(&self, text: &str) {
        #[cfg(debug_assertions)]
        assert!(text != PANIC_TRIGGER, "this was asked for");
        if self.max_texts == 0 || text.len() > MAX_TEXT_BYTES {
            return;
        }
        // A user who is typing can do nothing about an error.
        drop(self.append(&self.masker.mask(text)));
    }

    fn append(&self, text: &str) -> io::Result<()> {
        let _lock = self.lock()?;
        haft_files::open_append(&self.file)?.write_all(to_json_line(text).as_bytes())
    }

    fn replace(&self, texts: &[String]) -> io::Result<()> {
        let lines: String = texts.iter().map(|text| to_json_line(text)).collect();
        haft_files::replace_file(&self.file, lines.as_bytes(), Durability::Process)
    }

    /// Locks the history. The lock is a separate file, because the history file may be replaced.
    fn lock(&self) -> io::Result<LockFile> {
        LockFile::acquire(&self.file.with_extension("lock"))
    }
}

/// Text that makes a debug build panic inside its interface, to test that the terminal is restored.
#[cfg(debug_assertions)]
const PANIC_TRIGGER: &str = "panic, please";

fn to_json_line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

fn read_texts(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn history(folder: &Path, most: usize) -> History {
        History::new(
            folder.join("history/project.jsonl"),
            Masker::with_values(["hunter22hunter22"]),
            most,
        )
    }

    #[test]
    fn history_keeps_the_newest_prompts() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["one", "two\nlines", "\u{1b}[31mthree"] {
            history(folder.path(), 10).add(text);
        }
        assert_eq!(
            history(folder.path(), 10).load(),
            ["one", "two\nlines", "\u{1b}[31mthree"]
        );
        assert_eq!(
            history(folder.path(), 2).load(),
            ["two\nlines", "\u{1b}[31mthree"]
        );
        assert_eq!(
            history(folder.path(), 10).load().len(),
            2,
            "the rest is gone"
        );
    }

    #[test]
    fn history_file_is_private_and_masked() {
        let folder = tempfile::tempdir().unwrap();
        history(folder.path(), 10).add("log in with hunter22hunter22");
        let file = folder.path().join("history/project.jsonl");
        assert!(!std::fs::read_to_string(&file).unwrap().contains("hunter22"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        history(folder.path(), 0).load();
        assert_eq!(mode(&file), 0o600, "written again");
    }

    #[test]
    fn history_skips_a_damaged_line() {
        let folder = tempfile::tempdir().unwrap();
        history(folder.path(), 10).add("one");
        let file = folder.path().join("history/project.jsonl");
        let mut damaged = std::fs::read(&file).unwrap();
        damaged.extend(b"\"half\n");
        std::fs::write(&file, damaged).unwrap();
        history(folder.path(), 10).add("two");
        assert_eq!(history(folder.path(), 10).load(), ["one", "two"]);
    }

    #[test]
    fn history_of_parallel_sessions_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for session in 0..4 {
                let history = history(folder.path(), 1_000);
                scope.spawn(move || {
                    (0..50).for_each(|number| history.add(&format!("{session} {number}")));
                });
            }
        });
        assert_eq!(history(folder.path(), 1_000).load().len(), 200);
    }
}
