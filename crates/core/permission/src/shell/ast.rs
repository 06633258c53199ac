//! The syntax tree of a command line, with the details that permission decisions need.

use crate::shape::ANY;

/// Pipelines that run in sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellScript {
    pub(crate) items: Vec<Pipeline>,
}

/// A pipeline and its relation to the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) operator: ListOperator,
    pub(crate) commands: Vec<ShellCommand>,
    pub(crate) mode: JobMode,
}

/// The condition under which a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOperator {
    /// Always, after the previous pipeline.
    Then,
    /// If the previous pipeline succeeded.
    And,
    /// If the previous pipeline failed.
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobMode {
    /// The shell waits for the pipeline.
    Foreground,
    /// The pipeline runs in a separate shell, and the shell does not wait.
    Background,
}

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShellCommand {
    Simple(SimpleCommand),
    Compound(CompoundCommand),
    Function(FunctionDefinition),
    /// `[[ … ]]`: runs nothing except the substitutions in its words.
    Test {
        words: Vec<ShellWord>,
        redirects: Vec<Redirect>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    pub(crate) assignments: Vec<ShellWord>,
    pub(crate) words: Vec<ShellWord>,
    pub(crate) redirects: Vec<Redirect>,
}

/// A command that contains scripts, such as a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompoundCommand {
    pub(crate) kind: CompoundKind,
    /// Words outside the scripts: the list of a loop, the subject and patterns of a `case`.
    pub(crate) words: Vec<ShellWord>,
    pub(crate) scripts: Vec<ShellScript>,
    pub(crate) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompoundKind {
    Group,
    Subshell,
    If,
    Case,
    /// `while` and `until`.
    Loop,
    /// `for` and `select`, which set a variable.
    For {
        variable: String,
    },
}

/// A function definition, which by itself runs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionDefinition {
    pub(crate) name: String,
    pub(crate) body: Box<CompoundCommand>,
}

/// A redirect of input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    pub(crate) target: ShellWord,
}

/// The use of a redirect's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// The target is opened for reading.
    Read,
    /// The target is created, truncated, or appended to.
    Write,
    /// No file is used: the target is another descriptor, or text from the line itself.
    Inner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// The word as written.
    pub(crate) source: String,
    pub(crate) text: WordValue,
    /// The texts that the word may become, in the alphabet of
    /// [`shapes_overlap`](crate::shape::shapes_overlap).
    pub(crate) shape: String,
    /// The scripts of the word's substitutions.
    pub(crate) scripts: Vec<ShellScript>,
}

/// The value of a word when the command receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordValue {
    /// Exactly this text.
    Literal(String),
    /// The user's home folder, followed by this text.
    Home(String),
    /// A value that only the shell knows. Every word of its expansion begins with `lead`, unless
    /// the value is split.
    Dynamic { lead: String, splits: WordSplitting },
}

/// Reports whether a word known only to the shell can split into words that begin differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordSplitting {
    /// Possibly, because the word contains an unquoted expansion.
    Yes,
    No,
}

impl ShellWord {
    /// Returns the text if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.text {
            WordValue::Literal(text) => Some(text),
            WordValue::Home(_) | WordValue::Dynamic { .. } => None,
        }
    }

    /// Creates a word that stands for text from another word or program.
    pub(crate) fn unknown(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            text: WordValue::Dynamic {
                lead: String::new(),
                splits: WordSplitting::Yes,
            },
            shape: ANY.to_string(),
            scripts: Vec::new(),
        }
    }

    /// Returns the last part of the path in the word, if it is known.
    pub(crate) fn base_name(&self) -> Option<&str> {
        let path = match &self.text {
            WordValue::Literal(path) | WordValue::Home(path) => path,
            WordValue::Dynamic { .. } => return None,
        };
        Some(path.rsplit('/').next().unwrap_or(path))
    }

    /// True if the word is known to be an option.
    pub(crate) fn is_flag(&self) -> bool {
        self.literal()
            .is_some_and(|text| text.len() > 1 && text.starts_with('-'))
    }
}
