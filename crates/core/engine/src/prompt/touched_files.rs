//! Collects the files that a conversation is about: files that it read or edited, and files that
//! the user mentions.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use haft_project::KnowledgePaths;
use haft_tool::ReadLedger;
use haft_types::{Entry, Origin, Role};

/// The maximum length of a path in bytes. Longer words are not considered paths.
const MAX_PATH_BYTES: usize = 512;

/// The paths mentioned in the user's input. The files need not exist.
#[derive(Default)]
pub(crate) struct Mentions {
    /// The number of messages that were scanned.
    seen: usize,
    paths: BTreeSet<PathBuf>,
}

impl Mentions {
    /// Scans the messages that were added since the last call of this method.
    pub(crate) fn scan(&mut self, history: &[Arc<Entry>], knowledge: &KnowledgePaths) {
        // After a compaction the history is shorter. Earlier mentions are kept.
        let new = history.get(self.seen..).unwrap_or(history);
        self.seen = history.len();
        for message in new.iter().map(|entry| &entry.message) {
            let by_user = matches!(message.origin(), Origin::User | Origin::Joined);
            if message.role == Role::User && by_user {
                self.paths
                    .extend(find_paths(&message.joined_text(), knowledge));
            }
        }
    }
}

/// The files that were read or edited, together with the files that were mentioned.
#[derive(Clone, Copy)]
pub(crate) struct TouchedFiles<'a> {
    pub(crate) reads: &'a ReadLedger,
    pub(crate) mentions: &'a Mentions,
}

impl TouchedFiles<'_> {
    /// Returns the number of read or edited files, and the number of mentioned files. Files are
    /// never removed, so equal numbers mean equal sets.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.reads.count(), self.mentions.paths.len())
    }

    pub(crate) fn paths(&self) -> BTreeSet<PathBuf> {
        self.reads
            .paths()
            .into_iter()
            .chain(self.mentions.paths.iter().cloned())
            .collect()
    }
}

/// Finds words that look like paths, and resolves them below the project's root.
fn find_paths(text: &str, knowledge: &KnowledgePaths) -> Vec<PathBuf> {
    let punctuation = |c: char| "\"'`()[]{}<>,;:!?@".contains(c);
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(punctuation).trim_end_matches('.'));
    let mut found = Vec::new();
    for word in words.filter(|word| word.len() <= MAX_PATH_BYTES && word.contains(['.', '/'])) {
        for folder in [&knowledge.root, &knowledge.cwd] {
            found.extend(
                normalize_path(&folder.join(word)).filter(|path| path.starts_with(&knowledge.root)),
            );
        }
    }
    found
}

/// Resolves `.` and `..` in a path. Returns `None` if the path leads above the root of the file
/// system.
fn normalize_path(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_finds_words_that_look_like_paths() {
        let knowledge = KnowledgePaths {
            root: "/p".into(),
            cwd: "/p/sub".into(),
            trusted: true,
            user: "/u".into(),
            home: None,
        };
        let mut found = find_paths(
            "Fix @src/a.rs, (b.py) and ../up.md. Not this; /etc/passwd ../../x.rs e.g. done.",
            &knowledge,
        );
        found.sort();
        found.dedup();
        let shown: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(
            shown,
            [
                "/p/b.py",
                "/p/e.g",
                "/p/src/a.rs",
                "/p/sub/b.py",
                "/p/sub/e.g",
                "/p/sub/src/a.rs",
                "/p/up.md"
            ]
        );
    }
}
