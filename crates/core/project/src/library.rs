//! Documentation of libraries, from a repository laid out as `domain/user/library`.
//!
//! A folder of the user contains the checked-out repository and a list of the libraries that each
//! project uses. This module only reads and writes files; its callers fetch the repository.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use serde::{Deserialize, Serialize};

use crate::compat;
use crate::file;
use crate::knowledge::KnowledgePaths;
use crate::memory;
use crate::problem::FileProblem;

/// The repository that is used by default.
pub const DEFAULT_SOURCE: &str = "https://github.com/allwefantasy/llm_friendly_packages";
/// Limits on the number of files and the folder depth of one library.
const MOST_FILES: usize = 200;
const DEEPEST: usize = 8;

/// Maximum size of the list of libraries, in bytes.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// The libraries of one user.
#[derive(Clone, Debug)]
pub struct Libraries {
    folder: PathBuf,
}

/// The content of the list file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StoredLibraries {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The libraries of each project, as `domain/user/library` by the project's root.
    projects: BTreeMap<String, Vec<String>>,
}

/// The reason why a library was not found, or the list was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The repository has no library of this name.
    #[error("there is no library `{0}`; give `library` or `user/library`")]
    Unknown(String),
    /// The name is ambiguous.
    #[error("`{name}` is several libraries: {}; say whose", .found.join(", "))]
    Several {
        /// The name as it was given.
        name: String,
        /// The full names of the libraries it matches.
        found: Vec<String>,
    },
    /// The list file is malformed.
    #[error("{}: {problem}; mend it or remove it", .path.display())]
    Unreadable {
        /// The list file.
        path: PathBuf,
        /// The parse error.
        problem: String,
    },
    /// Reading or writing failed.
    #[error("cannot use {}: {source}", .path.display())]
    Io {
        /// The list file.
        path: PathBuf,
        source: io::Error,
    },
}

/// The effect of adding or removing a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryChange {
    /// The list was changed.
    Made,
    /// The list already had the requested state.
    None,
}

/// A document of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryDocument {
    /// `user/library`, and the path of the file within it.
    pub heading: String,
    pub path: PathBuf,
    pub text: String,
}

impl Libraries {
    /// Uses the libraries in this folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the folder of the checked-out repository.
    pub fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Returns the path of the list file.
    pub fn list(&self) -> PathBuf {
        self.folder.join("libraries.toml")
    }

    /// Returns the URL or path from which the repository is fetched.
    pub fn source(&self) -> Result<String, LibraryError> {
        Ok(self
            .read()?
            .source
            .unwrap_or_else(|| DEFAULT_SOURCE.to_owned()))
    }

    /// Sets the URL or path from which the repository is fetched.
    pub fn set_source(&self, source: &str) -> Result<(), LibraryError> {
        let mut stored = self.read()?;
        stored.source = Some(source.to_owned());
        self.write(&stored)
    }

    /// Returns the libraries of a project, as `domain/user/library` in the order they were added.
    pub fn added(&self, root: &Path) -> Result<Vec<String>, LibraryError> {
        Ok(self.read()?.projects.remove(&key(root)).unwrap_or_default())
    }

    /// Finds the library with this name, given as `library`, `user/library` or
    /// `domain/user/library`.
    pub fn find(&self, name: &str) -> Result<String, LibraryError> {
        find_in(&self.repository(), name)
    }

    /// Adds a library to a project.
    pub fn add(&self, root: &Path, library: &str) -> Result<LibraryChange, LibraryError> {
        let mut stored = self.read()?;
        let used = stored.projects.entry(key(root)).or_default();
        if used.iter().any(|one| one == library) {
            return Ok(LibraryChange::None);
        }
        used.push(library.to_owned());
        self.write(&stored)?;
        Ok(LibraryChange::Made)
    }

    /// Removes a library from a project, given by any form of its name.
    pub fn remove(&self, root: &Path, name: &str) -> Result<LibraryChange, LibraryError> {
        let mut stored = self.read()?;
        let used = stored.projects.entry(key(root)).or_default();
        let before = used.len();
        used.retain(|one| one != name && !one.ends_with(&format!("/{name}")));
        if used.len() == before {
            return Ok(LibraryChange::None);
        }
        self.write(&stored)?;
        Ok(LibraryChange::Made)
    }

    /// Reads the documents of a project's libraries, in the order the libraries were added and
    /// sorted by path.
    pub fn documents(
        &self,
        knowledge: &KnowledgePaths,
        problems: &mut Vec<FileProblem>,
    ) -> Vec<LibraryDocument> {
        let added = match self.added(&knowledge.root) {
            Ok(added) => added,
            Err(error) => {
                problems.push(FileProblem::new(self.list(), error.to_string()));
                return Vec::new();
            }
        };
        let mut found: Vec<_> = added
            .iter()
            .flat_map(|library| self.documents_of(library, knowledge, problems))
            .collect();
        let told = |found: &[LibraryDocument], new: &LibraryDocument| {
            found.iter().any(|one| one.heading == new.heading)
        };
        let more = of_auto_coder(knowledge, problems);
        let new: Vec<_> = more.into_iter().filter(|new| !told(&found, new)).collect();
        found.extend(new);
        found
    }

    /// Reads the documents of one library.
    pub fn documents_of(
        &self,
        library: &str,
        knowledge: &KnowledgePaths,
        problems: &mut Vec<FileProblem>,
    ) -> Vec<LibraryDocument> {
        documents_in(&self.repository(), library, knowledge, problems)
    }

    fn read(&self) -> Result<StoredLibraries, LibraryError> {
        let path = self.list();
        match haft_files::read_text(&path, MAX_LIST_BYTES) {
            Ok(text) => toml::from_str(&text).map_err(|error| LibraryError::Unreadable {
                path,
                problem: error.message().replace('\n', " "),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredLibraries::default()),
            Err(source) => Err(LibraryError::Io { path, source }),
        }
    }

    fn write(&self, stored: &StoredLibraries) -> Result<(), LibraryError> {
        let fail = |source| LibraryError::Io {
            path: self.list(),
            source,
        };
        let text = toml::to_string(stored).map_err(|error| fail(io::Error::other(error)))?;
        haft_files::replace(&self.list(), text.as_bytes(), Durability::PowerCut).map_err(fail)
    }
}

/// Reads the documents of the libraries that auto-coder's chat uses in a project.
pub fn of_auto_coder(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Vec<LibraryDocument> {
    let repository = knowledge.root.join(compat::LIBRARIES);
    let mut found = Vec::new();
    for name in memory::load(knowledge, problems).libraries {
        match find_in(&repository, &name) {
            Ok(library) => found.extend(documents_in(&repository, &library, knowledge, problems)),
            Err(error) => problems.push(FileProblem::new(
                memory::path(&knowledge.root),
                error.to_string(),
            )),
        }
    }
    found
}

/// Finds the library with this name in a repository, given by any form of its name.
fn find_in(repository: &Path, name: &str) -> Result<String, LibraryError> {
    let wanted: Vec<_> = name.split('/').collect();
    let mut found = Vec::new();
    for domain in folders(repository) {
        for user in folders(&repository.join(&domain)) {
            for library in folders(&repository.join(&domain).join(&user)) {
                if [domain.as_str(), &user, &library].ends_with(&wanted) {
                    found.push(format!("{domain}/{user}/{library}"));
                }
            }
        }
    }
    match found.len() {
        0 => Err(LibraryError::Unknown(name.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(LibraryError::Several {
            name: name.to_owned(),
            found,
        }),
    }
}

fn documents_in(
    repository: &Path,
    library: &str,
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Vec<LibraryDocument> {
    let top = repository.join(library);
    if !top.is_dir() {
        problems.push(FileProblem::new(
            &top,
            "its documentation is gone and must be fetched again",
        ));
    }
    let short = library.split_once('/').map_or(library, |(_, short)| short);
    let mut found = Vec::new();
    for path in markdown_below(&top) {
        let Some(read) = file::read(knowledge, &path, problems) else {
            continue;
        };
        // A link in the repository must not bring in files from elsewhere.
        if read
            .real
            .starts_with(top.canonicalize().unwrap_or_else(|_| top.clone()))
        {
            let heading = format!(
                "{short}/{}",
                path.strip_prefix(&top).unwrap_or(&path).display()
            );
            found.push(LibraryDocument {
                heading,
                path,
                text: read.text,
            });
        }
    }
    found
}

fn key(root: &Path) -> String {
    root.display().to_string()
}

/// Returns the names of the folders in a folder, without hidden ones and links.
fn folders(folder: &Path) -> Vec<String> {
    let is_folder = |name: &String| {
        let plain = folder
            .join(name)
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir());
        plain && !name.starts_with('.')
    };
    file::names(folder).into_iter().filter(is_folder).collect()
}

/// Returns the Markdown files below a folder, sorted by path.
fn markdown_below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        found.extend(file::markdown(&folder));
        if depth < DEEPEST {
            open.extend(
                folders(&folder)
                    .into_iter()
                    .map(|name| (folder.join(name), depth + 1)),
            );
        }
    }
    found.sort();
    found.truncate(MOST_FILES);
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn libraries_are_found_added_read_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let libraries = Libraries::at(top.join("libraries"));
        for file in [
            "github.com/a/flask/b.md",
            "github.com/a/flask/a/z.md",
            "github.com/b/flask/x.md",
            "gitlab.com/c/d/y.md",
        ] {
            let path = libraries.repository().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        fs::create_dir_all(libraries.repository().join(".git/x/y")).unwrap();
        assert_eq!(libraries.find("d").unwrap(), "gitlab.com/c/d");
        assert_eq!(libraries.find("a/flask").unwrap(), "github.com/a/flask");
        assert!(
            matches!(libraries.find("flask"), Err(LibraryError::Several { found, .. }) if found.len() == 2)
        );
        assert!(matches!(
            libraries.find("lask"),
            Err(LibraryError::Unknown(_))
        ));
        assert!(libraries.find("y").is_err() && libraries.find("").is_err());

        let root = top.join("project");
        assert_eq!(
            libraries.add(&root, "github.com/a/flask").unwrap(),
            LibraryChange::Made
        );
        assert_eq!(
            libraries.add(&root, "github.com/a/flask").unwrap(),
            LibraryChange::None
        );
        let knowledge = KnowledgePaths {
            cwd: root.clone(),
            root: root.clone(),
            trusted: false,
            user: top.clone(),
            home: None,
        };
        let headings = |libraries: &Libraries| {
            let mut problems = Vec::new();
            let found = libraries.documents(&knowledge, &mut problems);
            assert!(problems.is_empty(), "{problems:?}");
            found
                .into_iter()
                .map(|document| document.heading)
                .collect::<Vec<_>>()
        };
        assert_eq!(headings(&libraries), ["a/flask/a/z.md", "a/flask/b.md"]);
        assert_eq!(
            libraries.remove(&root, "flask").unwrap(),
            LibraryChange::Made
        );
        assert_eq!(
            libraries.remove(&root, "flask").unwrap(),
            LibraryChange::None
        );
        assert!(headings(&libraries).is_empty());
    }

    #[test]
    fn a_broken_list_is_told_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = Libraries::at(folder.path());
        fs::write(libraries.list(), "projects = 3").unwrap();
        let error = libraries
            .add(folder.path(), "a/b/c")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("libraries.toml") && error.contains("mend it"),
            "{error}"
        );
        assert_eq!(
            fs::read_to_string(libraries.list()).unwrap(),
            "projects = 3"
        );
    }
}
