//! Stores items by name. If several items have one name, the first one is used, and the others are
//! recorded as shadowed.

use std::path::{Path, PathBuf};

use crate::file_reading;
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::problem::FileProblem;

/// An item with a name, such as a command or a skill.
pub trait Named {
    fn name(&self) -> &str;
    /// Returns the path of the file that defines the item.
    fn path(&self) -> &Path;
    /// Returns the level of the folder that contains the file of the item.
    fn level(&self) -> Level;
}

/// Implements [`Named`] for a type with the fields `name`, `path` and `level`.
macro_rules! named {
    ($type:ty) => {
        impl crate::named::Named for $type {
            fn name(&self) -> &str {
                &self.name
            }

            fn path(&self) -> &std::path::Path {
                &self.path
            }

            fn level(&self) -> crate::knowledge::Level {
                self.level
            }
        }
    };
}
pub(crate) use named;

/// An item that is not used because another item with its name takes precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The name that both items have.
    pub name: String,
    /// The path of the unused item's file.
    pub path: PathBuf,
    /// The item that takes precedence.
    pub by: ShadowedBy,
}

/// The item that takes precedence over a shadowed item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowedBy {
    File(PathBuf),
    /// A built-in item of haft.
    BuiltIn,
}

/// The items of one kind, such as all commands.
#[derive(Clone, Debug)]
pub struct NamedItems<T> {
    /// The items that are used, sorted by name.
    pub items: Vec<T>,
    /// The items that are not used, because other items with their names take precedence.
    pub shadowed: Vec<Shadowed>,
}

impl<T> Default for NamedItems<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            shadowed: Vec::new(),
        }
    }
}

impl<T: Named> NamedItems<T> {
    /// Adds an item. If an item with its name exists, the new item is recorded as shadowed.
    pub(crate) fn add(&mut self, item: T) {
        match self.items.iter().find(|other| other.name() == item.name()) {
            Some(first) if first.path() == item.path() => {}
            Some(first) => self.shadowed.push(Shadowed {
                name: item.name().to_owned(),
                path: item.path().to_owned(),
                by: ShadowedBy::File(first.path().to_owned()),
            }),
            None => self.items.push(item),
        }
    }

    pub(crate) fn sort_by_name(mut self) -> Self {
        self.items
            .sort_by(|one, other| one.name().cmp(other.name()));
        self
    }

    /// Returns the item with this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.items.iter().find(|item| item.name() == name)
    }
}

/// Loads all files of one kind of knowledge that have one of the given extensions, in order of
/// precedence. An unusable file is skipped, and all of its defects are reported.
pub fn load_files<T: Named>(
    knowledge: &KnowledgePaths,
    kind: KnowledgeKind,
    extensions: &[&str],
    problems: &mut Vec<FileProblem>,
    parse: impl Fn(&Path, Level, String) -> Result<T, Vec<FileProblem>>,
) -> NamedItems<T> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders_of_kind(kind) {
        for path in file_reading::list_files_with_extension(&folder.path, extensions) {
            let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
                continue;
            };
            match parse(&path, folder.level, read.text) {
                Ok(item) => found.add(item),
                Err(wrong) => problems.extend(wrong),
            }
        }
    }
    found.sort_by_name()
}
