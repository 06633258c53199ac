//! The definitions in source files.

use std::path::Path;
use std::time::Duration;

/// Finds the definitions in source files.
pub trait SourceOutline: Send + Sync {
    /// The names of the languages it understands, in order.
    fn languages(&self) -> Vec<&'static str>;

    /// Whether a file of this name may be in one of them: it is worth opening.
    fn may_be_source(&self, path: &Path) -> bool;

    /// The longest text it parses, in bytes.
    fn max_bytes(&self) -> usize;

    /// The definitions in the text of a file; none if it is in none of the languages. `stop` is asked now and then whether to
    /// give up.
    fn outline(
        &self,
        path: &Path,
        source: &str,
        stop: &dyn Fn() -> bool,
    ) -> Option<Result<CodeOutline, CodeOutlineError>>;
}

/// The definitions of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeOutline {
    /// In order of their beginnings.
    pub definitions: Vec<CodeDefinition>,
    /// Whether parts of the text are no valid code of the language, so that definitions may be missing.
    pub damaged: bool,
    /// How many definitions there were beyond what is listed of one text.
    pub left_out: usize,
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeDefinition {
    /// The word for what it is, such as `function`.
    pub kind: &'static str,
    /// Its name, on one line.
    pub name: String,
    /// Its first line, from 1.
    pub start_line: usize,
    /// Its last line, included.
    pub end_line: usize,
    /// In how many other definitions it lies.
    pub depth: usize,
}

/// Why a text has no outline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeOutlineError {
    /// It is too long.
    #[error("the source has {size} bytes; at most {limit} are parsed")]
    TooLarge {
        /// Its length.
        size: usize,
        /// The longest that is parsed.
        limit: usize,
    },
    /// It holds zero bytes, which grammars take for its end over and over.
    #[error("the source holds zero bytes: it is no text")]
    NotText,
    /// Parsing took too long.
    #[error("parsing was given up after {} ms", .limit.as_millis())]
    TimedOut {
        /// The time it was given.
        limit: Duration,
    },
    /// Whoever asked wants no answer any more.
    #[error("parsing was cancelled")]
    Stopped,
    /// The grammar of the language does not work. The tests would have to be wrong too.
    #[error("the grammar for {language} is broken: {reason}")]
    Grammar {
        /// The language.
        language: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}
