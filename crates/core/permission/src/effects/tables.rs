//! What is known of programs, as data: the files in `tables/`, read when the first command line is decided.

use std::sync::LazyLock;

use serde::Deserialize;

use super::CommandRole;

/// The files are one document: lists of names first, then the entries.
const FILES: &str = concat!(
    include_str!("tables/names.toml"),
    include_str!("tables/wrappers.toml"),
    include_str!("tables/programs.toml")
);

/// The tables. None if they cannot be read, which a test rules out: then no rule covers any command.
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
    #[serde(rename = "wrapper")]
    wrappers: Vec<WrapperEntry>,
    #[serde(rename = "program")]
    programs: Vec<ProgramEntry>,
}

impl ProgramTables {
    pub(super) fn wrapper(&self, name: &str) -> Option<&WrapperEntry> {
        self.wrappers.iter().find(|wrapper| wrapper.names.contain(name))
    }

    /// Every entry of a program: there may be some for single subcommands.
    pub(super) fn programs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ProgramEntry> {
        self.programs.iter().filter(move |program| program.names.contain(name))
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A program that runs the command after its options and operands; `wrappers.toml` says what each field is.
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
    names: NameList,
    pub(super) after: Option<String>,
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

/// What a program takes from its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputUse {
    #[default]
    Data,
    /// Commands, where there are fewer operands than this: the last one says what they are otherwise.
    CommandsBelow(usize),
    Commands,
}

#[cfg(test)]
mod tests;
