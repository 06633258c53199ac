//! Information about a tool besides its specification: group, examples, aliases.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// The purpose of a tool, by which tools are grouped. A profile consists of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Tools for reading, finding and changing files.
    Files,
    /// Tools for running programs.
    Running,
    /// Tools for the dialog with the user.
    Dialogue,
    /// Tools for knowledge about the conversation and the project.
    Knowledge,
    /// All other tools.
    Others,
}

impl Group {
    /// All groups, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Files,
        Self::Running,
        Self::Dialogue,
        Self::Knowledge,
        Self::Others,
    ];

    /// Returns the name used in lists and in `--allowed-tools`.
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

/// The condition under which a tool is offered if the user selects no tools. A tool that is not
/// offered is deferred: `tool_search` finds it, and it can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The tool is offered to every agent.
    Default,
    /// The tool is offered if calls are a native part of the API.
    Native,
    /// The tool is offered if calls are part of the model's text.
    Text,
    /// The tool is offered only if it is selected by name.
    Extension,
}

/// Another name by which models call a tool, with parameters of its own.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    pub name: &'static str,
    /// Translates arguments of the alias into arguments of the tool. Arguments that are already
    /// named like the tool's parameters stay unchanged.
    pub translate: fn(Map<String, Value>) -> Map<String, Value>,
}

/// Information about a tool in addition to its specification. A text that does not exist is empty.
#[derive(Clone, Copy, Debug)]
pub struct Manual {
    /// The purpose of the tool.
    pub group: Group,
    /// The condition under which the tool is offered by default.
    pub availability: Availability,
    /// A few words that describe the situation shown by `example`.
    pub example_of: &'static str,
    /// The arguments of an exemplary call, as a JSON object.
    pub example: &'static str,
    /// A rule for using the tool that its schema cannot express.
    pub guideline: &'static str,
    /// The description for small models; empty if the full description is short enough.
    pub short: &'static str,
    /// The comma-separated parameters that are offered to a small model; if empty, all are offered.
    /// Small models fill in every parameter that they see: a model that was offered `sandbox` asked
    /// to leave the sandbox to run a script.
    pub few_parameters: &'static str,
    pub aliases: &'static [Alias],
}

impl Manual {
    /// The manual of a tool that is not part of haft.
    pub const NONE: Self = Self {
        group: Group::Others,
        availability: Availability::Default,
        example_of: "",
        example: "",
        guideline: "",
        short: "",
        few_parameters: "",
        aliases: &[],
    };

    /// Returns an empty manual for a built-in tool of `group`.
    pub const fn for_group(group: Group) -> Self {
        Self {
            group,
            ..Self::NONE
        }
    }
}

/// The parsed text file of a tool. The file contains the tool's description. Below a line `---`, it
/// contains one line `KEY: TEXT` for each text of the manual (`@short`, `@few`, `@guideline`,
/// `@example`, `@call`) and, in a language other than English, for each parameter.
pub struct ToolTexts {
    pub description: &'static str,
    /// All texts below the description, by key.
    pub others: BTreeMap<&'static str, &'static str>,
}

impl ToolTexts {
    pub fn parse(text: &'static str) -> Self {
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

    /// Returns `base` with its texts replaced by those in the file.
    pub fn fill_manual(&self, base: Manual) -> Manual {
        let text = |key, known| self.others.get(key).copied().unwrap_or(known);
        Manual {
            example_of: text("@example", base.example_of),
            example: text("@call", base.example),
            guideline: text("@guideline", base.guideline),
            short: text("@short", base.short),
            few_parameters: text("@few", base.few_parameters),
            ..base
        }
    }
}

/// A text about the best use of some tools. The text is sent to the model while at least one of
/// these tools is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseDocument {
    /// The heading of the text.
    pub name: String,
    pub text: String,
    /// The names of the tools that the text is about.
    pub tools: Vec<String>,
}

impl fmt::Display for CaseDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "# {}\n\n{}", self.name, self.text.trim_end())
    }
}
