//! Problems of single files, reported to the user; the other files still work.

use std::fmt;
use std::path::PathBuf;

/// A warning about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    pub path: PathBuf,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// The problem, and the consequence for the file.
    pub what: String,
}

impl FileProblem {
    /// Creates a problem that concerns the whole file.
    pub fn new(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: None,
            what: what.into(),
        }
    }

    /// Sets the line, counted from 1.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
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
