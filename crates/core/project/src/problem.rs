//! What is wrong with a file, for people: the rest works without it.

use std::fmt;
use std::path::PathBuf;

/// A warning about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1, where one is known.
    pub line: Option<usize>,
    /// What is wrong, and what becomes of the file.
    pub what: String,
}

impl FileProblem {
    /// About the whole file.
    pub fn new(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: None,
            what: what.into(),
        }
    }

    /// The same about one line, counted from 1.
    #[must_use]
    pub fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.what)
    }
}
