//! What of a project would run or steer a run, once it is trusted.
//!
//! Invariant: looking changes nothing and waits for nothing. Links are not followed (what they point to is part of the
//! footprint), pipes and devices are not opened, and the walk is bounded.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use haft_types::{ContentHash, Hasher};
use rustix::fs::OFlags;

use crate::compat;
use crate::knowledge::KnowledgeKind;

/// What would run: configuration that names commands, servers and hooks, and the programs themselves.
const RUNS: &[&str] = &[
    ".haft/config.toml", ".haft/hooks", ".haft/workflows", ".mcp.json", ".claude/settings.json",
    ".claude/settings.local.json", ".claude/hooks",
];

/// Kinds of things of which whole folders would run, or steer what runs.
const RUNNING_KINDS: [KnowledgeKind; 4] =
    [KnowledgeKind::Tools, KnowledgeKind::Commands, KnowledgeKind::Agents, KnowledgeKind::Skills];

/// What would be followed: the names of files and folders of text for the model.
pub fn instructions() -> impl Iterator<Item = &'static str> {
    let files = ["AGENTS.md", "CLAUDE.md", "CODE_LAW.md", ".haft/rules"];
    files.into_iter().chain(compat::in_project(KnowledgeKind::Rules))
}

/// The files and folders that would run.
fn runs() -> impl Iterator<Item = String> {
    let own = |kind: KnowledgeKind| std::iter::once(format!(".haft/{}", kind.folder()));
    let folders =
        RUNNING_KINDS.into_iter().flat_map(move |kind| own(kind).chain(compat::in_project(kind).map(str::to_owned)));
    RUNS.iter().map(|name| (*name).to_owned()).chain(folders)
}

/// More files than any project has; what is beyond makes the footprint one that is never trusted.
const MOST_FILES: usize = 5_000;
/// How much of a file is looked at; a larger one counts by its size too.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// How deep folders are walked.
const DEEPEST: usize = 16;

/// The files of a project that would run, each with the hash of what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    files: BTreeMap<String, ContentHash>,
    /// Whether everything was looked at.
    whole: bool,
}

impl Footprint {
    /// Looks at a project.
    pub fn of(root: &Path) -> Self {
        let mut found = Self { files: BTreeMap::new(), whole: true };
        for name in runs() {
            found.look(root, &name, 0);
        }
        found
    }

    /// The files by their path in the project.
    pub fn files(&self) -> &BTreeMap<String, ContentHash> {
        &self.files
    }

    /// Whether everything could be looked at; what was not can't be trusted.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The files that are not as they were.
    pub fn changed_since(&self, before: &BTreeMap<String, ContentHash>) -> Vec<String> {
        let now = self.files.iter().filter(|(name, hash)| before.get(*name) != Some(hash)).map(|(name, _)| name);
        let gone = before.keys().filter(|name| !self.files.contains_key(*name));
        let mut changed: Vec<_> = now.chain(gone).cloned().collect();
        changed.sort();
        changed
    }

    fn look(&mut self, root: &Path, name: &str, depth: usize) {
        if self.files.len() >= MOST_FILES || depth > DEEPEST {
            self.whole = false;
            return;
        }
        let path = root.join(name);
        let Ok(metadata) = path.symlink_metadata() else { return };
        let kind = metadata.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path).map(|target| target.as_os_str().as_bytes().to_vec()).unwrap_or_default();
            self.add(name, b"link", &target);
            // What it leads to would run too, and may change without the link.
            if let Ok(real) = path.canonicalize()
                && real.is_file()
            {
                self.file(&real, &format!("{name} -> {}", real.display()), metadata.len());
            } else if path.is_dir() {
                self.whole = false;
            }
        } else if kind.is_dir() {
            self.folder(root, name, depth);
        } else if kind.is_file() {
            self.file(&path, name, metadata.len());
        } else {
            self.add(name, b"special", b"");
        }
    }

    fn folder(&mut self, root: &Path, name: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(root.join(name)) else {
            self.whole = false;
            return;
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for entry in names {
            match entry.to_str() {
                Some(entry) => self.look(root, &format!("{name}/{entry}"), depth + 1),
                None => self.whole = false,
            }
        }
    }

    fn file(&mut self, path: &Path, name: &str, size: u64) {
        match read(path) {
            Ok(bytes) => self.add(name, &size.to_le_bytes(), &bytes),
            // It can't be read now, but it may be when it runs.
            Err(_) => self.whole = false,
        }
    }

    fn add(&mut self, name: &str, kind: &[u8], bytes: &[u8]) {
        let mut hasher = Hasher::default();
        hasher.update(kind);
        hasher.update(bytes);
        self.files.insert(name.to_owned(), hasher.finish());
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
