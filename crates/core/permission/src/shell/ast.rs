//! The syntax tree of a command line, with the details that permission decisions need.

use crate::shape::ANY;

/// A script: pipelines that are run one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellScript {
    pub(crate) items: Vec<Pipeline>,
}

/// A pipeline, with the condition under which it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) operator: ListOperator,
    pub(crate) commands: Vec<ShellCommand>,
    pub(crate) mode: JobMode,
}

/// The condition under which a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOperator {
    /// The pipeline always runs, after the previous one.
    Then,
    /// The pipeline runs if the previous one succeeded.
    And,
    /// The pipeline runs if the previous one failed.
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
    /// A `[[ … ]]` test, which runs nothing except the substitutions in its words.
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
    /// A `while` or `until` loop.
    Loop,
    /// A `for` or `select` loop, which sets a variable.
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

/// The way in which a redirect uses its target.
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
    /// The texts to which the shell may expand the word, in the notation of
    /// [`shapes_overlap`](crate::shape::shapes_overlap).
    pub(crate) shape: String,
    /// The scripts of the word's substitutions.
    pub(crate) scripts: Vec<ShellScript>,
}

/// The value that a command receives for a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordValue {
    /// The value is exactly this text.
    Literal(String),
    /// The value is the path of the user's home folder, followed by this text.
    Home(String),
    /// The value is known only to the shell. Every word of its expansion begins with `lead`, unless
    /// the value is split.
    Dynamic { lead: String, splits: WordSplitting },
}

/// Reports whether a word known only to the shell can split into words that begin differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordSplitting {
    /// The word may split, because it contains an unquoted expansion.
    Yes,
    No,
}

impl ShellWord {
    /// Returns the word's text if the value is known without the shell and does not begin with the
    /// home folder.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.text {
            WordValue::Literal(text) => Some(text),
            WordValue::Home(_) | WordValue::Dynamic { .. } => None,
        }
    }

    /// Creates a word whose value comes from another word or program and is unknown.
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

    /// Returns the last component of the path in the word, if that component is known.
    pub(crate) fn base_name(&self) -> Option<&str> {
        let path = match &self.text {
            WordValue::Literal(path) | WordValue::Home(path) => path,
            WordValue::Dynamic { .. } => return None,
        };
        Some(path.rsplit('/').next().unwrap_or(path))
    }

    /// True if the word is certainly an option.
    pub(crate) fn is_flag(&self) -> bool {
        self.literal()
            .is_some_and(|text| text.len() > 1 && text.starts_with('-'))
    }
}
