//! Manages documentation of libraries, which comes from a repository laid out as
//! `domain/user/library`.
//!
//! A folder of the user contains the checked-out repository and a list of the libraries that each
//! project uses. This module only reads and writes files; its callers fetch the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use serde::{Deserialize, Serialize};

use crate::chat_memory;
use crate::compat;
use crate::file_reading;
use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The URL of the library repository that is used unless the user sets another source.
pub const DEFAULT_REPOSITORY_URL: &str = "https://github.com/allwefantasy/llm_friendly_packages";
/// The maximum number of documents that are read for one library.
const MAX_FILES: usize = 200;
/// The maximum depth to which the folder of a library is searched for documents.
const MAX_DEPTH: usize = 8;

/// The maximum size of the list of libraries, in bytes.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// The library documentation of one user, and the list of libraries that each project uses.
#[derive(Clone, Debug)]
pub struct Libraries {
    folder: PathBuf,
}

/// The content of the file that lists the libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StoredLibraries {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The libraries that each project uses, by the project's root. Each library has the form
    /// `domain/user/library`.
    projects: BTreeMap<String, Vec<String>>,
}

/// The reason why a library was not found, or why the list could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The repository contains no library with this name.
    #[error("there is no library `{0}`; give `library` or `user/library`")]
    Unknown(String),
    /// Several libraries have this name.
    #[error("`{name}` is several libraries: {}; say whose", .found.join(", "))]
    Several {
        /// The name as the user wrote it.
        name: String,
        /// The full names of the libraries that match the name.
        found: Vec<String>,
    },
    /// The file that lists the libraries is malformed.
    #[error("{}: {problem}; mend it or remove it", .path.display())]
    Unreadable {
        /// The path of the malformed file.
        path: PathBuf,
        /// The error of the TOML parser.
        problem: String,
    },
    /// The file that lists the libraries could not be read or written.
    #[error("cannot use {}: {source}", .path.display())]
    Io {
        /// The path of the list file.
        path: PathBuf,
        source: io::Error,
    },
}

/// The effect of adding or removing a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryChange {
    /// The list was changed.
    Changed,
    /// The list already had the requested state.
    Unchanged,
}

/// A document of a library, with its heading and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryDocument {
    /// The heading of the document: `user/library`, and the path of the file within the library.
    pub heading: String,
    pub path: PathBuf,
    pub text: String,
}

/// A library that a project uses, with its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedLibrary {
    /// The full name of the library, in the form `domain/user/library`.
    pub name: String,
    pub origin: LibraryOrigin,
    pub documents: Vec<LibraryDocument>,
}

/// The program in which the user added a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryOrigin {
    /// `haft lib add`.
    Added,
    /// The memory of auto-coder's chat, in the project.
    AutoCoder,
}

impl LibraryOrigin {
    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "haft",
            Self::AutoCoder => "auto-coder",
        }
    }
}

impl Libraries {
    /// Creates a handle for the libraries in `folder`, which need not exist.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the folder into which the repository is checked out.
    pub fn repository_folder(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Returns the path of the file that lists the libraries.
    pub fn list_file(&self) -> PathBuf {
        self.folder.join("libraries.toml")
    }

    /// Returns the URL or path from which the repository is fetched. If none is set, returns
    /// [`DEFAULT_REPOSITORY_URL`].
    pub fn repository_source(&self) -> Result<String, LibraryError> {
        Ok(self
            .read_list()?
            .source
            .unwrap_or_else(|| DEFAULT_REPOSITORY_URL.to_owned()))
    }

    /// Sets the URL or path from which the repository is fetched.
    pub fn set_source(&self, source: &str) -> Result<(), LibraryError> {
        let mut stored = self.read_list()?;
        stored.source = Some(source.to_owned());
        self.write_list(&stored)
    }

    /// Returns the libraries that a project uses, in the form `domain/user/library`, in the order
    /// in which they were added.
    pub fn project_libraries(&self, root: &Path) -> Result<Vec<String>, LibraryError> {
        Ok(self
            .read_list()?
            .projects
            .remove(&project_key(root))
            .unwrap_or_default())
    }

    /// Finds a library in the repository by its name: `library`, `user/library` or
    /// `domain/user/library`. Returns its full name.
    pub fn find_library(&self, name: &str) -> Result<String, LibraryError> {
        find_in_repository(&self.repository_folder(), name)
    }

    /// Adds a library to the list of a project. `library` is the full name.
    pub fn add_library(&self, root: &Path, library: &str) -> Result<LibraryChange, LibraryError> {
        let mut stored = self.read_list()?;
        let used = stored.projects.entry(project_key(root)).or_default();
        if used.iter().any(|one| one == library) {
            return Ok(LibraryChange::Unchanged);
        }
        used.push(library.to_owned());
        self.write_list(&stored)?;
        Ok(LibraryChange::Changed)
    }

    /// Removes a library from the list of a project. `name` may be the full name of the library or
    /// a short name.
    pub fn remove_library(&self, root: &Path, name: &str) -> Result<LibraryChange, LibraryError> {
        let mut stored = self.read_list()?;
        let used = stored.projects.entry(project_key(root)).or_default();
        let before = used.len();
        used.retain(|one| one != name && !one.ends_with(&format!("/{name}")));
        if used.len() == before {
            return Ok(LibraryChange::Unchanged);
        }
        self.write_list(&stored)?;
        Ok(LibraryChange::Changed)
    }

    /// Reads the documents of all libraries that a project uses, in the order in which they are
    /// sent.
    pub fn read_documents(
        &self,
        knowledge: &KnowledgePaths,
        problems: &mut Vec<FileProblem>,
    ) -> Vec<LibraryDocument> {
        self.read_used_libraries(knowledge, problems)
            .into_iter()
            .flat_map(|library| library.documents)
            .collect()
    }

    /// Reads all libraries that a project uses: the added ones in the order in which they were
    /// added, then those of auto-coder's chat. The documents of a library are sorted by path. A
    /// document is only read once.
    pub fn read_used_libraries(
        &self,
        knowledge: &KnowledgePaths,
        problems: &mut Vec<FileProblem>,
    ) -> Vec<UsedLibrary> {
        let added = match self.project_libraries(&knowledge.root) {
            Ok(added) => added,
            Err(error) => {
                problems.push(FileProblem::new(self.list_file(), error.to_string()));
                return Vec::new();
            }
        };
        let mut used: Vec<_> = added
            .into_iter()
            .map(|name| UsedLibrary {
                documents: self.read_library_documents(&name, knowledge, problems),
                origin: LibraryOrigin::Added,
                name,
            })
            .collect();
        for mut library in read_auto_coder_libraries(knowledge, problems) {
            let sent: BTreeSet<_> = used
                .iter()
                .flat_map(|library: &UsedLibrary| &library.documents)
                .map(|document| document.heading.as_str())
                .collect();
            library
                .documents
                .retain(|document| !sent.contains(document.heading.as_str()));
            if !library.documents.is_empty() {
                used.push(library);
            }
        }
        used
    }

    /// Reads the documents of one library.
    pub fn read_library_documents(
        &self,
        library: &str,
        knowledge: &KnowledgePaths,
        problems: &mut Vec<FileProblem>,
    ) -> Vec<LibraryDocument> {
        read_documents_in(&self.repository_folder(), library, knowledge, problems)
    }

    fn read_list(&self) -> Result<StoredLibraries, LibraryError> {
        let path = self.list_file();
        match haft_files::read_text(&path, MAX_LIST_BYTES) {
            Ok(text) => toml::from_str(&text).map_err(|error| LibraryError::Unreadable {
                path,
                problem: error.message().replace('\n', " "),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredLibraries::default()),
            Err(source) => Err(LibraryError::Io { path, source }),
        }
    }

    fn write_list(&self, stored: &StoredLibraries) -> Result<(), LibraryError> {
        let fail = |source| LibraryError::Io {
            path: self.list_file(),
            source,
        };
        let text = toml::to_string(stored).map_err(|error| fail(io::Error::other(error)))?;
        haft_files::replace_file(&self.list_file(), text.as_bytes(), Durability::PowerCut)
            .map_err(fail)
    }
}

/// Reads the libraries that auto-coder's chat uses in a trusted project. A library whose
/// documentation auto-coder has not checked out in the project is reported.
pub fn read_auto_coder_libraries(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Vec<UsedLibrary> {
    let repository = knowledge.root.join(compat::LIBRARIES_FOLDER);
    let mut found: Vec<UsedLibrary> = Vec::new();
    for name in chat_memory::load_memory(knowledge, problems).libraries {
        match find_in_repository(&repository, &name) {
            Ok(name) if found.iter().any(|library| library.name == name) => {}
            Ok(name) => {
                let documents = read_documents_in(&repository, &name, knowledge, problems);
                let origin = LibraryOrigin::AutoCoder;
                found.push(UsedLibrary {
                    name,
                    origin,
                    documents,
                });
            }
            Err(error) => problems.push(FileProblem::new(&repository, error.to_string())),
        }
    }
    found
}

/// Finds a library in a repository by its full or short name. Returns its full name.
fn find_in_repository(repository: &Path, name: &str) -> Result<String, LibraryError> {
    let wanted: Vec<_> = name.split('/').collect();
    let mut found = Vec::new();
    for domain in list_subfolders(repository) {
        for user in list_subfolders(&repository.join(&domain)) {
            for library in list_subfolders(&repository.join(&domain).join(&user)) {
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

fn read_documents_in(
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
    for path in list_markdown_files_below(&top) {
        let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
            continue;
        };
        // Only files inside the library's folder are included: a link in the repository must not
        // bring in files from elsewhere.
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

fn project_key(root: &Path) -> String {
    root.display().to_string()
}

/// Returns the names of the subfolders of a folder, without hidden folders and links.
fn list_subfolders(folder: &Path) -> Vec<String> {
    let is_folder = |name: &String| {
        let plain = folder
            .join(name)
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir());
        plain && !name.starts_with('.')
    };
    file_reading::list_names(folder)
        .into_iter()
        .filter(is_folder)
        .collect()
}

/// Returns the Markdown files below a folder, sorted by path.
fn list_markdown_files_below(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        found.extend(file_reading::list_markdown_files(&folder));
        if depth < MAX_DEPTH {
            open.extend(
                list_subfolders(&folder)
                    .into_iter()
                    .map(|name| (folder.join(name), depth + 1)),
            );
        }
    }
    found.sort();
    found.truncate(MAX_FILES);
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn libraries_can_be_found_added_read_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let libraries = Libraries::in_folder(top.join("libraries"));
        for file in [
            "github.com/a/flask/b.md",
            "github.com/a/flask/a/z.md",
            "github.com/b/flask/x.md",
            "gitlab.com/c/d/y.md",
        ] {
            let path = libraries.repository_folder().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        fs::create_dir_all(libraries.repository_folder().join(".git/x/y")).unwrap();
        assert_eq!(libraries.find_library("d").unwrap(), "gitlab.com/c/d");
        assert_eq!(
            libraries.find_library("a/flask").unwrap(),
            "github.com/a/flask"
        );
        assert!(
            matches!(libraries.find_library("flask"), Err(LibraryError::Several { found, .. }) if found.len() == 2)
        );
        assert!(matches!(
            libraries.find_library("lask"),
            Err(LibraryError::Unknown(_))
        ));
        assert!(libraries.find_library("y").is_err() && libraries.find_library("").is_err());

        let root = top.join("project");
        assert_eq!(
            libraries.add_library(&root, "github.com/a/flask").unwrap(),
            LibraryChange::Changed
        );
        assert_eq!(
            libraries.add_library(&root, "github.com/a/flask").unwrap(),
            LibraryChange::Unchanged
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
            let found = libraries.read_documents(&knowledge, &mut problems);
            assert!(problems.is_empty(), "{problems:?}");
            found
                .into_iter()
                .map(|document| document.heading)
                .collect::<Vec<_>>()
        };
        assert_eq!(headings(&libraries), ["a/flask/a/z.md", "a/flask/b.md"]);
        assert_eq!(
            libraries.remove_library(&root, "flask").unwrap(),
            LibraryChange::Changed
        );
        assert_eq!(
            libraries.remove_library(&root, "flask").unwrap(),
            LibraryChange::Unchanged
        );
        assert!(headings(&libraries).is_empty());
    }

    #[test]
    fn add_reports_a_broken_list_and_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = Libraries::in_folder(folder.path());
        fs::write(libraries.list_file(), "projects = 3").unwrap();
        let error = libraries
            .add_library(folder.path(), "a/b/c")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("libraries.toml") && error.contains("mend it"),
            "{error}"
        );
        assert_eq!(
            fs::read_to_string(libraries.list_file()).unwrap(),
            "projects = 3"
        );
    }
}
