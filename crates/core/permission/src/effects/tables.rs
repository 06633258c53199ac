//! What is known of programs, as data: the files in `tables/`, read when the first command line is
//! decided.

use std::sync::LazyLock;

use serde::Deserialize;

use super::CommandRole;

/// The files are one document: lists of names first, then the entries.
const FILES: &str = concat!(
    include_str!("tables/names.toml"),
    include_str!("tables/wrappers.toml"),
    include_str!("tables/spellings.toml"),
    include_str!("tables/walkers.toml"),
    include_str!("tables/programs.toml")
);

/// The tables. None if they cannot be read, which a test rules out: then no rule covers any
/// command.
pub(super) fn tables() -> Option<&'static ProgramTables> {
    static TABLES: LazyLock<Option<ProgramTables>> = LazyLock::new(|| toml::from_str(FILES).ok());
    TABLES.as_ref()
}

/// Everything in `tables/`; `names.toml` says what each list is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramTables {
    pub(super) shell_state: NameList,
    pub(super) readers: NameList,
    pub(super) shells: NameList,
    pub(super) foreign_shells: NameList,
    pub(super) launchers: NameList,
    pub(super) sed: NameList,
    pub(super) awk: NameList,
    pub(super) find: NameList,
    pub(super) closed: NameList,
    pub(super) lookers: NameList,
    #[serde(rename = "wrapper")]
    wrappers: Vec<WrapperEntry>,
    #[serde(rename = "program")]
    programs: Vec<ProgramEntry>,
    #[serde(rename = "walker")]
    pub(super) walkers: Vec<ProgramEntry>,
    #[serde(rename = "spelling")]
    pub(super) spellings: Vec<SpellingEntry>,
}

impl ProgramTables {
    pub(super) fn wrapper(&self, name: &str) -> Option<&WrapperEntry> {
        self.wrappers
            .iter()
            .find(|wrapper| wrapper.names.contain(name))
    }

    /// Every entry of a program: there may be some for single subcommands.
    pub(super) fn programs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ProgramEntry> {
        self.programs
            .iter()
            .filter(move |program| program.names.contain(name))
    }
}

/// Names that share what is said of them; also lists of options, verbs and the like.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct NameList(Vec<String>);

impl NameList {
    pub(super) fn contain(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Options of programs that have several names; `spellings.toml` has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpellingEntry {
    pub(super) names: NameList,
    pub(super) options: Vec<NameList>,
}

/// A program that runs the command after its options and operands; `wrappers.toml` says what each
/// field is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WrapperEntry {
    names: NameList,
    pub(super) role: CommandRole,
    pub(super) flags: String,
    pub(super) valued: String,
    pub(super) long: NameList,
    pub(super) long_valued: NameList,
    pub(super) lone_dash: bool,
    pub(super) verbs: NameList,
    pub(super) elsewhere: bool,
    pub(super) operands: usize,
    pub(super) assignments: bool,
    pub(super) same_shell: bool,
    pub(super) command: CommandForm,
}

/// How a wrapper takes its command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CommandForm {
    #[default]
    Words,
    Joined,
    WithInput,
}

/// One way to look at a program's words; `programs.toml` says what each field is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProgramEntry {
    pub(super) names: NameList,
    pub(super) after: NameList,
    pub(super) before: WrapperEntry,
    pub(super) harmless: NameList,
    pub(super) long_form: LongForm,
    pub(super) skips_hidden: bool,
    pub(super) short: String,
    pub(super) long: NameList,
    pub(super) words: NameList,
    pub(super) prefixes: NameList,
    pub(super) verbs: NameList,
    pub(super) writes_from: Option<usize>,
    pub(super) input: InputUse,
    pub(super) assignments: bool,
    pub(super) bundles_first: bool,
    pub(super) stops_at_operand: bool,
}

impl ProgramEntry {
    /// Whether no option and no word is named.
    pub(super) fn says_nothing(&self) -> bool {
        let lists = [&self.long, &self.words, &self.prefixes];
        self.short.is_empty() && lists.iter().all(|list| list.is_empty())
    }
}

/// How a program takes its long options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LongForm {
    /// With two dashes, and any beginning that is clear.
    #[default]
    Abbreviated,
    /// The same, or with one dash.
    OneDash,
    /// With two dashes, and whole.
    Exact,
    /// With one dash or two, and whole.
    Whole,
}

/// What a program takes from its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputUse {
    #[default]
    Data,
    /// Commands, where there are fewer operands than this: the last one says what they are
    /// otherwise.
    CommandsBelow(usize),
    Commands,
}

#[cfg(test)]
mod tests;
