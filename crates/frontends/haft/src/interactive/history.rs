//! Stores the prompts that were sent in a project, for later sessions.
//!
//! Responsible for one file per project: a JSON string per line, oldest first. Invariant: only its
//! owner can read the file, it contains no secret that haft knows or recognizes, and concurrent
//! sessions lose no lines of each other.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haft_files::{Durability, LockFile};
use haft_text::Masker;

/// Longer texts were pasted; they are easier to find in their conversation.
const LONGEST: usize = 16 * 1024;

/// The prompt history of a project.
pub(super) struct History {
    file: PathBuf,
    masker: Masker,
    /// The maximum number of texts kept.
    most: usize,
}

impl History {
    pub(super) fn at(file: PathBuf, masker: Masker, most: usize) -> Self {
        Self { file, masker, most }
    }

    /// Returns the stored texts, oldest first. A file that cannot be read counts as empty.
    pub(super) fn load(&self) -> Vec<String> {
        let Ok(_lock) = self.lock() else {
            return Vec::new();
        };
        let mut texts = read(&self.file);
        if texts.len() > self.most {
            texts.drain(..texts.len() - self.most);
            // If this fails, the file stays longer than its limit until the next load.
            drop(self.replace(&texts));
        }
        texts
    }

    /// Stores a text, unless it is longer than [`MAX_TEXT_BYTES`] or the history is off. Errors are
    /// ignored.
    pub(super) fn keep(&self, text: &str) {
        #[cfg(debug_assertions)]
        assert!(text != PANIC, "this was asked for");
        if self.most == 0 || text.len() > LONGEST {
            return;
        }
        // A user who is typing can do nothing about an error.
        drop(self.append(&self.masker.mask(text)));
    }

    fn append(&self, text: &str) -> io::Result<()> {
        let _lock = self.lock()?;
        haft_files::append(&self.file)?.write_all(line(text).as_bytes())
    }

    fn replace(&self, texts: &[String]) -> io::Result<()> {
        let lines: String = texts.iter().map(|text| line(text)).collect();
        haft_files::replace(&self.file, lines.as_bytes(), Durability::Process)
    }

    /// Locks the history. The lock is a separate file, because the history file may be replaced.
    fn lock(&self) -> io::Result<LockFile> {
        LockFile::wait(&self.file.with_extension("lock"))
    }
}

/// Text that makes a debug build panic inside its interface, to test that the terminal is restored.
#[cfg(debug_assertions)]
const PANIC: &str = "panic, please";

fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

fn read(file: &Path) -> Vec<String> {
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
        History::at(
            folder.join("history/project.jsonl"),
            Masker::knowing(["hunter22hunter22"]),
            most,
        )
    }

    #[test]
    fn what_was_sent_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["one", "two\nlines", "\u{1b}[31mthree"] {
            history(folder.path(), 10).keep(text);
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
    fn nobody_else_can_read_it_and_secrets_are_not_in_it() {
        let folder = tempfile::tempdir().unwrap();
        history(folder.path(), 10).keep("log in with hunter22hunter22");
        let file = folder.path().join("history/project.jsonl");
        assert!(!std::fs::read_to_string(&file).unwrap().contains("hunter22"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        history(folder.path(), 0).load();
        assert_eq!(mode(&file), 0o600, "written again");
    }

    #[test]
    fn a_damaged_line_costs_that_line() {
        let folder = tempfile::tempdir().unwrap();
        history(folder.path(), 10).keep("one");
        let file = folder.path().join("history/project.jsonl");
        let mut damaged = std::fs::read(&file).unwrap();
        damaged.extend(b"\"half\n");
        std::fs::write(&file, damaged).unwrap();
        history(folder.path(), 10).keep("two");
        assert_eq!(history(folder.path(), 10).load(), ["one", "two"]);
    }

    #[test]
    fn two_sessions_lose_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for session in 0..4 {
                let history = history(folder.path(), 1_000);
                scope.spawn(move || {
                    (0..50).for_each(|number| history.keep(&format!("{session} {number}")));
                });
            }
        });
        assert_eq!(history(folder.path(), 1_000).load().len(), 200);
    }
}
