//! Data about programs: the files in `tables/`, parsed when the first command line is decided.

use std::sync::LazyLock;

use serde::Deserialize;

use super::CommandRole;

/// The content of all table files, which form one document: lists of names first, then the entries.
const TABLE_FILES: &str = concat!(
    include_str!("tables/names.toml"),
    include_str!("tables/wrappers.toml"),
    include_str!("tables/spellings.toml"),
    include_str!("tables/walkers.toml"),
    include_str!("tables/versions.toml"),
    include_str!("tables/programs.toml")
);

/// Returns the tables, or `None` if they cannot be parsed, which a test rules out. Without tables,
/// no rule covers any command.
pub(super) fn program_tables() -> Option<&'static ProgramTables> {
    static TABLES: LazyLock<Option<ProgramTables>> =
        LazyLock::new(|| toml::from_str(TABLE_FILES).ok());
    TABLES.as_ref()
}

/// The content of `tables/`; `names.toml` describes each list.
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
    pub(super) writers: NameList,
    #[serde(rename = "wrapper")]
    wrappers: Vec<WrapperEntry>,
    #[serde(rename = "program")]
    programs: Vec<ProgramEntry>,
    #[serde(rename = "walker")]
    pub(super) walkers: Vec<ProgramEntry>,
    pub(super) versions: Vec<VersionsEntry>,
    #[serde(rename = "spelling")]
    pub(super) spellings: Vec<SpellingEntry>,
}

impl ProgramTables {
    pub(super) fn find_wrapper(&self, name: &str) -> Option<&WrapperEntry> {
        self.wrappers
            .iter()
            .find(|wrapper| wrapper.names.contains(name))
    }

    /// Returns the entries of a program. A program can have several entries, for different
    /// subcommands.
    pub(super) fn find_programs<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = &'a ProgramEntry> {
        self.programs
            .iter()
            .filter(move |program| program.names.contains(name))
    }
}

/// A list of names, options, or subcommands.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct NameList(Vec<String>);

impl NameList {
    pub(super) fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The synonyms of a program's options, from `spellings.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpellingEntry {
    pub(super) names: NameList,
    pub(super) options: Vec<NameList>,
}

/// Subcommands of git that print versions of files; `versions.toml` describes each field.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct VersionsEntry {
    pub(super) names: NameList,
    pub(super) always: bool,
    pub(super) short: String,
    pub(super) long: NameList,
    pub(super) words: NameList,
    pub(super) without: NameList,
    pub(super) without_short: String,
}

/// A program that runs the command in its arguments, after its own options and operands;
/// `wrappers.toml` describes each field.
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

/// The form in which a wrapper takes its command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CommandForm {
    #[default]
    Words,
    Joined,
    WithInput,
}

/// A set of checks for a program's words; `programs.toml` describes each field.
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
    pub(super) known: NameList,
    pub(super) remote_shell: RemoteShell,
    pub(super) module_option: Option<String>,
}

impl ProgramEntry {
    /// True if the entry names no options and no words.
    pub(super) fn names_no_words(&self) -> bool {
        let lists = [&self.long, &self.words, &self.prefixes];
        self.short.is_empty() && lists.iter().all(|list| list.is_empty())
    }
}

/// The number of dashes of a program's long options, and whether the options may be abbreviated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LongForm {
    /// Long options have two dashes and may be abbreviated.
    #[default]
    Abbreviated,
    /// Long options have one dash or two and may be abbreviated.
    OneDash,
    /// Long options have two dashes and cannot be abbreviated.
    Exact,
    /// Long options have one dash or two and cannot be abbreviated.
    Whole,
}

/// The words of a program that a shell on another machine reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemoteShell {
    #[default]
    None,
    /// Every word may be part of a remote command line.
    Words,
    /// Only words with a colon, which name a remote file.
    Paths,
}

/// Records whether a program's input is data or commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputUse {
    #[default]
    Data,
    /// The input contains commands if there are fewer operands than this number; otherwise an
    /// operand names the source of the commands.
    CommandsBelow(usize),
    Commands,
}

#[cfg(test)]
mod tests;
