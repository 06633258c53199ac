//! Things that are found by name: the first of a name wins, and the others are known to be
//! shadowed.

use std::path::{Path, PathBuf};

use crate::file;
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::problem::FileProblem;

/// A thing with a name.
pub trait Named {
    /// Its name.
    fn name(&self) -> &str;
    /// Where it lies.
    fn path(&self) -> &Path;
    /// Whose it is.
    fn level(&self) -> Level;
}

/// Says that a type with the fields `name`, `path` and `level` is [`Named`].
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

/// One that another of the same name stands before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The name of both.
    pub name: String,
    /// The one that is not used.
    pub path: PathBuf,
    /// The one that is.
    pub by: ShadowedBy,
}

/// What stands before another of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowedBy {
    /// This file.
    File(PathBuf),
    /// A part of haft.
    BuiltIn,
}

/// What was found of a kind.
#[derive(Clone, Debug)]
pub struct NamedItems<T> {
    /// In order of their names.
    pub items: Vec<T>,
    /// Those that are not used.
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
    /// Takes one in unless its name is taken.
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

    pub(crate) fn sorted(mut self) -> Self {
        self.items
            .sort_by(|one, other| one.name().cmp(other.name()));
        self
    }

    /// The one of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.items.iter().find(|item| item.name() == name)
    }
}

/// Reads the files of a kind that have one of these endings, best folder first. A file that cannot
/// be used is named, with everything that is wrong with it, and skipped.
pub fn load_files<T: Named>(
    knowledge: &KnowledgePaths,
    kind: KnowledgeKind,
    endings: &[&str],
    problems: &mut Vec<FileProblem>,
    parse: impl Fn(&Path, Level, String) -> Result<T, Vec<FileProblem>>,
) -> NamedItems<T> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders(kind) {
        for path in file::with_ending(&folder.path, endings) {
            let Some(read) = file::read(knowledge, &path, problems) else {
                continue;
            };
            match parse(&path, folder.level, read.text) {
                Ok(item) => found.add(item),
                Err(wrong) => problems.extend(wrong),
            }
        }
    }
    found.sorted()
}
