//! The standing documents of a project: `AGENTS.md`, `CLAUDE.md` and `CODE_LAW.md` at its root.
//!
//! Looked at before every request, read again only when size or time differ, and taken as changed only when the content is:
//! then the documents layer is made anew, which is one named break of the prefix.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_context::{Document, DocumentKind, Documents, Need};
use haft_project::Standing;
use haft_text::Masker;
use haft_types::{ContentHash, TokenCounter};

/// The largest file that is taken in whole. A larger one is left out and said to be.
const LARGEST: u64 = 256 * 1024;

/// The project's documents as they were last seen.
pub(crate) struct DocumentFiles {
    root: PathBuf,
    obeyed: bool,
    masker: Masker,
    listed: Option<Stamp>,
    files: Vec<File>,
    layer: Documents,
}

/// Size and time of a file: as long as both are the same it is not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    mtime_ns: i128,
    inode: u64,
}

struct File {
    path: PathBuf,
    kind: DocumentKind,
    stamp: Option<Stamp>,
    hash: Option<ContentHash>,
    text: String,
}

/// What a look at the files found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Whether the documents layer is a new one.
    pub(crate) changed: bool,
    /// What people should know.
    pub(crate) problems: Vec<String>,
}

impl DocumentFiles {
    /// The documents of a project; none of one that is not trusted (SPEC 11.1).
    pub(crate) fn new(root: &Path, standing: &Standing, masker: Masker) -> Self {
        Self {
            root: root.to_owned(),
            obeyed: standing.is_trusted(),
            masker,
            listed: None,
            files: Vec::new(),
            layer: Documents::default(),
        }
    }

    /// The documents layer.
    pub(crate) fn layer(&self) -> &Documents {
        &self.layer
    }

    /// The text of `AGENTS.md`.
    pub(crate) fn agents_md(&self) -> Option<&str> {
        let file = self.files.iter().find(|file| file.path.file_name().is_some_and(|name| name == "AGENTS.md"))?;
        Some(file.text.as_str()).filter(|text| !text.trim().is_empty())
    }

    /// Looks whether anything changed.
    pub(crate) fn look(&mut self, counter: &dyn TokenCounter) -> Looked {
        let mut looked = Looked::default();
        if !self.obeyed {
            return looked;
        }
        // A file that came or went changes the folder, so the folder is listed again only then.
        let folder = stamp(&self.root);
        if self.listed.is_none() || folder != self.listed {
            self.listed = folder;
            looked.changed |= self.list();
        }
        for file in &mut self.files {
            match file.look(&self.masker) {
                Ok(changed) => looked.changed |= changed,
                Err(problem) => looked.problems.push(problem),
            }
        }
        if looked.changed {
            self.layer = Documents::new(self.documents(), counter);
        }
        looked
    }

    /// Finds the files there are and says whether they are others than before.
    fn list(&mut self) -> bool {
        let mut found = Vec::new();
        for name in ["AGENTS.md", "CLAUDE.md"] {
            found.push((self.root.join(name), DocumentKind::Rules));
        }
        found.extend(code_law(&self.root).map(|path| (path, DocumentKind::CodeLaw)));
        found.retain(|(path, _)| path.is_file());
        let before = self.files.len();
        self.files.retain(|file| found.iter().any(|(path, _)| *path == file.path));
        let mut changed = self.files.len() != before;
        for (index, (path, kind)) in found.into_iter().enumerate() {
            if !self.files.iter().any(|file| file.path == path) {
                self.files.insert(index, File { path, kind, stamp: None, hash: None, text: String::new() });
                changed = true;
            }
        }
        changed
    }

    /// Each file once: `CLAUDE.md` is often a link to `AGENTS.md` or a copy of it.
    fn documents(&self) -> Vec<Document> {
        let first_of_its_content = |(index, file): &(usize, &File)| {
            !self.files[..*index].iter().any(|earlier| earlier.hash.is_some() && earlier.hash == file.hash)
        };
        let files = self.files.iter().enumerate().filter(first_of_its_content);
        files
            .map(|(_, file)| Document {
                kind: file.kind,
                heading: file.path.strip_prefix(&self.root).unwrap_or(&file.path).display().to_string(),
                text: file.text.clone(),
                need: Need::Always,
            })
            .collect()
    }
}

impl File {
    /// Reads the file if it may have changed, and says whether its content did.
    fn look(&mut self, masker: &Masker) -> Result<bool, String> {
        let now = stamp(&self.path);
        if now == self.stamp && self.stamp.is_some() {
            return Ok(false);
        }
        self.stamp = now;
        let shown = self.path.display();
        let before = self.hash.take();
        self.text.clear();
        if now.is_some_and(|stamp| stamp.size > LARGEST) {
            return Err(format!("`{shown}` is larger than {} KB and is left out", LARGEST / 1024));
        }
        match fs::read(&self.path) {
            Ok(bytes) => {
                self.hash = Some(ContentHash::of(&bytes));
                self.text = masker.mask(&String::from_utf8_lossy(&bytes)).into_owned();
                Ok(self.hash != before)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(before.is_some()),
            Err(error) => Err(format!("`{shown}` cannot be read and is left out: {error}")),
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let mtime_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some(Stamp { size: meta.size(), mtime_ns, inode: meta.ino() })
}

/// `CODE_LAW.md` in any case; the one in upper case wins, then the first by name.
fn code_law(root: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root).ok()?.flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = entries.filter(|name| name.eq_ignore_ascii_case("CODE_LAW.md")).collect();
    // Upper case sorts first.
    names.sort();
    names.into_iter().next().map(|name| root.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Letters;

    impl TokenCounter for Letters {
        fn text(&self, text: &str) -> u32 {
            text.len() as u32
        }
    }

    fn headings(files: &DocumentFiles) -> Vec<String> {
        files.documents().into_iter().map(|document| document.heading).collect()
    }

    #[test]
    fn files_are_found_changed_and_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = DocumentFiles::new(folder.path(), &Standing::Trusted, Masker::default());
        assert!(!files.look(&Letters).changed, "nothing there");
        fs::write(folder.path().join("AGENTS.md"), "Use tabs.").unwrap();
        fs::write(folder.path().join("code_law.md"), "lower").unwrap();
        assert!(files.look(&Letters).changed);
        assert_eq!(headings(&files), ["AGENTS.md", "code_law.md"]);
        assert_eq!(files.agents_md(), Some("Use tabs."));
        assert!(!files.look(&Letters).changed, "a second look changes nothing");
        fs::write(folder.path().join("AGENTS.md"), "Use spaces.").unwrap();
        assert!(files.look(&Letters).changed);
        fs::write(folder.path().join("CODE_LAW.md"), "UPPER").unwrap();
        assert!(files.look(&Letters).changed);
        assert_eq!(headings(&files), ["AGENTS.md", "CODE_LAW.md"]);
        fs::remove_file(folder.path().join("AGENTS.md")).unwrap();
        assert!(files.look(&Letters).changed);
        assert_eq!(headings(&files), ["CODE_LAW.md"]);
    }

    #[test]
    fn touching_a_file_without_changing_it_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("AGENTS.md");
        fs::write(&path, "same").unwrap();
        let mut files = DocumentFiles::new(folder.path(), &Standing::Trusted, Masker::default());
        files.look(&Letters);
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(!files.look(&Letters).changed);
    }

    #[test]
    fn a_copy_or_link_is_sent_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("AGENTS.md"), "same").unwrap();
        std::os::unix::fs::symlink("AGENTS.md", folder.path().join("CLAUDE.md")).unwrap();
        let mut files = DocumentFiles::new(folder.path(), &Standing::Trusted, Masker::default());
        files.look(&Letters);
        assert_eq!(headings(&files), ["AGENTS.md"]);
    }

    #[test]
    fn a_huge_file_is_left_out_and_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("AGENTS.md"), "x".repeat(300 * 1024)).unwrap();
        let mut files = DocumentFiles::new(folder.path(), &Standing::Trusted, Masker::default());
        let looked = files.look(&Letters);
        assert!(looked.problems[0].contains("larger than 256 KB"), "{looked:?}");
        assert_eq!(files.agents_md(), None);
    }
}
