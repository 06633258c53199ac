//! Describes problems of single files, which are reported to the user. All other files still work.

use std::fmt;
use std::path::PathBuf;

/// A problem in a file, which is reported as a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    pub path: PathBuf,
    /// The number of the line that contains the problem, counted from 1, if it is known.
    pub line: Option<usize>,
    /// A description of the problem and of its consequence.
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

    /// Sets the line number, counted from 1.
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
