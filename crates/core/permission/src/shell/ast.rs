//! What a command line says, as far as permission must know it.

use crate::shape::ANY;

/// What runs one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellScript {
    pub(crate) items: Vec<Pipeline>,
}

/// One pipeline, and how it hangs on the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pipeline {
    pub(crate) operator: ListOperator,
    pub(crate) commands: Vec<ShellCommand>,
    pub(crate) mode: JobMode,
}

/// When a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOperator {
    /// After the one before, whatever came of it.
    Then,
    /// If the one before succeeded.
    And,
    /// If the one before failed.
    Or,
}

/// Whether the shell waits for a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobMode {
    /// It does.
    Foreground,
    /// It runs in a shell of its own.
    Background,
}

/// One command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShellCommand {
    Simple(SimpleCommand),
    Compound(CompoundCommand),
    Function(FunctionDefinition),
    /// `[[ … ]]`: runs nothing but the substitutions in its words.
    Test {
        words: Vec<ShellWord>,
        redirects: Vec<Redirect>,
    },
}

/// Assignments, words and redirects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    pub(crate) assignments: Vec<ShellWord>,
    pub(crate) words: Vec<ShellWord>,
    pub(crate) redirects: Vec<Redirect>,
}

/// Scripts inside a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompoundCommand {
    pub(crate) kind: CompoundKind,
    /// Words of the frame: what a loop runs over, what a case compares.
    pub(crate) words: Vec<ShellWord>,
    pub(crate) scripts: Vec<ShellScript>,
    pub(crate) redirects: Vec<Redirect>,
}

/// The frame.
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

/// A function is defined; nothing of it runs yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionDefinition {
    pub(crate) name: String,
    pub(crate) body: Box<CompoundCommand>,
}

/// Where input comes from and output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    pub(crate) target: ShellWord,
}

/// What a redirect does with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// Opens it for reading.
    Read,
    /// Creates, truncates or appends to it.
    Write,
    /// Nothing with a file: another descriptor, or text from the line itself.
    Inner,
}

/// A word of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// As it was written.
    pub(crate) source: String,
    /// What it will be.
    pub(crate) text: WordValue,
    /// Every text it may become, in the alphabet of [`overlap`](crate::shape::overlap).
    pub(crate) shape: String,
    /// What its substitutions run.
    pub(crate) scripts: Vec<ShellScript>,
}

/// What a word will be when the command gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordValue {
    /// Exactly this.
    Literal(String),
    /// The user's home folder and this after it.
    Home(String),
    /// Only the shell will know. Every word it becomes begins with `lead`, unless it splits.
    Dynamic { lead: String, splits: WordSplitting },
}

/// Whether a word that only the shell knows can fall apart into others that begin differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordSplitting {
    /// It can: an expansion in it is not quoted.
    Yes,
    /// It cannot.
    No,
}

impl ShellWord {
    /// The text, if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.text {
            WordValue::Literal(text) => Some(text),
            WordValue::Home(_) | WordValue::Dynamic { .. } => None,
        }
    }

    /// A word that stands for what another word or program will give.
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

    /// The last part of the path it names, as far as that is known.
    pub(crate) fn base_name(&self) -> Option<&str> {
        let path = match &self.text {
            WordValue::Literal(path) | WordValue::Home(path) => path,
            WordValue::Dynamic { .. } => return None,
        };
        Some(path.rsplit('/').next().unwrap_or(path))
    }

    /// Whether it is a flag, as far as that is known.
    pub(crate) fn is_flag(&self) -> bool {
        self.literal()
            .is_some_and(|text| text.len() > 1 && text.starts_with('-'))
    }
}
