//! What there is to say of a tool beside its specification.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// What a tool is for; profiles are made of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Reading, finding and changing files.
    Files,
    /// Running programs.
    Running,
    /// Talking with the user.
    Dialogue,
    /// What the conversation and the project know.
    Knowledge,
    /// Everything else.
    Others,
}

impl Group {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 5] = [
        Self::Files,
        Self::Running,
        Self::Dialogue,
        Self::Knowledge,
        Self::Others,
    ];

    /// Its name in lists and in `--allowed-tools`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Running => "running",
            Self::Dialogue => "dialogue",
            Self::Knowledge => "knowledge",
            Self::Others => "others",
        }
    }
}

/// Whether a tool is offered when nobody chose. One that is not offered then is deferred: found by
/// `tool_search`, and callable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// It belongs to the set every agent starts with.
    Default,
    /// It belongs to that set where calls have a form of their own in the API.
    Native,
    /// It belongs to that set where calls are part of the model's text.
    Text,
    /// It is offered only where it is named.
    Extension,
}

/// Another name a tool answers to, with the parameters it had under that name.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// From the arguments that go with the name to those of the tool. The tool's own parameters
    /// pass as they are.
    pub translate: fn(Map<String, Value>) -> Map<String, Value>,
}

/// What there is to say of a tool beside its specification.
#[derive(Clone, Copy, Debug)]
pub struct Manual {
    /// What it is for.
    pub group: Group,
    /// Whether it is offered when nobody chose.
    pub set: Set,
    /// When one calls it like in the example, in a few words.
    pub example_of: &'static str,
    /// The arguments of a good call, as a JSON object. Empty when there is none to show.
    pub example: &'static str,
    /// A rule for its use that no schema can say; empty when there is none.
    pub guideline: &'static str,
    /// The description for small models; empty where the whole one is short enough.
    pub short: &'static str,
    /// The parameters a small model is offered, separated by commas; empty where that is all of
    /// them. Such a model fills in whatever it sees: offered `sandbox`, it asked to leave the
    /// sandbox to run a script.
    pub few_parameters: &'static str,
    /// Its other names.
    pub aliases: &'static [Alias],
}

impl Manual {
    /// Nothing to say of a tool that somebody else made.
    pub const NONE: Self = Self {
        group: Group::Others,
        set: Set::Default,
        example_of: "",
        example: "",
        guideline: "",
        short: "",
        few_parameters: "",
        aliases: &[],
    };

    /// A built-in tool of this group.
    pub const fn of(group: Group) -> Self {
        Self {
            group,
            ..Self::NONE
        }
    }
}

/// What the file beside a tool's code says: the description, and below a line `---` one line `KEY:
/// TEXT` each for the manual (`@short`, `@few`, `@guideline`, `@example`, `@call`) and, in another
/// language than English, for the parameters.
pub struct ToolTexts {
    /// The description.
    pub description: &'static str,
    /// Everything else by its key.
    pub others: BTreeMap<&'static str, &'static str>,
}

impl ToolTexts {
    /// Takes such a text apart.
    pub fn of(text: &'static str) -> Self {
        let (description, lines) = text.split_once("\n---\n").unwrap_or((text, ""));
        let others = lines
            .lines()
            .filter_map(|line| line.split_once(": "))
            .collect();
        Self {
            description: description.trim_end(),
            others,
        }
    }

    /// A manual with these texts in it.
    pub fn manual(&self, known: Manual) -> Manual {
        let text = |key, known| self.others.get(key).copied().unwrap_or(known);
        Manual {
            example_of: text("@example", known.example_of),
            example: text("@call", known.example),
            guideline: text("@guideline", known.guideline),
            short: text("@short", known.short),
            few_parameters: text("@few", known.few_parameters),
            ..known
        }
    }
}

/// A text about how some tools are best used; the model gets it while one of them is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseDocument {
    /// Its heading.
    pub name: String,
    /// The text.
    pub text: String,
    /// The tools it is about.
    pub tools: Vec<String>,
}

impl fmt::Display for CaseDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "# {}\n\n{}", self.name, self.text.trim_end())
    }
}
